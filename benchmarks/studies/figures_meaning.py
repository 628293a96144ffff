"""What a score means: where it stands among scores of real texts, and how often people agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import freight
from freight.core.scale import Scale, find_scale
from freight.report.plots import ACCENT, INK, MUTED, WARN, picture
from writing import standing_alone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = {"freight": "score", "bert-score": "f1"}
SEGMENTS = (25, 150)


def scale_of(metric: str, column: str) -> Scale:
    """The scale that comes with the package, for the embedded encoder."""
    scale = find_scale(freight.load(metric).signature, column)
    assert scale is not None, metric
    return scale


def anchors() -> str:
    """Unrelated texts, outputs of WMT systems and texts with one other word, on the same axis."""
    scales = {name: scale_of(name, column) for name, column in METRICS.items()}

    def draw(axes: Axes) -> None:
        for row, scale in enumerate(reversed(scales.values())):
            by_step = dict(zip(scale.steps, scale.typical, strict=True))
            typical = by_step[5], by_step[50], by_step[95]
            bands = (
                (scale.unrelated, WARN, "unrelated", 0.24),
                (typical, ACCENT, "WMT system outputs", 0.0),
                (scale.near, INK, "one word different", -0.24),
            )
            for (low, middle, high), colour, label, height in bands:
                axes.plot([low, high], [row + height] * 2, color=colour, linewidth=5, alpha=0.45)
                axes.plot([middle], [row + height], "o", color=colour, markersize=6)
                if row == len(scales) - 1:
                    left = middle > 0.6
                    place = (low - 0.015, "right") if left else (high + 0.015, "left")
                    axes.text(
                        place[0], row + height, label, color=colour, fontsize=8, ha=place[1],
                        va="center",
                    )  # fmt: skip
        axes.set_yticks(range(len(scales)), [*reversed(scales)])
        axes.set_ylim(-0.6, len(scales) - 0.4)
        axes.set_xlim(0, 1.01)
        axes.set_xlabel("score: the middle 90 % of the texts, and their median", color=MUTED)

    return standing_alone(
        picture("Scores of unrelated, usual and almost equal texts", 6.4, 2.4, draw)
    )


def agreement() -> str:
    """How often people prefer the better system, by the difference of the default metric."""
    scale = scale_of("freight", "score")
    differences = np.linspace(0.0, 0.02, 81)

    def draw(axes: Axes) -> None:
        for segments, colour in zip(SEGMENTS, (MUTED, ACCENT), strict=True):
            rates = [scale.agree(float(x), segments) for x in differences]
            value, low, high = np.array(rates, float).T * 100
            axes.plot(differences, value, color=colour, linewidth=2)
            if segments == SEGMENTS[1]:
                axes.fill_between(differences, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.text(
                0.0064, value[24] - 4, f"{segments} segments", color=colour, fontsize=8, va="center"
            )
        axes.set_xlim(0, 0.02)
        axes.set_xticks(np.arange(0, 0.021, 0.005))
        axes.set_ylim(50, 101)
        axes.set_ylabel("people agree, %", color=MUTED)
        axes.set_xlabel("difference of two systems by freight", color=MUTED)

    return standing_alone(picture("How often people agree with a difference", 6.0, 3.0, draw))
