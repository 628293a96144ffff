"""Lazy-EMD: Chen et al., "Evaluating Natural Language Generation via Unbalanced Optimal Transport",
IJCAI 2020.

The authors' code leaves entries of cost 0.999 and more out of the sum; ours does so only where
`cut` asks for it. The entropy is against the counting measure, as in their code. `tags` names a
spaCy pipeline whose tags take a share of the cost.
"""

import math
from typing import Literal

from freight.core import costs, readouts
from freight.core.metric import Metric
from freight.core.result import Column
from freight.encoders import EMBEDDED
from freight.metrics.sources import Chosen, Layer, among, by_language, source, tagged
from freight.transport.types import Problem

PRESETS = {
    "paper-en": {"lang": "en"},
    "paper-zh": {"lang": "zh"},
    "paper-other": {"lang": "other"},
    "authors": {"cut": 0.999},
    "exact": {"epsilon": 0.0},
}


def lazy_emd(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    hyp: float | None = None,
    ref: float | None = None,
    epsilon: float = 0.009,
    lang: str | None = None,
    mass: str = "uniform",
    idf: str | None = None,
    unit: str = "tokens",
    join: str = "mean",
    readout: str = "transport",
    cut: float | None = None,
    tags: str | None = None,
    tag: Literal["pos", "dep"] = "pos",
    tag_share: float = 0.1,
    references: str = "best",
) -> Metric:
    """Unbalanced transport between contextual tokens: what is dear to move may stay, at a price."""
    hyp = by_language(lang, 0.23, 0.018, 0.009) if hyp is None else hyp
    ref = by_language(lang, 0.31, 0.97, 0.95) if ref is None else ref
    unmoved = hyp + ref if math.isfinite(hyp + ref) else 2.0
    columns = {
        "transport": Column("transport", False, 0.0, 2.0),
        "objective": Column("objective", False, 0.0, unmoved),
    }
    among("readout", readout, columns)
    return Metric(
        "lazy-emd",
        *tagged(source(encoder, layer, unit, join, mass, idf), tags, tag, tag_share),
        cost=costs.cosine,
        problems=(Problem(hyp, ref, epsilon),),
        readout=readouts.Transport(cut),
        columns=tuple(sorted(columns.values(), key=lambda column: column.name != readout)),
        references=references,
    )


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
