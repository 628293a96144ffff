"""Sentence mover's similarity: Clark, Celikyilmaz and Smith, "Sentence Mover's Similarity:
Automatic Evaluation for Multi-Sentence Texts", ACL 2019. Computed as in the authors' code.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from freight.metrics.declaration import HIGHER, LOWER, declare
from freight.metrics.parameter_types import (
    EncoderName,
    Language,
    LayerChoice,
    Punctuation,
    ReferencesRule,
)

if TYPE_CHECKING:
    from freight.core.metric import Metric

_PAPER = (
    "Clark, Celikyilmaz and Smith, \"Sentence Mover's Similarity: Automatic Evaluation for"
    ' Multi-Sentence Texts", ACL 2019.'
)


@declare(
    "sms",
    columns={"similarity": HIGHER, "distance": LOWER},
    paper=_PAPER,
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
    paper=_PAPER,
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
