"""WMD: Kusner et al., "From Word Embeddings To Document Distances", ICML 2015.

gensim's `wmdistance` drops no stop words and scales vectors to unit length: equal to ours with
`stop_words=None, unit=True`.
"""

from collections.abc import Iterable
from math import nan

from freight import costs, readouts, units
from freight.catalogue.shared import Chosen, Layer, word_source
from freight.catalogue.stop_words import english
from freight.encoding import DISTILLED
from freight.errors import InvalidInput
from freight.metric import Metric
from freight.results import Column
from freight.types import Problem

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
