"""Sentence mover's similarity: Clark, Celikyilmaz and Smith, "Sentence Mover's Similarity:
Automatic Evaluation for Multi-Sentence Texts", ACL 2019.
"""

from freight import costs, readouts, units
from freight.catalogue.shared import Chosen, Layer, word_source
from freight.encoding import DISTILLED
from freight.metric import Metric
from freight.results import Column
from freight.types import Problem


def sms(
    encoder: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    references: str = "best",
) -> Metric:
    """Sentences moved as wholes, each the mean of its words and as heavy as it is long."""
    return _mover("sms", units.sentences, encoder, layer, lang, references)


def s_wms(
    encoder: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    references: str = "best",
) -> Metric:
    """Sentences and words moved together, half of the mass on either."""
    return _mover("s+wms", units.sentences_and_words, encoder, layer, lang, references)


def _mover(
    name: str,
    which: units.Units,
    encoder: Chosen,
    layer: Layer,
    lang: str | None,
    references: str,
) -> Metric:
    return Metric(
        name,
        *word_source(encoder, layer, lang, "count", which=which, sentences=True),
        cost=costs.euclidean,
        problems=(Problem(),),
        readout=readouts.Similarity("exponential"),
        columns=(
            Column("similarity", True, 1.0, 0.0),
            Column("distance", False, 0.0, float("inf")),
        ),
        references=references,
    )
