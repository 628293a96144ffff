"""Tensors in, tensors out; the torch solver agrees with the CPU's; gradients are right."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import freight
from freight import Problem
from problems import random_batch

BLURRED = [
    Problem(0.23, 0.31, 0.009),
    Problem(0.009, 0.95, 0.009),
    Problem(2.0, 2.0, 0.02),
    Problem(ref=0.3, epsilon=0.02),
    Problem(hyp=0.3, epsilon=0.02),
    Problem(epsilon=0.05),
    Problem(hyp=0, epsilon=0.02),
    Problem(hyp=0.2, ref=0, epsilon=0.02),
]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
blurred = pytest.mark.parametrize("problem", BLURRED, ids=str)


def tensors(device: str = "cpu", dtype: torch.dtype = torch.float64, **kwargs: int) -> list[Tensor]:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    return [torch.tensor(x, device=device, dtype=dtype) for x in random_batch(**kwargs)]


@blurred
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_the_two_entropic_solvers_agree(problem: Problem, dtype: torch.dtype, device: str) -> None:
    cost, hyp, ref = tensors(device, dtype, n=20, m=16)
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
    ours = freight.solve(problem, *plain, hyp_sizes, ref_sizes)
    theirs = freight.solve(problem, cost.requires_grad_(), hyp, ref, hyp_sizes, ref_sizes)
    assert theirs.flow.dtype == dtype
    assert theirs.flow.device == cost.device
    assert theirs.converged.all()
    tolerance = 1e-7 if dtype == torch.float64 else 1e-5
    for name in ("flow", "transport", "objective", "regularised"):
        got = getattr(theirs, name).detach().double().cpu().numpy()
        np.testing.assert_allclose(got, getattr(ours, name), atol=tolerance)


@pytest.mark.parametrize(
    "problem", [Problem(), Problem(ref=0), Problem(0.2, 0.3), BLURRED[0]], ids=str
)
def test_tensors_without_gradient_give_the_bits_of_arrays(problem: Problem) -> None:
    data = tensors()
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
    problem = BLURRED[0]
    data = tensors("cuda", pairs=300, n=size, m=max(1, size - 3))
    together = freight.solve(problem, *data)
    ours = freight.solve(problem, *(x.cpu().numpy() for x in data))
    np.testing.assert_allclose(together.flow.cpu(), ours.flow, atol=1e-8)
    if size <= 64:
        alone = [freight.solve(problem, *(x[k : k + 1] for x in data)).flow[0] for k in range(9)]
        assert torch.equal(torch.stack(alone), together.flow[:9])


@blurred
def test_the_gradient_of_regularised_is_the_plan(problem: Problem) -> None:
    cost, hyp, ref = tensors()
    plans = freight.solve(problem, cost.requires_grad_(), hyp, ref)
    (gradient,) = torch.autograd.grad(plans.regularised.sum(), cost)
    torch.testing.assert_close(gradient, plans.flow.detach(), rtol=0, atol=1e-7)


@blurred
@pytest.mark.parametrize("name", ["transport", "objective", "regularised"])
def test_gradients_of_everything_match_finite_differences(problem: Problem, name: str) -> None:
    data = [x.requires_grad_() for x in tensors(pairs=2, n=4, m=3)]

    def value(cost: Tensor, hyp: Tensor, ref: Tensor) -> Tensor:
        # Held sides need equal totals, so let the function normalise.
        hyp, ref = hyp / hyp.sum(-1, keepdim=True), ref / ref.sum(-1, keepdim=True)
        return getattr(freight.solve(problem, cost, hyp, ref, tolerance=1e-13), name)

    assert torch.autograd.gradcheck(value, data, eps=1e-5, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize(
    "problem", [Problem(), Problem(ref=0), Problem(0.2, 0.3), Problem(0.2, 0)], ids=str
)
def test_the_gradient_of_an_exact_objective_is_the_plan(problem: Problem) -> None:
    cost, hyp, ref = tensors()
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
    cost, hyp, ref = tensors()
    with pytest.raises(freight.InvalidInput, match=message):
        attempt(cost.requires_grad_(), hyp, ref)


def test_half_precision_is_widened() -> None:
    cost, hyp, ref = tensors(dtype=torch.bfloat16)
    hyp, ref = (x.float() / x.float().sum(-1, keepdim=True) for x in (hyp, ref))
    plans = freight.solve(Problem(0.23, 0.31, 0.009), cost, hyp, ref)
    assert plans.flow.dtype == torch.float32
    assert plans.converged.all()


def test_barycentres_of_tensors() -> None:
    points = torch.tensor(np.random.default_rng(0).normal(size=(2, 3, 5, 4)), dtype=torch.float32)
    found = freight.barycenter(points)
    assert isinstance(found.points, Tensor)
    assert found.points.dtype == torch.float32
    np.testing.assert_allclose(
        found.points, freight.barycenter(points.numpy()).points, rtol=0, atol=1e-6
    )
