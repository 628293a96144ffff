"""Gradients through an entropic plan by implicit differentiation, without unrolling the sweeps.

The plan P = exp((f + g - C) / epsilon) has row sums r = P1 and column sums s = P'1; hyp and ref are
the penalties on these marginals (POT's `reg_m`), a and b the masses. At the optimum the potentials
are f = -hyp log(r / a) and g = -ref log(s / b), so that a change of the data moves them by the
solution of

    | diag(r (1 + epsilon/hyp))   P                        | |df|   |(P dC)1  + epsilon r da / a|
    | P'                          diag(s (1 + epsilon/ref))| |dg| = |(P dC)'1 + epsilon s db / b|

whose matrix is symmetric: one solve gives the gradient of any function of the plan. The potentials
of a free marginal do not move. Between two hard marginals they are determined up to a constant for
every set of units that exchanges no mass with the others; a hard marginal therefore counts as one
with a very large penalty, which settles the constants and changes nothing else.
"""

from typing import Any

import torch
from torch import Tensor

from freight.errors import InvalidInput
from freight.transport.types import Problem

_HARD = 1e-10
"""epsilon / penalty of a hard marginal: flows that are smaller are below a solver's tolerance."""


def attach_gradient(
    problem: Problem, cost: Tensor, hyp_weights: Tensor, ref_weights: Tensor, flow: Tensor
) -> Tensor:
    """The flow as a differentiable function of cost and masses."""
    return _ImplicitGradient.apply(problem, cost, hyp_weights, ref_weights, flow)  # type: ignore[no-untyped-call]


def refuse_gradient(flow: Tensor, cost: Tensor) -> Tensor:
    """The flow of an exact plan with a KL-relaxed marginal; to differentiate it is an error."""
    return _RefusedGradient.apply(flow, cost)  # type: ignore[no-untyped-call]


class _RefusedGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, flow: Tensor, cost: Tensor) -> Tensor:
        return flow.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        raise InvalidInput(
            "an exact plan with a KL-relaxed marginal has no gradient; differentiate `objective`,"
            " or give the problem an epsilon above 0"
        )


class _ImplicitGradient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        problem: Problem,
        cost: Tensor,
        hyp_weights: Tensor,
        ref_weights: Tensor,
        flow: Tensor,
    ) -> Tensor:
        ctx.problem = problem
        ctx.save_for_backward(flow, hyp_weights, ref_weights)
        return flow.to(cost.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        flow, hyp_weights, ref_weights = ctx.saved_tensors
        epsilon = ctx.problem.epsilon
        pull = grads[0].double() * flow / epsilon
        x, y = _solve_system(flow, pull.sum(-1), pull.sum(-2), ctx.problem)
        cost = flow * (x[..., None] + y[..., None, :]) - pull
        hyp = epsilon * x * _ratio(flow.sum(-1), hyp_weights)
        ref = epsilon * y * _ratio(flow.sum(-2), ref_weights)
        dtype = grads[0].dtype
        return None, cost.to(dtype), hyp.to(hyp_weights.dtype), ref.to(ref_weights.dtype), None


def _ratio(sums: Tensor, weights: Tensor) -> Tensor:
    """Mass moved per mass given."""
    return (sums / weights).where(weights > 0, 0.0)


def _solve_system(
    flow: Tensor, rows: Tensor, columns: Tensor, problem: Problem
) -> tuple[Tensor, Tensor]:
    """Solve the symmetric system of the module's docstring by its Schur complement."""
    epsilon = problem.epsilon
    if problem.hyp == 0.0:
        return torch.zeros_like(rows), _divide(
            columns, _curvature(flow.sum(-2), problem.ref, epsilon)
        )
    if problem.ref == 0.0:
        return _divide(rows, _curvature(flow.sum(-1), problem.hyp, epsilon)), torch.zeros_like(
            columns
        )
    hyp_curve = _curvature(flow.sum(-1), problem.hyp, epsilon)
    ref_curve = _curvature(flow.sum(-2), problem.ref, epsilon)
    damped = _divide(flow, hyp_curve[..., None])
    schur = torch.diag_embed(torch.where(ref_curve > 0, ref_curve, 1.0)) - flow.mT @ damped
    y = torch.linalg.solve(schur, (columns - (damped.mT @ rows[..., None])[..., 0])[..., None])[
        ..., 0
    ]
    x = _divide(rows - (flow @ y[..., None])[..., 0], hyp_curve)
    return x, y


def _curvature(sums: Tensor, penalty: float, epsilon: float) -> Tensor:
    return sums * (1.0 + max(epsilon / penalty, _HARD))


def _divide(a: Tensor, b: Tensor) -> Tensor:
    return (a / b).where(b > 0, 0.0)
