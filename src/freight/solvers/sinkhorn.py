"""Entropic transport, epsilon > 0, each side held, priced or free: scaling to a rigorous gap.

Potentials are kept in units of epsilon. Sweeps run on a kernel that has absorbed the potentials of
the last refresh, so that neither a small epsilon nor the range of float64 can empty it. Plain
sweeps contract by t = tau_hyp tau_ref, tau = penalty / (penalty + epsilon), almost whatever the
problem, so over-relaxing with the factor that is optimal for t needs no tuning; far from the end,
where it can overshoot, it is halved or dropped for a while. What sweeps leave unfinished (a small
epsilon between hard sides) is finished by damped Newton steps on the dual.
"""

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel
from freight.solvers.batches import Batch, Terms
from freight.solvers.elementary import column_sums, exp_in_place, log_in_place, row_sums
from freight.solvers.newton import anneal
from freight.solvers.potentials import Side, absorb, finish, make_side
from freight.solvers.present import compact, equalise, gather, present, scatter
from freight.types import Array

_SWEEPS = 300
_PATIENCE = 8
_REACH = 40.0
_EMPTY, _LOG_EMPTY = 1e-250, -575.0


@batch_kernel
def sinkhorn_batch(batch: Batch, terms: Terms, flow: Array, gap: Array, converged: Array) -> None:
    """Solve a padded batch into flow, gap and converged."""
    for k in prange(batch.cost.shape[0]):
        rows = present(batch.hyp_weights[k], batch.hyp_sizes[k], terms.hyp)
        columns = present(batch.ref_weights[k], batch.ref_sizes[k], terms.ref)
        cost = compact(batch.cost[k], rows, columns, terms.epsilon)
        hyp_weights = gather(batch.hyp_weights[k], rows)
        ref_weights = gather(batch.ref_weights[k], columns)
        if terms.hyp == terms.ref == np.inf:
            equalise(hyp_weights, ref_weights)
        hyp = make_side(hyp_weights, terms.hyp, terms.epsilon)
        ref = make_side(ref_weights, terms.ref, terms.epsilon)
        plan = np.empty(cost.shape)
        gap[k], converged[k] = _solve(cost, hyp, ref, terms, plan)
        scatter(plan, rows, columns, flow[k])


@kernel
def _solve(cost: Array, hyp: Side, ref: Side, terms: Terms, plan: Array) -> tuple[float, bool]:
    # Lift the units of the side that is held the firmer to their nearest neighbours.
    if hyp.penalty >= ref.penalty:
        _nearest(cost, hyp.potential)
    else:
        _nearest(cost.T, ref.potential)
    # The gap is of second order in the potentials, a read-out of the plan of first: aim at that.
    # Between two held sides the gap is of first order too, through the rounding.
    aim = terms.tolerance * (0.1 if hyp.penalty == ref.penalty == np.inf else 10.0)
    if not _sweep_until(cost, hyp, ref, aim, min(_SWEEPS, terms.cap), plan) <= aim:
        anneal(cost, hyp, ref, terms, aim, plan)
    return finish(hyp, ref, terms, plan)


@kernel
def _nearest(cost: Array, potential: Array) -> None:
    for i in range(cost.shape[0]):
        nearest = cost[i, 0]
        for j in range(1, cost.shape[1]):
            if cost[i, j] < nearest:
                nearest = cost[i, j]
        potential[i] = nearest


@kernel
def _sweep_until(
    cost: Array, hyp: Side, ref: Side, tolerance: float, limit: int, plan: Array
) -> float:
    """Sweep until no potential wants to move by more than the tolerance; the last such wish."""
    best = 2.0 / (1.0 + np.sqrt(max(1.0 - hyp.share * ref.share, 1e-3)))
    factor, mark, check = 1.0, np.inf, 0
    residual = np.inf
    absorb(cost, hyp, ref, plan)
    for sweep in range(limit):
        residual = _sweep(cost, hyp, ref, factor, plan)
        if residual <= tolerance:
            break
        if sweep >= check and (factor > 1.0 or residual < 3.0):
            factor = _relaxed(residual, mark, best)
            mark, check = residual, sweep + _PATIENCE
    return residual


@kernel
def _relaxed(residual: float, mark: float, best: float) -> float:
    """Over-relax what has come close; half as much where that made things worse, far from the end.

    Near the end sweeps are linear and the best factor cannot fail.
    """
    if residual > 3.0:
        return 1.0
    return 0.5 * (1.0 + best) if residual > mark and residual > 0.3 else best


@kernel
def _sweep(cost: Array, hyp: Side, ref: Side, factor: float, plan: Array) -> float:
    """Move the hyp potentials, then the ref potentials; the largest move that one wished for."""
    row_sums(plan, ref.scaling, hyp.sums)
    hyp_wish, hyp_reach = _move(hyp, ref.potential, cost, factor)
    if hyp_reach > _REACH:
        absorb(cost, hyp, ref, plan)
    column_sums(plan, hyp.scaling, ref.sums)
    ref_wish, ref_reach = _move(ref, hyp.potential, cost.T, factor)
    if ref_reach > _REACH:
        absorb(cost, hyp, ref, plan)
    return max(hyp_wish, ref_wish)


@kernel
def _move(side: Side, other: Array, cost: Array, factor: float) -> tuple[float, float]:
    """Move one side's potentials by what its kernel sums ask for; largest wish, largest reach."""
    sums, potential, absorbed, scaling = side.sums, side.potential, side.absorbed, side.scaling
    empty = False
    for k in range(sums.size):
        if sums[k] < _EMPTY:
            sums[k], empty = _EMPTY, True
    log_in_place(sums)
    if empty:  # nothing of them is left in the kernel, so look at the costs themselves
        for k in range(sums.size):
            if sums[k] < _LOG_EMPTY:
                sums[k] = _log_sum(other, cost[k]) + absorbed[k]
    wish, reach = 0.0, 0.0
    for k in range(sums.size):
        step = side.share * (side.logs[k] - sums[k] + absorbed[k]) - potential[k]
        potential[k] += factor * step
        scaling[k] = potential[k] - absorbed[k]
        wish, reach = max(wish, abs(step)), max(reach, abs(scaling[k]))
    exp_in_place(scaling)
    return wish, reach


@kernel
def _log_sum(potential: Array, cost: Array) -> float:
    top = -np.inf
    for k in range(cost.size):
        top = max(top, potential[k] - cost[k])
    total = 0.0
    for k in range(cost.size):
        total += np.exp(potential[k] - cost[k] - top)
    return top + np.log(total)
