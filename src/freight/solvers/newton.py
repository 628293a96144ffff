"""Newton's method on the dual of an entropic problem, for what sweeps would take too long for."""

import numpy as np

from freight.kernels import kernel
from freight.solvers.batches import Terms
from freight.solvers.bordered import solve_bordered
from freight.solvers.elementary import dot
from freight.solvers.potentials import Side, dual, wanted
from freight.types import Array


@kernel
def anneal(cost: Array, hyp: Side, ref: Side, terms: Terms, aim: float, plan: Array) -> None:
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
    hyp: Side,
    ref: Side,
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
def _shift(hyp: Side, ref: Side, hyp_step: Array, ref_step: Array, length: float) -> None:
    hyp.potential[:] += length * hyp_step
    ref.potential[:] += length * ref_step


@kernel
def _slope(side: Side, epsilon: float) -> tuple[Array, Array]:
    """The dual's gradient and (negated) curvature along this side's potentials, over epsilon."""
    asked = wanted(side, epsilon)
    return asked - side.sums, side.sums + asked * (epsilon / side.penalty)
