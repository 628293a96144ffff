"""What a score means: where it stands among scores of real texts, and how often people agree.

The scales come with the package, in `scale.json`, which `benchmarks/studies/scale.py` measures: for
a metric with an encoder, scores of outputs of WMT systems, of unrelated texts, and of texts that
are almost the same. A scale is for one reference, and for exactly the settings that it was
measured with: other scores have none, and nothing is said of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from freight.core.result import EXECUTION, Result
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scorers import Scorer

T = TypeVar("T")

_FILE = "scale.json"
_LEAST_SEGMENTS = 100
"""With fewer segments a score is not compared with those of whole systems."""

_PRECISION = re.compile(r"/(?:float32|bfloat16|float16)(?=[|,/)\[]|$)")
_TABLE = re.compile(r"table=[^=|]*, \d+ texts, sha256-[0-9a-f]{12}")


class AgreementRate(NamedTuple):
    """The probability that people prefer the system that scores better, and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        low, high = round(100 * self.low), min(round(100 * self.high), 99)
        return "> 99 %" if low > 99 else f"{low} %" if low == high else f"{low}–{high} %"


@dataclass(frozen=True)
class Scale:
    """Percentiles of the scores that a column of a metric has on real texts.

    `unrelated` and `near` (texts that differ in one word) are percentiles 5, 50 and 95, `typical`
    are those of outputs of WMT systems, at `steps`. `systems` are the scores of whole
    systems, `unrelated_system` that of a whole unrelated system. `agreement` is (slope, low, high,
    noise, most): people prefer the better of two systems that differ by d with probability
    1 / (1 + exp(-slope * d / sqrt(1 + noise / min(segments, most)))), where low and high are the
    95 % interval of the slope, and `most` is the largest number of segments that was measured.
    """

    higher: bool
    texts: str
    steps: tuple[float, ...]
    unrelated: tuple[float, float, float]
    near: tuple[float, float, float]
    typical: tuple[float, ...]
    systems: tuple[float, ...]
    unrelated_system: float
    is_mean: bool
    agreement: tuple[float, float, float, float, float] | None = None

    def better_than(self, score: float) -> float:
        """The share of outputs of WMT systems that score worse, from 0 to 1."""
        ranked, steps = np.array(self.typical), np.array(self.steps) / 100
        if self.higher:
            return float(np.interp(score, ranked, steps))
        return 1.0 - float(np.interp(score, ranked, steps))

    def agree(self, difference: float, segments: int) -> AgreementRate | None:
        """How often people prefer the better of two systems, where they differ by so much."""
        if self.agreement is None or not segments or not math.isfinite(difference):
            return None
        slope, low, high, noise, most = self.agreement
        size = abs(difference) / math.sqrt(1.0 + noise / min(segments, most))
        return AgreementRate(*(1.0 / (1.0 + math.exp(-each * size)) for each in (slope, low, high)))

    def describe(self, score: float, segments: int = 1) -> str:
        """A sentence that places a score, such as a mean over so many segments."""
        unrelated = self.unrelated[1] if self.is_mean or segments == 1 else self.unrelated_system
        parts = []
        if self.is_mean or segments == 1:
            parts.append(f"{_share(self.better_than(score))} of WMT system outputs")
        if segments >= _LEAST_SEGMENTS:
            worse = sum(score > x if self.higher else score < x for x in self.systems)
            parts.append(f"{worse} of {len(self.systems)} WMT systems")
        anchors = f"unrelated texts: {_number(unrelated)}"
        if self.is_mean or segments == 1:
            anchors += f", one word different: {_number(self.near[1])}"
        placed = f"better than {' and '.join(parts)}; " if parts else ""
        return f"{_number(score)}: {placed}{anchors}"

    def record(self, score: float) -> dict[str, Any]:
        """Where a score stands, as JSON has it."""
        return {
            "better_than": round(self.better_than(score), 3) if self.is_mean else None,
            "unrelated": self.unrelated[1] if self.is_mean else self.unrelated_system,
            "one_word_different": self.near[1] if self.is_mean else None,
            "systems": [self.systems[0], self.systems[-1]],
            "texts": self.texts,
        }


def scale_of(result: Result, column: str | None = None) -> Scale | None:
    """The scale of a result's column, by default the primary one; None where there is none."""
    if not result.fits_scale:  # the best of several references scores higher than one
        return None
    return find_scale(result.signature, column or result.columns[0].name)


def find_scale(signature: str, column: str) -> Scale | None:
    """The scale that was measured with the settings of a signature, whatever its release."""
    return _scales().get((scale_key(signature), column))


def scale_key(signature: str) -> str:
    """A hash of the settings that a scale is for.

    Where it was computed, at which precision, by which release, and which texts IDF was fitted on
    are left out; columns have a scale each.
    """
    text = _TABLE.sub("table=fitted", _PRECISION.sub("", EXECUTION.sub("", signature)))
    kept = [x for x in text.split("|") if not x.startswith(("version:", "columns:"))]
    return hashlib.sha256("|".join(kept).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def _scales() -> dict[tuple[str, str], Scale]:
    content = json.loads(files("freight.core").joinpath(_FILE).read_text("utf-8"))
    steps = tuple(content["percentiles"])
    return {
        (key, name): Scale(texts=one["texts"], steps=steps, **_frozen(column))
        for key, one in content["scales"].items()
        for name, column in one["columns"].items()
    }


def _frozen(column: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(x) if isinstance(x, list) else x for k, x in column.items()}


def _share(share: float) -> str:
    percent = round(100 * share)
    return "almost none" if percent == 0 else f"{min(percent, 99)} %"


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) >= 1 else f"{value:.2f}"


def shuffle_references(
    refs: Sequence[T], segments: ArrayLike | None = None, seed: int = 0
) -> list[T]:
    """For each row the references of another segment, drawn by a seeded permutation.

    Rows of the same segment, as several systems have them, get those of the same other segment.
    Where all segments have the same references there is no other.
    """
    numbers = np.arange(len(refs)) if segments is None else np.asarray(segments)
    known, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(known))
    following = np.empty(len(known), np.int64)
    following[order] = np.roll(order, -1)
    chosen = list(range(len(known)))
    for k in range(len(known)):
        other = int(following[k])
        while other != k and refs[int(first[other])] == refs[int(first[k])]:
            other = int(following[other])
        chosen[k] = other
    return [refs[int(first[chosen[k]])] for k in place.tolist()]


def score_shuffled(
    metrics: Sequence[Scorer],
    rows: Iterable[tuple[str, Sequence[str]]],
    segments: ArrayLike | None = None,
    seed: int = 0,
    most: int = 5000,
) -> list[Result]:
    """What unrelated texts score: the first rows, each against references of another segment."""
    from freight.core.pipeline import score_together

    hyps, refs = zip(*islice(rows, most), strict=True)
    numbers = None if segments is None else np.asarray(segments)[: len(refs)]
    others = shuffle_references(refs, numbers, seed)
    if any(other == own for other, own in zip(others, refs, strict=True)):
        raise InvalidInput("--baseline shuffled needs several segments with different references")
    return score_together(metrics, hyps, others)
