"""The worst and the best of a corpus by a metric, with the explanations of their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from freight.errors import InvalidInput
from freight.report.rows import Texts, shortened
from freight.report.tables import decimals
from freight.scoring import Scorer
from freight.types import Array

LONGEST = 1_500
"""A text of more characters is not explained: nobody could follow the picture."""


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
    """A metric's worst and best segments, and why none of them is explained, if none is."""

    label: str
    worst: tuple[Extreme, ...]
    best: tuple[Extreme, ...]
    reason: str


def extreme_rows(scores: Array, higher: bool, count: int) -> tuple[list[int], list[int]]:
    """The worst and the best rows, the most extreme first; no row is both."""
    scored = np.flatnonzero(np.isfinite(scores))
    order = scored[np.argsort(scores[scored] if higher else -scores[scored], kind="stable")]
    count = min(count, len(order) // 2)
    return order[:count].tolist(), order[len(order) - count :][::-1].tolist()


def explained(
    metric: Scorer | None, texts: Mapping[int, Texts], rows: Sequence[int]
) -> tuple[dict[int, str], str]:
    """Explanations as fragments, by row; or why the metric gives none."""
    from freight.report.explanation import fragment

    short = [row for row in rows if max(map(len, (texts[row][0], *texts[row][1]))) <= LONGEST]
    if metric is None:
        return {}, ""
    try:
        return {row: fragment(metric.explain(*texts[row])) for row in short}, ""
    except InvalidInput as refusal:
        return {}, str(refusal)


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
