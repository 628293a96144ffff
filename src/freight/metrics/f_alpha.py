"""F-alpha: precision and recall of tokens, weighed by alpha (Chen et al., IJCAI 2020)."""

import math

from freight.core import costs, readouts
from freight.core.metric import Metric
from freight.core.readouts import PrecisionRecall
from freight.core.result import Column
from freight.encoders import EMBEDDED
from freight.errors import InvalidInput
from freight.metrics.sources import Chosen, Layer, TextSource, by_language, source
from freight.transport.types import Problem

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
    name: str, taken: TextSource, readout: readouts.PrecisionRecall, references: str
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


def yisi_1(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    alpha: float = 0.7,
    idf: str = "ref",
    unit: str = "tokens",
    join: str = "mean",
    references: str = "best",
) -> Metric:
    """Matched tokens weighed by IDF with one added inside the logarithm, recall counting more."""
    taken = source(encoder, layer, unit, join, "uniform", idf, special=True, one_added=True)
    return matching("yisi-1", taken, PrecisionRecall(alpha, "f"), references)
