"""Who sends how much to whom: ribbons between two rows of units, laid out for a drawing."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freight.explain.explanation import Plan, Side, View
from freight.report.formatting import level, number, percent
from freight.report.phrases import leftward
from freight.report.plots import shorten
from freight.transport.types import Array

MOST_UNITS = 120
MOST_RIBBONS = 360
TOP, BOTTOM, THICK = 40, 196, 8
_NAME = 22
_PIXELS = 32.0  # of an average unit's bar
_NARROWEST = 300.0
_NOTHING = 1e-4  # of a unit's mass: not worth a ribbon


@dataclass(frozen=True)
class Ribbon:
    """Mass on its way: an outline, how dear it is, and what it says of itself."""

    path: str
    level: int
    title: str


@dataclass(frozen=True)
class Node:
    """A unit in its row, with the ribbons that touch it; lengths are pixels.

    `end` says at which end of the drawing its tip begins: "start", "middle" or "end"; a unit that
    is not in the text, as special tokens are not, is not its `own`.
    """

    name: str
    title: str
    tip: str
    end: str
    middle: float
    left: float
    weight: float
    moved: float
    level: int
    own: bool
    ribbons: tuple[Ribbon, ...]


@dataclass(frozen=True)
class Diagram:
    """All there is to draw, in pixels."""

    width: int
    hyps: tuple[Node, ...]
    refs: tuple[Node, ...]
    dearest: str
    notes: tuple[str, ...]
    top: int = TOP
    bottom: int = BOTTOM
    thick: int = THICK
    height: int = BOTTOM + 46


@dataclass(frozen=True, eq=False)
class _Row:
    width: float
    middle: Array
    left: Array
    weight: Array
    moved: Array
    scale: float


def diagram(view: View, plan: Plan) -> Diagram:
    """One plan of a view; of many units and flows the ones that matter most."""
    sides = view.hyp, view.ref
    moved = [np.nan_to_num(plan.flow).sum(axis=axis) for axis in (1, 0)]
    shown = [heaviest(side, MOST_UNITS, m) for side, m in zip(sides, moved, strict=True)]
    flow = np.nan_to_num(plan.flow[np.ix_(*shown)])
    rows = _rows(sides, shown, moved)
    ends = _strongest(flow)
    ribbons = _ribbons(view, shown, flow, rows, ends)
    hyps, refs = (_nodes(sides[k], shown[k], rows[k], ribbons, ends[k]) for k in (0, 1))
    notes = _notes(view, shown, flow, ends)
    return Diagram(round(rows[0].width), hyps, refs, number(dearest(view.cost), 2), notes)


def heaviest(side: Side, most: int, moved: Array | float = 0.0) -> Array:
    """The units that weigh, move or add anything; of too many the ones that add most.

    They come in the order of the text, units that are not in it where they were or last.
    """
    shares = np.nan_to_num(side.shares)
    there = np.flatnonzero((side.weights > 0) | (shares != 0) | (np.asarray(moved) > 0))
    if len(there) > most:
        order = np.argsort(-np.abs(shares[there]), kind="stable")
        there = np.sort(there[order[:most]])
    starts = side.spans[there, 0]
    if (np.diff(starts[starts >= 0]) >= 0).all():
        return there
    return there[np.argsort(np.where(starts < 0, np.inf, starts), kind="stable")]


def dearest(cost: Array) -> float:
    """The largest cost, which is where its colours end."""
    top = float(np.max(cost, initial=0.0, where=np.isfinite(cost)))
    return top if top > 0 else 1.0


def _rows(sides: Sequence[Side], shown: Sequence[Array], moved: Sequence[Array]) -> list[_Row]:
    """Both rows as wide as the wider one; a bar is as wide as its mass, a place as its name."""
    scale = _PIXELS * max(len(units) for units in shown)
    bars, places = [], []
    for side, units, mass in zip(sides, shown, moved, strict=True):
        bars.append(scale * np.maximum(side.weights[units], mass[units]))
        names = [_room(shorten(side.names[k], _NAME)) for k in units]
        places.append(np.maximum(bars[-1] + 6, names))
    width = max(_NARROWEST, *(float(place.sum()) for place in places))
    rows = []
    for side, units, mass, bar, place in zip(sides, shown, moved, bars, places, strict=True):
        place = place + (width - place.sum()) / max(len(place), 1)
        middle = np.cumsum(place) - place / 2
        middle = width - middle if leftward(side.text) else middle
        weight, moving = scale * side.weights[units], scale * mass[units]
        rows.append(_Row(width, middle, middle - bar / 2, weight, moving, scale))
    return rows


def _strongest(flow: Array) -> tuple[Array, Array]:
    """Where the ribbons start and end, by unit."""
    least = _NOTHING * flow.sum() / max(*flow.shape, 1)
    sent, got = np.nonzero(flow > least)
    if len(sent) > MOST_RIBBONS:
        kept = np.sort(np.argsort(-flow[sent, got], kind="stable")[:MOST_RIBBONS])
        sent, got = sent[kept], got[kept]
    return sent, got


def _ribbons(
    view: View, shown: Sequence[Array], flow: Array, rows: Sequence[_Row], ends: tuple[Array, Array]
) -> list[Ribbon]:
    sent, got = ends
    thick = flow[ends] * rows[0].scale
    start = _beside(rows[0].left, sent, rows[1].middle[got], thick)
    end = _beside(rows[1].left, got, rows[0].middle[sent], thick)
    cost = view.cost[shown[0][sent], shown[1][got]]
    levels = level(cost / dearest(view.cost))
    found = []
    for k, (i, j) in enumerate(zip(sent.tolist(), got.tolist(), strict=True)):
        hyp, ref = view.hyp.names[shown[0][i]], view.ref.names[shown[1][j]]
        title = f"{hyp} → {ref}: {percent(flow[i, j])} of the mass at {number(cost[k], 2)}"
        found.append(Ribbon(_outline(start[k], end[k], max(thick[k], 0.7)), int(levels[k]), title))
    return found


def _beside(left: Array, unit: Array, other: Array, thick: Array) -> Array:
    """Where each ribbon touches its unit: side by side, in the order of the other ends."""
    order = np.lexsort((other, unit))
    before = np.cumsum(thick[order]) - thick[order]
    first = np.searchsorted(unit[order], unit[order])
    found = np.empty(len(unit))
    found[order] = left[unit[order]] + before - before[first]
    return found


def _outline(start: float, end: float, thick: float) -> str:
    high, low = TOP + THICK, BOTTOM - THICK
    mid = (high + low) / 2
    return (
        f"M{start:.1f} {high:g}C{start:.1f} {mid:g} {end:.1f} {mid:g} {end:.1f} {low:g}"
        f"h{thick:.1f}C{end + thick:.1f} {mid:g} {start + thick:.1f} {mid:g}"
        f" {start + thick:.1f} {high:g}z"
    )


def _nodes(
    side: Side, units: Array, row: _Row, ribbons: Sequence[Ribbon], ends: Array
) -> tuple[Node, ...]:
    found = []
    for k, unit in enumerate(units.tolist()):
        matched = float(np.nan_to_num(side.matched[unit]))
        tip = (
            f"{percent(side.weights[unit])} of the mass, matched {number(matched, 2)},"
            f" adds {number(side.shares[unit])}"
        )
        found.append(
            Node(
                name=shorten(side.names[unit], _NAME),
                title=f"{side.names[unit]}: {tip}",
                tip=tip,
                end=("start", "middle", "end")[min(int(3 * row.middle[k] / row.width), 2)],
                middle=float(row.middle[k]),
                left=float(row.left[k]),
                weight=float(row.weight[k]),
                moved=float(row.moved[k]),
                level=int(level(1 - matched)),
                own=bool(side.spans[unit, 0] >= 0),
                ribbons=tuple(ribbons[r] for r in np.flatnonzero(ends == k).tolist()),
            )
        )
    return tuple(found)


def _notes(
    view: View, shown: Sequence[Array], flow: Array, ends: tuple[Array, Array]
) -> tuple[str, ...]:
    notes = []
    for name, side, units in zip(("hyp", "ref"), (view.hyp, view.ref), shown, strict=True):
        if len(units) == MOST_UNITS < len(heaviest(side, len(side.names))):
            notes.append(
                f"Of the {len(side.names)} units of the {name} the {MOST_UNITS} that add most."
            )
    many = int((flow > 0).sum())
    drawn, moving = float(flow[ends].sum()), float(flow.sum())
    if drawn < 0.999 * moving:
        share = percent(drawn / moving)
        notes.append(f"The {len(ends[0])} strongest of {many} flows, {share} of what moves.")
    return tuple(notes)


def _room(name: str) -> float:
    """Pixels that a name takes, about, and the space beside it."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in name)
    return 14.0 + 7.4 * (len(name) - wide) + 13.5 * wide
