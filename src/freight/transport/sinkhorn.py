"""Entropic transport, epsilon > 0, each side held, priced or free: scaling to a rigorous gap.

Potentials are kept in units of epsilon. Sweeps run on a kernel that has absorbed the potentials of
the last refresh, so that neither a small epsilon nor the range of float64 can empty it. Plain
sweeps contract by t = tau_hyp tau_ref, tau = penalty / (penalty + epsilon), almost whatever the
problem, so over-relaxing with the factor that is optimal for t needs no tuning; far from the end,
where it can overshoot, it is halved or dropped for a while. What sweeps leave unfinished (a small
epsilon between hard sides) is finished by damped Newton steps on the dual.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel
from freight.transport.batches import Batch, Terms, compact, equalise, gather, present, scatter
from freight.transport.elementary import column_sums, dot, exp_in_place, log_in_place, row_sums
from freight.transport.interior_point import solve_bordered
from freight.transport.types import Array

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
def _solve(
    cost: Array, hyp: PotentialSide, ref: PotentialSide, terms: Terms, plan: Array
) -> tuple[float, bool]:
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
    cost: Array, hyp: PotentialSide, ref: PotentialSide, tolerance: float, limit: int, plan: Array
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
def _sweep(
    cost: Array, hyp: PotentialSide, ref: PotentialSide, factor: float, plan: Array
) -> float:
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
def _move(side: PotentialSide, other: Array, cost: Array, factor: float) -> tuple[float, float]:
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


@kernel
def anneal(
    cost: Array, hyp: PotentialSide, ref: PotentialSide, terms: Terms, aim: float, plan: Array
) -> None:
    """Newton from a blur as wide as the costs, halved until it is epsilon: slower, never lost."""
    doublings = max(0, int(np.ceil(np.log2(np.abs(cost).max() + 1.0))))
    cost /= 2.0**doublings
    hyp.potential[:] = 0.0
    ref.potential[:] = 0.0
    for stage in range(doublings, -1, -1):
        epsilon = terms.epsilon * 2.0**stage
        _newton(cost, hyp, ref, epsilon, aim if stage == 0 else 0.1, terms.cap, plan)
        if stage > 0:
            cost *= 2.0
            hyp.potential[:] *= 2.0
            ref.potential[:] *= 2.0


@kernel
def _newton(
    cost: Array,
    hyp: PotentialSide,
    ref: PotentialSide,
    epsilon: float,
    tolerance: float,
    limit: int,
    plan: Array,
) -> None:
    """Damped Newton steps on the dual, which is concave, until a step is within the tolerance."""
    hyp_step, ref_step = np.zeros(hyp.sums.size), np.zeros(ref.sums.size)
    value = dual(cost, hyp, ref, epsilon, plan)
    for _ in range(limit):
        hyp_slope, hyp_curve = _slope(hyp, epsilon)
        ref_slope, ref_curve = _slope(ref, epsilon)
        solve_bordered(plan, hyp_curve, ref_curve, hyp_slope, ref_slope, hyp_step, ref_step)
        size = max(np.abs(hyp_step).max(), np.abs(ref_step).max())
        length, before = min(1.0, 4.0 / size), value
        gain = dot(hyp_slope, hyp_step) + dot(ref_slope, ref_step)
        while length * size > 1e-14:
            _shift(hyp, ref, hyp_step, ref_step, length)
            value = dual(cost, hyp, ref, epsilon, plan)
            if value >= before + 1e-4 * length * gain - 1e-12 * (1.0 + abs(before)):
                break
            _shift(hyp, ref, hyp_step, ref_step, -length)
            length *= 0.5
        if length * size <= tolerance:
            break


@kernel
def _shift(
    hyp: PotentialSide, ref: PotentialSide, hyp_step: Array, ref_step: Array, length: float
) -> None:
    hyp.potential[:] += length * hyp_step
    ref.potential[:] += length * ref_step


@kernel
def _slope(side: PotentialSide, epsilon: float) -> tuple[Array, Array]:
    """The dual's gradient and (negated) curvature along this side's potentials, over epsilon."""
    asked = wanted(side, epsilon)
    return asked - side.sums, side.sums + asked * (epsilon / side.penalty)


class PotentialSide(NamedTuple):
    """One side of a problem: its masses and penalty, and where its potentials stand."""

    weights: Array
    logs: Array
    penalty: float
    share: float  # tau: how much of a full step a sweep takes
    potential: Array
    absorbed: Array
    scaling: Array  # exp(potential - absorbed)
    sums: Array


@kernel
def make_side(weights: Array, penalty: float, epsilon: float) -> PotentialSide:
    """A side whose potentials stand at 0."""
    size = weights.size
    share = 1.0 if penalty == np.inf else penalty / (penalty + epsilon)
    logs = np.zeros(size) if penalty == 0.0 else np.log(weights)
    return PotentialSide(
        weights, logs, penalty, share, np.zeros(size), np.zeros(size), np.ones(size), np.ones(size)
    )


@kernel
def absorb(cost: Array, hyp: PotentialSide, ref: PotentialSide, plan: Array) -> None:
    """Take the potentials into the kernel, which becomes the plan of the moment."""
    hyp.absorbed[:] = hyp.potential
    ref.absorbed[:] = ref.potential
    hyp.scaling[:] = 1.0
    ref.scaling[:] = 1.0
    for i in range(cost.shape[0]):
        lift = hyp.potential[i]
        for j in range(cost.shape[1]):
            plan[i, j] = lift + ref.potential[j] - cost[i, j]
    exp_in_place(plan.ravel())


@kernel
def dual(cost: Array, hyp: PotentialSide, ref: PotentialSide, epsilon: float, plan: Array) -> float:
    """The dual over epsilon; leaves the plan of the potentials in `plan`."""
    absorb(cost, hyp, ref, plan)
    return _value(hyp, ref, epsilon, plan)


@kernel
def finish(hyp: PotentialSide, ref: PotentialSide, terms: Terms, plan: Array) -> tuple[float, bool]:
    """The plan of the potentials, rounded to meet what is held; its gap, and if that is enough."""
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            plan[i, j] *= hyp.scaling[i] * ref.scaling[j]
    value = terms.epsilon * _value(hyp, ref, terms.epsilon, plan)
    gap = terms.epsilon * _round(plan, hyp, ref)
    gap += _side_gap(hyp, terms.epsilon) + _side_gap(ref, terms.epsilon)
    return gap, gap <= terms.tolerance * (1.0 + abs(value))


@kernel
def wanted(side: PotentialSide, epsilon: float) -> Array:
    """The marginal that this side's potentials ask for: w exp(-f / penalty)."""
    if side.penalty == np.inf:
        return side.weights
    return side.weights * np.exp(-epsilon / side.penalty * side.potential)


@kernel
def _value(hyp: PotentialSide, ref: PotentialSide, epsilon: float, plan: Array) -> float:
    _sum(plan, hyp, ref)
    return _side_dual(hyp, epsilon) + _side_dual(ref, epsilon) - hyp.sums.sum()


@kernel
def _sum(plan: Array, hyp: PotentialSide, ref: PotentialSide) -> None:
    """Leave the marginals of the plan in both sides' sums."""
    row_sums(plan, np.ones(plan.shape[1]), hyp.sums)
    column_sums(plan, np.ones(plan.shape[0]), ref.sums)


@kernel
def _side_dual(side: PotentialSide, epsilon: float) -> float:
    if side.penalty == 0.0:
        return 0.0
    if side.penalty == np.inf:
        return dot(side.weights, side.potential)
    return (side.weights - wanted(side, epsilon)).sum() * side.penalty / epsilon


@kernel
def _side_gap(side: PotentialSide, epsilon: float) -> float:
    if side.penalty == 0.0 or side.penalty == np.inf:
        return 0.0
    return side.penalty * _divergence(side.sums, wanted(side, epsilon))


@kernel
def _divergence(a: Array, b: Array) -> float:
    """KL(a|b), term by term non-negative, exact where a and b nearly agree."""
    total = 0.0
    for k in range(a.size):
        base = max(b[k], 1e-300)
        x = (a[k] - base) / base
        total += base * ((1.0 + x) * np.log1p(x) - x) if x > -1.0 else base
    return total


@kernel
def _round(plan: Array, hyp: PotentialSide, ref: PotentialSide) -> float:
    """Make the plan meet the held sides (Altschuler et al., 2017); how far it moved, as KL."""
    hyp_held, ref_held = hyp.penalty == np.inf, ref.penalty == np.inf
    if not hyp_held and not ref_held:
        return 0.0
    before = plan.copy()
    if hyp_held:
        for i in range(plan.shape[0]):
            ratio = hyp.weights[i] / hyp.sums[i]
            plan[i] *= min(ratio, 1.0) if ref_held else ratio
        _sum(plan, hyp, ref)
    if ref_held:
        for j in range(plan.shape[1]):
            ratio = ref.weights[j] / ref.sums[j]
            plan[:, j] *= min(ratio, 1.0) if hyp_held else ratio
        _sum(plan, hyp, ref)
    if hyp_held and ref_held:
        lacking = np.maximum(ref.weights - ref.sums, 0.0)
        total = lacking.sum()
        if total > 0.0:
            for i in range(plan.shape[0]):
                plan[i] += max(hyp.weights[i] - hyp.sums[i], 0.0) / total * lacking
            _sum(plan, hyp, ref)
    return _divergence(plan.ravel(), before.ravel())
