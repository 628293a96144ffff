"""Cost and flow matrices as heat maps: a matplotlib figure for a paper, tables for a page."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freight.data.output import check_path, open_output
from freight.errors import MissingPart
from freight.explain.comparison import Comparison
from freight.explain.explanation import Explanation, View
from freight.report.formatting import brief, colour_level, flow_percent, number, shorten
from freight.report.sankey import largest_value, relevant_units
from freight.transport.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_UNITS = 60  # rows or columns of a figure's heat map
MOST_NUMBERED = 26  # rows or columns: with more of them cells have no numbers
MOST_CELLS = 40  # rows or columns of a page's heat map
ENDINGS = (".png", ".svg", ".pdf")
_NAME = 20
_CELL_NAME = 18
_COLOURS = {"cost": ("#9ccbf2", "#eceae6", "#ffb267"), "flow": ("#f5f6f7", "#8fc4ef")}
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def plot(explanation: Explanation | Comparison, path: str | Path | None = None) -> Figure:
    """One heat map per term of the cost and per plan; two explanations stand side by side.

    If a path is given the figure is written there too. In an SVG text stays text, which the fonts
    of the reader draw; elsewhere a character that no installed font has is drawn as a box.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise MissingPart.extra("matplotlib", "report") from error
    output = None if path is None else Path(path)
    if output is not None:
        check_path(output, ENDINGS)
    blocks = [[*_maps(one)] for one in _explanations(explanation)]
    fonts = choose_fonts(label for block in blocks for one in block for label in one.labels)
    if output is not None and output.suffix == ".svg":
        fonts = Fonts(fonts.families, frozenset())
    style: Any = {"font.family": list(fonts.families), "text.parse_math": False}
    style |= {"svg.fonttype": "none", "svg.hashsalt": "freight"}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")
        figure = _figure(blocks, fonts)
        if output is not None:
            metadata: Any = _UNDATED[output.suffix]
            form: Any = {"format": output.suffix[1:], "metadata": metadata}
            with open_output(output) as stream:
                figure.savefig(stream, dpi=160, bbox_inches="tight", **form)
    return figure


@dataclass(frozen=True, eq=False)
class _Map:
    """One heat map of a figure; `top` is the value of the last colour."""

    title: str
    kind: str
    values: Array
    top: float
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.title, *self.rows, *self.columns)

    @property
    def numbered(self) -> bool:
        return max(self.values.shape) <= MOST_NUMBERED

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, labels included."""
        cell = 0.36 if self.numbered else 0.17
        left, above = (max(map(len, names)) for names in (self.rows, self.columns))
        width = max(0.6 + 0.09 * left + cell * len(self.columns), 3.0)
        return width, 0.9 + 0.09 * above + cell * len(self.rows)

    def text(self, value: float) -> str:
        """A cell's number; none where nothing moves."""
        return brief(value) if self.kind == "cost" else flow_percent(value)


def _explanations(explanation: Explanation | Comparison) -> tuple[Explanation, ...]:
    if isinstance(explanation, Comparison):
        return explanation.one, explanation.other
    return (explanation,)


def _maps(explanation: Explanation) -> Iterator[_Map]:
    score = number(explanation.scores[explanation.column.name])
    title = f"{explanation.metric}, {explanation.column.name} {score}"
    for view in explanation.views:
        heading = f"{title}\n{view.name}"
        shown = [relevant_units(side, MOST_UNITS) for side in (view.hyp, view.ref)]
        for name, values in _costs(view).items():
            yield _map(view, shown, f"{heading}: {name}", "cost", values, largest_value(view.cost))
        for plan in view.plans:
            values = 100 * plan.flow
            flow_title = f"{heading}: flow ({plan.name}), %"
            yield _map(view, shown, flow_title, "flow", values, largest_value(values))


def _costs(view: View) -> dict[str, Array]:
    """The cost, and its terms where there are several."""
    return {"cost": view.cost, **(view.terms if len(view.terms) > 1 else {})}


def _map(
    view: View, shown: Sequence[Array], title: str, kind: str, values: Array, top: float
) -> _Map:
    rows, columns = (
        tuple(shorten(side.names[k], _NAME) for k in units.tolist())
        for side, units in zip((view.hyp, view.ref), shown, strict=True)
    )
    return _Map(title, kind, values[np.ix_(*shown)], top, rows, columns)


def _figure(blocks: Sequence[Sequence[_Map]], fonts: Fonts) -> Figure:
    """Two explanations are a column each; the maps of a single one stand two in a row."""
    from matplotlib.figure import Figure

    if len(blocks) == 1:
        blocks = [blocks[0][::2], blocks[0][1::2]] if len(blocks[0]) > 1 else blocks
    drawn = [[one for one in block if one.values.size] for block in blocks]
    deep = max(map(len, drawn), default=0)
    if not deep:
        return Figure()
    widths = [max((one.size[0] for one in block), default=1.0) for block in drawn]
    heights = [max(block[k].size[1] for block in drawn if k < len(block)) for k in range(deep)]
    figure = Figure(figsize=(sum(widths), sum(heights)), layout="constrained")
    ratios: dict[str, Any] = {"width_ratios": widths, "height_ratios": heights}
    axes = figure.subplots(deep, len(drawn), squeeze=False, gridspec_kw=ratios)
    for column, block in enumerate(drawn):
        for k in range(deep):
            if k < len(block):
                _draw_map(axes[k, column], block[k], fonts)
            else:
                axes[k, column].set_axis_off()
    return figure


def _draw_map(axes: Axes, one: _Map, fonts: Fonts) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list(one.kind, [*_COLOURS[one.kind]])
    axes.imshow(one.values, cmap=colours, vmin=0, vmax=one.top, aspect="equal")
    rows, columns = ([fonts.drawable(x) for x in names] for names in (one.rows, one.columns))
    axes.set_xticks(range(len(columns)), columns, rotation=90 if max(map(len, columns)) > 2 else 0)
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=9 if one.numbered else 7)
    axes.spines[:].set_visible(False)
    title = "\n".join(map(fonts.drawable, one.title.split("\n")))
    axes.set_title(title, loc="left", fontsize=10)
    if one.numbered:
        for (row, column), value in np.ndenumerate(one.values):
            axes.text(column, row, one.text(value), ha="center", va="center", fontsize=7.5)


# Heat maps as tables of a page.


@dataclass(frozen=True)
class Grid:
    """A heat map as a table, hypothesis units in rows; a cell is its text and its colour level."""

    title: str
    kind: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    top: str
    note: str


def cost_grids(view: View) -> list[Grid]:
    """The cost, and its terms where there are several."""
    shown, top = _grid_units(view), largest_value(view.cost)
    return [_grid(view, shown, title, x, top, "cost") for title, x in _costs(view).items()]


def flow_grids(view: View) -> list[Grid]:
    """The flow of each plan, in percent of the mass."""
    shown = _grid_units(view)
    return [
        _grid(view, shown, plan.name, 100 * plan.flow, 100 * largest_value(plan.flow), "flow")
        for plan in view.plans
    ]


def _grid(
    view: View, shown: Sequence[Array], title: str, values: Array, top: float, kind: str
) -> Grid:
    part = values[np.ix_(*shown)]
    levels = colour_level(part / top)
    to_text = brief if kind == "cost" else flow_percent
    texts = [[to_text(value) for value in row] for row in part.tolist()]
    rows = tuple(
        (
            shorten(view.hyp.names[unit], _CELL_NAME),
            tuple(zip(texts[k], levels[k].tolist(), strict=True)),
        )
        for k, unit in enumerate(shown[0].tolist())
    )
    columns = tuple(shorten(view.ref.names[unit], _CELL_NAME) for unit in shown[1].tolist())
    return Grid(title, kind, columns, rows, number(top, 2), _grid_note(view, shown))


def _grid_units(view: View) -> list[Array]:
    moved = [sum(np.nan_to_num(plan.flow).sum(axis=axis) for plan in view.plans) for axis in (1, 0)]
    return [
        relevant_units(side, MOST_CELLS, mass)
        for side, mass in zip((view.hyp, view.ref), moved, strict=True)
    ]


def _grid_note(view: View, shown: Sequence[Array]) -> str:
    if max(len(units) for units in shown) < MOST_CELLS:
        return ""
    rows, columns = (
        f"{len(units)} of {len(side.names)}"
        for side, units in zip((view.hyp, view.ref), shown, strict=True)
    )
    return f"Only the units that contribute most are shown: {rows} rows, {columns} columns."


# Fonts that have the characters of a figure.

_FIRST_FONT = "DejaVu Sans"  # comes with matplotlib
_BOX = "\u25a1"
_PLACEHOLDER = "last resort"  # such a font has a box for every character


@dataclass(frozen=True)
class Fonts:
    """Font families that together have the characters of some texts, and the characters missing."""

    families: tuple[str, ...]
    missing: frozenset[str]

    def drawable(self, text: str) -> str:
        """The text on one line, with boxes for characters that no font has."""
        shown = (_replacement(c) if c in self.missing else c for c in text)
        return "".join(" " if c.isspace() else c for c in shown)


def choose_fonts(texts: Iterable[str]) -> Fonts:
    """Add fonts until every character is there; most texts need only the first one."""
    families = [_FIRST_FONT]
    missing = {c for text in texts for c in text if not c.isspace()} - _first_characters()
    for family, path in _other_fonts() if missing else ():
        there = missing & _characters(path)
        if there:
            families.append(family)
            missing -= there
        if not missing:
            break
    return Fonts(tuple(families), frozenset(missing))


def _replacement(character: str) -> str:
    """A box, or nothing for an invisible character: joiners, direction marks, accents."""
    return "" if unicodedata.category(character) in ("Cf", "Cc", "Mn", "Me") else _BOX


def _other_fonts() -> Iterator[tuple[str, str]]:
    """Upright fonts of normal weight, one file per family, by name."""
    from matplotlib.font_manager import fontManager

    plain = {f.name: f.fname for f in fontManager.ttflist if (f.style, f.weight) == ("normal", 400)}
    yield from ((k, v) for k, v in sorted(plain.items()) if _PLACEHOLDER not in k.lower())


def _first_characters() -> frozenset[str]:
    from matplotlib.font_manager import findfont

    return _characters(findfont(_FIRST_FONT))


@cache
def _characters(path: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(map(chr, get_font(path).get_charmap()))
    except (OSError, RuntimeError):  # a font file that cannot be read
        return frozenset()
