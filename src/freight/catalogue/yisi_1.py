"""YiSi-1: Lo, "YiSi: a Unified Semantic MT Quality Evaluation and Estimation Metric", WMT 2019.

Special tokens may be matched and weigh nothing. The structure of semantic roles that the full YiSi
adds is not part of it.
"""

from freight.catalogue.f_alpha import matching
from freight.catalogue.shared import Chosen, Layer, source
from freight.encoding import EMBEDDED
from freight.metric import Metric
from freight.readouts import PrecisionRecall


def yisi_1(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    alpha: float = 0.7,
    idf: str = "ref",
    unit: str = "tokens",
    join: str = "mean",
    references: str = "best",
) -> Metric:
    """Matched tokens weighed by IDF with one added inside the logarithm, recall counting more."""
    taken = source(encoder, layer, unit, join, "uniform", idf, special=True, one_added=True)
    return matching("yisi-1", taken, PrecisionRecall(alpha, "f"), references)
