"""Tensors in, tensors out, and the same plans as from arrays, on the CPU and on a GPU."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import freight
from freight import Problem
from problems import ENTROPIC, random_tensors

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
every_entropic = pytest.mark.parametrize("problem", ENTROPIC, ids=str)


@every_entropic
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_the_two_entropic_solvers_agree(problem: Problem, dtype: torch.dtype, device: str) -> None:
    cost, hyp, ref = random_tensors(device, dtype, n=20, m=16)
    hyp_sizes, ref_sizes = np.array([20, 3, 7, 20, 1, 12]), np.array([16, 9, 2, 16, 1, 1])
    hyp, ref = (x / x.sum(-1, keepdim=True) for x in (hyp, ref))
    masks = [
        torch.arange(x.shape[1], device=device) < torch.tensor(s, device=device)[:, None]
        for x, s in ((hyp, hyp_sizes), (ref, ref_sizes))
    ]
    hyp, ref = (
        x * mask / (x * mask).sum(-1, keepdim=True)
        for x, mask in zip((hyp, ref), masks, strict=True)
    )
    cost[~(masks[0][:, :, None] & masks[1][:, None])] = math.nan
    plain = [x.double().cpu().numpy() for x in (cost, hyp, ref)]
    for side in (1, 2):
        plain[side] /= plain[side].sum(axis=1, keepdims=True)
    ours = freight.solve(problem, plain[0], plain[1], plain[2], hyp_sizes, ref_sizes)
    theirs = freight.solve(problem, cost.requires_grad_(), hyp, ref, hyp_sizes, ref_sizes)
    assert theirs.flow.dtype == dtype
    assert theirs.flow.device == cost.device
    assert theirs.converged.all()
    tolerance = 1e-7 if dtype == torch.float64 else 1e-5
    for name in ("flow", "transport", "objective", "regularised"):
        got = getattr(theirs, name).detach().double().cpu().numpy()
        np.testing.assert_allclose(got, getattr(ours, name), atol=tolerance)


@pytest.mark.parametrize(
    "problem", [Problem(), Problem(ref=0), Problem(0.2, 0.3), ENTROPIC[0]], ids=str
)
def test_tensors_without_gradient_give_the_bits_of_arrays(problem: Problem) -> None:
    data = random_tensors()
    ours = freight.solve(problem, *(x.numpy() for x in data))
    theirs = freight.solve(problem, *data)
    assert isinstance(theirs.flow, Tensor)
    assert isinstance(theirs.gap, Tensor)
    assert theirs.converged.dtype == torch.bool
    np.testing.assert_array_equal(theirs.flow.numpy(), ours.flow)
    one = freight.solve(problem, *(x[0] for x in data))
    assert one.flow.shape == data[0][0].shape
    assert float(one.transport) == pytest.approx(ours.transport[0], abs=1e-15)


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1, 7, 33, 64, 80])
def test_a_gpu_solves_a_problem_as_the_cpu_does_and_by_itself(size: int) -> None:
    problem = ENTROPIC[0]
    data = random_tensors("cuda", pairs=300, n=size, m=max(1, size - 3))
    together = freight.solve(problem, *data)
    ours = freight.solve(problem, *(x.cpu().numpy() for x in data))
    np.testing.assert_allclose(together.flow.cpu(), ours.flow, atol=1e-8)
    if size <= 64:
        alone = [freight.solve(problem, *(x[k : k + 1] for x in data)).flow[0] for k in range(9)]
        assert torch.equal(torch.stack(alone), together.flow[:9])


def test_half_precision_is_widened() -> None:
    cost, hyp, ref = random_tensors(dtype=torch.bfloat16)
    hyp, ref = (x.float() / x.float().sum(-1, keepdim=True) for x in (hyp, ref))
    plans = freight.solve(Problem(0.23, 0.31, 0.009), cost, hyp, ref)
    assert plans.flow.dtype == torch.float32
    assert plans.converged.all()


def test_barycenters_of_tensors() -> None:
    points = torch.tensor(np.random.default_rng(0).normal(size=(2, 3, 5, 4)), dtype=torch.float32)
    result = freight.barycenter(points)
    assert isinstance(result.points, Tensor)
    assert result.points.dtype == torch.float32
    np.testing.assert_allclose(
        result.points, freight.barycenter(points.numpy()).points, rtol=0, atol=1e-6
    )
