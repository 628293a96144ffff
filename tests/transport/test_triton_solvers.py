"""The kernels of a GPU give the plans and totals of the CPU, and each problem its own bits."""

import math

import numpy as np
import pytest
import torch

import freight
from freight import Problem
from freight.transport.devices import DevicePlans
from freight.transport.solvers import solves_on_device
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


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_a_gpu_solves_as_the_cpu_does(problem: Problem, n: int, m: int) -> None:
    data, sizes = ragged(n, m)
    tensors = on_gpu(data)
    assert solves_on_device(problem, tensors[0])
    there = freight.solve(problem, *tensors, *sizes)
    here = freight.solve(problem, *data, *sizes)
    np.testing.assert_allclose(there.flow.cpu(), here.flow, atol=1e-8)
    read = DevicePlans(there, (data[1], data[2]), np.ones(len(sizes[0]), bool))
    for name in ("transport", "objective", "regularised"):
        np.testing.assert_allclose(getattr(read, name), getattr(here, name), atol=1e-8)
    np.testing.assert_array_equal(read.flow, there.flow.cpu())


@pytest.mark.parametrize("problem", [PROBLEMS[1], PROBLEMS[3]], ids=str)
@pytest.mark.parametrize(("n", "m"), [(33, 17), (150, 130)])
def test_the_bits_of_a_problem_are_its_own(problem: Problem, n: int, m: int) -> None:
    data, sizes = ragged(n, m, pairs=9)
    tensors = on_gpu(data)
    together = freight.solve(problem, *tensors, *sizes)
    known = np.ones(9, bool)
    totals = DevicePlans(together, (data[1], data[2]), known).objective
    for k in range(9):
        one = [x[k : k + 1] for x in tensors]
        alone = freight.solve(problem, *one, *(size[k : k + 1] for size in sizes))
        assert torch.equal(alone.flow[0], together.flow[k])
        masses = data[1][k : k + 1], data[2][k : k + 1]
        assert DevicePlans(alone, masses, known[:1]).objective[0] == totals[k]


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
