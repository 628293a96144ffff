"""F-alpha: precision and recall of tokens, weighed by alpha (Chen et al., IJCAI 2020)."""

import math

from freight import costs, readouts
from freight.catalogue.shared import Chosen, Layer, Source, by_language, source
from freight.encoding import EMBEDDED
from freight.errors import InvalidInput
from freight.metric import Metric
from freight.results import Column
from freight.types import Problem

PRECISION = Problem(hyp=math.inf, ref=0.0)
RECALL = Problem(hyp=0.0, ref=math.inf)
PRESETS = {
    "paper-en": {"lang": "en"},
    "paper-zh": {"lang": "zh"},
    "paper-other": {"lang": "other"},
}


def f_alpha(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    alpha: float | None = None,
    lang: str | None = None,
    mass: str = "uniform",
    idf: str | None = None,
    unit: str = "tokens",
    join: str = "mean",
    references: str = "best",
) -> Metric:
    """Precision and recall of matched tokens, alpha between them: 1 is recall."""
    alpha = by_language(lang, 0.48, 0.9, 0.96) if alpha is None else alpha
    taken = source(encoder, layer, unit, join, mass, idf, special=True)
    return matching("f-alpha", taken, readouts.PrecisionRecall(alpha, "f"), references)


def matching(
    name: str, taken: Source, readout: readouts.PrecisionRecall, references: str
) -> Metric:
    """Greedy matching both ways; special tokens may be matched, and weigh nothing."""
    if not 0.0 <= readout.alpha <= 1.0:
        raise InvalidInput(f"alpha={readout.alpha}; it lies between 0 (precision) and 1 (recall)")
    names = (readout.name, "precision", "recall")
    worst = [-b / (1.0 - b) for b in readout.baselines]
    return Metric(
        name,
        *taken,
        cost=costs.cosine,
        problems=(PRECISION, RECALL),
        readout=readout,
        columns=tuple(Column(c, True, 1.0, w + 0.0) for c, w in zip(names, worst, strict=True)),
        references=references,
    )
