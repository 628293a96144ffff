"""Why transport alone can mislead: one unit a side, ever more expensive to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import freight
from freight.report.plots import ACCENT, LINE, MUTED, WARN, picture
from freight.transport.types import Array
from writing import standing_alone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PENALTIES = freight.Problem(hyp=0.23, ref=0.31)
COSTS = np.linspace(0.0, 2.0, 101)


def prices() -> str:
    """Transport, which falls again, and the objective, which does not, against the cost."""
    transport, objective = curves()
    turn = PENALTIES.hyp + PENALTIES.ref

    def draw(axes: Axes) -> None:
        axes.axvline(turn, color=LINE, linewidth=1)
        axes.text(turn + 0.03, 0.02, "λ_hyp + λ_ref", color=MUTED, fontsize=8)
        axes.plot(COSTS, objective, color=ACCENT, linewidth=2)
        axes.plot(COSTS, transport, color=WARN, linewidth=2)
        axes.text(1.5, objective[75] - 0.06, "objective", color=ACCENT)
        axes.text(1.5, transport[75] + 0.03, "transport", color=WARN)
        axes.set_xlabel("cost of moving the one unit to the other")
        axes.set_xlim(0, 2)
        axes.set_ylim(0, turn)

    return standing_alone(picture("Transport and objective against the cost", 5.2, 2.9, draw))


def curves() -> tuple[Array, Array]:
    """Both numbers of a plan between two single units, at every cost."""
    ones = np.ones((len(COSTS), 1))
    plans = freight.solve(PENALTIES, COSTS[:, None, None], ones, ones)
    return np.asarray(plans.transport), np.asarray(plans.objective)
