"""From solved plans to columns of scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from freight.pairings import Pairs
from freight.types import Array, Plans


class Reading(NamedTuple):
    """Columns of scores, and by flag the pairs that it is raised for."""

    columns: dict[str, Array]
    flags: dict[str, Array]


Readout = Callable[[Sequence[Plans], Pairs], Reading]


@dataclass(frozen=True)
class Transport:
    """What the plan costs to carry out, and with the price of what stays unmoved.

    `cut` leaves what moves at this cost or more out of the first.
    """

    cut: float | None = None

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """The two columns."""
        plan = plans[0]
        carried = plan.transport
        if self.cut is not None:
            carried = (plan.flow * plan.cost * (plan.cost < self.cut)).sum(axis=(1, 2))
        return Reading({"transport": carried, "objective": plan.objective}, {})


def distance(plans: Sequence[Plans], pairs: Pairs) -> Reading:
    """What the plan costs to carry out, for the share of the mass that is to move."""
    moved = 1.0 if pairs.moved is None else pairs.moved
    return Reading({"distance": plans[0].transport * moved}, {})


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision from a plan that holds hyp, recall from one that holds ref, and their F.

    F = P R / (alpha P + (1 - alpha) R); alpha 0.5 is the harmonic mean, 1 is recall. Where P + R is
    not positive F is 0, and flagged. `baselines` b of F, P and R rescale them to (x - b) / (1 - b).
    """

    alpha: float = 0.5
    name: str = "f1"
    baselines: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """The three columns."""
        precision, recall = 1.0 - plans[0].transport, 1.0 - plans[1].transport
        below = self.alpha * precision + (1.0 - self.alpha) * recall
        positive = (precision + recall > 0) & (below != 0)
        score = np.where(positive, precision * recall / np.where(positive, below, 1.0), 0.0)
        named = {self.name: score, "precision": precision, "recall": recall}
        scaled = zip(named.items(), self.baselines, strict=True)
        columns = {name: (x - b) / (1.0 - b) for (name, x), b in scaled}
        return Reading(columns, {"no similarity": ~positive})
