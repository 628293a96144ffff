"""Costs: what moving one unit of mass between two units costs, for a padded batch of pairs.

A cost is a function from `Pairs` to a tensor (pair, hyp unit, ref unit); entries in the padding are
not looked at. One of your own is as good as these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from freight.core.pairings import NestedPairs, side_by_side
from freight.core.types import Pairs
from freight.errors import InvalidInput
from freight.transport.solvers import solve
from freight.transport.types import Plans, Problem, fetch_array, send_to_device

Cost = Callable[[Pairs], Tensor]


@runtime_checkable
class SumOfTerms(Protocol):
    """An optional ability of a cost that is a sum: to give its terms, for explanations."""

    def terms(self, pairs: Pairs) -> dict[str, Tensor]:
        """The summands by name."""
        ...


def cost_terms(cost: Cost, pairs: Pairs) -> dict[str, Tensor]:
    """The named terms that a cost is the sum of; empty for a cost that is no `SumOfTerms`."""
    return cost.terms(pairs) if isinstance(cost, SumOfTerms) else {}


def cosine(pairs: Pairs) -> Tensor:
    """1 - cosine similarity; a zero vector counts as orthogonal to everything."""
    return 1.0 - pairs.similarity()


def clipped_cosine(pairs: Pairs) -> Tensor:
    """1 - cosine similarity, negative similarities counting as 0."""
    return 1.0 - pairs.similarity().clamp(min=0.0)


@dataclass(frozen=True)
class LogCosine:
    """Minus the logarithm of cosine similarity, which counts as `floor` where it is less."""

    floor: float

    def __call__(self, pairs: Pairs) -> Tensor:
        """0 for the same direction, -log(floor) at most."""
        return -pairs.similarity().clamp(self.floor, 1.0).log()


def squared_euclidean(pairs: Pairs) -> Tensor:
    """The squared distance between the points."""
    return pairs.squared_distances()


def euclidean(pairs: Pairs) -> Tensor:
    """The distance between the points; in double precision, or equal points would be apart."""
    return pairs.squared_distances(torch.float64).sqrt()


def order(pairs: Pairs) -> Tensor:
    """How far apart two units stand in their texts: STD's Algorithm 1.

    Where the unit of the hypothesis is not in it, or that of the reference is not, the places of
    the two the other way round count, and where those are missing too, nothing.
    """
    hyp, ref = pairs.positions
    far = np.abs(hyp[0][:, :, None] - ref[1][:, None, :])
    back = np.abs(hyp[1][:, :, None] - ref[0][:, None, :])
    far = np.where(far > 0.0, far, back)  # nan is not above 0
    far[np.isnan(far)] = 0.0
    return torch.as_tensor(far)


@dataclass(frozen=True)
class Mix:
    """A weighted sum of costs."""

    parts: tuple[tuple[float, Cost], ...]

    def __call__(self, pairs: Pairs) -> Tensor:
        """The sum."""
        return torch.stack(self._parts(pairs)).sum(dim=0)

    def terms(self, pairs: Pairs) -> dict[str, Tensor]:
        """The summands: by meaning, and by place where that counts."""
        names = ("order" if cost is order else "meaning" for _, cost in self.parts)
        return dict(zip(names, self._parts(pairs), strict=True))

    def _parts(self, pairs: Pairs) -> list[Tensor]:
        mixed = (weight * cost(pairs) for weight, cost in self.parts)
        return [part.double() for part in mixed]


def with_order(cost: Cost, weight: float) -> Cost:
    """A cost in which the places of units have this share, from 0 on."""
    if not 0.0 <= weight <= 1.0:
        raise InvalidInput(f"order={weight!r}; give the share of word order, from 0 to 1")
    return Mix(((1.0 - weight, cost), (weight, order))) if weight else cost


@dataclass(frozen=True)
class Inner:
    """What it takes to turn the parts of one unit into those of another, by a problem of their own.

    `column` is what is read off its plan: transport or objective. Where that could not be solved
    the cost is nan.
    """

    cost: Cost
    problem: Problem
    column: Literal["transport", "objective"] = "transport"

    def __call__(self, pairs: Pairs) -> Tensor:
        """Solve a problem for every two units of a pair, all of them in batches."""
        if not isinstance(pairs, NestedPairs):
            raise InvalidInput("this metric compares sentences, and needs texts")
        where = np.nonzero(pairs.present)
        units = pairs.hyp_units[where[:2]], pairs.ref_units[where[::2]]
        index, back = np.unique(np.stack(units, axis=1), axis=0, return_inverse=True)
        values = np.full(len(index), np.nan)
        for inner in side_by_side(pairs.hyp_parts, pairs.ref_parts, index):
            plans = self._solve(inner)
            solved = plans.converged
            values[inner.which[solved]] = getattr(plans, self.column)[solved]
        cost = np.zeros(pairs.shape)
        cost[where] = values[back]
        return torch.as_tensor(cost)

    def _solve(self, inner: Pairs) -> Plans:
        cost = fetch_array(self.cost(inner).double())
        return solve(self.problem, cost, *inner.masses, *inner.sizes, strict=False)


@dataclass(frozen=True)
class Neighbours:
    """A cost in which the units before and after count too, each by this weight.

    Moving a unit costs more where its neighbours would not move along with it.
    """

    cost: Cost
    weight: float

    def __call__(self, pairs: Pairs) -> Tensor:
        """The weighted mean over the places where both sides have a neighbour."""
        cost = self.cost(pairs)
        if self.weight == 0.0:
            return cost
        total, count = self._summed(pairs, cost)
        return total / count

    def terms(self, pairs: Pairs) -> dict[str, Tensor]:
        """What the units themselves put into the mean, and what those beside them do."""
        cost = self.cost(pairs)
        total, count = self._summed(pairs, cost)
        own = cost * _inside(pairs, cost)
        return {"meaning": own / count, "neighbours": (total - own) / count} if self.weight else {}

    def _summed(self, pairs: Pairs, cost: Tensor) -> tuple[Tensor, Tensor]:
        """The costs of two units and their neighbours, and how much counted in each sum."""
        inside = _inside(pairs, cost)
        total, count = cost * inside, inside.clone()
        for part, of in ((total.clone(), total), (inside, count)):
            of[:, 1:, 1:] += self.weight * part[:, :-1, :-1]
            of[:, :-1, :-1] += self.weight * part[:, 1:, 1:]
        return total, count.clamp(min=self.weight)


def _inside(pairs: Pairs, cost: Tensor) -> Tensor:
    """1 where both units exist (pair, unit, unit), 0 in the padding."""
    if not cost.is_cuda:
        return torch.as_tensor(pairs.present).to(cost.dtype)
    sizes = send_to_device(np.stack(pairs.sizes), cost.device)
    hyp, ref = (
        torch.arange(width, device=cost.device) < size[:, None]
        for width, size in zip(cost.shape[1:], sizes, strict=True)
    )
    return (hyp[:, :, None] & ref[:, None, :]).to(cost.dtype)
