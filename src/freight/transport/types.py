"""A transport problem as data, and a solved batch, which computes its values from its plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from freight import kernels
from freight.errors import InvalidInput

Array: TypeAlias = npt.NDArray[Any]
Numbers: TypeAlias = Array | torch.Tensor


@dataclass(frozen=True)
class Problem:
    """The form of an optimal transport problem: one penalty per marginal, and epsilon.

    For a cost matrix C and masses a (hyp) and b (ref), the plan P >= 0 minimises

        <C, P> + hyp KL(P 1 | a) + ref KL(P' 1 | b) + epsilon sum(P log P - P)

    with KL(p | w) = sum(p log(p / w) - p + w). The penalty decides how a marginal is treated:

    - `inf` (the default): a hard marginal, met exactly (balanced transport).
    - a positive number: a KL-relaxed marginal (unbalanced transport). The plan may move less or
      more mass than a unit has; the smaller the penalty, the cheaper that is.
    - 0: a free marginal, which costs nothing and may become anything. The other one must not be.

    `epsilon` is the weight of the entropic regularisation; 0 asks for an exact plan.

    >>> Problem()                                        # balanced and exact: ot.emd
    Problem(hyp=inf, ref=inf, epsilon=0.0)
    >>> Problem(epsilon=0.05)                            # balanced and entropic: ot.sinkhorn
    Problem(hyp=inf, ref=inf, epsilon=0.05)
    >>> Problem(hyp=0.23, ref=0.31, epsilon=0.009)       # unbalanced and entropic
    Problem(hyp=0.23, ref=0.31, epsilon=0.009)
    >>> Problem(ref=0)                                   # each hyp unit to its nearest ref unit
    Problem(hyp=inf, ref=0.0, epsilon=0.0)
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
            raise InvalidInput("epsilon=inf leaves nothing but the entropy; give a finite number")
        if self.hyp == 0 and self.ref == 0:
            raise InvalidInput(
                "with hyp=0 and ref=0 both marginals are free and the best plan is empty; give at"
                " least one side a penalty above 0"
            )


@dataclass(frozen=True, eq=False)
class Plans:
    """The solution of a batch of problems, or of one: transport plans and what they cost.

    `flow` is the transport plan, shaped like `cost`: (pair, n, m), or (n, m) for one problem; it is
    0 past the sizes. `gap` bounds how far the plan's value is from the optimum (the duality gap),
    and `converged` says whether it is within the tolerance that was asked for. `transport`,
    `objective` and `regularised` are computed from the plan when they are first read.

    Arrays are of the caller's kind (numpy or torch, on its device), with one number per problem;
    for one problem they are plain numbers.
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
        """The transport cost alone, <C, P>."""
        return self._totals[0]

    @property
    def objective(self) -> Any:
        """The transport cost plus the KL penalties of the relaxed marginals, without entropy."""
        return self._totals[1]

    @property
    def regularised(self) -> Any:
        """The objective plus the entropy term; its gradient with respect to the cost is `flow`."""
        return self._totals[2]

    @cached_property
    def _totals(self) -> tuple[Any, Any, Any]:
        terms = self.problem.hyp, self.problem.ref, self.problem.epsilon
        if isinstance(self.cost, torch.Tensor):
            hyp = _clear_padding(self.hyp_weights, self.hyp_sizes)
            ref = _clear_padding(self.ref_weights, self.ref_sizes)
            return tensor_totals(self.cost, self.flow, hyp, ref, *terms)
        single = self.cost.ndim == 2
        data = self.cost, self.hyp_weights, self.ref_weights, self.flow
        cost, hyp, ref, flow = (x[None] for x in data) if single else data
        batch = cost, hyp, ref, self.hyp_sizes, self.ref_sizes
        out = kernels.totals(batch, flow, *terms)
        transport, objective, regularised = (float(x[0]) if single else x for x in out.T)
        return transport, objective, regularised


@dataclass(frozen=True, eq=False)
class Barycenters:
    """One free-support barycenter per text: its points, and the mean W2^2 to the text's layers."""

    points: Any
    objective: Any
    converged: Any


def _clear_padding(weights: torch.Tensor, sizes: Array) -> torch.Tensor:
    """The masses with 0 at and past the sizes, where the caller may have left anything."""
    width = weights.shape[-1]
    if (sizes == width).all():
        return weights
    inside = torch.as_tensor(np.arange(width) < sizes[:, None], device=weights.device)
    return weights.where(inside.view(weights.shape), 0.0)


def tensor_totals(
    cost: torch.Tensor,
    flow: torch.Tensor,
    hyp_weights: torch.Tensor,
    ref_weights: torch.Tensor,
    hyp: float,
    ref: float,
    epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same three values on tensors, differentiable; flow and masses are 0 past the sizes."""
    cost = cost.where(flow > 0, 0.0)  # past the sizes it may be anything
    transport = (cost * flow).sum((-2, -1))
    if epsilon == 0.0:
        # At an exact optimum the derivative through the flow cancels (envelope theorem).
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
