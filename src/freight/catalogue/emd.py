"""Earth mover's distance between contextual tokens: Lazy-EMD with both sides held."""

from freight import costs, readouts, units
from freight.catalogue.shared import Chosen, Layer, masses, resolve
from freight.encoding import EMBEDDED
from freight.metric import Metric
from freight.results import Column
from freight.types import Problem


def emd(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    idf: str | None = None,
    references: str = "best",
) -> Metric:
    """The least that moving all of one text's tokens onto the other's costs."""
    found, layers = resolve(encoder, layer)
    mass, ref_mass = masses(idf)
    return Metric(
        name="emd",
        encoder=found,
        layers=layers,
        units=units.tokens,
        weighting=mass,
        ref_weighting=ref_mass,
        cost=costs.cosine,
        problems=(Problem(),),
        readout=readouts.transport,
        columns=(Column("transport", False, 0.0, 2.0), Column("objective", False, 0.0, 2.0)),
        references=references,
    )
