"""BERTScore: Zhang et al., "BERTScore: Evaluating Text Generation with BERT", ICLR 2020.

As the bert-score package computes it in a batch of one: special tokens may be matched and weigh
nothing. In larger batches the package lets padding beat a negative similarity; ours never does.
"""

from freight.catalogue.f_alpha import matching
from freight.catalogue.shared import Chosen, Layer, masses
from freight.encoding import EMBEDDED
from freight.metric import Metric


def bert_score(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    idf: str | None = None,
    references: str = "each",
) -> Metric:
    """Every token matched to its most similar one, both ways: precision, recall and F1."""
    return matching("bert-score", "f1", 0.5, encoder, layer, masses(idf), references)
