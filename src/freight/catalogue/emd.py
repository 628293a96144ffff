"""Earth mover's distance between contextual tokens: Lazy-EMD with both sides held.

As the Lazy-EMD authors compute it for comparison (Chen et al., IJCAI 2020): exact, no blur.
"""

from freight import costs, readouts
from freight.catalogue.shared import Chosen, Layer, source
from freight.encoding import EMBEDDED
from freight.metric import Metric
from freight.results import Column
from freight.types import Problem


def emd(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    mass: str = "uniform",
    idf: str | None = None,
    unit: str = "tokens",
    join: str = "mean",
    references: str = "best",
) -> Metric:
    """The least that moving all of one text's tokens onto the other's costs."""
    return Metric(
        "emd",
        *source(encoder, layer, unit, join, mass, idf),
        cost=costs.cosine,
        problems=(Problem(),),
        readout=readouts.Transport(),
        columns=(Column("transport", False, 0.0, 2.0), Column("objective", False, 0.0, 2.0)),
        references=references,
    )
