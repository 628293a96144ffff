"""F-alpha: precision and recall of tokens, weighed by alpha (Chen et al., IJCAI 2020)."""

import math

from freight import costs, readouts, units
from freight.catalogue.shared import Chosen, Layer, Masses, by_language, masses, resolve
from freight.encoding import EMBEDDED
from freight.metric import Metric
from freight.results import Column
from freight.types import Problem

PRECISION = Problem(hyp=math.inf, ref=0.0)
RECALL = Problem(hyp=0.0, ref=math.inf)


def f_alpha(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    alpha: float | None = None,
    lang: str | None = None,
    idf: str | None = None,
    references: str = "best",
) -> Metric:
    """Precision and recall of matched tokens, alpha between them: 1 is recall."""
    alpha = by_language(lang, 0.48, 0.9, 0.96) if alpha is None else alpha
    return matching("f-alpha", "f", alpha, encoder, layer, masses(idf), references)


def matching(
    name: str,
    column: str,
    alpha: float,
    encoder: Chosen,
    layer: Layer,
    mass: Masses,
    references: str,
) -> Metric:
    """Greedy matching both ways; special tokens may be matched, and weigh nothing."""
    found, layers = resolve(encoder, layer)
    return Metric(
        name=name,
        encoder=found,
        layers=layers,
        units=units.all_tokens,
        weighting=mass[0],
        ref_weighting=mass[1],
        cost=costs.cosine,
        problems=(PRECISION, RECALL),
        readout=readouts.PrecisionRecall(alpha, column),
        columns=tuple(Column(c, True, 1.0, 0.0) for c in (column, "precision", "recall")),
        references=references,
    )
