"""A transport plan as a Sankey diagram: ribbons of mass between two rows of units, laid out."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freight.explain.explanation import Plan, Side, View
from freight.report.formatting import colour_level, number, percent, shorten
from freight.transport.types import Array

MOST_UNITS = 120
MOST_RIBBONS = 360
TOP, BOTTOM, THICK = 40, 196, 8
_NAME = 22
_PIXELS = 32.0  # width of an average unit's bar
_NARROWEST = 300.0
_NOTHING = 1e-4  # of a unit's mass: too little for a ribbon


@dataclass(frozen=True)
class Ribbon:
    """One flow: its outline, the colour level of its cost, and a tooltip."""

    path: str
    level: int
    title: str


@dataclass(frozen=True)
class Node:
    """A unit in its row, with the ribbons that touch it; lengths are in pixels.

    `anchor` says where in the drawing its tooltip is: "start", "middle" or "end". `in_text` is
    false for units that are not in the text, such as special tokens.
    """

    name: str
    title: str
    tip: str
    anchor: str
    middle: float
    left: float
    weight: float
    moved: float
    level: int
    in_text: bool
    ribbons: tuple[Ribbon, ...]


@dataclass(frozen=True)
class Diagram:
    """The layout of a diagram, in pixels."""

    width: int
    hyps: tuple[Node, ...]
    refs: tuple[Node, ...]
    largest_cost: str
    notes: tuple[str, ...]
    top: int = TOP
    bottom: int = BOTTOM
    thick: int = THICK
    height: int = BOTTOM + 46


@dataclass(frozen=True, eq=False)
class _Row:
    """One row of units; every array has one entry per unit, `scale` is pixels per mass."""

    width: float
    middle: Array
    left: Array
    weight: Array
    moved: Array
    scale: float


def diagram(view: View, plan: Plan) -> Diagram:
    """Lay out a plan; of many units those that contribute most, of many flows the largest."""
    sides = view.hyp, view.ref
    moved = [np.nan_to_num(plan.flow).sum(axis=axis) for axis in (1, 0)]
    shown = [relevant_units(side, MOST_UNITS, m) for side, m in zip(sides, moved, strict=True)]
    flow = np.nan_to_num(plan.flow[np.ix_(*shown)])
    rows = _rows(sides, shown, moved)
    ends = _largest_flows(flow)
    ribbons = _ribbons(view, shown, flow, rows, ends)
    hyps, refs = (_nodes(sides[k], shown[k], rows[k], ribbons, ends[k]) for k in (0, 1))
    notes = _notes(view, shown, flow, ends)
    return Diagram(round(rows[0].width), hyps, refs, number(largest_value(view.cost), 2), notes)


def relevant_units(side: Side, most: int, moved: Array | float = 0.0) -> Array:
    """The units that have mass, move mass or contribute; of too many those that contribute most.

    They are in the order of the text, where units that are not in it come last if need be.
    """
    contributions = np.nan_to_num(side.contributions)
    there = np.flatnonzero((side.weights > 0) | (contributions != 0) | (np.asarray(moved) > 0))
    if len(there) > most:
        order = np.argsort(-np.abs(contributions[there]), kind="stable")
        there = np.sort(there[order[:most]])
    starts = side.spans[there, 0]
    if (np.diff(starts[starts >= 0]) >= 0).all():
        return there
    return there[np.argsort(np.where(starts < 0, np.inf, starts), kind="stable")]


def largest_value(values: Array) -> float:
    """The end of a colour scale: the largest finite value, or 1 where none is positive."""
    top = float(np.max(values, initial=0.0, where=np.isfinite(values)))
    return top if top > 0 else 1.0


def _rows(sides: Sequence[Side], shown: Sequence[Array], moved: Sequence[Array]) -> list[_Row]:
    """Two rows of equal width; a bar is as wide as its mass, its place at least as its name."""
    scale = _PIXELS * max(len(units) for units in shown)
    bars, places = [], []
    for side, units, mass in zip(sides, shown, moved, strict=True):
        bars.append(scale * np.maximum(side.weights[units], mass[units]))
        names = [_name_width(shorten(side.names[k], _NAME)) for k in units]
        places.append(np.maximum(bars[-1] + 6, names))
    width = max(_NARROWEST, *(float(place.sum()) for place in places))
    rows = []
    for side, units, mass, bar, place in zip(sides, shown, moved, bars, places, strict=True):
        place = place + (width - place.sum()) / max(len(place), 1)
        middle = np.cumsum(place) - place / 2
        middle = width - middle if is_right_to_left(side.text) else middle
        weight, moving = scale * side.weights[units], scale * mass[units]
        rows.append(_Row(width, middle, middle - bar / 2, weight, moving, scale))
    return rows


def _largest_flows(flow: Array) -> tuple[Array, Array]:
    """The hypothesis unit and the reference unit of every ribbon."""
    least = _NOTHING * flow.sum() / max(*flow.shape, 1)
    hyp, ref = np.nonzero(flow > least)
    if len(hyp) > MOST_RIBBONS:
        kept = np.sort(np.argsort(-flow[hyp, ref], kind="stable")[:MOST_RIBBONS])
        hyp, ref = hyp[kept], ref[kept]
    return hyp, ref


def _ribbons(
    view: View, shown: Sequence[Array], flow: Array, rows: Sequence[_Row], ends: tuple[Array, Array]
) -> list[Ribbon]:
    hyps, refs = ends
    thick = flow[ends] * rows[0].scale
    start = _ribbon_positions(rows[0].left, hyps, rows[1].middle[refs], thick)
    end = _ribbon_positions(rows[1].left, refs, rows[0].middle[hyps], thick)
    cost = view.cost[shown[0][hyps], shown[1][refs]]
    levels = colour_level(cost / largest_value(view.cost))
    ribbons = []
    for k, (i, j) in enumerate(zip(hyps.tolist(), refs.tolist(), strict=True)):
        hyp, ref = view.hyp.names[shown[0][i]], view.ref.names[shown[1][j]]
        title = f"{hyp} → {ref}: {percent(flow[i, j])} of the mass, cost {number(cost[k], 2)}"
        outline = _outline(start[k], end[k], max(thick[k], 0.7))
        ribbons.append(Ribbon(outline, int(levels[k]), title))
    return ribbons


def _ribbon_positions(left: Array, unit: Array, other: Array, thick: Array) -> Array:
    """The left edge of each ribbon at its unit: side by side, in the order of the other ends."""
    order = np.lexsort((other, unit))
    before = np.cumsum(thick[order]) - thick[order]
    first = np.searchsorted(unit[order], unit[order])
    positions = np.empty(len(unit))
    positions[order] = left[unit[order]] + before - before[first]
    return positions


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
    nodes = []
    for k, unit in enumerate(units.tolist()):
        quality = float(np.nan_to_num(side.match_quality[unit]))
        tip = (
            f"{percent(side.weights[unit])} of the mass, match quality {number(quality, 2)},"
            f" contribution {number(side.contributions[unit])}"
        )
        nodes.append(
            Node(
                name=_label(shorten(side.names[unit], _NAME), side.text),
                title=f"{side.names[unit]}: {tip}",
                tip=tip,
                anchor=("start", "middle", "end")[min(int(3 * row.middle[k] / row.width), 2)],
                middle=float(row.middle[k]),
                left=float(row.left[k]),
                weight=float(row.weight[k]),
                moved=float(row.moved[k]),
                level=int(colour_level(1 - quality)),
                in_text=bool(side.spans[unit, 0] >= 0),
                ribbons=tuple(ribbons[r] for r in np.flatnonzero(ends == k).tolist()),
            )
        )
    return tuple(nodes)


def _notes(
    view: View, shown: Sequence[Array], flow: Array, ends: tuple[Array, Array]
) -> tuple[str, ...]:
    notes = []
    names = ("hypothesis", "reference")
    for name, side, units in zip(names, (view.hyp, view.ref), shown, strict=True):
        if len(units) == MOST_UNITS < len(relevant_units(side, len(side.names))):
            notes.append(
                f"Only the {MOST_UNITS} units of the {name} that contribute most are shown,"
                f" of {len(side.names)}."
            )
    many = int((flow > 0).sum())
    drawn, moving = float(flow[ends].sum()), float(flow.sum())
    if drawn < 0.999 * moving:
        share = percent(drawn / moving)
        notes.append(
            f"Only the {len(ends[0])} largest of {many} flows are shown: {share} of the mass that"
            " moves."
        )
    return tuple(notes)


def _label(name: str, text: str) -> str:
    """A name; marks of a text that is read from right to left are mirrored as they are in it."""
    neutral = not any(unicodedata.bidirectional(c) in ("L", "R", "AL", "EN", "AN") for c in name)
    return f"{_TO_THE_LEFT}{name}{_TO_THE_LEFT}" if neutral and is_right_to_left(text) else name


def _name_width(name: str) -> float:
    """The approximate width of a name in pixels, with the space beside it."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in name)
    return 14.0 + 7.4 * (len(name) - wide) + 13.5 * wide


_TO_THE_LEFT = "\u200f"
"""An invisible letter that is read from right to left."""


def is_right_to_left(text: str) -> bool:
    """Whether a text is read from right to left, by its first strongly directional character."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return kind != "L"
    return False
