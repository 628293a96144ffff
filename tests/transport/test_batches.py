"""Arguments are converted, refused with a message that names the cure, and copied to a device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import freight
from freight import InvalidInput, NotConverged, Problem, solve
from freight.transport.types import (
    Array,
    fetch_array,
    like,
    send_to_device,
    to_array,
    to_numbers,
)
from problems import Floats, random_batch

COST, HYP, REF = random_batch(3, 4, 5)


def spoil(array: Floats, index: Any, value: float) -> Floats:
    """A copy with one entry (or slice) replaced."""
    copy = array.copy()
    copy[index] = value
    return copy


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "nan cost": (
        lambda: solve(Problem(), spoil(COST, (1, 2, 3), np.nan), HYP, REF),
        r"cost\[1, 2, 3\] is nan",
    ),
    "inf cost": (
        lambda: solve(Problem(ref=0), spoil(COST, (0, 0, 4), np.inf), HYP, REF),
        r"cost\[0, 0, 4\] is inf",
    ),
    "one problem": (
        lambda: solve(Problem(), spoil(COST[0], (2, 3), np.nan), HYP[0], REF[0]),
        r"cost\[2, 3\] is nan",
    ),
    "negative mass": (
        lambda: solve(Problem(), COST, spoil(HYP, (2, 1), -0.1), REF),
        r"hyp_weights\[2, 1\] is -0.1",
    ),
    "nan mass": (
        lambda: solve(Problem(1, 1), COST, HYP, spoil(REF, (0, 3), np.nan)),
        r"ref_weights\[0, 3\] is nan",
    ),
    "no mass": (
        lambda: solve(Problem(1, 1), COST, HYP, spoil(REF, 1, 0)),
        "ref_weights of problem 1 are all 0",
    ),
    "unequal": (
        lambda: solve(Problem(), COST, HYP, REF * 1.5),
        "marginals of problem 0 are hard, but hyp_weights sum to 1 and ref_weights to 1.5; normal",
    ),
    "shapes": (lambda: solve(Problem(), COST, REF, HYP), r"hyp_weights has shape \(3, 5\)"),
    "dimensions": (lambda: solve(Problem(), COST[0, 0], HYP, REF), r"cost has shape \(5,\)"),
    "empty": (lambda: solve(Problem(), COST[:0], HYP[:0], REF[:0]), "neither of them empty"),
    "text": (
        lambda: solve(Problem(), np.array([["a"]]), np.ones(1), np.ones(1)),
        "numbers are wanted",
    ),
    "size": (lambda: solve(Problem(), COST, HYP, REF, np.array([1, 0, 4])), r"hyp_sizes\[1\] is 0"),
    "sizes": (
        lambda: solve(Problem(), COST, HYP, REF, None, np.array([1, 2])),
        "ref_sizes must be whole",
    ),
    "both free": (lambda: Problem(0, 0), "give at least one side a penalty above 0"),
    "negative penalty": (lambda: Problem(hyp=-1), "hyp=-1 is not a number from 0 up"),
    "nan epsilon": (lambda: Problem(epsilon=float("nan")), "epsilon=nan"),
    "text penalty": (lambda: Problem(ref="lots"), "ref='lots'"),  # type: ignore[arg-type]
    "infinite epsilon": (lambda: Problem(epsilon=float("inf")), "finite"),
    "no problem": (lambda: solve("emd", COST, HYP, REF), "Problem"),  # type: ignore[arg-type]
    "tolerance": (lambda: solve(Problem(), COST, HYP, REF, tolerance=0), "tolerance"),
    "points": (lambda: freight.barycenter(COST[0]), r"points has shape \(4, 5\)"),
    "nan point": (lambda: freight.barycenter(COST * np.nan), "finite"),
    "point mass": (lambda: freight.barycenter(COST, -HYP[0]), "weights"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_message_names_the_culprit(case: str) -> None:
    attempt, message = CASES[case]
    with pytest.raises(InvalidInput, match=message) as caught:
        attempt()
    assert isinstance(caught.value, freight.FreightError)


@pytest.mark.parametrize("case", ["nan", "mass", "unequal"])
def test_tensors_are_checked_as_arrays_are(case: str) -> None:
    cost = torch.tensor(
        spoil(COST, (1, 2, 3), np.nan) if case == "nan" else COST, requires_grad=True
    )
    hyp = torch.tensor(-HYP if case == "mass" else HYP)
    ref = torch.tensor(REF * 2 if case == "unequal" else REF)
    with pytest.raises(InvalidInput):
        solve(Problem(epsilon=0.01), cost, hyp, ref)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no option 'iterations'; there is tolerance"):
        solve(Problem(), COST, HYP, REF, iterations=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no option 'start'"):
        freight.barycenter(COST, start=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("problem", [Problem(epsilon=0.002), Problem(0.2, 0.3)], ids=str)
def test_no_convergence_is_raised_or_marked(problem: Problem) -> None:
    with pytest.raises(NotConverged, match=r"3 of 3 problems.*strict=False"):
        solve(problem, COST, HYP, REF, max_iterations=2)
    plans = solve(problem, COST, HYP, REF, max_iterations=2, strict=False)
    assert not plans.converged.any()
    assert (plans.gap > 1e-6).all()


def test_arrays_are_converted_like_the_cost() -> None:
    assert to_numbers([1, 2], np.zeros(1, np.float32)).dtype == np.float64
    assert to_numbers(np.ones(2, np.float32), np.zeros(1)).dtype == np.float32
    half = to_numbers([1.0], torch.zeros(1, dtype=torch.bfloat16))
    assert half.dtype == torch.float32
    assert like(np.array([1.5]), torch.zeros(1, dtype=torch.float32)).dtype == torch.float32
    assert like(np.array([True]), torch.zeros(1)).dtype == torch.bool
    np.testing.assert_array_equal(to_array(torch.ones(2, requires_grad=True)), [1.0, 1.0])


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_an_array_goes_to_a_device_and_comes_back(device: str, dtype: type) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    array: Array = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = send_to_device(array, torch.device(device))
    assert tensor.device.type == device
    back = fetch_array(tensor)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, array)
