"""How far a metric is from the human score itself, once both run from 0 to 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from freight.errors import InvalidInput
from freight.judge.levels import LevelSample, Mean
from freight.judge.significance import Interval, bootstrap, resampled
from freight.transport.types import Array

POWERS = {"mse": 2, "mae": 1}


class ErrorComparison(NamedTuple):
    """The first mean error less the second, and a two-sided test of whether it is 0."""

    difference: float
    t: float
    p: float


class PairedComparison(NamedTuple):
    """The same from a paired t-test, with the p of a permutation test beside it."""

    difference: float
    t: float
    p: float
    permutation_p: float


def scaled(human: Array, low: float | None = None, high: float | None = None) -> Array:
    """Human scores from [low, high], by default their own range, to [0, 1]."""
    human = np.asarray(human, np.float64)
    if np.isnan(human).all():
        raise InvalidInput("no row has a human score; there is nothing to scale")
    low = float(np.nanmin(human)) if low is None else low
    high = float(np.nanmax(human)) if high is None else high
    if not low < high:
        raise InvalidInput(f"cannot scale from [{low}, {high}]; give low below high")
    outside = (human < low) | (human > high)
    if outside.any():
        value = human[outside][0]
        raise InvalidInput(f"the human score {value} is not in [{low}, {high}]; widen low and high")
    return (human - low) / (high - low)


def mse(metric: Array, human: Array) -> float:
    """The mean squared error."""
    return float(_errors(metric, human, "mse").mean())


def mae(metric: Array, human: Array) -> float:
    """The mean absolute error."""
    return float(_errors(metric, human, "mae").mean())


def bootstrap_errors(
    metric: Array,
    human: Array,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Interval]:
    """MSE and MAE with their bootstrap means and percentile intervals, rows being drawn."""
    found = {}
    for kind in POWERS:
        errors = _errors(metric, human, kind)
        mean = Mean.of(len(errors))
        found[kind] = bootstrap(mean, errors, "inputs", resamples, confidence, seed)
    return found


def bootstrap_t_test(
    first: Array,
    second: Array,
    human: Array,
    error: str = "mse",
    resamples: int = 100,
    seed: int = 0,
) -> ErrorComparison:
    """WRDScore's test: a t-test between two sets of bootstrap means, kept for comparison.

    It takes resamples for observations: its p-value shrinks as one adds bootstraps, whatever the
    data. `paired_test` is the one to believe.
    """
    sides = [_errors(metric, human, error) for metric in (first, second)]
    means = [
        resampled(Mean.of(len(rows)), rows, resamples=resamples, seed=int(own))
        for rows, own in zip(sides, np.random.SeedSequence(seed).generate_state(2), strict=True)
    ]
    t, p = stats.ttest_ind(*means)
    return ErrorComparison(float(sides[0].mean() - sides[1].mean()), float(t), float(p))


def paired_test(
    first: Array,
    second: Array,
    human: Array,
    error: str = "mse",
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedComparison:
    """A t-test of the errors' differences row by row, and a test that flips their signs."""
    differences = _errors(first, human, error) - _errors(second, human, error)
    mean = float(differences.mean())
    if not differences.any():
        return PairedComparison(0.0, 0.0, 1.0, 1.0)
    t, p = stats.ttest_1samp(differences, 0.0)
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (resamples, len(differences)))
    chance = np.abs(signs @ differences / len(differences))
    as_far = (chance >= abs(mean) - 1e-12 * np.abs(differences).mean()).sum()
    return PairedComparison(mean, float(t), float(p), float((1 + as_far) / (1 + resamples)))


def _errors(metric: Array, human: Array, kind: str) -> Array:
    if kind not in POWERS:
        raise InvalidInput(f"error={kind!r}; there is {', '.join(POWERS)}")
    human = np.asarray(human, np.float64)
    sample = LevelSample.of(np.flatnonzero(~np.isnan(human)), len(human), None, None)
    return np.abs(sample.scores(metric)[0] - human[sample.rows]) ** POWERS[kind]
