"""MoverScore: Zhao et al., "MoverScore: Text Generation Evaluating with Contextualized Embeddings
and Earth Mover Distance", EMNLP 2019, in its two released versions. Departures from the authors'
code are described at the factory.

Sentence mover's similarity: Clark, Celikyilmaz and Smith, "Sentence Mover's Similarity:
Automatic Evaluation for Multi-Sentence Texts", ACL 2019. Computed as in the authors' code.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from freight.metrics.declaration import HIGHER, LOWER, Slider, declare
from freight.metrics.parameter_types import (
    EncoderName,
    Idf,
    Language,
    LayerChoice,
    Punctuation,
    ReferencesRule,
)

if TYPE_CHECKING:
    from freight.core.metric import Metric


@declare(
    "mover-score",
    columns={"similarity": HIGHER, "distance": LOWER},
    presets={"v1": {"version": 1}, "v2": {"version": 2}},
    paper='Zhao et al., "MoverScore: Text Generation Evaluating with Contextualized Embeddings and'
    ' Earth Mover Distance", EMNLP 2019.',
    choose_when="you compare with published figures",
)
def mover_score(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    version: Annotated[
        int, Field(ge=1, le=2, description="Which of the two released versions."), Slider(1, 2)
    ] = 2,
    ngram: Annotated[
        int, Field(ge=1, description="Move n-grams of so many words."), Slider(1, 9)
    ] = 1,
    idf: Idf = "own",
    references: ReferencesRule = "best",
) -> "Metric":
    """Earth mover's distance between words, or n-grams of them, weighed by IDF.

    The second version of the authors' code ignores its n-gram argument; ours does not. It fits IDF
    on each side's own texts, and so do we. Both versions drop continuations of words and ASCII
    punctuation, and keep typographic quotes. Transport is exact here: identical texts score 1.
    """
    from freight.metrics.parts import (
        Column,
        Mass,
        Metric,
        Problem,
        Windows,
        costs,
        readouts,
        source,
        units,
    )
    from freight.metrics.parts import encoder as find_encoder

    chosen = find_encoder(encoder)
    first = version == 1
    layer = (f"-{min(5, chosen.depth + 1)}:" if first else -1) if layer is None else layer
    pooling = "power-means" if first else "unit-mean"
    text = source(chosen, layer, pooling_name=pooling, idf=idf, special=True, weigh_special=True)
    weighting = text.weighting
    if ngram > 1 and isinstance(weighting, Mass):
        weighting = Windows(weighting, ngram)
    own = weighting if text.ref_weighting else None
    words = replace(text, units=units.heads, weighting=weighting, ref_weighting=own)
    return Metric(
        name="mover-score",
        **words.fields(),
        cost=costs.squared_euclidean if first else costs.euclidean,
        problems=(Problem(),),
        readout=readouts.Similarity("complement" if first else "inverse"),
        columns=(
            Column("similarity", True, 1.0, 0.0, (-math.inf, 1.0)),
            Column("distance", False, 0.0, 2.0 if first else math.sqrt(2.0), (0.0, math.inf)),
        ),
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
