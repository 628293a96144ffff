"""Problems that come as arrays: which CPU solver takes them, by penalties and epsilon."""

import numpy as np

from freight.kernels import one_at_a_time
from freight.transport.batches import Batch, Solved, Terms
from freight.transport.interior_point import relaxed_batch
from freight.transport.nearest import greedy_batch
from freight.transport.simplex import simplex_batch
from freight.transport.sinkhorn import sinkhorn_batch


def solve_arrays(batch: Batch, terms: Terms) -> Solved:
    """Solve a checked batch on the CPU, in float64."""
    if terms.epsilon > 0.0:
        solver = sinkhorn_batch
    elif terms.hyp == 0.0 or terms.ref == 0.0:
        solver = greedy_batch
    elif terms.hyp == terms.ref == np.inf:
        solver = simplex_batch
    else:
        solver = relaxed_batch
    flow = np.zeros(batch.cost.shape)
    gap, converged = np.empty(len(flow)), np.empty(len(flow), bool)
    with one_at_a_time():
        solver(batch, terms, flow, gap, converged)
    return Solved(flow, gap, converged)
