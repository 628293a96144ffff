"""Read-outs: from solved plans to columns of scores, and from a score to what each unit adds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from freight import kernels
from freight.core.flags import FlagKind
from freight.core.types import Pairs
from freight.transport.types import Array, Plans


class Reading(NamedTuple):
    """Columns of scores, and by flag the pairs that it is raised for."""

    columns: dict[str, Array]
    flags: Mapping[str, Array] = {}


Readout = Callable[[Sequence[Plans], Pairs], Reading]
"""From the plans of a batch to its columns: any function of this kind."""


@runtime_checkable
class AttributingReadout(Protocol):
    """A read-out that can also split one pair's score among its units."""

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """The columns."""
        ...

    def shares(self, column: str, score: float, plans: Sequence[Plans]) -> Shares:
        """A column's score in parts, given the plans between one pair."""
        ...


def attribute(readout: Readout, column: str, score: float, plans: Sequence[Plans]) -> Shares:
    """A score in parts; all of it belongs to no unit where the read-out cannot split it."""
    if isinstance(readout, AttributingReadout):
        return readout.shares(column, score, plans)
    n, m = plans[0].flow.shape
    return Shares(score, np.zeros(n), np.zeros(m))


@dataclass(frozen=True)
class Transport:
    """The transport cost of the plan, and its objective: with the penalty on unmatched mass.

    With `cut` the transport cost leaves out mass that moves at this cost or more.
    """

    cut: float | None = None

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """The two columns."""
        plan = plans[0]
        paid = plan.transport
        if self.cut is not None:
            paid = (plan.flow * plan.cost * (plan.cost < self.cut)).sum(axis=(1, 2))
        return Reading({"transport": paid, "objective": plan.objective}, {})

    def shares(self, column: str, score: float, plans: Sequence[Plans]) -> Shares:
        """The transport cost by unit; for the objective also the penalty on its unmatched mass."""
        if column == "objective":
            return objective_shares(plans[0])
        return transport_shares(plans[0], math.inf if self.cut is None else self.cut)


@dataclass(frozen=True)
class Distance:
    """The transport cost, times the share of the mass that is moved; or its square root."""

    root: bool = False

    @property
    def identity(self) -> str:
        """Which of the two."""
        return "root of the distance" if self.root else "distance"

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """The one column."""
        far = plans[0].transport * pairs.moved
        return Reading({"distance": np.sqrt(np.maximum(far, 0.0)) if self.root else far}, {})

    def shares(self, column: str, score: float, plans: Sequence[Plans]) -> Shares:
        """What each unit's moves cost."""
        return transport_shares(plans[0]).reaching(score)


distance = Distance()


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision from a plan whose hyp marginal is hard, recall from one whose ref marginal is; F.

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
        return Reading(columns, {FlagKind.NO_SIMILARITY: ~positive})

    def shares(self, column: str, score: float, plans: Sequence[Plans]) -> Shares:
        """Precision is the hypothesis', recall the reference's; F takes its part of both."""
        both = similarity_shares(plans[0], axis=1), similarity_shares(plans[1], axis=0)
        baseline = self.baselines[[self.name, "precision", "recall"].index(column)]
        scale = 1.0 - baseline
        return f_shares(column, *both, self.alpha).times(1.0 / scale, -baseline / scale)


@dataclass(frozen=True)
class FlowAverages:
    """WRDScore's equations 4 and 5: how similar what a unit sends or receives is, on average.

    Under ties the flow, and with it precision and recall, depends on the solver: `ties` names ours.
    """

    ties: Literal["transportation simplex"] = "transportation simplex"

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """F1, precision, recall, and what the plan costs."""
        flow, similarity = plans[0].flow, 1.0 - plans[0].cost
        near = []
        for axis in (2, 1):
            sent = flow.sum(axis=axis)
            average = (flow * similarity).sum(axis=axis) / _or_one(sent, sent > 0)
            near.append(average.sum(axis=1) / (sent > 0).sum(axis=1).clip(1))
        return _with_f1(near[0], near[1], plans[0].transport)

    def shares(self, column: str, score: float, plans: Sequence[Plans]) -> Shares:
        """Each unit's own average, by how many there are of them."""
        both = average_shares(plans[0], axis=1), average_shares(plans[0], axis=0)
        return transport_shares(plans[0]) if column == "wrd" else f_shares(column, *both)


@dataclass(frozen=True)
class GreedyPrecision:
    """WRDScore's released code: recall off the full plan, precision off the nearest units."""

    identity: ClassVar[str] = "greedy_precision"

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """F1, precision, recall, and what the full plan costs."""
        return _with_f1(1.0 - plans[1].transport, 1.0 - plans[0].transport, plans[0].transport)

    def shares(self, column: str, score: float, plans: Sequence[Plans]) -> Shares:
        """Precision is the hypothesis', recall the reference's."""
        both = similarity_shares(plans[1], axis=1), similarity_shares(plans[0], axis=0)
        return transport_shares(plans[0]) if column == "wrd" else f_shares(column, *both)


greedy_precision = GreedyPrecision()


@dataclass(frozen=True)
class Similarity:
    """A distance and a similarity made of it: 1 - d, 1 / (1 + d) or exp(-d)."""

    how: Literal["complement", "inverse", "exponential"]

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """The two columns."""
        far = plans[0].transport
        return Reading({"similarity": _SIMILARITIES[self.how](far), "distance": far}, {})

    def shares(self, column: str, score: float, plans: Sequence[Plans]) -> Shares:
        """What each unit's moves cost, or how far they take the similarity down from 1."""
        return transport_shares(plans[0]).reaching(score, float(column == "similarity"))


@dataclass(frozen=True)
class LazyAndGreedy:
    """exp(-d): d mixes the objective of a relaxed plan with the mean cost of two greedy plans.

    `greedy` is the share of the latter, in which every unit of one side goes to its nearest;
    `recall` is the share of the reference's units among the two.
    """

    greedy: float
    recall: float = 0.5

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """The one column."""
        return Reading({"score": np.exp(-np.maximum(self.distance(plans), 0.0))}, {})

    def distance(self, plans: Sequence[Plans]) -> Any:
        """The d above, of arrays or of tensors."""
        lazy, precise, complete = plans
        nearest = (1.0 - self.recall) * precise.transport + self.recall * complete.transport
        return (1.0 - self.greedy) * lazy.objective + self.greedy * nearest

    def shares(self, column: str, score: float, plans: Sequence[Plans]) -> Shares:
        """How far each unit's part of the distance takes the score down from 1."""
        lazy, precise, complete = plans
        given = transport_shares(precise).times(self.greedy * (1.0 - self.recall))
        nearest = given.plus(transport_shares(complete).times(self.greedy * self.recall))
        return objective_shares(lazy).times(1.0 - self.greedy).plus(nearest).reaching(score, 1.0)


@dataclass(frozen=True)
class Fragmented:
    """WMDO: the distance, more for broken word order, more for words without a vector."""

    order: float
    unknown: float

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """The one column."""
        broken = kernels.fragmentation(plans[0].flow, pairs.hyp_sizes, pairs.ref_sizes)
        penalties = self.order * broken + self.unknown * pairs.unknown
        return Reading({"distance": plans[0].transport + penalties}, {})

    def shares(self, column: str, score: float, plans: Sequence[Plans]) -> Shares:
        """What each unit's moves cost; what order and unknown words cost belongs to none."""
        moves = transport_shares(plans[0])
        return moves._replace(base=score - moves.total)


def _with_f1(precision: Array, recall: Array, wrd: Array) -> Reading:
    total = precision + recall
    positive = total > 0
    f1 = 0.0 + positive * (2 * precision * recall / _or_one(total, positive))  # never -0.0
    columns = {"f1": f1, "precision": precision, "recall": recall, "wrd": wrd}
    return Reading(columns, {FlagKind.NO_SIMILARITY: ~positive})


def _or_one(x: Any, positive: Any) -> Any:
    """An array or a tensor to divide by: 1 where it is not positive."""
    return x * positive + ~positive


_SIMILARITIES: dict[str, Callable[[Array], Array]] = {
    "complement": lambda far: 1.0 - far,
    "inverse": lambda far: 1.0 / (1.0 + far),
    "exponential": lambda far: np.exp(-far),
}


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
        """The shares scaled by one factor so that, with this base, they add up to the score."""
        total = self.total
        return self.times((score - base) / total if total else 0.0)._replace(base=base)


def transport_shares(plan: Plans, limit: float = math.inf) -> Shares:
    """The transport cost by unit: half of what a flow costs goes to each of its two units.

    Where one marginal is free, all of it goes to the unit of the other side. Only flows at a cost
    below `limit` count.
    """
    paid = plan.flow * plan.cost * (plan.cost < limit)
    hyp = 0.5 if plan.problem.hyp and plan.problem.ref else float(plan.problem.hyp > 0)
    return Shares(0.0, hyp * paid.sum(axis=1), (1.0 - hyp) * paid.sum(axis=0))


def objective_shares(plan: Plans) -> Shares:
    """The same plus the KL penalty on the marginal of each unit."""
    sides = (
        (plan.flow.sum(axis=1), plan.hyp_weights, plan.problem.hyp),
        (plan.flow.sum(axis=0), plan.ref_weights, plan.problem.ref),
    )
    return transport_shares(plan).plus(Shares(0.0, *(_kl_penalty(*side) for side in sides)))


def similarity_shares(plan: Plans, axis: int) -> Array:
    """The similarity of each unit's flows, 1 - cost: axis 1 sums for hyp units, axis 0 for ref."""
    near: Array = (plan.flow * (1.0 - plan.cost)).sum(axis=axis)
    return near


def average_shares(plan: Plans, axis: int) -> Array:
    """The mean similarity of each unit's flow, over the number of units that move anything."""
    sent = plan.flow.sum(axis=axis)
    near: Array = similarity_shares(plan, axis) / np.where(sent > 0, sent, 1.0)
    return near / max(int((sent > 0).sum()), 1)


def f_shares(column: str, precision: Array, recall: Array, alpha: float = 0.5) -> Shares:
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


def _kl_penalty(moved: Array, mass: Array, penalty: float) -> Array:
    if not 0.0 < penalty < math.inf:
        return np.zeros(len(mass))
    ratio = np.where(moved > 0, moved, 1.0) / np.where(moved > 0, mass, 1.0)
    penalties: Array = penalty * (moved * np.log(ratio) + mass - moved)
    return penalties
