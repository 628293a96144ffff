"""The texts on which a metric and the people, or two metrics, disagree most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from freight.data.judgements import Judgements
from freight.types import Array

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
