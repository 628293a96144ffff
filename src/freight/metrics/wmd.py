"""Word mover's distance: Kusner et al., "From Word Embeddings To Document Distances", ICML 2015;
WMDO: Chow, Specia and Madhyastha, "WMDO: Fluency-based Word Mover's Distance for Machine
Translation Evaluation", WMT 2019; and sentence mover's similarity: Clark, Celikyilmaz and Smith,
"Sentence Mover's Similarity: Automatic Evaluation for Multi-Sentence Texts", ACL 2019, computed as
in the authors' code. Departures are described at each factory.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from freight.metrics.declaration import HIGHER, LOWER, Expected, declare
from freight.metrics.parameter_types import (
    EncoderName,
    Idf,
    Language,
    LayerChoice,
    NotNegative,
    Punctuation,
    ReferencesRule,
)

if TYPE_CHECKING:
    from freight.core.metric import Metric
    from freight.core.units import Units


@declare(
    "wmd",
    columns={"distance": LOWER},
    presets={"gensim": {"stop_words": None, "unit": True}},
    paper='Kusner et al., "From Word Embeddings To Document Distances", ICML 2015.',
    choose_when="you want the classical baseline",
)
def wmd(
    encoder: EncoderName = "distilled",
    layer: LayerChoice = None,
    lang: Language = None,
    stop_words: Annotated[
        Literal["en"] | Sequence[str] | set[str] | frozenset[str] | None,
        Expected("'en', None, or a list of words"),
        Field(description="Words to leave out: those of English (en), or a list."),
    ] = "en",
    unit: Annotated[
        bool, Field(description="Whether vectors are normalized to unit length.")
    ] = False,
    idf: Idf = None,
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Word mover's distance: how far the words of one text travel to become those of the other.

    gensim's `wmdistance` drops no stop words and normalizes vectors to unit length: it equals ours
    with `stop_words=None, unit=True`.
    """
    from freight.metrics.parts import Column, Metric, Problem, costs, readouts, word_source

    words = content_words(stop_words)
    pooling = "unit-mean" if unit else "mean"
    text = word_source(
        encoder, layer, lang, idf=idf, which=words, pooling_name=pooling, punctuation=punctuation
    )
    return Metric(
        name="wmd",
        **text.fields(),
        cost=costs.euclidean,
        problems=(Problem(),),
        readout=readouts.distance,
        columns=(Column("distance", False, 0.0, math.nan, (0.0, math.inf)),),
        references=references,
    )


@declare(
    "wmdo",
    columns={"distance": LOWER},
    paper="Chow, Specia and Madhyastha, \"WMDO: Fluency-based Word Mover's Distance for Machine"
    ' Translation Evaluation", WMT 2019.',
    choose_when="you want the classical baseline with word order",
)
def wmdo(
    encoder: EncoderName = "distilled",
    layer: LayerChoice = None,
    lang: Language = None,
    order: Annotated[NotNegative, Field(description="Penalty of broken word order.")] = 0.18,
    unknown: Annotated[NotNegative, Field(description="Penalty of words without a vector.")] = 0.10,
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Word mover's distance with penalties for broken word order and for words without a vector."""
    from freight.metrics.parts import Column, Metric, Problem, costs, readouts, units, word_source

    text = word_source(encoder, layer, lang, which=units.whole_words, punctuation=punctuation)
    return Metric(
        name="wmdo",
        **text.fields(),
        cost=costs.cosine,
        problems=(Problem(),),
        readout=readouts.Fragmented(order, unknown),
        columns=(Column("distance", False, 0.0, math.nan, (0.0, math.inf)),),
        references=references,
    )


_SENTENCE_MOVERS = (
    "Clark, Celikyilmaz and Smith, \"Sentence Mover's Similarity: Automatic Evaluation for"
    ' Multi-Sentence Texts", ACL 2019.'
)


@declare(
    "sms",
    columns={"similarity": HIGHER, "distance": LOWER},
    paper=_SENTENCE_MOVERS,
    choose_when="texts have many sentences",
)
def sms(
    encoder: EncoderName = "distilled",
    layer: LayerChoice = None,
    lang: Language = None,
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Transport between sentences, each the mean of its words, with mass by its length."""
    from freight.metrics.parts import (
        Column,
        Metric,
        Problem,
        costs,
        drop_marks,
        readouts,
        units,
        word_source,
    )

    which = drop_marks(units.sentences, punctuation)
    text = word_source(encoder, layer, lang, "count", which=which, sentences=True)
    return Metric(
        name="sms",
        **text.fields(),
        cost=costs.euclidean,
        problems=(Problem(),),
        readout=readouts.Similarity("exponential"),
        columns=(
            Column("similarity", True, 1.0, 0.0, (0.0, 1.0)),
            Column("distance", False, 0.0, math.nan, (0.0, math.inf)),
        ),
        references=references,
    )


@declare(
    "s+wms",
    columns={"similarity": HIGHER, "distance": LOWER},
    paper=_SENTENCE_MOVERS,
    page="sms",
    choose_when="texts have many sentences, and words should count too",
)
def s_wms(
    encoder: EncoderName = "distilled",
    layer: LayerChoice = None,
    lang: Language = None,
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Transport between sentences and words together, half of the mass on either."""
    from freight.metrics.parts import drop_marks, units

    both = drop_marks(units.sentences_and_words, punctuation)
    sentences = sms(encoder, layer, lang, punctuation, references)
    return replace(sentences, name="s+wms", units=both)


def content_words(stop_words: Iterable[str] | None) -> "Units":
    """Words without the stop words: those of English, a list of one's own, or none."""
    from freight.metrics.parts import units

    if stop_words is None:
        return units.words
    if stop_words == "en":
        return units.Without(english_stop_words())
    return units.Without(frozenset(word.lower() for word in stop_words))


@cache
def english_stop_words() -> frozenset[str]:
    """The English stop words that come with the package."""
    return frozenset((files(__package__) / "stop_words.txt").read_text(encoding="utf-8").split())
