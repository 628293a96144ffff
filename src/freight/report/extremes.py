"""The worst and the best of a corpus by a metric, with the explanations of their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from freight.core.scoring import Scorer
from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.report.rows import Texts, shortened
from freight.report.tables import decimals
from freight.transport.types import Array

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


_MOST_CHARACTERS = 700


@dataclass(frozen=True)
class Case:
    """A segment with its texts by label, and who puts what at which percentile."""

    where: str
    texts: tuple[tuple[str, str], ...]
    marks: tuple[tuple[str, float], ...]


def percentiles(values: Array) -> Array:
    """Where each value stands among all, from 0 to 100; not a number stays so."""
    ranks = rankdata(values, nan_policy="omit")
    return 100 * (ranks - 0.5) / max(1, np.isfinite(values).sum())


def between(
    judged: Judgements, names: tuple[str, str], values: tuple[Array, Array], most: int
) -> tuple[Case, ...]:
    """The rows that two judges, people or metrics, place farthest apart."""
    first, second = (percentiles(x) for x in values)
    order = np.argsort(-np.abs(first - second))
    cases = []
    for k in _distinct(judged, order[: np.isfinite(first - second).sum()], most):
        row = int(order[k])
        marks = (names[0], float(first[row])), (names[1], float(second[row]))
        texts = ("hyp", shown(judged.hyps[row])), *_references(judged, row)
        cases.append(Case(_where(judged, row), texts, marks))
    return tuple(cases)


def against_preferences(judged: Judgements, scores: Array, most: int) -> tuple[Case, ...]:
    """The pairs of texts that a metric most clearly orders the other way than people do."""
    if judged.preferences is None:
        return ()
    places = percentiles(scores)
    gains = places[judged.preferences[:, 0]] - places[judged.preferences[:, 1]]
    pairs = judged.preferences[np.argsort(gains)[: (gains < 0).sum()]]
    cases = []
    for k in _distinct(judged, pairs[:, 1], most):
        better, worse = (int(row) for row in pairs[k])
        texts = ("better", shown(judged.hyps[better])), ("worse", shown(judged.hyps[worse]))
        marks = ("better", float(places[better])), ("worse", float(places[worse]))
        shared = _references(judged, worse)
        cases.append(Case(_where(judged, better, worse), (*texts, *shared), marks))
    return tuple(cases)


def shown(text: str) -> str:
    """As much of a text as a page has room for."""
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS].rstrip() + " …"


def _distinct(judged: Judgements, rows: Array, most: int) -> list[int]:
    """Where the first rows stand whose texts differ."""
    found: dict[tuple[int, str], int] = {}
    for place, row in enumerate(rows):
        found.setdefault((int(judged.segments[row]), judged.hyps[row]), place)
        if len(found) == most:
            break
    return list(found.values())


def _references(judged: Judgements, row: int) -> tuple[tuple[str, str], ...]:
    several = judged.refs[row]
    more = f" + {len(several) - 1}" if len(several) > 1 else ""
    return tuple((f"ref{more}", shown(ref)) for ref in several[:1])


def _where(judged: Judgements, *rows: int) -> str:
    """The segment, counted from 1, and the systems, where they have names."""
    systems = " before ".join(judged.system_names[judged.systems[row]] for row in rows)
    segment = f"segment {judged.segments[rows[0]] + 1}"
    return f"{segment}, {systems}" if systems.replace(" before ", "") else segment
