"""Entropic transport on tensors: the sweeps of `sinkhorn` for a whole batch at once, on any device.

The log domain without a logarithm an entry: a half-sweep needs log sum_j exp(psi_j - C_ij / eps)
and takes it from a kernel whose rows (for the other half, columns) have 1 as their largest entry
at the potentials of the last refresh. Nothing can then be empty, in float32 either. Potentials and
refreshes are float64, kernels have the caller's precision.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from freight.transport.batches import Terms
from freight.transport.types import Problem

_ABSENT = -1e30
_ROUND = 8


class _TensorSide(NamedTuple):
    """One side of a batch: masses (1 where the side is free), penalty, and who is there."""

    weights: Tensor
    present: Tensor
    penalty: float
    share: float

    @property
    def held(self) -> bool:
        return self.penalty == math.inf

    def of(self, going: Tensor) -> "_TensorSide":
        return self._replace(weights=self.weights[going], present=self.present[going])


def sinkhorn_tensors(
    problem: Problem,
    terms: Terms,
    cost: Tensor,
    hyp_weights: Tensor,
    ref_weights: Tensor,
    hyp_present: Tensor,
    ref_present: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Flow and gap in float64, and converged; the cost must be finite where units are absent."""
    hyp = _side(hyp_weights, hyp_present, problem.hyp, problem.epsilon)
    ref = _side(ref_weights, ref_present, problem.ref, problem.epsilon)
    aim = terms.tolerance * (0.1 if hyp.held and ref.held else 10.0)
    aim = max(aim, 64 * torch.finfo(cost.dtype).eps)
    phi, psi = _sweep_until(cost, hyp, ref, problem.epsilon, aim, terms.cap)
    plan = _exponent(cost, problem.epsilon).add_(phi[..., None]).add_(psi[:, None]).exp_()
    dual = _dual(hyp, phi, problem.epsilon) + _dual(ref, psi, problem.epsilon)
    dual -= problem.epsilon * plan.sum((-2, -1))
    flow = _meet(plan, hyp, ref)
    gap = _side_gap(hyp, phi, flow.sum(-1), problem.epsilon)
    gap += _side_gap(ref, psi, flow.sum(-2), problem.epsilon)
    if hyp.held or ref.held:
        gap += problem.epsilon * _divergence(flow.flatten(1), plan.flatten(1))
    return flow, gap, gap <= terms.tolerance * (1.0 + dual.abs())


def _side(weights: Tensor, present: Tensor, penalty: float, epsilon: float) -> _TensorSide:
    share = 1.0 if penalty == math.inf else penalty / (penalty + epsilon)
    mass = weights.double() if penalty else torch.ones_like(weights, dtype=torch.float64)
    return _TensorSide(mass.where(present, 0.0), present, penalty, share)


def _exponent(cost: Tensor, epsilon: float) -> Tensor:
    return cost.double() / -epsilon


class _State(NamedTuple):
    """The problems still going: their data, potentials and over-relaxation, and their kernels."""

    going: Tensor
    cost: Tensor
    hyp: _TensorSide
    ref: _TensorSide
    phi: Tensor
    psi: Tensor
    factor: Tensor
    rows: "_Kernel | None" = None
    columns: "_Kernel | None" = None

    def of(self, kept: Tensor) -> "_State":
        going, cost, phi, psi = self.going[kept], self.cost[kept], self.phi[kept], self.psi[kept]
        return _State(
            going, cost, self.hyp.of(kept), self.ref.of(kept), phi, psi, self.factor[kept]
        )


def _sweep_until(
    cost: Tensor, hyp: _TensorSide, ref: _TensorSide, epsilon: float, aim: float, cap: int
) -> tuple[Tensor, Tensor]:
    """The potentials at which no problem's want to move by more than `aim`, or those at the cap."""
    best = 2.0 / (1.0 + math.sqrt(max(1.0 - hyp.share * ref.share, 1e-3)))
    phi, psi = (torch.where(side.present, 0.0, _ABSENT).double() for side in (hyp, ref))
    going = torch.arange(len(cost), device=cost.device)
    factor = torch.ones(len(cost), 1, dtype=torch.float64, device=cost.device)
    mark = torch.full_like(factor, math.inf)
    state = _State(going, cost, hyp, ref, phi, psi, factor)
    for sweeps in range(0, cap, _ROUND):
        state, residual = _round(state, epsilon, first=sweeps == 0)
        phi[state.going], psi[state.going] = state.phi, state.psi
        left = residual.squeeze(-1) > aim
        count = int(left.sum())
        if not count:
            break
        state = state._replace(factor=_relaxed(residual, mark, best))
        mark = residual
        if 2 * count < len(left):
            state, mark = state.of(left), mark[left]
    return phi, psi


def _relaxed(residual: Tensor, mark: Tensor, best: float) -> Tensor:
    """Over-relax what has come close; half as much where that made things worse, far from the end.

    Near the end sweeps are linear and the best factor cannot fail.
    """
    factor = torch.full_like(residual, best)
    factor[(residual > mark) & (residual > 0.3)] = 0.5 * (1.0 + best)
    factor[residual > 3.0] = 1.0
    return factor


def _round(state: _State, epsilon: float, first: bool) -> tuple[_State, Tensor]:
    """A few sweeps, and the last largest wish of each problem."""
    cost, hyp, ref, phi, psi = state.cost, state.hyp, state.ref, state.phi, state.psi
    rows, columns = state.rows, state.columns
    bases = [side.share * side.weights.where(side.present, 1.0).log() for side in (hyp, ref)]
    factors = [state.factor * side.present for side in (hyp, ref)]
    before = targets = [phi, psi]
    for sweep in range(_ROUND):
        before = [phi, psi]
        fresh = first and sweep in (1, 2, 4)
        if rows is None or fresh:
            rows = _Kernel.of(cost, psi, epsilon, -1)
        hyp_target = torch.add(bases[0], rows.log_sums(psi), alpha=-hyp.share)
        phi = phi.lerp(hyp_target, factors[0])
        if columns is None or fresh:
            columns = _Kernel.of(cost, phi, epsilon, -2)
        ref_target = torch.add(bases[1], columns.log_sums(phi), alpha=-ref.share)
        psi = psi.lerp(ref_target, factors[1])
        targets = [hyp_target, ref_target]
    wishes = [
        ((target - old).abs() * side.present).amax(-1, keepdim=True)
        for target, old, side in zip(targets, before, (hyp, ref), strict=True)
    ]
    if first or (rows and bool(rows.strayed(psi))) or (columns and bool(columns.strayed(phi))):
        rows = columns = None
    after = state._replace(phi=phi, psi=psi, rows=rows, columns=columns)
    return after, torch.maximum(*wishes)


class _Kernel(NamedTuple):
    """exp(potential - C / epsilon), its largest entry along the dimension to be summed 1."""

    entries: Tensor
    offset: Tensor
    absorbed: Tensor

    @classmethod
    def of(cls, cost: Tensor, potential: Tensor, epsilon: float, along: int) -> "_Kernel":
        exponent = _exponent(cost, epsilon).add_(potential.unsqueeze(-3 - along))
        offset = exponent.amax(along)
        entries = exponent.sub_(offset.unsqueeze(along)).to(cost.dtype).exp_()
        return cls(entries if along == -1 else entries.mT, offset, potential)

    def strayed(self, potential: Tensor) -> Tensor:
        return (potential - self.absorbed).abs().amax() > 20.0

    def log_sums(self, potential: Tensor) -> Tensor:
        """log sum exp(potential - C / epsilon); a step of more than 80 is taken in two."""
        step = (potential - self.absorbed).clamp_(-80.0, 80.0).exp_().to(self.entries.dtype)
        return self.offset + torch.bmm(self.entries, step.unsqueeze(-1)).squeeze(-1).log_()


def _wanted(side: _TensorSide, potential: Tensor, epsilon: float) -> Tensor:
    """The marginal that the potentials ask for: w exp(-f / penalty)."""
    power = (potential * (-epsilon / side.penalty)).where(side.present, 0.0)
    return side.weights * power.exp()


def _dual(side: _TensorSide, potential: Tensor, epsilon: float) -> Tensor:
    if side.held:
        return epsilon * (side.weights * potential).sum(-1)
    if side.penalty == 0.0:
        return torch.zeros_like(potential[:, 0])
    return side.penalty * (side.weights - _wanted(side, potential, epsilon)).sum(-1)


def _side_gap(side: _TensorSide, potential: Tensor, sums: Tensor, epsilon: float) -> Tensor:
    if side.held or side.penalty == 0.0:
        return torch.zeros_like(sums[:, 0])
    return side.penalty * _divergence(sums, _wanted(side, potential, epsilon))


def _divergence(a: Tensor, b: Tensor) -> Tensor:
    """KL(a|b), term by term non-negative, exact where a and b nearly agree."""
    x = ((a - b) / b).where(b > 0, 0.0)
    terms = b * torch.where(x > -1.0, (1.0 + x) * x.clamp(min=-0.999999999).log1p() - x, 1.0)
    return terms.sum(-1)


def _meet(plan: Tensor, hyp: _TensorSide, ref: _TensorSide) -> Tensor:
    """The plan made to meet the held sides (Altschuler et al., 2017)."""
    both = hyp.held and ref.held
    for side, dim in ((hyp, -1), (ref, -2)):
        if side.held:
            sums = plan.sum(dim)
            ratio = (side.weights / sums).where(sums > 0, 1.0)
            plan = plan * (ratio.clamp(max=1.0) if both else ratio).unsqueeze(dim)
    if both:
        missing, lacking = hyp.weights - plan.sum(-1), ref.weights - plan.sum(-2)
        total = lacking.sum(-1, keepdim=True)
        share = (lacking / total).where(total > 0, 0.0)
        plan = plan + missing.clamp(min=0.0)[..., None] * share.clamp(min=0.0)[:, None]
    return plan
