"""Plots as SVG elements of a page: intervals, scatter plots, histograms, heat maps.

One drawing suits light and dark pages: it is drawn in placeholder colours, and each of them is
replaced by a colour of the page's style sheet.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from freight.errors import MissingPart
from freight.report.formatting import decimals, shorten
from freight.transport.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, LINE, ACCENT, WARN = "#010203", "#020304", "#030405", "#040506", "#050607"
_PAGE_COLOURS = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    ACCENT: "var(--accent)",
    WARN: "var(--warm)",
}
_METADATA = ("Creator", "Date", "Format", "Type")
_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "grid.color": LINE,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8.5,
    "lines.solid_capstyle": "round",
}
_UNWANTED = re.compile(
    r"<defs>\s*<style.*?</style>\s*</defs>|<metadata>.*?</metadata>"
    r'|\s(?:xmlns(?::\w+)?|version)="[^"]*"|\sid="[\w.]+_\d+"|\stransform="rotate\(-?0 [^"]*"'
    r'|(?<=")font-family: [^;"]*(?=")|font-family: [^;"]*; ',
    re.DOTALL,
)


MOST_SHAPES = 400  # points of a scatter plot: with more of them it is a bitmap
MOST_NUMBERED = 24  # rows or columns of a heat map: with more of them cells have no numbers
_BITMAP_BLUE = "#4b97d2"  # a bitmap cannot follow the page: a blue for light and dark


def intervals(
    names: Sequence[str],
    values: Array,
    low: Array,
    high: Array,
    title: str,
    limits: tuple[float, float],
) -> str:
    """One dot with its interval per name, the first on top."""
    at = np.arange(len(names))[::-1]

    def draw(axes: Axes) -> None:
        axes.hlines(at, low, high, color=ACCENT, linewidth=2.2, alpha=0.4)
        axes.plot(values, at, "o", color=ACCENT, markersize=5.5)
        axes.set_yticks(at, [shorten(name) for name in names])
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.grid(axis="x", linewidth=0.7)
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
        axes.set_title(shorten(title, 44))
        axes.set_xlim(limits)
        if limits[0] < 0 < limits[1]:
            axes.axvline(0, color=MUTED, linewidth=0.9, zorder=0)

    return picture(f"{title}: each metric with its interval", 4, 0.75 + 0.27 * len(names), draw)


def scatter(
    x: Array,
    y: Array,
    title: str,
    x_name: str,
    labels: Sequence[str] = (),
    most: int = 1500,
    seed: int = 0,
    y_name: str = "",
) -> str:
    """A scatter plot with the least-squares line of all points.

    Of very many points a random sample is drawn. Of labelled points, the three farthest from the
    line show their labels.
    """
    both = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    slope, intercept = _fit_line(x[both], y[both])
    drawn = both
    if len(both) > most:
        drawn = np.sort(np.random.default_rng(seed).choice(both, most, replace=False))

    def draw(axes: Axes) -> None:
        many = len(drawn) > MOST_SHAPES
        size, alpha = (9, 0.42) if many else (24, 0.55 if len(drawn) > 60 else 0.85)
        axes.scatter(
            x[drawn], y[drawn], s=size, alpha=alpha, linewidths=0, rasterized=many,
            color=_BITMAP_BLUE if many else ACCENT,
        )  # fmt: skip
        if len(both) > 1:
            ends = np.array([x[both].min(), x[both].max()])
            axes.plot(ends, intercept + slope * ends, color=WARN, linewidth=1.8)
        _label_axes(axes, title, x_name)
        axes.set_ylabel(shorten(y_name, 40), fontsize=8)
        if labels:
            off = np.abs(y[both] - intercept - slope * x[both])
            for row in _without_overlap(y, both[np.argsort(-off)], 3):
                side = "right" if x[row] > x[both].mean() else "left"
                axes.annotate(
                    shorten(labels[row], 24), (x[row], y[row]), ha=side,
                    xytext=(4 if side == "left" else -4, 4), textcoords="offset points",
                    fontsize=7, color=MUTED,
                )  # fmt: skip

    return picture(f"{title} against {x_name}", 3.1, 2.7, draw)


def differences(values: Array, title: str, negated: bool = False) -> str:
    """A histogram of how much better the preferred text scores than the other one.

    Of a metric that is `negated` lower scores are better, and the axis says so.
    """
    sides = ("worse", "better") if negated else ("better", "worse")
    axis = f"score of the {sides[0]} − score of the {sides[1]} text"
    finite = values[np.isfinite(values)]

    def draw(axes: Axes) -> None:
        reach = float(np.abs(finite).max(initial=0.0)) or 1.0
        counts, edges = np.histogram(finite, 40, (-reach, reach))
        centres = (edges[1:] + edges[:-1]) / 2
        colours = [ACCENT if centre >= 0 else WARN for centre in centres]
        axes.bar(centres, counts, width=0.9 * (edges[1] - edges[0]), color=colours)
        axes.axvline(0, color=MUTED, linewidth=0.9)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        _label_axes(axes, title, axis)

    return picture(f"{title}: differences between better and worse texts", 3.1, 2.5, draw)


def histogram(values: Array, title: str) -> str:
    """A histogram of scores, with a line at their mean."""
    finite = values[np.isfinite(values)]

    def draw(axes: Axes) -> None:
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
        room = 0.5 if high - low < 1e-6 * max(1.0, abs(high)) else 0.0
        bins = int(np.clip(2 * np.sqrt(len(finite)), 5, 40))
        counts, edges = np.histogram(finite, bins, (low - room, high + room))
        axes.bar(edges[:-1], counts, width=np.diff(edges) * 0.9, align="edge", color=ACCENT)
        if len(finite):
            axes.axvline(finite.mean(), color=WARN, linewidth=1.8)
        axes.locator_params(axis="y", integer=True)
        _label_axes(axes, title, "score")

    return picture(f"{title}: histogram of scores", 3.1, 2.5, draw)


def correlations(values: Array, names: Sequence[str], label: str) -> str:
    """A square heat map of correlations, its colours from 0 (or the lowest below it) to 1."""
    low = min(0.0, float(np.nanmin(values, initial=0.0)))
    return heat_map(values, names, names, label, (low, 1.0))


def significances(p: Array, names: Sequence[str], label: str, level: float = 0.05) -> str:
    """One-sided p-values of row against column; those below the level are coloured."""
    p = np.where(np.eye(len(p), dtype=bool), np.nan, p)
    lit = np.where(p < level, np.sqrt(p), np.nan)
    # The upper half of the scale alone, on every colour of which black text is legible.
    limits = 2 * float(np.sqrt(level)), 0.0
    return heat_map(lit, names, names, label, limits, numbers=p)


def landscape(
    values: Array, rows: Sequence[str], columns: Sequence[str], row_name: str, column_name: str,
    higher: bool = True,
) -> str:  # fmt: skip
    """A statistic over two parameters as a heat map, with the best cell marked."""
    best = np.nanmax(values) if higher else np.nanmin(values)
    limits = float(np.nanmin(values)), float(np.nanmax(values))
    label = f"{row_name} by {column_name}"
    limits = limits if higher else limits[::-1]
    return heat_map(
        values, rows, columns, label, limits, marked=values == best, axes=(row_name, column_name)
    )


def strip(
    places: Array, values: Array, title: str, below: str, names: Sequence[str] = (),
    log: bool = False, higher: bool = True,
) -> str:  # fmt: skip
    """A statistic over one parameter: one dot per trial, with a ring around the best."""
    best = np.nanargmax(values) if higher else np.nanargmin(values)

    def draw(axes: Axes) -> None:
        axes.scatter(places, values, s=16, color=ACCENT, alpha=0.5, linewidths=0)
        axes.plot(places[best], values[best], "o", markersize=9, mfc="none", mec=WARN, mew=1.8)
        _label_axes(axes, title, below, few_ticks=not (log or names))
        if log:
            _logarithmic(axes)
        if names:
            axes.set_xticks(np.arange(len(names)), [shorten(name, 12) for name in names])
            axes.set_xlim(-0.5, len(names) - 0.5)

    return picture(f"{title} by {below}", 3.4, 2.6, draw)


def curve(
    steps: Sequence[float], values: Sequence[float], title: str, below: str,
    level: float | None = None, level_name: str = "",
) -> str:  # fmt: skip
    """A value by step, with a dashed line at a level to compare it with."""

    def draw(axes: Axes) -> None:
        axes.plot(steps, values, "o-", color=ACCENT, linewidth=1.8, markersize=3.5)
        if level is not None:
            axes.axhline(level, color=WARN, linewidth=1.4, linestyle=(0, (4, 3)))
            axes.annotate(
                level_name, (1, level), xycoords=("axes fraction", "data"), ha="right",
                xytext=(0, 3), textcoords="offset points", fontsize=7.5, color=MUTED,
            )  # fmt: skip
        axes.grid(axis="y", linewidth=0.7)
        _label_axes(axes, title, below)

    return picture(f"{title} by {below}", 4.2, 2.6, draw)


def heat_map(
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    label: str,
    limits: tuple[float, float],
    numbers: Array | None = None,
    marked: Array | None = None,
    axes: tuple[str, str] = ("", ""),
) -> str:
    """A heat map with colours from the first limit to the second, and numbers in its cells.

    Marked cells have a border.
    """
    low, high = limits
    shade = np.clip((values - low) / (high - low if high != low else 1.0), 0, 1)
    few = max(values.shape) <= MOST_NUMBERED
    numbers = values if numbers is None else numbers

    def draw(on: Axes) -> None:
        on.pcolormesh(shade, cmap="cividis", vmin=0, vmax=1, rasterized=not few)
        if few:
            _number_cells(on, numbers, shade, marked)
        on.set_xticks(np.arange(len(columns)) + 0.5, [shorten(x, 28) for x in columns])
        on.set_yticks(np.arange(len(rows)) + 0.5, [shorten(x, 28) for x in rows])
        on.tick_params(axis="x", labelrotation=40, labelcolor=INK)
        for text in on.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
        on.tick_params(length=0)
        on.spines[:].set_visible(False)
        on.invert_yaxis()
        on.set(ylabel=axes[0], xlabel=axes[1])

    side = 0.46 if few else 0.16
    left, below = (max(len(shorten(x, 28)) for x in names) for names in (rows, columns))
    width = 0.3 + 0.075 * left + side * len(columns) + 0.2 * bool(axes[0])
    height = 0.3 + 0.05 * below + 0.8 * side * len(rows) + 0.2 * bool(axes[1])
    return picture(label, width, height, draw)


def _number_cells(axes: Axes, numbers: Array, shade: Array, marked: Array | None) -> None:
    from matplotlib.patches import Rectangle

    for (row, column), number in np.ndenumerate(numbers):
        if np.isnan(number):
            continue
        strong = marked is not None and bool(marked[row, column])
        bare = np.isnan(shade[row, column])
        colour = MUTED if bare else "white" if shade[row, column] < 0.5 else "black"
        axes.text(
            column + 0.5, row + 0.5, _brief(number), ha="center", va="center_baseline",
            fontsize=7.5, color=colour, fontweight="bold" if strong else "normal",
        )  # fmt: skip
        if strong or bare:
            box = Rectangle((column + 0.05, row + 0.06), 0.9, 0.88, fill=False)
            box.set(edgecolor=colour if strong else LINE, linewidth=1.6 if strong else 0.6)
            axes.add_patch(box)


def _brief(number: float) -> str:
    """A number of at most three digits, for a cell."""
    if 0 < number < 0.001:
        return "<.001"
    if round(abs(number), 3) >= 1:
        return f"{number:.3g}"
    return decimals(number).replace("0.", ".", 1)


def _without_overlap(y: Array, rows: Array, most: int) -> list[int]:
    """The first rows whose labels do not overlap each other."""
    tall = 0.09 * (np.ptp(y[rows]) or 1.0)
    chosen: list[int] = []
    for row in rows.tolist():
        if len(chosen) < most and all(abs(y[row] - y[other]) > tall for other in chosen):
            chosen.append(row)
    return chosen


def _logarithmic(axes: Axes) -> None:
    """A logarithmic x axis with ticks in plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _fit_line(x: Array, y: Array) -> tuple[float, float]:
    """Slope and intercept of the least-squares line; flat where x does not vary."""
    if len(x) == 0:
        return 0.0, 0.0
    spread = x - x.mean()
    variance = float(spread @ spread)
    slope = float(spread @ y) / variance if variance > 0 else 0.0
    return slope, float(y.mean() - slope * x.mean())


def _label_axes(axes: Axes, title: str, x_label: str, few_ticks: bool = True) -> None:
    axes.set_title(shorten(title, 36))
    axes.set_xlabel(shorten(x_label, 48), fontsize=8)
    axes.tick_params(axis="y", labelcolor=MUTED, labelsize=8)
    axes.tick_params(length=2.5, color=LINE)
    if few_ticks:
        axes.locator_params(axis="x", nbins=5)


def picture(label: str, width: float, height: float, draw: Callable[[Axes], None]) -> str:
    """The SVG element of what `draw` draws; size in inches, `label` for screen readers.

    Only clip paths and markers keep an id, and their ids differ from picture to picture.
    """
    matplotlib, figure_class = _import_matplotlib()
    salt = f"{label} {width} {height}"
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        # The fonts of the reader draw the text; matplotlib's font only measures it.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")
        figure = figure_class(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        stream = io.StringIO()
        figure.savefig(stream, format="svg", dpi=144, metadata=dict.fromkeys(_METADATA))
    return _adapt_to_page(stream.getvalue(), label)


def _adapt_to_page(drawing: str, label: str) -> str:
    drawing = re.sub(r"\s+", " ", _UNWANTED.sub("", drawing[drawing.index("<svg") :]))
    for stand_in, colour in _PAGE_COLOURS.items():
        drawing = drawing.replace(f": {stand_in}", f": {colour}")
    return drawing.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def _import_matplotlib() -> tuple[Any, Any]:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPart.extra("matplotlib", "report") from error
    return matplotlib, Figure
