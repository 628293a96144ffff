"""Plots as elements of a page: dots with intervals, scatters, histograms, heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from unicodedata import category

import numpy as np

from freight.report.svg import ACCENT, INK, LINE, MUTED, WARN, picture
from freight.report.tables import decimals
from freight.transport.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Beyond these a picture is pixels in place of shapes, and cells bear no numbers.
MOST_SHAPES = 400
MOST_NUMBERED = 24
_BLUE = "#4b97d2"  # pixels cannot follow the page: a blue for light and dark


def intervals(
    names: Sequence[str],
    values: Array,
    low: Array,
    high: Array,
    title: str,
    limits: tuple[float, float],
) -> str:
    """A dot a name, the first on top, on the line of its interval."""
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

    return picture(f"{title}: a dot a metric with its interval", 4, 0.75 + 0.27 * len(names), draw)


def scatter(
    human: Array,
    metric: Array,
    title: str,
    human_name: str,
    labels: Sequence[str] = (),
    most: int = 1500,
    seed: int = 0,
) -> str:
    """People against a metric with the least-squares line of all points; a sample of many is drawn.

    Of labelled points, the three that lie farthest from the line bear their names.
    """
    both = np.flatnonzero(np.isfinite(human) & np.isfinite(metric))
    slope, level = _line(human[both], metric[both])
    drawn = both
    if len(both) > most:
        drawn = np.sort(np.random.default_rng(seed).choice(both, most, replace=False))

    def draw(axes: Axes) -> None:
        many = len(drawn) > MOST_SHAPES
        size, alpha = (9, 0.42) if many else (24, 0.55 if len(drawn) > 60 else 0.85)
        axes.scatter(
            human[drawn], metric[drawn], s=size, color=_BLUE if many else ACCENT, alpha=alpha,
            linewidths=0, rasterized=many,
        )  # fmt: skip
        if len(both) > 1:
            ends = np.array([human[both].min(), human[both].max()])
            axes.plot(ends, level + slope * ends, color=WARN, linewidth=1.8)
        _frame(axes, title, human_name)
        if labels:
            off = np.abs(metric[both] - level - slope * human[both])
            for row in _apart(human, metric, both[np.argsort(-off)], 3):
                side = "right" if human[row] > human[both].mean() else "left"
                axes.annotate(
                    shorten(labels[row], 24), (human[row], metric[row]), ha=side,
                    xytext=(4 if side == "left" else -4, 4), textcoords="offset points",
                    fontsize=7, color=MUTED,
                )  # fmt: skip

    return picture(f"{title} against {human_name}", 3.1, 2.7, draw)


def differences(values: Array, title: str) -> str:
    """How much better the better of two texts scores, as a histogram; left of 0 the metric errs."""
    found = values[np.isfinite(values)]

    def draw(axes: Axes) -> None:
        reach = float(np.abs(found).max(initial=0.0)) or 1.0
        counts, edges = np.histogram(found, 40, (-reach, reach))
        centres = (edges[1:] + edges[:-1]) / 2
        colours = [ACCENT if centre >= 0 else WARN for centre in centres]
        axes.bar(centres, counts, width=0.9 * (edges[1] - edges[0]), color=colours)
        axes.axvline(0, color=MUTED, linewidth=0.9)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        _frame(axes, title, "score of the better text less that of the worse")

    return picture(f"{title}: differences between better and worse texts", 3.1, 2.5, draw)


def histogram(values: Array, title: str) -> str:
    """How many texts score what, with a line at their mean."""
    found = values[np.isfinite(values)]

    def draw(axes: Axes) -> None:
        low, high = (found.min(), found.max()) if len(found) else (0.0, 0.0)
        room = 0.5 if high - low < 1e-6 * max(1.0, abs(high)) else 0.0
        bins = int(np.clip(2 * np.sqrt(len(found)), 5, 40))
        counts, edges = np.histogram(found, bins, (low - room, high + room))
        axes.bar(edges[:-1], counts, width=np.diff(edges) * 0.9, align="edge", color=ACCENT)
        if len(found):
            axes.axvline(found.mean(), color=WARN, linewidth=1.8)
        axes.locator_params(axis="y", integer=True)
        _frame(axes, title, "score")

    return picture(f"{title}: how many texts score what", 3.1, 2.5, draw)


def correlations(values: Array, names: Sequence[str], label: str) -> str:
    """A square heat map from 0 (or the lowest below it) to 1."""
    low = min(0.0, float(np.nanmin(values, initial=0.0)))
    return heat_map(values, names, names, label, (low, 1.0))


def significances(p: Array, names: Sequence[str], label: str, level: float = 0.05) -> str:
    """One-sided p-values, row better than column; those below `level` are coloured."""
    p = np.where(np.eye(len(p), dtype=bool), np.nan, p)
    lit = np.where(p < level, np.sqrt(p), np.nan)
    # From the middle of the scale up, so that black is read on every cell that has a colour.
    limits = 2 * float(np.sqrt(level)), 0.0
    return heat_map(lit, names, names, label, limits, numbers=p)


def landscape(
    values: Array, rows: Sequence[str], columns: Sequence[str], row_name: str, column_name: str,
    higher: bool = True,
) -> str:  # fmt: skip
    """A statistic over two parameters, with the best cell marked."""
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
    """A statistic over one parameter: a dot a trial, the best one ringed."""
    best = np.nanargmax(values) if higher else np.nanargmin(values)

    def draw(axes: Axes) -> None:
        axes.scatter(places, values, s=16, color=ACCENT, alpha=0.5, linewidths=0)
        axes.plot(places[best], values[best], "o", markersize=9, mfc="none", mec=WARN, mew=1.8)
        _frame(axes, title, below, counted=not (log or names))
        if log:
            _logarithmic(axes)
        if names:
            axes.set_xticks(np.arange(len(names)), [shorten(name, 12) for name in names])
            axes.set_xlim(-0.5, len(names) - 0.5)

    return picture(f"{title} by {below}", 3.4, 2.6, draw)


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
    """Cells coloured from the first limit to the second and numbered; marked ones have a border."""
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


def shorten(text: str, most: int = 32) -> str:
    """The same, or its two ends where there is no room; what cannot be drawn becomes a mark."""
    text = "".join("\ufffd" if category(one) in ("Cc", "Cs") else one for one in text)
    if len(text) <= most:
        return text
    return f"{text[: most - most // 2 - 1]}…{text[-(most // 2) :]}"


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
    """A cell's number, of three digits at most."""
    if 0 < number < 0.001:
        return "<.001"
    if round(abs(number), 3) >= 1:
        return f"{number:.3g}"
    return decimals(number).replace("0.", ".", 1)


def _apart(x: Array, y: Array, rows: Array, most: int) -> list[int]:
    """The first rows whose names can stand beside them without touching each other."""
    tall = 0.09 * (np.ptp(y[rows]) or 1.0)
    chosen: list[int] = []
    for row in rows.tolist():
        if len(chosen) < most and all(abs(y[row] - y[other]) > tall for other in chosen):
            chosen.append(row)
    return chosen


def _logarithmic(axes: Axes) -> None:
    """Equal ratios at equal steps, the ticks in plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Slope and level of the least-squares line; flat where x does not vary."""
    if len(x) == 0:
        return 0.0, 0.0
    spread = x - x.mean()
    variance = float(spread @ spread)
    slope = float(spread @ y) / variance if variance > 0 else 0.0
    return slope, float(y.mean() - slope * x.mean())


def _frame(axes: Axes, title: str, below: str, counted: bool = True) -> None:
    axes.set_title(shorten(title, 36))
    axes.set_xlabel(shorten(below, 48), fontsize=8)
    axes.tick_params(axis="y", labelcolor=MUTED, labelsize=8)
    axes.tick_params(length=2.5, color=LINE)
    if counted:
        axes.locator_params(axis="x", nbins=5)
