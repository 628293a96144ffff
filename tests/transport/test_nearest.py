"""Exact plans with a free marginal: every unit goes to its nearest neighbour."""

import math

import numpy as np
import pytest

import freight
from freight import Problem
from problems import random_batch

COST = np.array([[0.3, 0.1, 0.2], [0.5, 0.5, 0.9]])
HYP, REF = np.array([0.25, 0.75]), np.array([0.2, 0.3, 0.5])


def test_a_hard_marginal_moves_all_its_mass_to_the_first_nearest() -> None:
    plan = freight.solve(Problem(ref=0), COST, HYP, REF)
    np.testing.assert_array_equal(plan.flow, [[0.0, 0.25, 0.0], [0.75, 0.0, 0.0]])
    assert plan.transport == pytest.approx(0.25 * 0.1 + 0.75 * 0.5)
    assert (plan.gap, plan.converged) == (0.0, True)


def test_the_other_marginal_may_be_the_free_one() -> None:
    plan = freight.solve(Problem(hyp=0), COST, HYP, REF)
    np.testing.assert_array_equal(plan.flow, [[0.2, 0.3, 0.5], [0.0, 0.0, 0.0]])


def test_a_relaxed_marginal_moves_less_the_farther_its_neighbour() -> None:
    plan = freight.solve(Problem(hyp=0.2, ref=0), COST, HYP, REF)
    moved = [0.25 * math.exp(-0.1 / 0.2), 0.75 * math.exp(-0.5 / 0.2)]
    np.testing.assert_allclose(plan.flow, [[0.0, moved[0], 0.0], [moved[1], 0.0, 0.0]])


def test_the_objective_beside_a_free_marginal_has_a_closed_form() -> None:
    cost, hyp, ref = (x[0] for x in random_batch(1))
    plan = freight.solve(Problem(0.2, 0.0), cost, hyp, ref)
    nearest = cost.min(axis=1)
    assert plan.objective == pytest.approx((0.2 * hyp * -np.expm1(-nearest / 0.2)).sum(), rel=1e-12)
