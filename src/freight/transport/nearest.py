"""Exact transport with one free marginal: each unit of the other side to its nearest neighbour.

With a hard marginal a unit moves all its mass w; KL-relaxed with a penalty it moves
w exp(-c / penalty), the minimiser of p c + penalty KL(p | w), where c is its smallest cost. Among
equally near neighbours the first is taken. This is the greedy matching of BERTScore.
"""

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel
from freight.transport.batches import Batch, Terms
from freight.transport.types import Array


@batch_kernel
def nearest_batch(batch: Batch, terms: Terms, flow: Array, gap: Array, converged: Array) -> None:
    """Solve a padded batch into flow, gap and converged; the gap is 0."""
    for k in prange(batch.cost.shape[0]):
        n, m = batch.hyp_sizes[k], batch.ref_sizes[k]
        if terms.ref == 0.0:
            _match_rows(batch.cost[k], batch.hyp_weights[k], n, m, terms.hyp, flow[k])
        else:
            _match_rows(batch.cost[k].T, batch.ref_weights[k], m, n, terms.ref, flow[k].T)
        gap[k] = 0.0
        converged[k] = True


@kernel
def _match_rows(cost: Array, weights: Array, n: int, m: int, penalty: float, flow: Array) -> None:
    """Move the mass of every row to its cheapest column."""
    for i in range(n):
        nearest = 0
        for j in range(m):
            if cost[i, j] < cost[i, nearest]:
                nearest = j
        flow[i, nearest] = weights[i] * np.exp(-cost[i, nearest] / penalty)
