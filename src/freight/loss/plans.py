"""Plans that know their gradient, found by the quickest solver for where the cost lies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from freight.errors import NotConverged
from freight.transport.barycenters import barycenter_coefficients
from freight.transport.batches import to_array
from freight.transport.gradients import attach_gradient
from freight.transport.solvers import solve
from freight.transport.types import Array, Plans, Problem


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
        flow = attach_gradient(problem, *data, found.flow)
    return replace(found, cost=cost, hyp_weights=hyp_weights, ref_weights=ref_weights, flow=flow)


def barycentres(layers: Tensor, masses: Tensor, sizes: Array) -> Tensor:
    """Points (row, unit, dim) of layers (row, unit, layer, dim); 0 in the padding."""
    shares = torch.as_tensor(_shares(layers, to_array(masses), sizes)).to(layers)
    return shares @ layers.transpose(1, 2).flatten(1, 2)


def _shares(layers: Tensor, masses: Array, sizes: Array) -> Array:
    """Which share (row, unit, layer * unit) of each unit of each layer a point consists of."""
    rows, width, depth, _ = layers.shape
    shares = np.zeros((rows, width, depth, width))
    stacked = layers.detach().double().transpose(1, 2)
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        flat = stacked[torch.as_tensor(same, device=layers.device), :, :size].flatten(1, 2)
        found, settled = barycenter_coefficients(
            to_array(flat @ flat.mT), masses[same, :size].astype(np.float64)
        )
        if not settled.all():
            raise NotConverged(f"the barycentre of row {same[~settled][0]} does not settle")
        shares[same[:, None], np.arange(size), :, :size] = found.reshape(
            len(same), size, depth, size
        )
    return shares.reshape(rows, width, depth * width)
