"""Entropic plans: POT's, an independent dual, hard marginals met, and tiny epsilons."""

import itertools
import math
import warnings
from collections.abc import Callable

import numpy as np
import ot
import pytest

import freight
from freight import Problem
from problems import Floats, clustered, dual_value, random_batch, spread

PENALTIES = [(0.23, 0.31), (0.009, 0.95), (0.018, 0.97), (1.0, 1.0), (5.0, 5.0), (50.0, 50.0)]
COSTS: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "clustered": clustered,
    "equal": lambda n, m, rng: np.full((n, m), rng.uniform(0, 2)),
    "zero": lambda n, m, rng: np.zeros((n, m)),
    "to two": lambda n, m, rng: rng.uniform(0, 2, (n, m)),
    "ends": lambda n, m, rng: 2.0 * rng.integers(0, 2, (n, m)).astype(float),
}


@pytest.mark.parity
@pytest.mark.parametrize("penalties", [(0.23, 0.31), (0.009, 0.95), (0.018, 0.97)])
def test_the_plan_is_that_of_pot(penalties: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    for n, m in ((3, 4), (12, 9), (25, 31)):
        cost, hyp, ref = clustered(n, m, rng), rng.dirichlet(np.ones(n)), spread(m, rng)
        plan = freight.solve(Problem(*penalties, 0.009), cost, hyp, ref)
        expected = _pot(cost, hyp, ref, penalties, 0.009)
        assert plan.transport == pytest.approx((expected * cost).sum(), abs=1e-7)
        np.testing.assert_allclose(plan.flow, expected, rtol=0, atol=1e-7)


def _pot(
    cost: Floats, hyp: Floats, ref: Floats, penalties: tuple[float, float], epsilon: float
) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result: Floats = ot.unbalanced.sinkhorn_unbalanced(
            hyp,
            ref,
            cost,
            epsilon,
            penalties,
            method="sinkhorn",
            reg_type="entropy",
            numItermax=200_000,
            stopThr=1e-13,
        )
    return result


@pytest.mark.parametrize("epsilon", [0.002, 0.009, 0.1])
@pytest.mark.parametrize("penalties", PENALTIES)
def test_nothing_fails_under_stress(penalties: tuple[float, float], epsilon: float) -> None:
    """A slice of the benchmark's stress run: every problem converges and its gap is small."""
    rng = np.random.default_rng(7)
    problem = Problem(*penalties, epsilon)
    for make_cost, lengths in itertools.product(COSTS.values(), [(1, 1), (1, 9), (8, 5), (30, 24)]):
        n, m = lengths
        cost = np.stack([make_cost(n, m, rng) for _ in range(6)])
        hyp = np.stack([spread(n, rng) for _ in range(6)])
        ref = np.stack([rng.dirichlet(np.ones(m)) for _ in range(6)])
        plans = freight.solve(problem, cost, hyp, ref)
        assert plans.converged.all()
        assert (plans.gap <= 1e-9 * (1 + np.abs(plans.regularised))).all()
        assert np.isfinite(plans.flow).all()


EVERY_PAIR = list(itertools.product([0.0, 0.23, 2.0, math.inf], [0.0, 0.31, 2.0, math.inf]))[1:]


@pytest.mark.parametrize(("hyp", "ref"), EVERY_PAIR)
def test_the_value_meets_an_independent_dual(hyp: float, ref: float) -> None:
    cost, hyp_weights, ref_weights = (x[0] for x in random_batch(1, 5, 6, seed=3))
    plan = freight.solve(Problem(hyp, ref, 0.05), cost, hyp_weights, ref_weights)
    bound = dual_value(cost, hyp_weights, ref_weights, hyp, ref, 0.05)
    assert plan.regularised == pytest.approx(bound, abs=2e-9)


def test_hard_marginals_are_met() -> None:
    cost, hyp, ref = random_batch(5, 20, 30, seed=4)
    both = freight.solve(Problem(epsilon=0.009), cost, hyp, ref)
    np.testing.assert_allclose(both.flow.sum(axis=2), hyp, rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.flow.sum(axis=1), ref, rtol=0, atol=1e-12)
    one = freight.solve(Problem(ref=0.3, epsilon=0.009), cost, hyp, ref)
    np.testing.assert_allclose(one.flow.sum(axis=2), hyp, rtol=0, atol=1e-12)


def test_a_far_smaller_epsilon_does_not_underflow() -> None:
    cost, hyp, ref = random_batch(4, 12, 15, seed=5)
    for epsilon in (1e-3, 1e-4):
        plans = freight.solve(Problem(1.0, 1.0, epsilon), cost, hyp, ref)
        exact = freight.solve(Problem(1.0, 1.0), cost, hyp, ref)
        np.testing.assert_allclose(plans.objective, exact.objective, atol=20 * epsilon)


def test_many_units_between_hard_marginals() -> None:
    rng = np.random.default_rng(7)
    n, m = 260, 300
    cost, hyp, ref = clustered(n, m, rng), spread(n, rng), rng.dirichlet(np.ones(m))
    plan = freight.solve(Problem(epsilon=0.002), cost, hyp, ref, max_iterations=300)
    assert plan.converged
    np.testing.assert_allclose(plan.flow.sum(axis=1), hyp, rtol=1e-9)
    np.testing.assert_allclose(plan.flow.sum(axis=0), ref, rtol=1e-9)
    exact = freight.solve(Problem(), cost, hyp, ref).transport
    assert exact <= plan.transport <= exact + 0.002 * math.log(n * m)
