"""BaryScore: Colombo et al., "Automatic Text Evaluation through the Lens of Wasserstein
Barycenters", EMNLP 2021.

The authors' code takes the last five hidden states, keeps special tokens, and scores the squared
distance; so do we. It starts the barycentre at zero, where the first plan is whatever the solver's
tie-breaking gives; ours starts at the unit-wise mean of the layers. Its IDF is looked up with keys
that never match; ours weighs.
"""

from freight import costs, readouts, units
from freight.catalogue.shared import Chosen, masses
from freight.encoding import EMBEDDED
from freight.encoding import encoder as find
from freight.errors import InvalidInput
from freight.metric import Metric
from freight.results import Column
from freight.types import Problem
from freight.weightings import Barycenter


def bary_score(
    encoder: Chosen = EMBEDDED,
    layers: int | str = 5,
    idf: str | None = None,
    epsilon: float = 0.0,
    references: str = "best",
) -> Metric:
    """Transport between the Wasserstein barycentres of an encoder's last layers, or of `all`."""
    found = find(encoder)
    count = found.depth if layers == "all" else layers
    if not isinstance(count, int) or not 1 <= count <= found.depth + 1:
        raise InvalidInput(
            f"layers={layers!r}; give 'all' or how many of the last, 1..{found.depth + 1}"
        )
    mass, ref_mass = masses(idf, special=True)
    return Metric(
        name="bary-score",
        encoder=found,
        layers=tuple(range(found.depth + 1 - count, found.depth + 1)),
        units=units.all_tokens,
        weighting=Barycenter(mass),
        ref_weighting=None if ref_mass is None else Barycenter(ref_mass),
        cost=costs.squared_euclidean,
        problems=(Problem(epsilon=epsilon),),
        readout=readouts.distance,
        columns=(Column("distance", False, 0.0, 4.0),),
        references=references,
    )
