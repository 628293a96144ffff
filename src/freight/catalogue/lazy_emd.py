"""Lazy-EMD: Chen et al., "Evaluating Natural Language Generation via Unbalanced Optimal Transport",
IJCAI 2020.

The authors' code cuts plan entries whose cost is 0.999 or more before it sums; ours does not. The
entropy is against the counting measure, as in their code.
"""

import math

from freight import costs, readouts, units
from freight.catalogue.shared import Chosen, Layer, by_language, masses, resolve
from freight.encoding import EMBEDDED
from freight.metric import Metric
from freight.results import Column
from freight.types import Problem


def lazy_emd(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    hyp: float | None = None,
    ref: float | None = None,
    epsilon: float = 0.009,
    lang: str | None = None,
    idf: str | None = None,
    references: str = "best",
) -> Metric:
    """Unbalanced transport between contextual tokens: what is dear to move may stay, at a price."""
    found, layers = resolve(encoder, layer)
    mass, ref_mass = masses(idf)
    hyp = by_language(lang, 0.23, 0.018, 0.009) if hyp is None else hyp
    ref = by_language(lang, 0.31, 0.97, 0.95) if ref is None else ref
    unmoved = hyp + ref if math.isfinite(hyp + ref) else 2.0
    return Metric(
        name="lazy-emd",
        encoder=found,
        layers=layers,
        units=units.tokens,
        weighting=mass,
        ref_weighting=ref_mass,
        cost=costs.cosine,
        problems=(Problem(hyp, ref, epsilon),),
        readout=readouts.transport,
        columns=(Column("transport", False, 0.0, 2.0), Column("objective", False, 0.0, unmoved)),
        references=references,
    )
