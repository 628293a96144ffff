"""WMDO: Chow, Specia and Madhyastha, "WMDO: Fluency-based Word Mover's Distance for Machine
Translation Evaluation", WMT 2019.
"""

from math import nan

from freight import costs, readouts, units
from freight.catalogue.shared import Chosen, Layer, word_source
from freight.encoding import DISTILLED
from freight.metric import Metric
from freight.results import Column
from freight.types import Problem


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
