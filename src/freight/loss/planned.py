"""Plans that know their gradient, found by the quickest solver for where the cost lies."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from freight.solvers import solve
from freight.solvers.implicit import differentiable
from freight.types import Array, Plans, Problem


def planned(
    problem: Problem,
    cost: Tensor,
    hyp_weights: Tensor,
    ref_weights: Tensor,
    sizes: tuple[Array, Array],
    tolerance: float | None,
) -> Plans:
    """As `solve`, but blurred plans on the CPU are its compiled solver's, in double precision."""
    data = cost, hyp_weights, ref_weights
    if problem.epsilon == 0 or cost.is_cuda:
        usual = 1e-9 if cost.dtype == torch.float64 else 1e-6
        return solve(problem, *data, sizes[0], sizes[1], tolerance=tolerance or usual)
    here, sent, due = (x.detach().double() for x in data)
    found = solve(problem, here, sent, due, sizes[0], sizes[1], tolerance=tolerance or 1e-9)
    flow = found.flow.to(cost.dtype)
    if torch.is_grad_enabled() and any(x.requires_grad for x in data):
        flow = differentiable(problem, *data, found.flow)
    return replace(found, cost=cost, hyp_weights=hyp_weights, ref_weights=ref_weights, flow=flow)
