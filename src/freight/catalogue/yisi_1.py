"""YiSi-1: Lo, "YiSi: a Unified Semantic MT Quality Evaluation and Estimation Metric", WMT 2019."""

from freight.catalogue.f_alpha import matching
from freight.catalogue.shared import Chosen, Layer, masses
from freight.encoding import EMBEDDED
from freight.metric import Metric


def yisi_1(
    encoder: Chosen = EMBEDDED, layer: Layer = None, alpha: float = 0.7, references: str = "best"
) -> Metric:
    """Matched tokens weighed by IDF with one added inside the logarithm, recall counting more."""
    return matching("yisi-1", "f", alpha, encoder, layer, masses("ref", one_added=True), references)
