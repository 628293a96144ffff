"""Lazy-EMD of documents: sentences move as wholes, and the words inside them.

Ours, after Lazy-EMD (Chen et al., IJCAI 2020) and sentence mover's similarity (Clark et al., ACL
2019): what it costs to move a sentence is what it takes to turn its words into those of another.
Both levels are read by their objective: where dear sentences stay, transport alone looks cheap.
"""

import math
from typing import Literal

from freight.core import costs, readouts
from freight.core.metric import Metric
from freight.core.result import Column
from freight.encoders import EMBEDDED
from freight.metrics.sources import Chosen, Layer, among, by_sentence, source
from freight.transport.types import Problem

PRESETS = {
    "held": {
        **dict.fromkeys(("hyp", "ref", "inner_hyp", "inner_ref"), math.inf),
        **dict.fromkeys(("epsilon", "inner_epsilon"), 0.0),
    },
    "coverage": {
        **dict.fromkeys(("hyp", "epsilon", "inner_hyp", "inner_epsilon"), 0.0),
        **dict.fromkeys(("ref", "inner_ref"), math.inf),
    },
}


def doc_lazy_emd(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    hyp: float = 0.23,
    ref: float = 0.31,
    epsilon: float = 0.009,
    inner_hyp: float = 0.23,
    inner_ref: float = 0.31,
    inner_epsilon: float = 0.009,
    inner_readout: Literal["transport", "objective"] = "objective",
    mass: str = "uniform",
    idf: str | None = None,
    unit: str = "tokens",
    join: str = "mean",
    readout: str = "objective",
    order: float = 0.0,
    references: str = "best",
) -> Metric:
    """Sentences moved as wholes, at what moving the words inside them costs, or left at a price."""
    found = source(encoder, layer, unit, join, mass, idf)
    unmoved = hyp + ref if math.isfinite(hyp + ref) else 2.0
    columns = {
        "transport": Column("transport", False, 0.0, 2.0),
        "objective": Column("objective", False, 0.0, unmoved),
    }
    among("readout", readout, columns)
    among("inner_readout", inner_readout, columns)
    inner = Problem(inner_hyp, inner_ref, inner_epsilon)
    return Metric(
        "doc-lazy-emd",
        *by_sentence(found),
        cost=costs.with_order(costs.Inner(costs.cosine, inner, inner_readout), order),
        problems=(Problem(hyp, ref, epsilon),),
        readout=readouts.Transport(),
        columns=tuple(sorted(columns.values(), key=lambda column: column.name != readout)),
        references=references,
    )
