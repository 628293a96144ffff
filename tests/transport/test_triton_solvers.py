"""The kernels of a GPU give the plans and totals of the CPU, and each problem its own bits."""

import math

import numpy as np
import pytest
import torch

import freight
from freight import Problem
from freight.transport import sinkhorn_torch
from freight.transport.devices import DevicePlans
from freight.transport.solvers import solve_on_device, solves_on_device
from freight.transport.types import Array
from problems import Floats, random_batch

pytestmark = pytest.mark.gpu

PROBLEMS = [
    Problem(0.23, 0.31, 0.009),
    Problem(1.0, 1.0, 0.005),
    Problem(hyp=0.2, ref=0, epsilon=0.02),
    Problem(ref=0),
    Problem(hyp=0),
    Problem(hyp=0.4, ref=0),
]
HARD = [Problem(epsilon=0.05), Problem(ref=0.3, epsilon=0.02), Problem(hyp=0, epsilon=0.02)]
SHAPES = [(1, 1), (7, 33), (64, 50), (65, 20), (20, 130), (200, 300), (500, 512)]


def ragged(n: int, m: int, pairs: int = 5) -> tuple[list[Floats], list[Array]]:
    """Problems of several sizes with nan in the padding and a unit without mass; their sizes."""
    cost, hyp, ref = random_batch(pairs, n, m)
    rng = np.random.default_rng(n * m)
    sizes = [rng.integers(1, width + 1, pairs) for width in (n, m)]
    sizes[0][0], sizes[1][0] = n, m
    hyp[0, : n // 2 : 3] = 0.0
    for k, (rows, columns) in enumerate(zip(*sizes, strict=True)):
        cost[k, rows:], cost[k, :, columns:] = math.nan, math.nan
        hyp[k, rows:], ref[k, columns:] = 0.0, 0.0
    masses = [mass / mass.sum(axis=1, keepdims=True) for mass in (hyp, ref)]
    return [cost, *masses], sizes


def on_gpu(data: list[Floats]) -> list[torch.Tensor]:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    return [torch.tensor(x, device="cuda") for x in data]


def read_on_device(problem: Problem, data: list[Floats], sizes: list[Array]) -> list[DevicePlans]:
    """The plans as the pipeline reads them, from costs in double or single precision."""
    cost, *masses = data
    return solve_on_device(
        [problem], on_gpu([cost])[0], (masses[0], masses[1]), (sizes[0], sizes[1])
    )


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_a_gpu_solves_as_the_cpu_does(problem: Problem, n: int, m: int) -> None:
    data, sizes = ragged(n, m)
    tensors = on_gpu(data)
    assert solves_on_device(problem, tensors[0])
    there = freight.solve(problem, *tensors, *sizes)
    here = freight.solve(problem, *data, *sizes)
    np.testing.assert_allclose(there.flow.cpu(), here.flow, atol=1e-8)
    (read,) = read_on_device(problem, data, sizes)
    assert read.converged.all()
    for name in ("transport", "objective", "regularised"):
        np.testing.assert_allclose(getattr(read, name), getattr(here, name), atol=1e-8)
    np.testing.assert_array_equal(read.flow, there.flow.cpu())


@pytest.mark.parametrize("problem", HARD, ids=str)
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_a_gpu_sweeps_to_hard_marginals_as_the_cpu_does(
    problem: Problem, n: int, m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, sizes = ragged(n, m, pairs=8)
    tensors = on_gpu(data)
    monkeypatch.setattr(sinkhorn_torch, "_sweep_until", None)  # the kernel alone
    there = freight.solve(problem, *tensors, *sizes)
    here = freight.solve(problem, *data, *sizes)
    assert there.converged.all()
    np.testing.assert_allclose(there.flow.cpu(), here.flow, atol=1e-8)
    single = [x.float() for x in tensors]
    np.testing.assert_allclose(
        freight.solve(problem, *single, *sizes, tolerance=1e-6).flow.cpu(), here.flow, atol=1e-4
    )


@pytest.mark.parametrize("problem", [PROBLEMS[1], PROBLEMS[3]], ids=str)
@pytest.mark.parametrize(("n", "m"), [(33, 17), (150, 130)])
def test_the_bits_of_a_problem_are_its_own(problem: Problem, n: int, m: int) -> None:
    data, sizes = ragged(n, m, pairs=9)
    tensors = on_gpu(data)
    together = freight.solve(problem, *tensors, *sizes)
    (read,) = read_on_device(problem, data, sizes)
    for k in range(9):
        one = [x[k : k + 1] for x in tensors]
        alone = freight.solve(problem, *one, *(size[k : k + 1] for size in sizes))
        assert torch.equal(alone.flow[0], together.flow[k])
        (few,) = read_on_device(
            problem, [x[k : k + 1] for x in data], [size[k : k + 1] for size in sizes]
        )
        assert few.objective[0] == read.objective[k]


@pytest.mark.parametrize("problem", [PROBLEMS[1], PROBLEMS[3]], ids=str)
@pytest.mark.parametrize("width", [20, 70])
def test_what_cannot_be_solved_there_leaves_its_neighbours_alone(
    problem: Problem, width: int
) -> None:
    data, sizes = ragged(width, width)
    sound = read_on_device(problem, data, sizes)[0]
    data[0][2, 0, 0] = math.nan
    (read,) = read_on_device(problem, data, sizes)
    assert read.converged.tolist() == [True, True, False, True, True]
    rest = [0, 1, 3, 4]
    assert (read.objective[rest] == sound.objective[rest]).all()


def test_costs_of_single_precision_are_solved_as_they_are() -> None:
    data, sizes = ragged(70, 30)
    data[0] = data[0].astype(np.float32)
    wide = [data[0].astype(np.float64), *data[1:]]
    narrow, precise = (read_on_device(PROBLEMS[0], one, sizes)[0] for one in (data, wide))
    assert (narrow.objective == precise.objective).all()
    assert narrow.cost.dtype == np.float64
    np.testing.assert_array_equal(narrow.flow, precise.flow)


def test_what_does_not_converge_there_is_solved_here() -> None:
    data, sizes = ragged(30, 30)
    expected = freight.solve(PROBLEMS[1], *data, *sizes)
    masses = data[1], data[2]
    (read,) = solve_on_device(
        [PROBLEMS[1]], on_gpu(data[:1])[0], masses, (sizes[0], sizes[1]), max_iterations=8
    )
    assert read.converged.all()
    np.testing.assert_allclose(read.objective, expected.objective, atol=1e-8)
    np.testing.assert_allclose(read.flow, expected.flow, atol=1e-8)


def test_invalid_data_are_named() -> None:
    cost, hyp, ref = on_gpu(list(random_batch(3, 80, 70)))
    cost[1, 4, 5] = math.nan
    for problem in (PROBLEMS[1], PROBLEMS[3]):
        with pytest.raises(freight.InvalidInput, match=r"cost\[1, 4, 5\] is nan"):
            freight.solve(problem, cost, hyp, ref)


def test_a_problem_that_is_too_wide_is_solved_elsewhere() -> None:
    cost, hyp, ref = on_gpu(list(random_batch(1, 3, 1100)))
    assert not solves_on_device(Problem(ref=0), cost)
    assert freight.solve(Problem(ref=0), cost, hyp, ref).converged.all()
