"""Entropic transport on tensors: the sweeps of `sinkhorn` for a whole batch at once, on any device.

Log-domain Sinkhorn without a logarithm per entry: a half-sweep needs log sum_j exp(psi_j - C_ij /
epsilon) and takes it from a kernel that has absorbed the potentials of the last refresh and whose
rows (for the other half, columns) have 1 as their largest entry, so that no sum can underflow, in
float32 either. Potentials and refreshes are float64; kernels have the caller's precision.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from freight.transport.types import Problem, Terms

_ABSENT = -1e30
_SWEEPS = 8


class _TensorSide(NamedTuple):
    """One marginal of a batch: masses (1 where it is free), penalty, and the units with mass."""

    weights: Tensor
    present: Tensor
    penalty: float
    tau: float

    @property
    def hard(self) -> bool:
        return self.penalty == math.inf

    def select(self, active: Tensor) -> "_TensorSide":
        return self._replace(weights=self.weights[active], present=self.present[active])


def sinkhorn_tensors(
    problem: Problem,
    terms: Terms,
    cost: Tensor,
    hyp_weights: Tensor,
    ref_weights: Tensor,
    hyp_present: Tensor,
    ref_present: Tensor,
    sweep: Callable[[float], Sequence[Tensor]] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Flow and duality gap in float64, and converged; the cost must be finite, padding included.

    The sweeps may be those of a kernel: from how little a potential may move to the potentials.
    """
    hyp = _make_side(hyp_weights, hyp_present, problem.hyp, problem.epsilon)
    ref = _make_side(ref_weights, ref_present, problem.ref, problem.epsilon)
    aim = terms.tolerance * (0.1 if hyp.hard and ref.hard else 10.0)
    aim = max(aim, 64 * torch.finfo(cost.dtype).eps)
    if sweep is None:
        phi, psi = _sweep_until(cost, hyp, ref, problem.epsilon, aim, terms.max_iterations)
    else:
        phi, psi = sweep(aim)
    plan = _exponent(cost, problem.epsilon).add_(phi[..., None]).add_(psi[:, None]).exp_()
    dual = _side_dual(hyp, phi, problem.epsilon) + _side_dual(ref, psi, problem.epsilon)
    dual -= problem.epsilon * plan.sum((-2, -1))
    flow = _round_to_marginals(plan, hyp, ref)
    gap = _side_gap(hyp, phi, flow.sum(-1), problem.epsilon)
    gap += _side_gap(ref, psi, flow.sum(-2), problem.epsilon)
    if hyp.hard or ref.hard:
        gap += problem.epsilon * _divergence(flow.flatten(1), plan.flatten(1))
    return flow, gap, gap <= terms.tolerance * (1.0 + dual.abs())


def _make_side(weights: Tensor, present: Tensor, penalty: float, epsilon: float) -> _TensorSide:
    tau = 1.0 if penalty == math.inf else penalty / (penalty + epsilon)
    mass = weights.double() if penalty else torch.ones_like(weights, dtype=torch.float64)
    return _TensorSide(mass.where(present, 0.0), present, penalty, tau)


def _exponent(cost: Tensor, epsilon: float) -> Tensor:
    return cost.double() / -epsilon


class _SweepState(NamedTuple):
    """The problems that have not converged: data, potentials, over-relaxation, and kernels."""

    active: Tensor
    cost: Tensor
    hyp: _TensorSide
    ref: _TensorSide
    phi: Tensor
    psi: Tensor
    factor: Tensor
    rows: "_AbsorbedKernel | None" = None
    columns: "_AbsorbedKernel | None" = None

    def select(self, kept: Tensor) -> "_SweepState":
        active, cost, phi, psi = self.active[kept], self.cost[kept], self.phi[kept], self.psi[kept]
        return _SweepState(
            active, cost, self.hyp.select(kept), self.ref.select(kept), phi, psi, self.factor[kept]
        )


def _sweep_until(
    cost: Tensor,
    hyp: _TensorSide,
    ref: _TensorSide,
    epsilon: float,
    aim: float,
    max_iterations: int,
) -> tuple[Tensor, Tensor]:
    """Sweep until no potential changes by more than `aim`, or `max_iterations` are used up."""
    optimal = 2.0 / (1.0 + math.sqrt(max(1.0 - hyp.tau * ref.tau, 1e-3)))
    phi, psi = (torch.where(side.present, 0.0, _ABSENT).double() for side in (hyp, ref))
    active = torch.arange(len(cost), device=cost.device)
    factor = torch.ones(len(cost), 1, dtype=torch.float64, device=cost.device)
    previous = torch.full_like(factor, math.inf)
    state = _SweepState(active, cost, hyp, ref, phi, psi, factor)
    for sweeps in range(0, max_iterations, _SWEEPS):
        state, residual = _sweep_several(state, epsilon, first=sweeps == 0)
        phi[state.active], psi[state.active] = state.phi, state.psi
        unfinished = residual.squeeze(-1) > aim
        count = int(unfinished.sum())
        if not count:
            break
        state = state._replace(factor=_relaxation_factor(residual, previous, optimal))
        previous = residual
        if 2 * count < len(unfinished):
            state, previous = state.select(unfinished), previous[unfinished]
    return phi, psi


def _relaxation_factor(residual: Tensor, previous: Tensor, optimal: float) -> Tensor:
    """The factor of the next sweeps: 1 where the residual grew and is above 3, else the optimum.

    Close to convergence sweeps are linear, and the optimal factor cannot fail.
    """
    return torch.full_like(residual, optimal).where((residual <= previous) | (residual <= 3.0), 1.0)


def _sweep_several(state: _SweepState, epsilon: float, first: bool) -> tuple[_SweepState, Tensor]:
    """A few sweeps, and each problem's largest change of a potential in the last one."""
    cost, hyp, ref, phi, psi = state.cost, state.hyp, state.ref, state.phi, state.psi
    rows, columns = state.rows, state.columns
    bases = [side.tau * side.weights.where(side.present, 1.0).log() for side in (hyp, ref)]
    factors = [state.factor * side.present for side in (hyp, ref)]
    before = targets = [phi, psi]
    for sweep in range(_SWEEPS):
        before = [phi, psi]
        fresh = first and sweep in (1, 2, 4)
        if rows is None or fresh:
            rows = _AbsorbedKernel.build(cost, psi, epsilon, -1)
        hyp_target = torch.add(bases[0], rows.log_sums(psi), alpha=-hyp.tau)
        phi = phi.lerp(hyp_target, factors[0])
        if columns is None or fresh:
            columns = _AbsorbedKernel.build(cost, phi, epsilon, -2)
        ref_target = torch.add(bases[1], columns.log_sums(phi), alpha=-ref.tau)
        psi = psi.lerp(ref_target, factors[1])
        targets = [hyp_target, ref_target]
    changes = [
        ((target - old).abs() * side.present).amax(-1, keepdim=True)
        for target, old, side in zip(targets, before, (hyp, ref), strict=True)
    ]
    if (
        first
        or (rows and bool(rows.has_drifted(psi)))
        or (columns and bool(columns.has_drifted(phi)))
    ):
        rows = columns = None
    after = state._replace(phi=phi, psi=psi, rows=rows, columns=columns)
    return after, torch.maximum(*changes)


class _AbsorbedKernel(NamedTuple):
    """exp(potential - C / epsilon), its largest entry along the dimension to be summed 1."""

    entries: Tensor
    offset: Tensor
    absorbed: Tensor

    @classmethod
    def build(
        cls, cost: Tensor, potential: Tensor, epsilon: float, along: int
    ) -> "_AbsorbedKernel":
        exponent = _exponent(cost, epsilon).add_(potential.unsqueeze(-3 - along))
        offset = exponent.amax(along)
        entries = exponent.sub_(offset.unsqueeze(along)).to(cost.dtype).exp_()
        return cls(entries if along == -1 else entries.mT, offset, potential)

    def has_drifted(self, potential: Tensor) -> Tensor:
        return (potential - self.absorbed).abs().amax() > 20.0

    def log_sums(self, potential: Tensor) -> Tensor:
        """log sum exp(potential - C / epsilon); a step of more than 80 is taken in two."""
        step = (potential - self.absorbed).clamp_(-80.0, 80.0).exp_().to(self.entries.dtype)
        return self.offset + torch.bmm(self.entries, step.unsqueeze(-1)).squeeze(-1).log_()


def _target_marginal(side: _TensorSide, potential: Tensor, epsilon: float) -> Tensor:
    """The marginal that is optimal for these potentials: w exp(-f / penalty)."""
    power = (potential * (-epsilon / side.penalty)).where(side.present, 0.0)
    return side.weights * power.exp()


def _side_dual(side: _TensorSide, potential: Tensor, epsilon: float) -> Tensor:
    if side.hard:
        return epsilon * (side.weights * potential).sum(-1)
    if side.penalty == 0.0:
        return torch.zeros_like(potential[:, 0])
    return side.penalty * (side.weights - _target_marginal(side, potential, epsilon)).sum(-1)


def _side_gap(side: _TensorSide, potential: Tensor, sums: Tensor, epsilon: float) -> Tensor:
    if side.hard or side.penalty == 0.0:
        return torch.zeros_like(sums[:, 0])
    return side.penalty * _divergence(sums, _target_marginal(side, potential, epsilon))


def _divergence(a: Tensor, b: Tensor) -> Tensor:
    """KL(a | b), every term non-negative, accurate where a and b nearly agree."""
    x = ((a - b) / b).where(b > 0, 0.0)
    terms = b * torch.where(x > -1.0, (1.0 + x) * x.clamp(min=-0.999999999).log1p() - x, 1.0)
    return terms.sum(-1)


def _round_to_marginals(plan: Tensor, hyp: _TensorSide, ref: _TensorSide) -> Tensor:
    """The plan rounded to its hard marginals (Altschuler et al., 2017)."""
    both = hyp.hard and ref.hard
    for side, dim in ((hyp, -1), (ref, -2)):
        if side.hard:
            sums = plan.sum(dim)
            ratio = (side.weights / sums).where(sums > 0, 1.0)
            plan = plan * (ratio.clamp(max=1.0) if both else ratio).unsqueeze(dim)
    if both:
        hyp_missing, ref_missing = hyp.weights - plan.sum(-1), ref.weights - plan.sum(-2)
        total = ref_missing.sum(-1, keepdim=True)
        portion = (ref_missing / total).where(total > 0, 0.0)
        plan = plan + hyp_missing.clamp(min=0.0)[..., None] * portion.clamp(min=0.0)[:, None]
    return plan
