"""Entropic transport on the CPU (epsilon > 0), with hard, KL-relaxed or free marginals.

Sinkhorn sweeps, over-relaxed, then Newton steps where sweeps are too slow, and a duality gap that
is rigorous. The dual potentials are in units of epsilon. Sweeps run on a kernel exp(f + g - C) that
has absorbed the potentials of the last refresh, so that it neither underflows nor overflows
however small epsilon is. Plain sweeps contract by about tau_hyp tau_ref, with
tau = penalty / (penalty + epsilon), whatever the data, so the optimal over-relaxation factor is
known beforehand; far from convergence, where it can overshoot, it is halved or dropped for a while.
What sweeps do not finish (a small epsilon between hard marginals) is finished by damped Newton
steps on the dual. At the end the plan is rounded to its hard marginals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel
from freight.transport.batches import (
    Batch,
    Terms,
    balance_totals,
    compact_cost,
    compact_weights,
    scatter_plan,
    support,
)
from freight.transport.elementary import column_sums, dot, exp_in_place, log_in_place, row_sums
from freight.transport.interior_point import solve_bordered
from freight.transport.types import Array

_SWEEPS = 300
_PATIENCE = 8
_DRIFT = 40.0  # potentials that have moved farther from the absorbed ones are absorbed again
_EMPTY, _LOG_EMPTY = 1e-250, -575.0


class PotentialSide(NamedTuple):
    """One marginal of a problem: its masses and penalty, and its dual potentials so far."""

    weights: Array
    logs: Array  # of the masses
    penalty: float
    tau: float  # penalty / (penalty + epsilon): how much of a full step a sweep takes
    potential: Array  # in units of epsilon
    absorbed: Array  # the potentials that are in the kernel
    scaling: Array  # exp(potential - absorbed)
    sums: Array  # of the kernel, or the plan's marginal


@batch_kernel
def sinkhorn_batch(batch: Batch, terms: Terms, flow: Array, gap: Array, converged: Array) -> None:
    """Solve a padded batch into flow, gap and converged."""
    for k in prange(batch.cost.shape[0]):
        rows = support(batch.hyp_weights[k], batch.hyp_sizes[k], terms.hyp)
        columns = support(batch.ref_weights[k], batch.ref_sizes[k], terms.ref)
        cost = compact_cost(batch.cost[k], rows, columns, terms.epsilon)
        hyp_weights = compact_weights(batch.hyp_weights[k], rows)
        ref_weights = compact_weights(batch.ref_weights[k], columns)
        if terms.hyp == terms.ref == np.inf:
            balance_totals(hyp_weights, ref_weights)
        hyp = _make_side(hyp_weights, terms.hyp, terms.epsilon)
        ref = _make_side(ref_weights, terms.ref, terms.epsilon)
        plan = np.empty(cost.shape)
        gap[k], converged[k] = _solve(cost, hyp, ref, terms, plan)
        scatter_plan(plan, rows, columns, flow[k])


@kernel
def _make_side(weights: Array, penalty: float, epsilon: float) -> PotentialSide:
    """A marginal whose potentials are 0."""
    size = weights.size
    tau = 1.0 if penalty == np.inf else penalty / (penalty + epsilon)
    logs = np.zeros(size) if penalty == 0.0 else np.log(weights)
    return PotentialSide(
        weights, logs, penalty, tau, np.zeros(size), np.zeros(size), np.ones(size), np.ones(size)
    )


@kernel
def _solve(
    cost: Array, hyp: PotentialSide, ref: PotentialSide, terms: Terms, plan: Array
) -> tuple[float, bool]:
    # Start on the side with the larger penalty, from the cost to the nearest neighbour.
    if hyp.penalty >= ref.penalty:
        _lift_to_nearest(cost, hyp.potential)
    else:
        _lift_to_nearest(cost.T, ref.potential)
    # The gap is of second order in the potentials' error, a value read off the plan of first
    # order: aim at the latter. Between two hard marginals rounding makes the gap first order too.
    aim = terms.tolerance * (0.1 if hyp.penalty == ref.penalty == np.inf else 10.0)
    if not _sweep_until(cost, hyp, ref, aim, min(_SWEEPS, terms.max_iterations), plan) <= aim:
        _newton_annealed(cost, hyp, ref, terms, aim, plan)
    return _finish_plan(hyp, ref, terms, plan)


@kernel
def _lift_to_nearest(cost: Array, potential: Array) -> None:
    """Set each potential to the smallest cost of its unit."""
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
    """Sweep until no potential changes by more than the tolerance; the last largest change."""
    optimal = 2.0 / (1.0 + np.sqrt(max(1.0 - hyp.tau * ref.tau, 1e-3)))
    factor, previous, next_check = 1.0, np.inf, 0
    residual = np.inf
    _absorb_potentials(cost, hyp, ref, plan)
    for sweep in range(limit):
        residual = _sweep(cost, hyp, ref, factor, plan)
        if residual <= tolerance:
            break
        if sweep >= next_check and (factor > 1.0 or residual < 3.0):
            factor = _relaxation_factor(residual, previous, optimal)
            previous, next_check = residual, sweep + _PATIENCE
    return residual


@kernel
def _relaxation_factor(residual: float, previous: float, optimal: float) -> float:
    """Over-relax when close to convergence; by half as much where that made things worse.

    Very close to it sweeps are linear, and the optimal factor cannot fail.
    """
    if residual > 3.0:
        return 1.0
    return 0.5 * (1.0 + optimal) if residual > previous and residual > 0.3 else optimal


@kernel
def _sweep(
    cost: Array, hyp: PotentialSide, ref: PotentialSide, factor: float, plan: Array
) -> float:
    """Update the hyp potentials, then the ref potentials; the largest change before relaxation."""
    row_sums(plan, ref.scaling, hyp.sums)
    hyp_change, hyp_drift = _move_potentials(hyp, ref.potential, cost, factor)
    if hyp_drift > _DRIFT:
        _absorb_potentials(cost, hyp, ref, plan)
    column_sums(plan, hyp.scaling, ref.sums)
    ref_change, ref_drift = _move_potentials(ref, hyp.potential, cost.T, factor)
    if ref_drift > _DRIFT:
        _absorb_potentials(cost, hyp, ref, plan)
    return max(hyp_change, ref_change)


@kernel
def _move_potentials(
    side: PotentialSide, other: Array, cost: Array, factor: float
) -> tuple[float, float]:
    """Update one side's potentials from its kernel sums; largest change, largest drift."""
    sums, potential, absorbed, scaling = side.sums, side.potential, side.absorbed, side.scaling
    empty = False
    for k in range(sums.size):
        if sums[k] < _EMPTY:
            sums[k], empty = _EMPTY, True
    log_in_place(sums)
    if empty:  # the kernel has underflowed for these units: use the costs themselves
        for k in range(sums.size):
            if sums[k] < _LOG_EMPTY:
                sums[k] = _log_sum(other, cost[k]) + absorbed[k]
    change, drift = 0.0, 0.0
    for k in range(sums.size):
        step = side.tau * (side.logs[k] - sums[k] + absorbed[k]) - potential[k]
        potential[k] += factor * step
        scaling[k] = potential[k] - absorbed[k]
        change, drift = max(change, abs(step)), max(drift, abs(scaling[k]))
    exp_in_place(scaling)
    return change, drift


@kernel
def _log_sum(potential: Array, cost: Array) -> float:
    """log sum exp(potential - cost)."""
    top = -np.inf
    for k in range(cost.size):
        top = max(top, potential[k] - cost[k])
    total = 0.0
    for k in range(cost.size):
        total += np.exp(potential[k] - cost[k] - top)
    return top + np.log(total)


@kernel
def _absorb_potentials(cost: Array, hyp: PotentialSide, ref: PotentialSide, plan: Array) -> None:
    """Absorb the potentials into the kernel, which becomes the plan of these potentials."""
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
def _newton_annealed(
    cost: Array, hyp: PotentialSide, ref: PotentialSide, terms: Terms, aim: float, plan: Array
) -> None:
    """Newton steps for an epsilon as large as the costs, halved down to the true epsilon."""
    doublings = max(0, int(np.ceil(np.log2(np.abs(cost).max() + 1.0))))
    cost /= 2.0**doublings
    hyp.potential[:] = 0.0
    ref.potential[:] = 0.0
    for stage in range(doublings, -1, -1):
        epsilon = terms.epsilon * 2.0**stage
        _newton_steps(
            cost, hyp, ref, epsilon, aim if stage == 0 else 0.1, terms.max_iterations, plan
        )
        if stage > 0:
            cost *= 2.0
            hyp.potential[:] *= 2.0
            ref.potential[:] *= 2.0


@kernel
def _newton_steps(
    cost: Array,
    hyp: PotentialSide,
    ref: PotentialSide,
    epsilon: float,
    tolerance: float,
    limit: int,
    plan: Array,
) -> None:
    """Damped Newton steps on the concave dual, until a step is within the tolerance."""
    hyp_step, ref_step = np.zeros(hyp.sums.size), np.zeros(ref.sums.size)
    value = _dual_value(cost, hyp, ref, epsilon, plan)
    for _ in range(limit):
        hyp_slope, hyp_curve = _dual_derivatives(hyp, epsilon)
        ref_slope, ref_curve = _dual_derivatives(ref, epsilon)
        solve_bordered(plan, hyp_curve, ref_curve, hyp_slope, ref_slope, hyp_step, ref_step)
        size = max(np.abs(hyp_step).max(), np.abs(ref_step).max())
        length, before = min(1.0, 4.0 / size), value
        gain = dot(hyp_slope, hyp_step) + dot(ref_slope, ref_step)
        while length * size > 1e-14:
            _shift_potentials(hyp, ref, hyp_step, ref_step, length)
            value = _dual_value(cost, hyp, ref, epsilon, plan)
            if value >= before + 1e-4 * length * gain - 1e-12 * (1.0 + abs(before)):
                break
            _shift_potentials(hyp, ref, hyp_step, ref_step, -length)
            length *= 0.5
        if length * size <= tolerance:
            break


@kernel
def _shift_potentials(
    hyp: PotentialSide, ref: PotentialSide, hyp_step: Array, ref_step: Array, length: float
) -> None:
    hyp.potential[:] += length * hyp_step
    ref.potential[:] += length * ref_step


@kernel
def _dual_derivatives(side: PotentialSide, epsilon: float) -> tuple[Array, Array]:
    """Gradient and negated curvature of the dual in this side's potentials, over epsilon."""
    target = _target_marginal(side, epsilon)
    return target - side.sums, side.sums + target * (epsilon / side.penalty)


@kernel
def _dual_value(
    cost: Array, hyp: PotentialSide, ref: PotentialSide, epsilon: float, plan: Array
) -> float:
    """The dual value over epsilon; writes the plan of the potentials into `plan`."""
    _absorb_potentials(cost, hyp, ref, plan)
    return _dual_of_plan(hyp, ref, epsilon, plan)


@kernel
def _dual_of_plan(hyp: PotentialSide, ref: PotentialSide, epsilon: float, plan: Array) -> float:
    """The dual value over epsilon, where `plan` is already that of the potentials."""
    _sum_marginals(plan, hyp, ref)
    return _side_dual(hyp, epsilon) + _side_dual(ref, epsilon) - hyp.sums.sum()


@kernel
def _side_dual(side: PotentialSide, epsilon: float) -> float:
    """What one marginal adds to the dual value, over epsilon."""
    if side.penalty == 0.0:
        return 0.0
    if side.penalty == np.inf:
        return dot(side.weights, side.potential)
    return (side.weights - _target_marginal(side, epsilon)).sum() * side.penalty / epsilon


@kernel
def _target_marginal(side: PotentialSide, epsilon: float) -> Array:
    """The marginal that is optimal for these potentials: w exp(-f / penalty)."""
    if side.penalty == np.inf:
        return side.weights
    return side.weights * np.exp(-epsilon / side.penalty * side.potential)


@kernel
def _finish_plan(
    hyp: PotentialSide, ref: PotentialSide, terms: Terms, plan: Array
) -> tuple[float, bool]:
    """Fill in the plan, rounded to its hard marginals; its duality gap, and if that is enough."""
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            plan[i, j] *= hyp.scaling[i] * ref.scaling[j]
    value = terms.epsilon * _dual_of_plan(hyp, ref, terms.epsilon, plan)
    gap = terms.epsilon * _round_to_marginals(plan, hyp, ref)
    gap += _side_gap(hyp, terms.epsilon) + _side_gap(ref, terms.epsilon)
    return gap, gap <= terms.tolerance * (1.0 + abs(value))


@kernel
def _round_to_marginals(plan: Array, hyp: PotentialSide, ref: PotentialSide) -> float:
    """Round the plan to its hard marginals (Altschuler et al., 2017); KL(rounded | plan)."""
    hyp_hard, ref_hard = hyp.penalty == np.inf, ref.penalty == np.inf
    if not hyp_hard and not ref_hard:
        return 0.0
    before = plan.copy()
    if hyp_hard:
        for i in range(plan.shape[0]):
            ratio = hyp.weights[i] / hyp.sums[i]
            plan[i] *= min(ratio, 1.0) if ref_hard else ratio
        _sum_marginals(plan, hyp, ref)
    if ref_hard:
        for j in range(plan.shape[1]):
            ratio = ref.weights[j] / ref.sums[j]
            plan[:, j] *= min(ratio, 1.0) if hyp_hard else ratio
        _sum_marginals(plan, hyp, ref)
    if hyp_hard and ref_hard:
        missing = np.maximum(ref.weights - ref.sums, 0.0)
        total = missing.sum()
        if total > 0.0:
            for i in range(plan.shape[0]):
                plan[i] += max(hyp.weights[i] - hyp.sums[i], 0.0) / total * missing
            _sum_marginals(plan, hyp, ref)
    return _divergence(plan.ravel(), before.ravel())


@kernel
def _sum_marginals(plan: Array, hyp: PotentialSide, ref: PotentialSide) -> None:
    """Write the marginals of the plan into both sides' sums."""
    row_sums(plan, np.ones(plan.shape[1]), hyp.sums)
    column_sums(plan, np.ones(plan.shape[0]), ref.sums)


@kernel
def _side_gap(side: PotentialSide, epsilon: float) -> float:
    """What a KL-relaxed marginal adds to the duality gap."""
    if side.penalty == 0.0 or side.penalty == np.inf:
        return 0.0
    return side.penalty * _divergence(side.sums, _target_marginal(side, epsilon))


@kernel
def _divergence(a: Array, b: Array) -> float:
    """KL(a | b), every term non-negative, accurate where a and b nearly agree."""
    total = 0.0
    for k in range(a.size):
        base = max(b[k], 1e-300)
        x = (a[k] - base) / base
        total += base * ((1.0 + x) * np.log1p(x) - x) if x > -1.0 else base
    return total
