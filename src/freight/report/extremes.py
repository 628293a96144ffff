"""The worst and the best of a corpus by a metric, with the explanations of their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from freight.errors import InvalidInput
from freight.report.rows import Texts, shortened
from freight.report.tables import decimals
from freight.scoring import Scorer
from freight.types import Array

LONGEST = 1_500
BUDGET = 12_000_000
"""What keeps pages small: a longer text is not explained, nor are more than so many characters of
explanations kept over all metrics.
"""


@dataclass(frozen=True)
class Extreme:
    """A segment at one end; `key` finds its explanation, and is empty where it has none."""

    key: str
    where: str
    score: str
    hyp: str
    refs: tuple[str, ...]


@dataclass(frozen=True)
class Ends:
    """A metric's worst and best segments, and why some or all are not explained."""

    label: str
    worst: tuple[Extreme, ...]
    best: tuple[Extreme, ...]
    reason: str

    @property
    def has_explanations(self) -> bool:
        """Whether one of them is explained."""
        return any(it.key for it in (*self.worst, *self.best))


def extreme_rows(scores: Array, higher: bool, count: int) -> tuple[list[int], list[int]]:
    """The worst and the best rows, the most extreme first; no row is both."""
    scored = np.flatnonzero(np.isfinite(scores))
    order = scored[np.argsort(scores[scored] if higher else -scores[scored], kind="stable")]
    count = min(count, len(order) // 2)
    return order[:count].tolist(), order[len(order) - count :][::-1].tolist()


def explained(
    metric: Scorer,
    column: str,
    texts: Mapping[int, Texts],
    ends: tuple[list[int], list[int]],
    budget: int,
) -> tuple[dict[int, str], str]:
    """Explanations as fragments, by row, the most extreme first; and why some or all lack one."""
    from freight.report.explanation import fragment

    found: dict[int, str] = {}
    for row in (row for pair in zip(*ends, strict=True) for row in pair):
        if max(map(len, (texts[row][0], *texts[row][1]))) > LONGEST:
            continue
        try:
            drawn = fragment(metric.explain(*texts[row], column))
        except InvalidInput as refusal:
            return {}, f"{refusal}."
        if len(drawn) <= budget:
            found[row] = drawn
            budget -= len(drawn)
    lacking = len(ends[0]) + len(ends[1]) - len(found)
    return found, f"{lacking} are too long to be explained on this page." if lacking else ""


def shown_ends(
    label: str,
    scores: Array,
    ends: tuple[list[int], list[int]],
    texts: Mapping[int, Texts],
    where: Callable[[int], str],
    keys: Mapping[int, str],
    reason: str,
) -> Ends:
    """Both ends as they are listed; `where` names a row."""

    def shown(row: int) -> Extreme:
        hyp, refs = texts[row]
        short = tuple(shortened(ref) for ref in refs)
        score = decimals(float(scores[row]))
        return Extreme(keys.get(row, ""), where(row), score, shortened(hyp), short)

    worst, best = (tuple(shown(row) for row in rows) for rows in ends)
    return Ends(label, worst, best, reason)
