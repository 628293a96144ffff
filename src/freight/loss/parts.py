"""What losses are made of: padded states as measures, and plans and barycenters with gradients.

Masked tokens change neither the value nor the gradient. Plans come from the fastest solver for the
cost's device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from freight.errors import InvalidInput, NotConverged
from freight.transport.barycenters import barycenter_coefficients
from freight.transport.gradients import attach_gradient
from freight.transport.solvers import solve
from freight.transport.types import Array, Plans, Problem, to_array


class LossInput(NamedTuple):
    """One side as the caller gives it, checked: states (row, unit, layer, dim)."""

    name: str
    states: Tensor
    kept: Tensor  # (row, unit)
    weights: Tensor | None


class PaddedSide(NamedTuple):
    """Rows of units before padding, in single precision or better."""

    states: Tensor  # (row, unit, layer, dim)
    inside: Tensor  # (row, unit)
    weights: Tensor  # (row, unit), as given, or 1
    sizes: Array

    def masses(self, weights: Tensor | None = None) -> Tensor:
        """Weights normalized to sum 1 per row, in double precision; equal if all of them are 0."""
        mass = (self.weights if weights is None else weights).double()
        mass = torch.where(mass.sum(-1, keepdim=True) > 0, mass, self.inside.to(mass.dtype))
        return mass / mass.sum(-1, keepdim=True)


def check_input(
    name: str, states: Tensor, mask: Tensor | None, weights: Tensor | None, layers: bool
) -> LossInput:
    """Check one side; states without a layer axis have one layer."""
    shapes = "(batch, layer, token, dim)" if layers else "(batch, token, dim)"
    if states.ndim == 3:
        states = states[:, None]
    elif states.ndim != 4 or not layers:
        raise InvalidInput(f"{name}_states has shape {tuple(states.shape)}; give {shapes}")
    if not states.is_floating_point():
        raise InvalidInput(f"{name}_states holds {states.dtype}; give floating-point numbers")
    states = states.transpose(1, 2)
    if mask is None:
        mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    for what, tensor in (("mask", mask), ("weights", weights)):
        if tensor is not None and tensor.shape != states.shape[:2]:
            raise InvalidInput(
                f"{name}_{what} has shape {tuple(tensor.shape)}, the states need"
                f" {tuple(states.shape[:2])}"
            )
    if mask.is_floating_point():
        raise InvalidInput(f"{name}_mask holds {mask.dtype}; give bool, or 1 where a token is")
    return LossInput(name, states, mask.bool(), weights)


def select_rows(side: LossInput, rows: Tensor) -> PaddedSide:
    """These rows with their units moved to the front; masked states are never read."""
    kept = side.kept[rows]
    sizes = kept.sum(1)
    width = int(sizes.max())
    order = (~kept).byte().argsort(dim=1, stable=True)[:, :width]
    inside = torch.arange(width, device=kept.device) < sizes[:, None]
    precision = torch.promote_types(side.states.dtype, torch.float32)
    selected = side.states[rows].to(precision).take_along_dim(order[..., None, None], 1)
    states = selected.where(inside[..., None, None], 0.0)
    weights = inside.to(precision)
    if side.weights is not None:
        weights = side.weights[rows].to(states).take_along_dim(order, 1).where(inside, 0.0)
    _check_finite(side.name, states, weights, rows)
    return PaddedSide(states, inside, weights, to_array(sizes))


def _check_finite(name: str, states: Tensor, weights: Tensor, rows: Tensor) -> None:
    bad = ~states.isfinite().flatten(1).all(1)
    if bool(bad.any()):
        raise InvalidInput(f"{name}_states is not finite in row {int(rows[bad][0])}")
    bad = ~(weights.isfinite() & (weights >= 0)).all(1)
    if bool(bad.any()):
        raise InvalidInput(f"{name}_weights has a weight < 0, or not finite, in row {rows[bad][0]}")


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
