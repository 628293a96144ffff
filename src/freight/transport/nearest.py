"""One side free, exact: every unit of the other side goes to its nearest neighbour.

Held, a unit moves all its mass w; priced at a penalty, it moves w exp(-c / penalty), which is what
minimises p c + penalty KL(p | w). Among equally near neighbours the first is taken.
"""

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel
from freight.transport.batches import Batch, Terms
from freight.transport.types import Array


@batch_kernel
def greedy_batch(batch: Batch, terms: Terms, flow: Array, gap: Array, converged: Array) -> None:
    """Solve a padded batch into flow, gap and converged; the gap is 0."""
    for k in prange(batch.cost.shape[0]):
        n, m = batch.hyp_sizes[k], batch.ref_sizes[k]
        if terms.ref == 0.0:
            _send(batch.cost[k], batch.hyp_weights[k], n, m, terms.hyp, flow[k])
        else:
            _send(batch.cost[k].T, batch.ref_weights[k], m, n, terms.ref, flow[k].T)
        gap[k] = 0.0
        converged[k] = True


@kernel
def _send(cost: Array, weights: Array, n: int, m: int, penalty: float, flow: Array) -> None:
    for i in range(n):
        nearest = 0
        for j in range(m):
            if cost[i, j] < cost[i, nearest]:
                nearest = j
        flow[i, nearest] = weights[i] * np.exp(-cost[i, nearest] / penalty)
