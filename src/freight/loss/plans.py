"""Plans and barycenters with gradients, solved by the fastest solver for the cost's device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from freight.errors import NotConverged
from freight.transport.barycenters import barycenter_coefficients
from freight.transport.gradients import attach_gradient
from freight.transport.solvers import solve
from freight.transport.types import Array, Plans, Problem, to_array


def solve_differentiably(
    problem: Problem,
    cost: Tensor,
    hyp_weights: Tensor,
    ref_weights: Tensor,
    sizes: tuple[Array, Array],
    tolerance: float | None,
) -> Plans:
    """As `solve`, but on the CPU with epsilon > 0 by the compiled solver, in double precision."""
    if problem.epsilon == 0 or cost.is_cuda:
        default = 1e-9 if cost.dtype == torch.float64 else 1e-6
        tolerance = tolerance or default
        return solve(
            problem, cost, hyp_weights, ref_weights, sizes[0], sizes[1], tolerance=tolerance
        )
    plans = solve(
        problem,
        cost.detach().double(),
        hyp_weights.detach().double(),
        ref_weights.detach().double(),
        sizes[0],
        sizes[1],
        tolerance=tolerance or 1e-9,
    )
    flow = plans.flow.to(cost.dtype)
    differentiable = cost.requires_grad or hyp_weights.requires_grad or ref_weights.requires_grad
    if torch.is_grad_enabled() and differentiable:
        flow = attach_gradient(problem, cost, hyp_weights, ref_weights, plans.flow)
    return replace(plans, cost=cost, hyp_weights=hyp_weights, ref_weights=ref_weights, flow=flow)


def layer_barycenters(layers: Tensor, masses: Tensor, sizes: Array) -> Tensor:
    """Barycenters (row, unit, dim) of the layers (row, unit, layer, dim); 0 in the padding."""
    weights = torch.as_tensor(_barycenter_weights(layers, to_array(masses), sizes)).to(layers)
    return weights @ layers.transpose(1, 2).flatten(1, 2)


def _barycenter_weights(layers: Tensor, masses: Array, sizes: Array) -> Array:
    """The weights (row, unit, layer * unit) of the layers' units in each point of a barycenter."""
    rows, width, depth, _ = layers.shape
    weights = np.zeros((rows, width, depth, width))
    stacked = layers.detach().double().transpose(1, 2)
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        flat = stacked[torch.as_tensor(same, device=layers.device), :, :size].flatten(1, 2)
        mixture, converged = barycenter_coefficients(
            to_array(flat @ flat.mT), masses[same, :size].astype(np.float64)
        )
        if not converged.all():
            raise NotConverged(f"the barycenter of row {same[~converged][0]} does not converge")
        weights[same[:, None], np.arange(size), :, :size] = mixture.reshape(
            len(same), size, depth, size
        )
    return weights.reshape(rows, width, depth * width)
