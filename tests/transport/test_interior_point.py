"""Exact plans with a KL-relaxed marginal: closed forms, and a gap that bounds the error."""

import itertools
import math

import numpy as np
import pytest

import freight
from freight import Problem, kernels
from problems import clustered, divergence, one_reference_unit, spread


def test_theorem_two_has_a_closed_form() -> None:
    rng = np.random.default_rng(0)
    for hyp, ref in ((0.23, 0.31), (0.009, 0.95), (2.0, 0.4)):
        cost, mass = rng.uniform(0, 2, 8), rng.dirichlet(np.ones(8))
        plan = freight.solve(Problem(hyp, ref), cost[:, None], mass, np.ones(1), tolerance=1e-12)
        expected, total = one_reference_unit(cost, mass, hyp, ref)
        np.testing.assert_allclose(plan.flow[:, 0], expected, atol=1e-7)
        assert plan.flow.sum() == pytest.approx(total, abs=1e-7)


def test_one_unit_per_side() -> None:
    plan = freight.solve(Problem(0.2, 0.3), np.array([[0.7]]), np.ones(1), np.ones(1))
    moved = math.exp(-0.7 / 0.5)
    assert plan.flow.item() == pytest.approx(moved, abs=1e-6)
    assert plan.transport == pytest.approx(0.7 * moved, abs=1e-6)


@pytest.mark.parametrize(
    ("hyp", "ref"),
    [
        *itertools.product([0.001, 0.23, 1.0, 50.0], [0.009, 0.95, 1e3]),
        (math.inf, 0.3),
        (2, math.inf),
    ],
)
def test_the_gap_is_small_and_true(hyp: float, ref: float) -> None:
    rng = np.random.default_rng(1)
    for n, m in ((1, 1), (2, 7), (30, 20), (60, 80)):
        cost, a, b = clustered(n, m, rng), spread(n, rng), rng.dirichlet(np.ones(m))
        plan = freight.solve(Problem(hyp, ref), cost, a, b)
        assert plan.gap <= 1e-8
        primal = (cost * plan.flow).sum()
        primal += 0 if math.isinf(hyp) else hyp * divergence(plan.flow.sum(axis=1), a)
        primal += 0 if math.isinf(ref) else ref * divergence(plan.flow.sum(axis=0), b)
        assert plan.objective == pytest.approx(primal, abs=1e-12)
        # No other plan does better than the gap allows: try the plans of similar problems.
        for other in (Problem(hyp, ref, 0.01), Problem(hyp * 1.1, ref * 1.1)):
            near = freight.solve(other, cost, a, b).flow
            value = (cost * near).sum()
            value += 0 if math.isinf(hyp) else hyp * divergence(near.sum(axis=1), a)
            value += 0 if math.isinf(ref) else ref * divergence(near.sum(axis=0), b)
            if not (math.isinf(hyp) or math.isinf(ref)):
                assert plan.objective <= value + plan.gap + 1e-12


def test_extreme_costs_and_penalties() -> None:
    rng = np.random.default_rng(2)
    for price in (np.zeros((6, 5)), np.full((6, 5), 2.0), 2.0 * rng.integers(0, 2, (6, 5))):
        for hyp, ref in ((1e-3, 1e-3), (1e6, 1e6), (1e-3, 1e3)):
            plan = freight.solve(Problem(hyp, ref), price, spread(6, rng), spread(5, rng))
            assert plan.converged
            assert plan.gap <= 1e-6


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3)])
def test_the_bordered_system_is_solved(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    n, m = shape
    w = rng.uniform(0.1, 1.0, shape)
    p, q = w.sum(axis=1) + 0.5, w.sum(axis=0) + 0.5
    r, s = rng.normal(size=n), rng.normal(size=m)
    x, y = np.empty(n), np.empty(m)
    kernels._run("solve_bordered", w, n, m, p, q, r, s, x, y)
    np.testing.assert_allclose(p * x + w @ y, r, atol=1e-12)
    np.testing.assert_allclose(w.T @ x + q * y, s, atol=1e-12)


@pytest.mark.parametrize("shape", [(200, 330), (330, 200)])
def test_many_units(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    cost, a, b = clustered(*shape, rng), spread(shape[0], rng), rng.dirichlet(np.ones(shape[1]))
    plan = freight.solve(Problem(1, 0.5), cost, a, b)
    assert plan.gap <= 1e-9 * (1 + plan.objective)
    turned = freight.solve(Problem(0.5, 1), cost.T, b, a)
    assert turned.objective == pytest.approx(plan.objective, abs=3e-9)
