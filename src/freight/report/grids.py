"""Heat maps of a view as tables: cells with a number and a level of colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freight.explanations import View
from freight.report.numbers import brief, level, moving, number
from freight.report.plots import shorten
from freight.report.ribbons import dearest, heaviest
from freight.types import Array

MOST = 40
_NAME = 18


@dataclass(frozen=True)
class Grid:
    """A row a unit of the hypothesis; a cell is its text and its level."""

    title: str
    kind: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    top: str
    note: str


def cost_grids(view: View) -> list[Grid]:
    """What moving costs, and the terms that it adds up from where there are several."""
    shown = _shown(view)
    top = dearest(view.cost)
    named = {"cost": view.cost, **(view.terms if len(view.terms) > 1 else {})}
    return [_grid(view, shown, title, values, top, "cost") for title, values in named.items()]


def flow_grids(view: View) -> list[Grid]:
    """How much moves, in percent of the mass, plan by plan."""
    shown = _shown(view)
    return [
        _grid(view, shown, plan.name, 100 * plan.flow, 100 * dearest(plan.flow), "flow")
        for plan in view.plans
    ]


def _grid(
    view: View, shown: Sequence[Array], title: str, values: Array, top: float, kind: str
) -> Grid:
    part = values[np.ix_(*shown)]
    levels = level(part / top)
    written = brief if kind == "cost" else moving
    texts = [[written(value) for value in row] for row in part.tolist()]
    rows = tuple(
        (
            shorten(view.hyp.names[unit], _NAME),
            tuple(zip(texts[k], levels[k].tolist(), strict=True)),
        )
        for k, unit in enumerate(shown[0].tolist())
    )
    columns = tuple(shorten(view.ref.names[unit], _NAME) for unit in shown[1].tolist())
    return Grid(title, kind, columns, rows, number(top, 2), _note(view, shown))


def _shown(view: View) -> list[Array]:
    moved = [sum(np.nan_to_num(plan.flow).sum(axis=axis) for plan in view.plans) for axis in (1, 0)]
    return [
        heaviest(side, MOST, mass) for side, mass in zip((view.hyp, view.ref), moved, strict=True)
    ]


def _note(view: View, shown: Sequence[Array]) -> str:
    sizes = [
        f"{len(units)} of {len(side.names)}"
        for side, units in zip((view.hyp, view.ref), shown, strict=True)
    ]
    if max(len(units) for units in shown) < MOST:
        return ""
    return f"Shown are the units that add most: rows {sizes[0]}, columns {sizes[1]}."
