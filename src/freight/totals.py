"""The three numbers of a plan, from the cost, the flow and the masses.

transport = <C,P>; objective = transport + hyp KL(P1|a) + ref KL(P'1|b), without the terms of a held
or a free side; regularised = objective + epsilon sum(P log P - P).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel

if TYPE_CHECKING:
    import torch

    from freight.types import Array


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
