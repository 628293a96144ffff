"""BERTScore: Zhang et al., "BERTScore: Evaluating Text Generation with BERT", ICLR 2020.

As the bert-score package computes it in a batch of one: special tokens may be matched and weigh
nothing. In larger batches the package lets padding beat a negative similarity; ours never does.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

from freight.core.metric import Metric
from freight.core.readouts import PrecisionRecall
from freight.encoders import EMBEDDED
from freight.errors import InvalidInput
from freight.metrics.f_alpha import matching
from freight.metrics.sources import Chosen, Layer, source

Baseline = float | str | Sequence[float] | None
PRESETS = {"wrd-code": {"mass": "norm"}}


def bert_score(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    mass: str = "uniform",
    idf: str | None = None,
    unit: str = "tokens",
    join: str = "mean",
    baseline: Baseline = None,
    references: str = "each",
) -> Metric:
    """Every token matched to its most similar one, both ways: precision, recall and F1.

    `baseline` rescales to (x - b) / (1 - b): one number, three (precision, recall, f1), or a file
    of the bert-score package, whose line for the layer is taken.
    """
    taken = source(encoder, layer, unit, join, mass, idf, special=True)
    readout = PrecisionRecall(0.5, "f1", _baselines(baseline, taken.layers))
    return matching("bert-score", taken, readout, references)


def _baselines(baseline: Baseline, layers: tuple[int, ...]) -> tuple[float, float, float]:
    """The baselines of f1, precision and recall."""
    if baseline is None:
        return 0.0, 0.0, 0.0
    if isinstance(baseline, str):
        baseline = _from_file(Path(baseline), layers)
    numbers = [baseline] * 3 if isinstance(baseline, (int, float)) else list(baseline)
    if len(numbers) != 3 or not all(-1.0 <= x < 1.0 for x in numbers):
        raise InvalidInput(
            f"baseline={baseline!r}; give a number below 1, or three: precision, recall, f1"
        )
    precision, recall, f1 = map(float, numbers)
    return f1, precision, recall


def _from_file(path: Path, layers: tuple[int, ...]) -> list[float]:
    if not path.is_file():
        raise InvalidInput(f"there is no baseline file {path}")
    with path.open(encoding="utf-8", newline="") as stream:
        lines = {line["LAYER"]: line for line in csv.DictReader(stream) if "LAYER" in line}
    if len(layers) != 1 or str(layers[0]) not in lines:
        raise InvalidInput(f"{path} has no baseline for layer {layers}; it has {', '.join(lines)}")
    return [float(lines[str(layers[0])][name]) for name in "PRF"]
