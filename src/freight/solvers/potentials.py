"""The two potentials of an entropic problem: their plan, their dual value and their gap.

Potentials are in units of epsilon, and so is the cost here. Let P be the plan of the potentials f
and g, and Q a plan that meets the held sides. Then primal(Q) - dual(f, g) = epsilon KL(Q|P)
+ penalty KL(Q1 | w exp(-f / penalty)) for a priced side, and likewise for the other. That is the
gap we report; where nothing is held, Q is P.
"""

from typing import NamedTuple

import numpy as np

from freight.kernels import kernel
from freight.solvers.batches import Terms
from freight.solvers.elementary import column_sums, dot, exp_in_place, row_sums
from freight.types import Array


class Side(NamedTuple):
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
def make_side(weights: Array, penalty: float, epsilon: float) -> Side:
    """A side whose potentials stand at 0."""
    size = weights.size
    share = 1.0 if penalty == np.inf else penalty / (penalty + epsilon)
    logs = np.zeros(size) if penalty == 0.0 else np.log(weights)
    return Side(
        weights, logs, penalty, share, np.zeros(size), np.zeros(size), np.ones(size), np.ones(size)
    )


@kernel
def absorb(cost: Array, hyp: Side, ref: Side, plan: Array) -> None:
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
def dual(cost: Array, hyp: Side, ref: Side, epsilon: float, plan: Array) -> float:
    """The dual over epsilon; leaves the plan of the potentials in `plan`."""
    absorb(cost, hyp, ref, plan)
    return _value(hyp, ref, epsilon, plan)


@kernel
def finish(hyp: Side, ref: Side, terms: Terms, plan: Array) -> tuple[float, bool]:
    """The plan of the potentials, rounded to meet what is held; its gap, and if that is enough."""
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            plan[i, j] *= hyp.scaling[i] * ref.scaling[j]
    value = terms.epsilon * _value(hyp, ref, terms.epsilon, plan)
    gap = terms.epsilon * _round(plan, hyp, ref)
    gap += _side_gap(hyp, terms.epsilon) + _side_gap(ref, terms.epsilon)
    return gap, gap <= terms.tolerance * (1.0 + abs(value))


@kernel
def wanted(side: Side, epsilon: float) -> Array:
    """The marginal that this side's potentials ask for: w exp(-f / penalty)."""
    if side.penalty == np.inf:
        return side.weights
    return side.weights * np.exp(-epsilon / side.penalty * side.potential)


@kernel
def _value(hyp: Side, ref: Side, epsilon: float, plan: Array) -> float:
    _sum(plan, hyp, ref)
    return _side_dual(hyp, epsilon) + _side_dual(ref, epsilon) - hyp.sums.sum()


@kernel
def _sum(plan: Array, hyp: Side, ref: Side) -> None:
    """Leave the marginals of the plan in both sides' sums."""
    row_sums(plan, np.ones(plan.shape[1]), hyp.sums)
    column_sums(plan, np.ones(plan.shape[0]), ref.sums)


@kernel
def _side_dual(side: Side, epsilon: float) -> float:
    if side.penalty == 0.0:
        return 0.0
    if side.penalty == np.inf:
        return dot(side.weights, side.potential)
    return (side.weights - wanted(side, epsilon)).sum() * side.penalty / epsilon


@kernel
def _side_gap(side: Side, epsilon: float) -> float:
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
def _round(plan: Array, hyp: Side, ref: Side) -> float:
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
