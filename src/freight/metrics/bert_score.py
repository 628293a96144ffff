"""Greedy matching. BERTScore: Zhang et al., "BERTScore: Evaluating Text Generation with BERT", ICLR
2020; F-alpha: Chen et al., IJCAI 2020; YiSi-1: Lo, "YiSi", WMT 2019.

Each token is matched to its most similar one, in both directions. That is optimal transport with
one hard and one free marginal. Departures are described at each factory.
"""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from freight.errors import InvalidInput
from freight.metrics.declaration import HIGHER, ByLanguage, Expected, Slider, declare
from freight.metrics.parameter_types import (
    Alpha,
    EncoderName,
    Idf,
    Language,
    LayerChoice,
    MassName,
    PoolingName,
    Punctuation,
    ReferencesRule,
    UnitName,
)

if TYPE_CHECKING:
    from freight.core.metric import Metric
    from freight.metrics.parts import TextSource

ALPHA = ByLanguage({"en": 0.48, "zh": 0.9}, other=0.96)
_Number = Annotated[float, Field(ge=-1.0, lt=1.0)]
Baseline = Annotated[
    _Number | str | Sequence[float] | None,
    Slider(-1.0, 0.999),
    Expected("a number from -1 to below 1, three of them (precision, recall, f1), or a file"),
    Field(
        description="Rescale x to (x - b) / (1 - b): b, or three b for precision, recall and f1, or"
        " a baseline file of the bert-score package."
    ),
]


@declare(
    "bert-score",
    columns={"f1": HIGHER, "precision": HIGHER, "recall": HIGHER},
    presets={"wrd-code": {"mass": "norm"}},
    paper='Zhang et al., "BERTScore: Evaluating Text Generation with BERT", ICLR 2020.',
    choose_when="you need figures that others report",
)
def bert_score(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    mass: MassName = "uniform",
    idf: Idf = None,
    unit: UnitName = "tokens",
    pooling: PoolingName = "mean",
    baseline: Baseline = None,
    punctuation: Punctuation = True,
    references: ReferencesRule = "each",
) -> "Metric":
    """Every token matched to its most similar one, in both directions: precision, recall and F1.

    As the bert-score package computes it in a batch of one: special tokens can be matched and have
    no mass. In larger batches the package lets padding beat a negative similarity; ours never does.
    """
    from freight.metrics.parts import source

    text = source(encoder, layer, unit, pooling, mass, idf, special=True, punctuation=punctuation)
    baselines = _baselines(baseline, text.layers)
    return _greedy("bert-score", text, 0.5, "f1", baselines, references)


@declare(
    "f-alpha",
    columns={"f": HIGHER, "precision": HIGHER, "recall": HIGHER},
    former_presets={
        "paper-en": {"lang": "en"},
        "paper-zh": {"lang": "zh"},
        "paper-other": {"lang": "other"},
    },
    paper='Chen et al., "Evaluating Natural Language Generation via Unbalanced Optimal Transport",'
    " IJCAI 2020.",
    choose_when="the target language is not English",
)
def f_alpha(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    alpha: Annotated[Alpha | None, ALPHA] = None,
    lang: Language = None,
    mass: MassName = "uniform",
    idf: Idf = None,
    unit: UnitName = "tokens",
    pooling: PoolingName = "mean",
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Greedy matching as in BERTScore, with a weight alpha between precision (0) and recall (1)."""
    from freight.metrics.parts import source

    text = source(encoder, layer, unit, pooling, mass, idf, special=True, punctuation=punctuation)
    alpha = ALPHA.choose(lang) if alpha is None else alpha
    return _greedy("f-alpha", text, alpha, "f", (0.0, 0.0, 0.0), references)


@declare(
    "yisi-1",
    columns={"f": HIGHER, "precision": HIGHER, "recall": HIGHER},
    paper='Lo, "YiSi - a Unified Semantic MT Quality Evaluation and Estimation Metric for Languages'
    ' with Different Levels of Available Resources", WMT 2019.',
    choose_when="content words should count more than function words",
)
def yisi_1(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    alpha: Alpha = 0.7,
    idf: Idf = "ref",
    unit: UnitName = "tokens",
    pooling: PoolingName = "mean",
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Greedy matching of tokens weighed by IDF, recall counting more than precision.

    One is added inside the logarithm of IDF, as in the paper.
    """
    from freight.metrics.parts import source

    text = source(
        encoder,
        layer,
        unit,
        pooling,
        idf=idf,
        special=True,
        one_added=True,
        punctuation=punctuation,
    )
    return _greedy("yisi-1", text, alpha, "f", (0.0, 0.0, 0.0), references)


def _greedy(
    name: str,
    text: "TextSource",
    alpha: float,
    primary: str,
    baselines: tuple[float, float, float],
    references: str,
) -> "Metric":
    """Precision, recall and their mean weighed by alpha, each less its baseline."""
    from freight.metrics.parts import Column, Metric, Problem, costs, readouts

    columns = zip((primary, "precision", "recall"), baselines, strict=True)
    return Metric(
        name=name,
        **text.fields(),
        cost=costs.cosine,
        problems=(Problem(hyp=math.inf, ref=0.0), Problem(hyp=0.0, ref=math.inf)),
        readout=readouts.PrecisionRecall(alpha, primary, baselines),
        columns=tuple(
            Column(c, True, 1.0, -b / (1.0 - b) + 0.0, ((-1.0 - b) / (1.0 - b), 1.0))
            for c, b in columns
        ),
        references=references,
    )


def _baselines(
    baseline: float | str | Sequence[float] | None, layers: tuple[int, ...]
) -> tuple[float, float, float]:
    """The baselines of f1, precision and recall."""
    if baseline is None:
        return 0.0, 0.0, 0.0
    if isinstance(baseline, str):
        baseline = _read_baselines(Path(baseline), layers)
    numbers = [baseline] * 3 if isinstance(baseline, (int, float)) else list(baseline)
    if len(numbers) != 3 or not all(-1.0 <= x < 1.0 for x in numbers):
        raise InvalidInput(
            f"baseline={baseline!r}; give a number below 1, or three: precision, recall, f1"
        )
    precision, recall, f1 = map(float, numbers)
    return f1, precision, recall


def _read_baselines(path: Path, layers: tuple[int, ...]) -> list[float]:
    """The line of a layer in a file of the bert-score package."""
    if not path.is_file():
        raise InvalidInput(f"there is no baseline file {path}")
    with path.open(encoding="utf-8", newline="") as stream:
        lines = {line["LAYER"]: line for line in csv.DictReader(stream) if "LAYER" in line}
    if len(layers) != 1 or str(layers[0]) not in lines:
        raise InvalidInput(f"{path} has no baseline for layer {layers}; it has {', '.join(lines)}")
    return [float(lines[str(layers[0])][name]) for name in "PRF"]
