"""The house metric: what the seeds know, chosen by how well it agrees with people.

From Lazy-EMD the price on what stays unmoved, and the objective for a score; from BERTScore that
every unit also answers for itself; from BaryScore several layers; from STD that neighbours count.
New are standardised vectors and a cost that is the logarithm of similarity: exp(-cost) is the
cosine, so a score is a kind of mean cosine, and one lost word weighs more than many worn ones.
"""

from freight.core import costs, readouts
from freight.core.metric import Metric
from freight.core.result import Column
from freight.encoders import EMBEDDED
from freight.encoders import encoder as find
from freight.metrics.sources import Chosen, Layer, source
from freight.transport.types import Problem

INF = float("inf")


def freight(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    hyp: float = 1.0,
    ref: float = 1.0,
    greedy: float = 0.5,
    neighbours: float = 0.05,
    floor: float = 0.05,
    mass: str = "uniform",
    idf: str | None = None,
    unit: str = "tokens",
    join: str = "standardised",
    references: str = "best",
) -> Metric:
    """Lazy and greedy transport of standardised tokens, the upper half of an encoder together."""
    found = find(encoder)
    layer = f"{-(found.depth // 2) - 1}:" if layer is None else layer
    return Metric(
        "freight",
        *source(found, layer, unit, join, mass, idf),
        cost=costs.Neighbours(costs.LogCosine(floor), neighbours),
        problems=(Problem(hyp, ref), Problem(INF, 0.0), Problem(0.0, INF)),
        readout=readouts.LazyAndGreedy(greedy),
        columns=(Column("score", True, 1.0, 0.0),),
        references=references,
    )
