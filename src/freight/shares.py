"""What each unit adds to a score, out of what its own moves cost."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from freight.types import Array, Plans


class Shares(NamedTuple):
    """A score in parts: what belongs to no unit, and what each unit of either side adds to it."""

    base: float
    hyp: Array
    ref: Array

    @property
    def total(self) -> float:
        """What the units add, all together."""
        return float(self.hyp.sum() + self.ref.sum())

    def times(self, factor: float, base: float = 0.0) -> Shares:
        """Everything scaled, on another base."""
        return Shares(base + factor * self.base, factor * self.hyp, factor * self.ref)

    def plus(self, other: Shares) -> Shares:
        """Unit by unit, the sum of both."""
        return Shares(self.base + other.base, self.hyp + other.hyp, self.ref + other.ref)

    def reaching(self, score: float, base: float = 0.0) -> Shares:
        """In the same proportions, so that all of them lead from the base to the score."""
        total = self.total
        return self.times((score - base) / total if total else 0.0)._replace(base=base)


def carried(plan: Plans, limit: float = math.inf) -> Shares:
    """What each unit's moves below a limit cost, half on either end.

    Where one side is free its units had no say, and all of it is the other's.
    """
    paid = plan.flow * plan.cost * (plan.cost < limit)
    hyp = 0.5 if plan.problem.hyp and plan.problem.ref else float(plan.problem.hyp > 0)
    return Shares(0.0, hyp * paid.sum(axis=1), (1.0 - hyp) * paid.sum(axis=0))


def objective(plan: Plans) -> Shares:
    """The same with the price of what each unit leaves unmoved, or moves too much of."""
    sides = (
        (plan.flow.sum(axis=1), plan.hyp_weights, plan.problem.hyp),
        (plan.flow.sum(axis=0), plan.ref_weights, plan.problem.ref),
    )
    return carried(plan).plus(Shares(0.0, *(_price(*side) for side in sides)))


def similarities(plan: Plans, axis: int) -> Array:
    """How much of what each unit moves arrives as it was: hyp units sum over axis 1, ref over 0."""
    near: Array = (plan.flow * (1.0 - plan.cost)).sum(axis=axis)
    return near


def averages(plan: Plans, axis: int) -> Array:
    """The same for the average of what a unit moves, divided by how many units move anything."""
    sent = plan.flow.sum(axis=axis)
    near: Array = similarities(plan, axis) / np.where(sent > 0, sent, 1.0)
    return near / max(int((sent > 0).sum()), 1)


def matching(column: str, precision: Array, recall: Array, alpha: float = 0.5) -> Shares:
    """Precision is the hypothesis', recall the reference's, and F has its part of both.

    F = P R / (alpha P + (1 - alpha) R): alpha of it is recall's, the rest precision's.
    """
    if column in ("precision", "recall"):
        wanted = column == "precision"
        return Shares(0.0, wanted * precision, (not wanted) * recall)
    p, r = float(precision.sum()), float(recall.sum())
    below = alpha * p + (1.0 - alpha) * r
    if p + r <= 0 or below == 0:
        return Shares(0.0, 0.0 * precision, 0.0 * recall)
    return Shares(0.0, (1.0 - alpha) * r / below * precision, alpha * p / below * recall)


def _price(moved: Array, mass: Array, penalty: float) -> Array:
    if not 0.0 < penalty < math.inf:
        return np.zeros(len(mass))
    ratio = np.where(moved > 0, moved, 1.0) / np.where(moved > 0, mass, 1.0)
    price: Array = penalty * (moved * np.log(ratio) + mass - moved)
    return price
