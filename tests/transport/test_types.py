"""The values of a plan, by hand."""

import math

import numpy as np
import pytest
import torch

from freight import Plans, Problem, solve
from freight.transport.types import tensor_totals

COST = np.array([[0.0, 2.0], [1.0, 0.5]])
FLOW = np.array([[0.4, 0.0], [0.1, 0.3]])
HYP, REF = np.array([0.5, 0.5]), np.array([0.6, 0.4])
TRANSPORT = 0.1 * 1.0 + 0.3 * 0.5
HYP_KL = 0.4 * math.log(0.4 / 0.5) - 0.4 + 0.5 + 0.4 * math.log(0.4 / 0.5) - 0.4 + 0.5
REF_KL = 0.5 * math.log(0.5 / 0.6) - 0.5 + 0.6 + 0.3 * math.log(0.3 / 0.4) - 0.3 + 0.4
ENTROPY = sum(p * math.log(p) - p for p in (0.4, 0.1, 0.3))


def plans(problem: Problem) -> Plans:
    sizes = np.array([2])
    return Plans(problem, COST, HYP, REF, sizes, sizes, FLOW, 0.0, True)


@pytest.mark.parametrize(
    ("problem", "objective", "regularised"),
    [
        (Problem(), TRANSPORT, TRANSPORT),
        (Problem(2.0, 3.0), TRANSPORT + 2.0 * HYP_KL + 3.0 * REF_KL, None),
        (Problem(2.0, 0.0), TRANSPORT + 2.0 * HYP_KL, None),
        (Problem(ref=3.0), TRANSPORT + 3.0 * REF_KL, None),
        (Problem(epsilon=0.1), TRANSPORT, TRANSPORT + 0.1 * ENTROPY),
        (
            Problem(2.0, 3.0, 0.1),
            TRANSPORT + 2.0 * HYP_KL + 3.0 * REF_KL,
            TRANSPORT + 2.0 * HYP_KL + 3.0 * REF_KL + 0.1 * ENTROPY,
        ),
    ],
    ids=str,
)
def test_the_values_of_a_plan(
    problem: Problem, objective: float, regularised: float | None
) -> None:
    expected = TRANSPORT, objective, objective if regularised is None else regularised
    solved = plans(problem)
    values = solved.transport, solved.objective, solved.regularised
    assert values == pytest.approx(expected, abs=1e-15)
    tensors = [torch.tensor(x) for x in (COST, FLOW, HYP, REF)]
    terms = problem.hyp, problem.ref, problem.epsilon
    on_tensors = tensor_totals(tensors[0], tensors[1], tensors[2], tensors[3], *terms)
    assert [x.item() for x in on_tensors] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("padding", [0.0, 7.0, math.nan, math.inf])
@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize(
    "problem",
    [Problem(2.0, 3.0), Problem(ref=3.0), Problem(2.0, 0.0), Problem(2.0, 3.0, 0.1)],
    ids=str,
)
def test_mass_past_the_sizes_of_tensors_does_not_exist(
    problem: Problem, tracked: bool, padding: float
) -> None:
    alone = solve(problem, COST, HYP, REF)
    given = [
        torch.tensor(np.pad(x, room, constant_values=padding))
        for x, room in ((COST, ((0, 2), (0, 1))), (HYP, (0, 2)), (REF, (0, 1)))
    ]
    given[0].requires_grad_(tracked)
    for cost, hyp, ref in (given, [x[None] for x in given]):
        padded = solve(problem, cost, hyp, ref, np.array([2]), np.array([2]))
        for name in ("transport", "objective", "regularised"):
            assert getattr(padded, name).item() == pytest.approx(getattr(alone, name), abs=1e-8)
        if tracked:
            (gradient,) = torch.autograd.grad(padded.regularised.sum(), given[0])
            expected = np.pad(alone.flow, ((0, 2), (0, 1)))
            np.testing.assert_allclose(gradient, expected, atol=1e-6)


def test_penalties_become_floats() -> None:
    assert Problem(1, 2) == Problem(1.0, 2.0)
    assert repr(Problem(hyp=1)) == "Problem(hyp=1.0, ref=inf, epsilon=0.0)"


def test_plans_carry_what_they_were_made_of() -> None:
    problem = Problem(0.2, 0.3)
    solved = solve(problem, COST, HYP, REF)
    assert solved.problem is problem
    assert solved.cost is COST
    np.testing.assert_array_equal([solved.hyp_sizes, solved.ref_sizes], [[2], [2]])
