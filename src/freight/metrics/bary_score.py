"""BaryScore: Colombo et al., "Automatic Text Evaluation through the Lens of Wasserstein
Barycenters", EMNLP 2021.

The authors' code takes the last five hidden states, keeps special tokens, and scores the squared
distance; so do we. It starts the barycentre at zero, where the first plan is whatever the solver's
tie-breaking gives; ours starts at the unit-wise mean of the layers. Its IDF is looked up with keys
that never match; ours weighs.
"""

from freight.core import costs, readouts
from freight.core.metric import Metric
from freight.core.result import Column
from freight.encoders import EMBEDDED
from freight.encoders import encoder as find
from freight.metrics.sources import BARYCENTER, Chosen, Layer, source
from freight.transport.types import Problem

PRESETS = {
    "authors": {"layer": "-5:"},
    "paper": {"layer": "all"},
    "plus": {"layer": "-3:", "idf": "ref"},
}


def bary_score(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    idf: str | None = None,
    epsilon: float = 0.0,
    references: str = "best",
) -> Metric:
    """Transport between the Wasserstein barycentres of an encoder's last five layers."""
    found = find(encoder)
    layer = f"-{min(5, found.depth + 1)}:" if layer is None else layer
    taken = source(found, layer, join=BARYCENTER, idf=idf, special=True, weighed=True)
    return Metric(
        "bary-score",
        *taken,
        cost=costs.squared_euclidean,
        problems=(Problem(epsilon=epsilon),),
        readout=readouts.distance,
        columns=(Column("distance", False, 0.0, 4.0),),
        references=references,
    )
