"""Exact transport with at least one KL-relaxed marginal and none free: interior point method.

    minimise <C,P> + hyp KL(P1|a) + ref KL(P'1|b)  over P >= 0           (a hard marginal: P1 = a)
    maximise -hyp sum a (exp(-f/hyp) - 1) - ref sum b (exp(-g/ref) - 1)  over f + g <= C

Primal-dual: Newton's method on P (C - f - g) = mu, with mu driven to zero. The marginals are
unknowns of their own, because their logarithms behave better than the exponentials of the
potentials. A step takes one Cholesky factorisation of the size of the shorter side. The potentials
stay feasible, and so is every P once it is scaled to a hard marginal; the gap between the two
values above is therefore rigorous at every step, and the method stops on it.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel, summing
from freight.transport.batches import (
    Batch,
    Terms,
    compact_cost,
    compact_weights,
    scatter_plan,
    support,
)
from freight.transport.elementary import column_sums, dot, row_sums
from freight.transport.types import Array


class _RelaxedSide(NamedTuple):
    """One marginal: masses and penalty, the unknowns (potential, marginal), and their steps."""

    weights: Array
    penalty: float
    potential: Array
    marginal: Array
    step: Array  # of the potential
    marginal_step: Array
    sums: Array  # the marginal of the current plan


@batch_kernel
def interior_point_batch(
    batch: Batch, terms: Terms, flow: Array, gap: Array, converged: Array
) -> None:
    """Solve a padded batch into flow, gap and converged."""
    for k in prange(batch.cost.shape[0]):
        rows = support(batch.hyp_weights[k], batch.hyp_sizes[k], terms.hyp)
        columns = support(batch.ref_weights[k], batch.ref_sizes[k], terms.ref)
        cost = compact_cost(batch.cost[k], rows, columns, 1.0)
        hyp = _make_side(compact_weights(batch.hyp_weights[k], rows), terms.hyp)
        ref = _make_side(compact_weights(batch.ref_weights[k], columns), terms.ref)
        plan = np.empty(cost.shape)
        gap[k], converged[k] = _solve(cost, hyp, ref, terms, plan)
        scatter_plan(plan, rows, columns, flow[k])


@kernel
def _make_side(weights: Array, penalty: float) -> _RelaxedSide:
    size = weights.size
    room = np.zeros((4, size))
    return _RelaxedSide(weights, penalty, room[0], weights.copy(), room[1], room[2], room[3])


@kernel
def _solve(
    cost: Array, hyp: _RelaxedSide, ref: _RelaxedSide, terms: Terms, plan: Array
) -> tuple[float, bool]:
    slack = np.empty(cost.shape)
    _start(cost, hyp, ref, plan, slack)
    centring = 0.2
    gap, enough = np.inf, 0.0
    for _ in range(terms.max_iterations):
        centre = centring * dot(plan.ravel(), slack.ravel()) / plan.size
        _newton_direction(plan, slack, hyp, ref, centre)
        taken = _advance(cost, plan, slack, hyp, ref, centre)
        centring = 0.1 if taken > 0.9 else 0.3 if taken > 0.5 else 0.7
        gap, enough = _measure_gap(cost, plan, hyp, ref, terms.tolerance)
        if gap <= enough:
            break
    _scale_to_hard_marginal(plan, hyp, ref)
    return gap, gap <= enough


@kernel
def _start(cost: Array, hyp: _RelaxedSide, ref: _RelaxedSide, plan: Array, slack: Array) -> None:
    """Begin with strictly feasible potentials and the independent coupling of a hard marginal."""
    n, m = cost.shape
    room = 0.05 * (np.abs(cost).max() + 1e-3)
    for i in range(n):
        hyp.potential[i] = 0.5 * cost[i].min() - room
    for j in range(m):
        ref.potential[j] = 0.5 * cost[:, j].min() - room
    _compute_slack(cost, hyp, ref, slack)
    total = ref.weights.sum() if hyp.penalty == np.inf else hyp.weights.sum()
    for i in range(n):
        for j in range(m):
            plan[i, j] = hyp.weights[i] * ref.weights[j] / total


@kernel
def _compute_slack(cost: Array, hyp: _RelaxedSide, ref: _RelaxedSide, slack: Array) -> None:
    """slack = C - f - g."""
    for i in range(cost.shape[0]):
        for j in range(cost.shape[1]):
            slack[i, j] = cost[i, j] - hyp.potential[i] - ref.potential[j]


@kernel
def _newton_direction(
    plan: Array, slack: Array, hyp: _RelaxedSide, ref: _RelaxedSide, centre: float
) -> None:
    """Fill the Newton steps of potentials and marginals, from which that of the plan follows."""
    ratio = plan / slack
    hyp_curve, hyp_slope = _side_equation(hyp)
    ref_curve, ref_slope = _side_equation(ref)
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            hyp_curve[i] += ratio[i, j]
            ref_curve[j] += ratio[i, j]
            pull = centre / slack[i, j]
            hyp_slope[i] -= pull
            ref_slope[j] -= pull
    solve_bordered(ratio, hyp_curve, ref_curve, hyp_slope, ref_slope, hyp.step, ref.step)
    _fill_marginal_step(hyp)
    _fill_marginal_step(ref)


@kernel
def _side_equation(side: _RelaxedSide) -> tuple[Array, Array]:
    """What a marginal contributes to the diagonal and to the right-hand side of the system."""
    if side.penalty == np.inf:
        return np.zeros(side.weights.size), side.weights.copy()
    lag = side.potential + side.penalty * np.log(side.marginal / side.weights)
    stiffness = side.marginal / side.penalty
    return stiffness, side.marginal - stiffness * lag


@kernel
def _fill_marginal_step(side: _RelaxedSide) -> None:
    if side.penalty == np.inf:
        return
    lag = side.potential + side.penalty * np.log(side.marginal / side.weights)
    side.marginal_step[:] = -side.marginal / side.penalty * (lag + side.step)


@kernel
def _advance(
    cost: Array, plan: Array, slack: Array, hyp: _RelaxedSide, ref: _RelaxedSide, centre: float
) -> float:
    """Take the longest primal and dual steps that keep all positive; the shorter length."""
    primal, dual = min(_longest_step(hyp), _longest_step(ref)), 1.0
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            shrink = hyp.step[i] + ref.step[j]
            grow = (centre + plan[i, j] * shrink) / slack[i, j] - plan[i, j]
            if shrink > 0.0:
                dual = min(dual, 0.99 * slack[i, j] / shrink)
            if grow < 0.0:
                primal = min(primal, -0.99 * plan[i, j] / grow)
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            shrink = hyp.step[i] + ref.step[j]
            plan[i, j] += primal * ((centre + plan[i, j] * shrink) / slack[i, j] - plan[i, j])
    for side in (hyp, ref):
        side.potential[:] += dual * side.step
        side.marginal[:] += primal * side.marginal_step
    _compute_slack(cost, hyp, ref, slack)
    return min(primal, dual)


@kernel
def _longest_step(side: _RelaxedSide) -> float:
    """How much of the marginal's step keeps it positive, at most 1."""
    length = 1.0
    for k in range(side.marginal.size):
        if side.marginal_step[k] < 0.0:
            length = min(length, -0.99 * side.marginal[k] / side.marginal_step[k])
    return length


@kernel
def _measure_gap(
    cost: Array, plan: Array, hyp: _RelaxedSide, ref: _RelaxedSide, tolerance: float
) -> tuple[float, float]:
    """The duality gap of this plan, scaled to a hard marginal, and how small it has to be."""
    _sum_marginals(plan, hyp, ref)
    hyp_ratio = hyp.weights / hyp.sums if hyp.penalty == np.inf else np.ones(hyp.sums.size)
    ref_ratio = ref.weights / ref.sums if ref.penalty == np.inf else np.ones(ref.sums.size)
    primal = 0.0
    hyp.sums[:] = 0.0
    ref.sums[:] = 0.0
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            moved = plan[i, j] * hyp_ratio[i] * ref_ratio[j]
            primal += moved * cost[i, j]
            hyp.sums[i] += moved
            ref.sums[j] += moved
    dual = 0.0
    for side in (hyp, ref):
        if side.penalty == np.inf:
            dual += (side.weights * side.potential).sum()
        else:
            target = side.weights * np.exp(-side.potential / side.penalty)
            dual += side.penalty * (side.weights - target).sum()
            logs = side.sums * np.log(side.sums / side.weights)
            primal += side.penalty * (logs - side.sums + side.weights).sum()
    return primal - dual, tolerance * (1.0 + abs(primal))


@kernel
def _scale_to_hard_marginal(plan: Array, hyp: _RelaxedSide, ref: _RelaxedSide) -> None:
    """Scale the plan to its hard marginal, if there is one; both cannot be hard here."""
    _sum_marginals(plan, hyp, ref)
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            if hyp.penalty == np.inf:
                plan[i, j] *= hyp.weights[i] / hyp.sums[i]
            if ref.penalty == np.inf:
                plan[i, j] *= ref.weights[j] / ref.sums[j]


@kernel
def _sum_marginals(plan: Array, hyp: _RelaxedSide, ref: _RelaxedSide) -> None:
    row_sums(plan, np.ones(plan.shape[1]), hyp.sums)
    column_sums(plan, np.ones(plan.shape[0]), ref.sums)


@kernel
def solve_bordered(w: Array, p: Array, q: Array, r: Array, s: Array, x: Array, y: Array) -> None:
    """Solve diag(p) x + w y = r, w' x + diag(q) y = s for x and y, by a Schur complement.

    A direction in which the matrix is singular gets a step of almost 0.
    """
    n, m = w.shape
    if n < m:
        _eliminate(w.T.copy(), q, p, s, r, y, x)
    else:
        _eliminate(w, p, q, r, s, x, y)


@kernel
def _eliminate(w: Array, p: Array, q: Array, r: Array, s: Array, x: Array, y: Array) -> None:
    n, m = w.shape
    schur = np.zeros((m, m))
    for j in range(m):
        schur[j, j] = q[j]
        y[j] = s[j]
    for i in range(n):
        scale = 1.0 / p[i]
        _subtract_outer(schur, w[i], scale)
        for j in range(m):
            y[j] -= w[i, j] * scale * r[i]
    _cholesky(schur, q)
    for j in range(m):
        y[j] = (y[j] - _partial_dot(schur[j], y, j)) / schur[j, j]
    for j in range(m - 1, -1, -1):
        y[j] /= schur[j, j]
        for k in range(j):
            y[k] -= schur[j, k] * y[j]
    for i in range(n):
        x[i] = (r[i] - _partial_dot(w[i], y, m)) / p[i]


@kernel
def _cholesky(schur: Array, diagonal: Array) -> None:
    """Cholesky in place, lower triangle; a pivot lost to rounding sets its unknown to about 0."""
    for j in range(schur.shape[0]):
        for k in range(j):
            schur[j, k] = (schur[j, k] - _partial_dot(schur[j], schur[k], k)) / schur[k, k]
        pivot = schur[j, j] - _partial_dot(schur[j], schur[j], j)
        schur[j, j] = np.sqrt(pivot) if pivot > 1e-14 * diagonal[j] else 1e150


@summing
def _partial_dot(a: Array, b: Array, count: int) -> float:
    total = 0.0
    for k in range(count):
        total += a[k] * b[k]
    return total


@summing
def _subtract_outer(schur: Array, row: Array, scale: float) -> None:
    for j in range(row.size):
        factor = row[j] * scale
        if factor != 0.0:
            for k in range(j + 1):
                schur[j, k] -= factor * row[k]
