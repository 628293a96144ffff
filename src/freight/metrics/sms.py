"""Sentence mover's similarity: Clark, Celikyilmaz and Smith, "Sentence Mover's Similarity:
Automatic Evaluation for Multi-Sentence Texts", ACL 2019.
"""

from dataclasses import replace

from freight.core import costs, readouts, units
from freight.core.metric import Metric
from freight.core.result import Column
from freight.encoders import DISTILLED
from freight.metrics.sources import Chosen, Layer, word_source
from freight.transport.types import Problem


def sms(
    encoder: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    references: str = "best",
) -> Metric:
    """Sentences moved as wholes, each the mean of its words and as heavy as it is long."""
    far = Column("distance", False, 0.0, float("inf"))
    return Metric(
        "sms",
        *word_source(encoder, layer, lang, "count", which=units.sentences, sentences=True),
        cost=costs.euclidean,
        problems=(Problem(),),
        readout=readouts.Similarity("exponential"),
        columns=(Column("similarity", True, 1.0, 0.0), far),
        references=references,
    )


def s_wms(
    encoder: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    references: str = "best",
) -> Metric:
    """Sentences and words moved together, half of the mass on either."""
    only = sms(encoder, layer, lang, references)
    return replace(only, name="s+wms", units=units.sentences_and_words)
