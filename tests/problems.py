"""Problems to test solvers with: random, difficult, and with known answers."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from freight import Problem

Floats = NDArray[np.float64]

ENTROPIC = [
    Problem(0.23, 0.31, 0.009),
    Problem(0.009, 0.95, 0.009),
    Problem(2.0, 2.0, 0.02),
    Problem(ref=0.3, epsilon=0.02),
    Problem(hyp=0.3, epsilon=0.02),
    Problem(epsilon=0.05),
    Problem(hyp=0, epsilon=0.02),
    Problem(hyp=0.2, ref=0, epsilon=0.02),
]
"""One of each kind of entropic problem."""


def random_batch(
    pairs: int = 6, n: int = 7, m: int = 9, seed: int = 0
) -> tuple[Floats, Floats, Floats]:
    """Cosine-like costs in [0, 2] and masses of unequal size."""
    rng = np.random.default_rng(seed)
    cost = rng.uniform(0.0, 2.0, (pairs, n, m))
    return cost, rng.dirichlet(np.ones(n), pairs), rng.dirichlet(np.ones(m), pairs)


def random_tensors(
    device: str = "cpu", dtype: torch.dtype = torch.float64, **kwargs: int
) -> list[torch.Tensor]:
    """The random batch on a device, which skips the test where there is none."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    return [torch.tensor(x, device=device, dtype=dtype) for x in random_batch(**kwargs)]


def clustered(n: int, m: int, rng: np.random.Generator) -> Floats:
    """Cosine distances between words of a few topics, as in real text."""
    centres = rng.normal(size=(max(2, n // 4), 20))
    sides = [centres[rng.integers(len(centres), size=k)] for k in (n, m)]
    sides = [x + 0.5 * rng.normal(size=x.shape) for x in sides]
    hyp, ref = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in sides)
    cost: Floats = np.clip(1.0 - hyp @ ref.T, 0.0, 2.0)
    return cost


def spread(size: int, rng: np.random.Generator) -> Floats:
    """Masses over ten orders of magnitude."""
    mass = 10.0 ** rng.uniform(-10, 0, size)
    result: Floats = mass / mass.sum()
    return result


def one_reference_unit(
    cost: Floats, weights: Floats, hyp: float, ref: float
) -> tuple[Floats, float]:
    """Lazy-EMD's Theorem 2: the exact plan onto a single reference unit of mass 1, and its mass."""
    pull = weights * np.exp(-cost / hyp)
    total = pull.sum() ** (hyp / (hyp + ref))
    return pull * total ** (-ref / hyp), total


def line_distance(x: Floats, y: Floats, p: float = 1.0) -> float:
    """Transport between equally many points of equal mass on a line: sort both."""
    return float((np.abs(np.sort(x) - np.sort(y)) ** p).mean())


def divergence(a: Floats, b: Floats) -> float:
    """KL(a | b) between masses that need not sum to 1."""
    logs = np.zeros_like(a)
    logs[a > 0] = a[a > 0] * np.log(a[a > 0] / b[a > 0])
    return float((logs - a + b).sum())


def dual_value(
    cost: Floats, hyp_weights: Floats, ref_weights: Floats, hyp: float, ref: float, epsilon: float
) -> float:
    """The best dual value that a plain, long run of log-domain scaling finds: a lower bound."""
    f, g = np.zeros(len(hyp_weights)), np.zeros(len(ref_weights))
    hyp_tau = 1.0 if math.isinf(hyp) else hyp / (hyp + epsilon)
    ref_tau = 1.0 if math.isinf(ref) else ref / (ref + epsilon)
    for _ in range(20000):
        f = hyp_tau * epsilon * (np.log(hyp_weights) - _log_sums(g - cost, epsilon, 1))
        g = ref_tau * epsilon * (np.log(ref_weights) - _log_sums((f - cost.T).T, epsilon, 0))
    value = -epsilon * np.exp((f[:, None] + g - cost) / epsilon).sum()
    for potential, weights, penalty in ((f, hyp_weights, hyp), (g, ref_weights, ref)):
        if math.isinf(penalty):
            value += potential @ weights
        elif penalty > 0:
            value -= penalty * (weights @ np.expm1(-potential / penalty))
    return float(value)


def _log_sums(exponent: Floats, epsilon: float, axis: int) -> Floats:
    top = exponent.max(axis=axis, keepdims=True)
    total = np.exp((exponent - top) / epsilon).sum(axis=axis)
    result: Floats = top.squeeze(axis) / epsilon + np.log(total)
    return result
