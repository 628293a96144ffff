"""One text of a pair as a metric saw it: what its units say, and how well each was matched."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from freight.clouds import Cloud, Kind
from freight.explanations import Side
from freight.types import Array
from freight.weightings import Measures

_TIE = 1e-9
_NEARLY = 0.75


class Named(NamedTuple):
    """The units of a text as a measure has them: which they are, their names and characters."""

    text: str
    ids: Array
    names: tuple[str, ...]
    spans: Array


class Seen(NamedTuple):
    """A pair from one side, whose units are the rows, in the plan in which it has a say.

    `penalty` is how firmly the plan holds the side, `unrelated` what a move would cost if all units
    were at right angles to each other.
    """

    weights: Array
    other_weights: Array
    shares: Array
    penalty: float
    flow: Array
    cost: Array
    unrelated: Array


def named(cloud: Cloud, measures: Measures, text: int) -> Named:
    """What the units of a text say; special tokens are named by where they stand."""
    units = np.arange(measures.offsets[text], measures.offsets[text + 1])
    runs = np.stack((units, units), axis=1) if measures.extent is None else measures.extent[units]
    spans = np.stack((cloud.start[runs[:, 0]], cloud.end[runs[:, 1]]), axis=1)
    special = cloud.having(Kind.SPECIAL)[runs].all(axis=1)
    content = cloud.texts[text]
    names = [
        ("[start]" if start == 0 else "[end]") if outside else content[start:end]
        for outside, (start, end) in zip(special, spans.tolist(), strict=True)
    ]
    spans[special] = -1
    return Named(content, measures.ids[units], tuple(names), spans)


def seen_side(seen: Seen, own: Named, other: Named, ids: Array | None) -> Side:
    """A side with its names; `ids` says what its units are, unless they are the text's in a row.

    A unit that is not in the text has its name from the other one, and no characters here.
    """
    names, spans = own.names, own.spans
    if ids is not None:
        here, there = (_first(text, ids) for text in (own, other))
        names = tuple(
            own.names[a] if a >= 0 else other.names[b] for a, b in zip(here, there, strict=True)
        )
        spans = np.where(here[:, None] >= 0, own.spans[here], -1)
        again = _again(own, ids, here)
    found = Side(own.text, names, spans, seen.weights, seen.shares, _matched(seen), _excess(seen))
    return found if ids is None else replace(found, again=again)


def _first(text: Named, ids: Array) -> Array:
    """Where each of these ids stands first in a text, -1 where nowhere."""
    same = text.ids == ids[:, None]
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _again(text: Named, ids: Array, first: Array) -> Array:
    """The number and the characters of every place where one of these ids stands once more."""
    unit, place = np.nonzero(text.ids == ids[:, None])
    later = place != first[unit]
    return np.column_stack((unit[later], text.spans[place[later]]))


def _matched(seen: Seen) -> Array:
    """1 less what a unit's moves cost, as a share of what moving to unrelated units would.

    Of a unit that left mass unmoved only the share that it moved counts. A unit that weighs nothing
    is as well matched as it could have been.
    """
    moved = seen.flow.sum(axis=1)
    nearest = np.eye(seen.cost.shape[1])[seen.cost.argmin(axis=1)]
    flow = np.where(moved[:, None] > 0, seen.flow, nearest)
    paid, most = (flow * seen.cost).sum(axis=1), (flow * seen.unrelated).sum(axis=1)
    dear = np.clip(paid / np.where(most > 0, most, 1.0), 0.0, 1.0)
    heavy = seen.weights > 0
    found = np.minimum(moved / np.where(heavy, seen.weights, 1.0), 1.0)
    matched: Array = (1.0 - dear) * np.where(heavy, found, 1.0)
    return matched


def _excess(seen: Seen) -> Array:
    """The mass that stayed; on a held side, where all has to move, the mass that moved dearly.

    That is at more than the mean cost between the sides, or at nearly what unrelated units cost.
    """
    if math.isfinite(seen.penalty):
        return np.maximum(seen.weights - seen.flow.sum(axis=1), 0.0)
    mean = seen.weights @ seen.cost @ seen.other_weights
    limit = np.minimum(mean + _TIE, _NEARLY * seen.unrelated)
    dear: Array = (seen.flow * (seen.cost > limit)).sum(axis=1)
    return dear
