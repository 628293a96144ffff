"""An explanation as heat maps for a paper: what moving costs, word by word, and how much moves."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freight.errors import InvalidInput, MissingPart
from freight.explain.comparison import Comparison
from freight.explain.explanation import Explanation, View
from freight.report.formatting import brief, moving, number
from freight.report.plots import shorten
from freight.report.sankey import dearest, heaviest
from freight.report.svg import Lettering, lettering
from freight.transport.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from freight.report.formatting import level

MOST = 60
MOST_NUMBERED = 26
ENDINGS = (".png", ".svg", ".pdf")
_NAME = 20
_COLOURS = {"cost": ("#9ccbf2", "#eceae6", "#ffb267"), "flow": ("#f5f6f7", "#8fc4ef")}
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def plot(explanation: Explanation | Comparison, path: str | Path | None = None) -> Figure:
    """A map a term of the cost and a map a plan; two explanations stand side by side.

    Where a path is given the figure is written there too. In an SVG text stays text, which the
    fonts of the reader draw; elsewhere a character that no installed font has is a box.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise MissingPart.extra("matplotlib", "report") from error
    place = None if path is None else _checked(Path(path))
    blocks = [[*_maps(one)] for one in _explanations(explanation)]
    letters = lettering(name for block in blocks for one in block for name in one.names)
    if place is not None and place.suffix == ".svg":
        letters = Lettering(letters.families, frozenset())
    style: Any = {"font.family": list(letters.families), "text.parse_math": False}
    style |= {"svg.fonttype": "none", "svg.hashsalt": "freight"}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")
        figure = _figure(blocks, letters)
        if place is not None:
            metadata: Any = _UNDATED[place.suffix]
            figure.savefig(place, dpi=160, bbox_inches="tight", metadata=metadata)
    return figure


@dataclass(frozen=True, eq=False)
class _Map:
    title: str
    kind: str
    values: Array
    top: float
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.title, *self.rows, *self.columns)

    @property
    def numbered(self) -> bool:
        return max(self.values.shape) <= MOST_NUMBERED

    @property
    def room(self) -> tuple[float, float]:
        """Inches that it takes with its names."""
        cell = 0.36 if self.numbered else 0.17
        left, above = (max(map(len, names)) for names in (self.rows, self.columns))
        width = max(0.6 + 0.09 * left + cell * len(self.columns), 3.0)
        return width, 0.9 + 0.09 * above + cell * len(self.rows)

    def text(self, value: float) -> str:
        """A cell's number; none where nothing moves."""
        return brief(value) if self.kind == "cost" else moving(value)


def _checked(path: Path) -> Path:
    if path.suffix not in ENDINGS:
        raise InvalidInput(f"{path} ends in none of {' '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")
    return path


def _explanations(explanation: Explanation | Comparison) -> tuple[Explanation, ...]:
    if isinstance(explanation, Comparison):
        return explanation.one, explanation.other
    return (explanation,)


def _maps(explanation: Explanation) -> Iterator[_Map]:
    score = number(explanation.scores[explanation.column.name])
    title = f"{explanation.metric}, {explanation.column.name} {score}"
    for view in explanation.views:
        about = f"{title}\n{view.name}"
        shown = [heaviest(side, MOST) for side in (view.hyp, view.ref)]
        costs = {"cost": view.cost, **(view.terms if len(view.terms) > 1 else {})}
        for name, values in costs.items():
            yield _map(view, shown, f"{about}: {name}", "cost", values, dearest(view.cost))
        for plan in view.plans:
            values = 100 * plan.flow
            yield _map(view, shown, f"{about}: {plan.name}, %", "flow", values, dearest(values))


def _map(
    view: View, shown: Sequence[Array], title: str, kind: str, values: Array, top: float
) -> _Map:
    rows, columns = (
        tuple(shorten(side.names[k], _NAME) for k in units.tolist())
        for side, units in zip((view.hyp, view.ref), shown, strict=True)
    )
    return _Map(title, kind, values[np.ix_(*shown)], top, rows, columns)


def _figure(blocks: Sequence[Sequence[_Map]], letters: Lettering) -> Figure:
    """A block of two explanations is a column; of one alone, maps stand two in a row."""
    from matplotlib.figure import Figure

    if len(blocks) == 1:
        blocks = [blocks[0][::2], blocks[0][1::2]] if len(blocks[0]) > 1 else blocks
    drawn = [[one for one in block if one.values.size] for block in blocks]
    deep = max(map(len, drawn), default=0)
    if not deep:
        return Figure()
    widths = [max((one.room[0] for one in block), default=1.0) for block in drawn]
    heights = [max(block[k].room[1] for block in drawn if k < len(block)) for k in range(deep)]
    figure = Figure(figsize=(sum(widths), sum(heights)), layout="constrained")
    ratios: dict[str, Any] = {"width_ratios": widths, "height_ratios": heights}
    axes = figure.subplots(deep, len(drawn), squeeze=False, gridspec_kw=ratios)
    for column, block in enumerate(drawn):
        for k in range(deep):
            if k < len(block):
                _draw(axes[k, column], block[k], letters)
            else:
                axes[k, column].set_axis_off()
    return figure


def _draw(axes: Axes, one: _Map, letters: Lettering) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list(one.kind, [*_COLOURS[one.kind]])
    axes.imshow(one.values, cmap=colours, vmin=0, vmax=one.top, aspect="equal")
    rows, columns = ([letters.drawn(x) for x in names] for names in (one.rows, one.columns))
    axes.set_xticks(range(len(columns)), columns, rotation=90 if max(map(len, columns)) > 2 else 0)
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=9 if one.numbered else 7)
    axes.spines[:].set_visible(False)
    axes.set_title("\n".join(map(letters.drawn, one.title.split("\n"))), loc="left", fontsize=10)
    if one.numbered:
        for (row, column), value in np.ndenumerate(one.values):
            axes.text(column, row, one.text(value), ha="center", va="center", fontsize=7.5)


MOST_CELLS = 40
_CELL_NAME = 18


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
            shorten(view.hyp.names[unit], _CELL_NAME),
            tuple(zip(texts[k], levels[k].tolist(), strict=True)),
        )
        for k, unit in enumerate(shown[0].tolist())
    )
    columns = tuple(shorten(view.ref.names[unit], _CELL_NAME) for unit in shown[1].tolist())
    return Grid(title, kind, columns, rows, number(top, 2), _note(view, shown))


def _shown(view: View) -> list[Array]:
    moved = [sum(np.nan_to_num(plan.flow).sum(axis=axis) for plan in view.plans) for axis in (1, 0)]
    return [
        heaviest(side, MOST_CELLS, mass)
        for side, mass in zip((view.hyp, view.ref), moved, strict=True)
    ]


def _note(view: View, shown: Sequence[Array]) -> str:
    sizes = [
        f"{len(units)} of {len(side.names)}"
        for side, units in zip((view.hyp, view.ref), shown, strict=True)
    ]
    if max(len(units) for units in shown) < MOST_CELLS:
        return ""
    return f"Shown are the units that add most: rows {sizes[0]}, columns {sizes[1]}."
