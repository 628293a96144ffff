"""BaryScore's pictures: what a barycenter of measures is, and what it makes of layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import normalize

import freight
from freight.core.types import Cloud
from freight.core.units import all_tokens
from freight.encoders import EMBEDDED
from freight.encoders import encoder as find
from freight.report.plots import ACCENT, INK, LINE, MUTED, WARN, picture
from freight.transport.types import Array, Problem
from writing import standing_alone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 48
STEPS = 4
HYP, REF = "The boy in a coat.", "The young man in a slicker."
LAYERS = (2, 3, 4, 5, 6)


def interpolation() -> str:
    """From one measure to another by way of their mixtures, and by way of their barycenters."""
    ring, star = _ring(), _star()

    def draw(axes: Axes) -> None:
        for step in range(STEPS + 1):
            place = np.array([2.6 * step, 0.0])
            late = step / STEPS
            for shape, share in ((ring, 1 - late), (star, late)):
                _dots(axes, shape + place, 26 * share, WARN)
            copies = [ring] * (STEPS - step) + [star] * step
            between = freight.barycenter(np.stack(copies)).points
            _dots(axes, between + place - [0.0, 2.6], 14, ACCENT)
            axes.text(place[0], 1.25, f"{late:g}", ha="center", color=MUTED)
        for row, name in enumerate(("Euclidean", "Wasserstein")):
            axes.text(-1.45, -2.6 * row, name, ha="right", va="center", color=INK)
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set_xlim(-4.2, 2.6 * STEPS + 1.2)

    label = "Between two measures: their mixtures, and their Wasserstein barycenters"
    return standing_alone(picture(label, 7.4, 2.9, draw))


def layers() -> str:
    """The layers of two texts, their barycenters, and what moves between these."""
    cloud = all_tokens(find(EMBEDDED).encode([HYP, REF], LAYERS))
    clouds = [_of(cloud, text) for text in (0, 1)]
    centres = [freight.barycenter(points.swapaxes(0, 1)).points for points in clouds]
    middle, axes_of = _plane(np.concatenate([centre[1:-1] for centre in centres]))

    def draw(axes: Axes) -> None:
        flat = [(centre - middle) @ axes_of for centre in centres]
        _draw_flow(axes, centres, flat)
        for side, colour in enumerate((ACCENT, WARN)):
            spread = (clouds[side] - middle) @ axes_of
            for unit, place in enumerate(flat[side]):
                for layer in spread[unit]:
                    axes.plot(
                        *zip(place, layer, strict=True), color=colour, alpha=0.25, linewidth=0.8
                    )
            _dots(axes, spread.reshape(-1, 2), 7, colour, alpha=0.45)
            name = ("hypothesis", "reference")[side]
            _dots(axes, flat[side], 46, colour, label=name)
            _name(axes, cloud, side, flat[side], colour)
        axes.set_axis_off()
        axes.legend(frameon=False, fontsize=8, labelcolor=MUTED, loc="best")

    label = f"Five layers of “{HYP}” and “{REF}”, their barycenters, and what moves between these"
    return standing_alone(picture(label, 7.0, 5.0, draw))


def _dots(axes: Axes, places: Array, size: float, colour: str, **options: Any) -> None:
    axes.scatter(places[:, 0], places[:, 1], s=size, color=colour, linewidths=0, **options)


def _draw_flow(axes: Axes, centres: list[Array], flat: list[Array]) -> None:
    cost = ((centres[0][:, None] - centres[1][None]) ** 2).sum(axis=-1)
    weights = [np.full(len(centre), 1 / len(centre)) for centre in centres]
    flow = freight.solve(Problem(), cost, *weights).flow
    for i, j in np.argwhere(flow > 1e-9):
        width = 40 * flow[i, j]
        axes.plot(*zip(flat[0][i], flat[1][j], strict=True), color=LINE, linewidth=width, zorder=0)


def _name(axes: Axes, cloud: Cloud, text: int, places: Array, colour: str) -> None:
    first = int(cloud.offsets[text])
    for k, (x, y) in enumerate(places):
        span = cloud.start[first + k], cloud.end[first + k]
        name = cloud.texts[text][span[0] : span[1]] or ("[CLS]" if k == 0 else "[SEP]")
        axes.annotate(
            name, (x, y), xytext=(5, 5 if text else -9), textcoords="offset points",
            fontsize=8, color=colour,
        )  # fmt: skip


def _of(cloud: Cloud, text: int) -> Array:
    """The units of a text, (unit, layer, dim), of unit length."""
    part = cloud.layers[cloud.offsets[text] : cloud.offsets[text + 1]]
    scaled: torch.Tensor = normalize(part, dim=-1)
    return scaled.double().numpy()


def _plane(points: Array) -> tuple[Array, Array]:
    """The plane in which points lie farthest apart: its origin, and its axes as columns."""
    middle = points.mean(axis=0)
    _, _, axes = np.linalg.svd(points - middle, full_matrices=False)
    return middle, axes[:2].T


def _around(radius: Array) -> Array:
    """Points around the origin, as far from it as given."""
    turn = 2 * np.pi * np.arange(POINTS) / POINTS
    return np.stack((radius * np.cos(turn), radius * np.sin(turn)), axis=1)


def _ring() -> Array:
    return _around(np.full(POINTS, 0.75))


def _star() -> Array:
    wave = np.cos(4 * np.pi * np.arange(POINTS) / POINTS) ** 2
    return _around(0.25 + 0.85 * wave**2)
