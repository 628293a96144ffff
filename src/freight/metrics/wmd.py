"""WMD: Kusner et al., "From Word Embeddings To Document Distances", ICML 2015.

gensim's `wmdistance` drops no stop words and scales vectors to unit length: equal to ours with
`stop_words=None, unit=True`.
"""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from math import nan

from freight.core import costs, readouts, units
from freight.core.metric import Metric
from freight.core.result import Column
from freight.encoders import DISTILLED
from freight.errors import InvalidInput
from freight.metrics.sources import Chosen, Layer, word_source
from freight.transport.types import Problem

PRESETS = {"gensim": {"stop_words": None, "unit": True}}


def wmd(
    encoder: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    stop_words: str | Iterable[str] | None = "en",
    unit: bool = False,
    idf: str | None = None,
    references: str = "best",
) -> Metric:
    """Word mover's distance: how far the words of one text travel to become those of the other."""
    which = content_words(stop_words)
    join = "unit-mean" if unit else "mean"
    return Metric(
        "wmd",
        *word_source(encoder, layer, lang, idf=idf, which=which, join=join),
        cost=costs.euclidean,
        problems=(Problem(),),
        readout=readouts.distance,
        columns=(Column("distance", False, 0.0, nan),),
        references=references,
    )


def content_words(stop_words: str | Iterable[str] | None) -> units.Units:
    """Words less the stop words: those of English, a list of one's own, or none."""
    if stop_words is None:
        return units.words
    if stop_words == "en":
        return units.Without(english())
    if isinstance(stop_words, str):
        raise InvalidInput(f"stop_words={stop_words!r}; give 'en', None, or a list of words")
    return units.Without(frozenset(word.lower() for word in stop_words))


def wmdo(
    encoder: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    order: float = 0.18,
    unknown: float = 0.10,
    references: str = "best",
) -> Metric:
    """Word mover's distance that also charges broken word order and words without a vector."""
    return Metric(
        "wmdo",
        *word_source(encoder, layer, lang, which=units.whole_words),
        cost=costs.cosine,
        problems=(Problem(),),
        readout=readouts.Fragmented(order, unknown),
        columns=(Column("distance", False, 0.0, nan),),
        references=references,
    )


@cache
def english() -> frozenset[str]:
    """The list that lies beside this module."""
    return frozenset((files(__package__) / "stop_words.txt").read_text(encoding="utf-8").split())
