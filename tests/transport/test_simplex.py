"""Exact balanced plans: the cost is POT's, on every kind of cost matrix and masses."""

from collections.abc import Callable

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import freight
from freight import Problem, kernels
from problems import Floats, clustered, line_distance, spread


def check(cost: Floats, hyp: Floats, ref: Floats) -> freight.Plans:
    plan = freight.solve(Problem(), cost, hyp, ref)
    expected = ot.emd2(hyp, ref, cost, numItermax=10**7)
    assert plan.transport == pytest.approx(expected, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(plan.flow.sum(axis=1), hyp, rtol=0, atol=1e-12)
    np.testing.assert_allclose(plan.flow.sum(axis=0), ref, rtol=0, atol=1e-12)
    assert (plan.flow >= 0).all()
    assert np.count_nonzero(plan.flow) <= len(hyp) + len(ref) - 1
    assert 0 <= plan.gap <= 1e-9
    return plan


MASSES: dict[str, Callable[[int, np.random.Generator], Floats]] = {
    "uniform": lambda k, rng: np.full(k, 1 / k),
    "dirichlet": lambda k, rng: rng.dirichlet(np.ones(k)),
    "ten orders": spread,
    "with zeros": lambda k, rng: _with_zeros(k, rng),
}
COSTS: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "clustered": clustered,
    "ties": lambda n, m, rng: rng.integers(0, 3, (n, m)).astype(float),
    "equal": lambda n, m, rng: np.full((n, m), 0.7),
    "zero": lambda n, m, rng: np.zeros((n, m)),
    "negative": lambda n, m, rng: rng.normal(size=(n, m)),
    "large": lambda n, m, rng: 1e6 * rng.uniform(size=(n, m)),
}


def _with_zeros(k: int, rng: np.random.Generator) -> Floats:
    mass = rng.dirichlet(np.ones(k)) * (rng.uniform(size=k) < 0.6)
    mass[rng.integers(k)] += 0.1
    result: Floats = mass / mass.sum()
    return result


@pytest.mark.parity
@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 6), (6, 1), (5, 5), (4, 13), (30, 22), (70, 90), (90, 140)]
)
def test_the_cost_is_that_of_pot(mass: str, kind: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(map(ord, mass + kind)) + sum(shape))
    cost = COSTS[kind](*shape, rng)
    check(cost, MASSES[mass](shape[0], rng), MASSES[mass](shape[1], rng))


@pytest.mark.parity
def test_large_problems() -> None:
    rng = np.random.default_rng(1)
    check(clustered(400, 300, rng), spread(400, rng), rng.dirichlet(np.ones(300)))


def test_sorted_points_on_a_line() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 40))
    uniform = np.full(40, 1 / 40)
    for p in (1.0, 2.0):
        plan = freight.solve(Problem(), np.abs(x[:, None] - y) ** p, uniform, uniform)
        assert plan.transport == pytest.approx(line_distance(x, y, p), rel=1e-12)


def test_a_permutation_is_found() -> None:
    rng = np.random.default_rng(3)
    order = rng.permutation(25)
    cost = 1.0 - np.eye(25)[order]
    plan = freight.solve(Problem(), cost, np.full(25, 0.04), np.full(25, 0.04))
    assert plan.transport == 0
    np.testing.assert_allclose(plan.flow, 0.04 * np.eye(25)[order], atol=1e-15)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**31), st.integers(1, 4))
def test_integer_masses_with_many_ties(n: int, m: int, seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, steps + 1, (n, m)).astype(float)
    hyp, ref = (rng.integers(1, 4, k).astype(float) for k in (n, m))
    check(cost, hyp / hyp.sum(), ref / ref.sum())


def test_totals_other_than_one() -> None:
    plan = freight.solve(Problem(), np.ones((2, 2)), np.array([3.0, 4.0]), np.array([6.0, 1.0]))
    assert plan.transport == pytest.approx(7.0)
    np.testing.assert_allclose(plan.flow.sum(axis=0), [6.0, 1.0])


@pytest.mark.parametrize("scale", [1e299, 1e305, 1.7e308])
@pytest.mark.parametrize("unit", ["baseline", "avx2", "avx512"])
def test_costs_at_the_end_of_the_range_are_solved_or_marked(unit: str, scale: float) -> None:
    try:
        used = kernels.use_vectors(unit)
        if used != unit:
            pytest.skip(f"this processor has no {unit}")
        rng = np.random.default_rng(0)
        for n, m in ((3, 5), (9, 13), (17, 1), (40, 30), (20, 140)):
            hyp, ref = rng.dirichlet(np.ones(n), 3), rng.dirichlet(np.ones(m), 3)
            cost = scale * rng.uniform(-1.0, 1.0, (3, n, m))
            plans = freight.solve(Problem(), cost, hyp, ref, strict=False, max_iterations=5)
            solved = freight.solve(Problem(), cost / scale, hyp, ref)
            right = np.isclose(plans.flow, solved.flow, rtol=0, atol=1e-12).all(axis=(1, 2))
            assert (right | ~plans.converged).all()
    finally:
        kernels.use_vectors()
