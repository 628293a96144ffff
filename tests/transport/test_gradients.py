"""Gradients through plans, beside finite differences and the plan itself."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import freight
from freight import Problem
from problems import ENTROPIC, random_tensors

every_entropic = pytest.mark.parametrize("problem", ENTROPIC, ids=str)


@every_entropic
def test_the_gradient_of_regularised_is_the_plan(problem: Problem) -> None:
    cost, hyp, ref = random_tensors()
    plans = freight.solve(problem, cost.requires_grad_(), hyp, ref)
    (gradient,) = torch.autograd.grad(plans.regularised.sum(), cost)
    torch.testing.assert_close(gradient, plans.flow.detach(), rtol=0, atol=1e-7)


@every_entropic
@pytest.mark.parametrize("name", ["transport", "objective", "regularised"])
def test_gradients_of_everything_match_finite_differences(problem: Problem, name: str) -> None:
    data = [x.requires_grad_() for x in random_tensors(pairs=2, n=4, m=3)]

    def value(cost: Tensor, hyp: Tensor, ref: Tensor) -> Tensor:
        # Hard marginals need equal totals, so let the function normalise.
        hyp, ref = hyp / hyp.sum(-1, keepdim=True), ref / ref.sum(-1, keepdim=True)
        plans = freight.solve(problem, cost, hyp, ref, tolerance=1e-13)
        result: Tensor = getattr(plans, name)
        return result

    assert torch.autograd.gradcheck(value, data, eps=1e-5, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize(
    "problem", [Problem(), Problem(ref=0), Problem(0.2, 0.3), Problem(0.2, 0)], ids=str
)
def test_the_gradient_of_an_exact_objective_is_the_plan(problem: Problem) -> None:
    cost, hyp, ref = random_tensors()
    plans = freight.solve(problem, cost.requires_grad_(), hyp, ref)
    (gradient,) = torch.autograd.grad(plans.objective.sum(), cost)
    torch.testing.assert_close(gradient, plans.flow.detach())


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (
            lambda c, a, b: freight.solve(Problem(0.2, 0.3), c, a, b).transport.sum().backward(),
            "objective",
        ),
        (lambda c, a, b: freight.solve(Problem(), c, a.requires_grad_(), b), "detach hyp_weights"),
    ],
)
def test_a_gradient_we_do_not_have_is_refused(attempt: Callable[..., None], message: str) -> None:
    cost, hyp, ref = random_tensors()
    with pytest.raises(freight.InvalidInput, match=message):
        attempt(cost.requires_grad_(), hyp, ref)
