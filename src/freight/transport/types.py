"""The nouns: a problem is data, a solved batch derives its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from numba import prange

from freight.errors import InvalidInput
from freight.kernels import batch_kernel, kernel, one_at_a_time

if TYPE_CHECKING:
    import torch


Array: TypeAlias = npt.NDArray[Any]
Numbers: TypeAlias = Array | torch.Tensor


@dataclass(frozen=True)
class Problem:
    """How firmly each side is held, and how much blur: what there is to know besides the data.

    A penalty of infinity holds its side, 0 lets it go, anything between is the price of leaving
    mass unmoved or moving too much. `epsilon` above 0 is entropic, 0 is exact.
    """

    hyp: float = math.inf
    ref: float = math.inf
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        for name in ("hyp", "ref", "epsilon"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or math.isnan(value) or value < 0:
                raise InvalidInput(f"{name}={value!r} is not a number from 0 up")
            object.__setattr__(self, name, float(value))
        if math.isinf(self.epsilon):
            raise InvalidInput("epsilon=inf blurs everything into one; give a finite number")
        if self.hyp == 0 and self.ref == 0:
            raise InvalidInput(
                "with hyp=0 and ref=0 nothing needs to move; hold or price at least one side"
            )


@dataclass(frozen=True, eq=False)
class Plans:
    """A solved batch, or one solved problem: who sends how much to whom, and how exact that is.

    `gap` bounds how far the plan is from optimal; `converged` says whether that was the tolerance
    asked for. Arrays are the caller's kind; for one problem the numbers are plain.
    """

    problem: Problem
    cost: Any
    hyp_weights: Any
    ref_weights: Any
    hyp_sizes: Array
    ref_sizes: Array
    flow: Any
    gap: Any
    converged: Any

    @property
    def transport(self) -> Any:
        """What moving the mass costs: <C,P>."""
        return self._totals[0]

    @property
    def objective(self) -> Any:
        """Transport plus the price of what the two sides leave unmoved or move too much."""
        return self._totals[1]

    @property
    def regularised(self) -> Any:
        """Objective plus the entropy term; its gradient with respect to the cost is the flow."""
        return self._totals[2]

    @cached_property
    def _totals(self) -> tuple[Any, Any, Any]:
        terms = self.problem.hyp, self.problem.ref, self.problem.epsilon
        data = [self.cost, self.flow, self.hyp_weights, self.ref_weights]
        if isinstance(self.cost, torch.Tensor):
            return tensor_totals(data[0], data[1], data[2], data[3], *terms)
        one = self.cost.ndim == 2
        data = [x[None] for x in data] if one else data
        out = np.empty((len(data[0]), 3))
        with one_at_a_time():
            sizes = self.hyp_sizes, self.ref_sizes
            totals(data[0], data[1], data[2], data[3], *sizes, *terms, out)
        transport, objective, regularised = (float(x[0]) if one else x for x in out.T)
        return transport, objective, regularised


@dataclass(frozen=True, eq=False)
class Barycenters:
    """A free-support barycentre a text: its points, and the mean squared distance to its layers."""

    points: Any
    objective: Any
    converged: Any


@batch_kernel
def totals(
    cost: Array,
    flow: Array,
    hyp_weights: Array,
    ref_weights: Array,
    hyp_sizes: Array,
    ref_sizes: Array,
    hyp: float,
    ref: float,
    epsilon: float,
    out: Array,
) -> None:
    """Fill out (pair, 3); sums run over the true sizes, so that padding cannot change a bit."""
    for k in prange(cost.shape[0]):
        n, m = hyp_sizes[k], ref_sizes[k]
        hyp_sums, ref_sums = np.zeros(n), np.zeros(m)
        transport, entropy = 0.0, 0.0
        for i in range(n):
            for j in range(m):
                mass = np.float64(flow[k, i, j])
                if mass > 0.0:
                    transport += mass * cost[k, i, j]
                    hyp_sums[i] += mass
                    ref_sums[j] += mass
                    if epsilon > 0.0:
                        entropy += mass * np.log(mass) - mass
        out[k, 0] = transport
        out[k, 1] = transport + _price(hyp_sums, hyp_weights[k], hyp)
        out[k, 1] += _price(ref_sums, ref_weights[k], ref)
        out[k, 2] = out[k, 1] + epsilon * entropy


@kernel
def _price(sums: Array, weights: Array, penalty: float) -> float:
    if penalty == 0.0 or penalty == np.inf:
        return 0.0
    total = 0.0
    for k in range(sums.size):
        if sums[k] > 0.0:
            total += sums[k] * np.log(sums[k] / weights[k])
        total += weights[k] - sums[k]
    return penalty * total


def tensor_totals(
    cost: torch.Tensor,
    flow: torch.Tensor,
    hyp_weights: torch.Tensor,
    ref_weights: torch.Tensor,
    hyp: float,
    ref: float,
    epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same on tensors, where gradients are wanted; flow and masses are 0 past the sizes."""
    cost = cost.where(flow > 0, 0.0)  # past the sizes it may be anything
    transport = (cost * flow).sum((-2, -1))
    if epsilon == 0.0:
        # Optimal and without blur: what depends on the data through the flow cancels.
        flow = flow.detach()
    objective = (cost * flow).sum((-2, -1))
    for dim, weights, penalty in ((-1, hyp_weights, hyp), (-2, ref_weights, ref)):
        sums = flow.sum(dim)
        if 0.0 < penalty < math.inf:
            ratio = sums / weights.where(weights > 0, 1.0)
            terms = sums * ratio.where(sums > 0, 1.0).log() - sums + weights
            objective = objective + penalty * terms.sum(-1)
    entropy = (flow * flow.where(flow > 0, 1.0).log() - flow).sum((-2, -1))
    return transport, objective, objective + epsilon * entropy if epsilon else objective
