"""Laws that hold for every problem, whichever solver takes it."""

import doctest
import math
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import freight
from freight import Problem
from freight.transport import solvers, types
from problems import Floats, random_batch

INF = math.inf
PROBLEMS = [
    Problem(),
    Problem(ref=0),
    Problem(hyp=0),
    Problem(0.23, 0.31),
    Problem(ref=0.3),
    Problem(hyp=0.3),
    Problem(hyp=0.3, ref=0),
    Problem(0.23, 0.31, 0.009),
    Problem(epsilon=0.02),
    Problem(ref=0.3, epsilon=0.02),
    Problem(hyp=0, ref=0.3, epsilon=0.02),
    Problem(hyp=0, epsilon=0.02),
]
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=str)


def numbers(plans: freight.Plans) -> Floats:
    return np.array([plans.transport, plans.objective, plans.regularised])


def test_earth_movers_distance_is_the_limit_of_large_penalties() -> None:
    cost, hyp, ref = random_batch()
    emd = freight.solve(Problem(INF, INF), cost, hyp, ref)
    stiff = freight.solve(Problem(1e6, 1e6), cost, hyp, ref)
    np.testing.assert_allclose(stiff.objective, emd.transport, atol=2e-6)
    np.testing.assert_allclose(stiff.transport, emd.transport, atol=1e-5)


def test_precision_and_recall_are_the_limits_of_small_penalties() -> None:
    cost, hyp, ref = random_batch(n=5, m=4)
    precision = freight.solve(Problem(INF, 0), cost, hyp, ref)
    recall = freight.solve(Problem(0, INF), cost, hyp, ref)
    np.testing.assert_allclose(precision.transport, (hyp * cost.min(axis=2)).sum(axis=1))
    np.testing.assert_allclose(recall.transport, (ref * cost.min(axis=1)).sum(axis=1))
    nearly = freight.solve(Problem(INF, 1e-5), cost, hyp, ref)
    np.testing.assert_allclose(nearly.transport, precision.transport, atol=1e-3)
    nearly = freight.solve(Problem(1e-5, INF), cost, hyp, ref)
    np.testing.assert_allclose(nearly.transport, recall.transport, atol=1e-3)


@pytest.mark.parametrize("sides", [(INF, INF), (0.23, 0.31), (INF, 0), (0, 0.3), (0.2, INF)])
def test_entropic_tends_to_exact(sides: tuple[float, float]) -> None:
    cost, hyp, ref = random_batch()
    exact = freight.solve(Problem(*sides), cost, hyp, ref).objective
    errors = [
        np.abs(freight.solve(Problem(*sides, epsilon), cost, hyp, ref).objective - exact).max()
        for epsilon in (0.1, 0.01, 0.001)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 4e-3


@every_problem
def test_swapping_the_sides_transposes_the_plan(problem: Problem) -> None:
    cost, hyp, ref = random_batch(seed=1)
    plans = freight.solve(problem, cost, hyp, ref)
    mirrored = replace(problem, hyp=problem.ref, ref=problem.hyp)
    back = freight.solve(mirrored, cost.swapaxes(1, 2).copy(), ref, hyp)
    np.testing.assert_allclose(numbers(back), numbers(plans), atol=1e-8)
    np.testing.assert_allclose(back.flow.swapaxes(1, 2), plans.flow, atol=1e-6)


@every_problem
def test_the_order_of_units_does_not_matter(problem: Problem) -> None:
    cost, hyp, ref = random_batch(seed=2)
    rows, columns = np.random.default_rng(0).permutation(7), np.random.default_rng(1).permutation(9)
    plans = freight.solve(problem, cost, hyp, ref)
    shuffled = freight.solve(
        problem, cost[:, rows][:, :, columns].copy(), hyp[:, rows], ref[:, columns]
    )
    np.testing.assert_allclose(numbers(shuffled), numbers(plans), atol=1e-8)
    np.testing.assert_allclose(shuffled.flow, plans.flow[:, rows][:, :, columns], atol=1e-6)


@every_problem
def test_a_batch_equals_one_by_one_to_the_bit(problem: Problem) -> None:
    cost, hyp, ref = random_batch(seed=3)
    plans = freight.solve(problem, cost, hyp, ref)
    for k in range(len(cost)):
        one = freight.solve(problem, cost[k], hyp[k], ref[k])
        assert one.flow.tobytes() == plans.flow[k].tobytes()
        assert (one.transport, one.objective, one.regularised) == tuple(numbers(plans)[:, k])
        assert isinstance(one.transport, float)
        assert isinstance(one.gap, float)
        assert one.converged is True


@every_problem
def test_padding_is_never_matched_and_changes_no_bit(problem: Problem) -> None:
    rng = np.random.default_rng(4)
    hyp_sizes, ref_sizes = rng.integers(1, 8, 10), rng.integers(1, 10, 10)
    cost = np.full((10, 8, 11), np.nan)
    hyp, ref = np.full((10, 8), -1.0), np.full((10, 11), np.inf)
    for k, (n, m) in enumerate(zip(hyp_sizes, ref_sizes, strict=True)):
        cost[k, :n, :m] = rng.uniform(0, 2, (n, m))
        hyp[k, :n], ref[k, :m] = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    plans = freight.solve(problem, cost, hyp, ref, hyp_sizes, ref_sizes)
    for k, (n, m) in enumerate(zip(hyp_sizes, ref_sizes, strict=True)):
        alone = freight.solve(problem, cost[k, :n, :m], hyp[k, :n], ref[k, :m])
        assert plans.flow[k, :n, :m].tobytes() == alone.flow.tobytes()
        assert not plans.flow[k, n:].any()
        assert not plans.flow[k, :, m:].any()
        assert tuple(numbers(plans)[:, k]) == (alone.transport, alone.objective, alone.regularised)


def test_sparse_plans_are_the_dense_ones() -> None:
    cost, hyp, ref = random_batch(seed=5)
    hyp[1, 2] = ref[1, 4] = 0.0
    masses = hyp / hyp.sum(axis=1, keepdims=True), ref / ref.sum(axis=1, keepdims=True)
    masses[0][3, 5:], masses[1][3, 4:] = -1.0, np.inf
    masses[0][3, :5], masses[1][3, :4] = 1 / 5, 1 / 4
    cost[3, 5:], cost[3, :, 4:] = np.nan, np.nan
    sizes = np.array([7, 7, 7, 5, 7, 7]), np.array([9, 9, 9, 4, 9, 9])
    single = cost.astype(np.float32)
    (sparse,) = solvers.solve_in_arrays([Problem()], single, masses, sizes, sparse=True)
    dense = freight.solve(Problem(), single.astype(np.float64), *masses, *sizes)
    assert isinstance(sparse, types.SparsePlans)
    assert sparse.flow.tobytes() == dense.flow.tobytes()
    assert sparse.gap.tobytes() == dense.gap.tobytes()
    assert sparse.converged.all()
    np.testing.assert_allclose(numbers(sparse), numbers(dense), rtol=1e-14)


def test_a_cost_that_is_no_number_has_no_sparse_plan() -> None:
    cost, hyp, ref = random_batch(seed=6)
    cost[2, 0, 0] = np.nan
    sizes = np.full(6, 7), np.full(6, 9)
    for sparse in (True, False):
        (plans,) = solvers.solve_in_arrays([Problem()], cost, (hyp, ref), sizes, sparse)
        assert plans.converged.tolist() == [True, True, False, True, True, True]


@every_problem
def test_a_unit_without_mass_is_matched_only_where_its_side_is_free(problem: Problem) -> None:
    cost, hyp, ref = (x[0].copy() for x in random_batch(1, 6, 5, seed=5))
    hyp[2] = ref[3] = 0.0
    hyp, ref = hyp / hyp.sum(), ref / ref.sum()
    cost[2], cost[:, 3] = 0.0, 0.0  # the cheapest of all
    flow = freight.solve(problem, cost, hyp, ref).flow
    assert (flow[2].sum() > 0) == (problem.hyp == 0)
    assert (flow[:, 3].sum() > 0) == (problem.ref == 0)


@every_problem
def test_identical_measures_cost_nothing(problem: Problem) -> None:
    rng = np.random.default_rng(6)
    points = rng.normal(size=(8, 3))
    cost = np.linalg.norm(points[:, None] - points, axis=2)
    mass = rng.dirichlet(np.ones(8))
    plan = freight.solve(problem, cost, mass, mass)
    assert plan.transport == pytest.approx(0, abs=1e-8 if problem.epsilon == 0 else 0.03)
    assert problem.epsilon > 0 or plan.objective == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("problem", [x for x in PROBLEMS if not x.epsilon], ids=str)
@pytest.mark.parametrize("scale", [1e-3, 100.0, 1e5])
def test_an_exact_plan_scales_with_the_masses(problem: Problem, scale: float) -> None:
    cost, hyp, ref = random_batch(seed=9)
    plans = freight.solve(problem, cost, hyp, ref, tolerance=1e-12)
    scaled = freight.solve(problem, cost, scale * hyp, scale * ref, tolerance=1e-12)
    np.testing.assert_allclose(scaled.flow, scale * plans.flow, atol=scale * 1e-6)
    np.testing.assert_allclose(scaled.objective, scale * plans.objective, rtol=1e-8)


@pytest.mark.parametrize("totals", [(100.0, 1.0), (1.0, 100.0), (100.0, 50.0), (1e4, 1e4)])
@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_one_hard_marginal_takes_totals_that_differ(
    totals: tuple[float, float], epsilon: float
) -> None:
    cost, hyp, ref = random_batch(seed=10)
    hyp, ref = totals[0] * hyp, totals[1] * ref
    plans = freight.solve(Problem(ref=0.3, epsilon=epsilon), cost, hyp, ref)
    np.testing.assert_allclose(plans.flow.sum(axis=2), hyp, rtol=1e-9)
    assert np.isfinite(numbers(plans)).all()
    mirrored = freight.solve(
        Problem(hyp=0.3, epsilon=epsilon), cost.swapaxes(1, 2).copy(), ref, hyp
    )
    np.testing.assert_allclose(mirrored.objective, plans.objective, rtol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from(PROBLEMS),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e-3, 1.0, 2.0]),
)
def test_any_problem_has_a_plan(n: int, m: int, problem: Problem, seed: int, top: float) -> None:
    cost, hyp, ref = random_batch(2, n, m, seed)
    plans = freight.solve(problem, cost * top / 2, hyp, ref)
    assert plans.converged.all()
    assert np.isfinite(numbers(plans)).all()
    assert (plans.flow >= 0).all()
    if problem.hyp == INF:
        np.testing.assert_allclose(plans.flow.sum(axis=2), hyp, atol=1e-12)
    if problem.ref == INF:
        np.testing.assert_allclose(plans.flow.sum(axis=1), ref, atol=1e-12)


def test_the_objective_is_at_most_the_penalty_of_an_empty_plan() -> None:
    cost, hyp, ref = random_batch(seed=8)
    plans = freight.solve(Problem(0.23, 0.31), cost + 10, hyp, ref)
    np.testing.assert_allclose(plans.objective, 0.54, atol=1e-3)
    assert plans.flow.sum() < 1e-4


def test_the_example_of_the_documentation() -> None:
    cost, hyp, ref = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5, 0.5]), np.array([0.2, 0.8])
    plan = freight.solve(Problem(), cost, hyp, ref)
    np.testing.assert_allclose(plan.flow, [[0.2, 0.3], [0.0, 0.5]], atol=1e-15)
    assert plan.transport == plan.objective == plan.regularised == pytest.approx(0.3)


@pytest.mark.parametrize("module", [types, solvers])
def test_the_docstrings_are_right(module: ModuleType) -> None:
    outcome = doctest.testmod(module, extraglobs={"np": np, "Problem": Problem})
    assert outcome.attempted > 3
    assert outcome.failed == 0
