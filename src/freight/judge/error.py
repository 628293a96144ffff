"""Mean squared and mean absolute error of a metric that predicts the human score.

Both sides are on a scale from 0 to 1. All tests here are two-sided, of the null hypothesis that
two metrics have the same mean error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from freight import moved
from freight.errors import InvalidInput
from freight.judge.levels import LevelSample, Mean
from freight.judge.significance import Interval, bootstrap_interval, bootstrap_values
from freight.transport.types import Array

POWERS = {"mse": 2, "mae": 1}


class ErrorTest(NamedTuple):
    """The first mean error minus the second, with t statistic and two-sided p-value of a t-test."""

    difference: float
    t: float
    p: float


class PairedErrorTest(NamedTuple):
    """The same from a paired t-test, with the two-sided p-value of a permutation test."""

    difference: float
    t: float
    p: float
    permutation_p: float


def rescale(human: Array, low: float | None = None, high: float | None = None) -> Array:
    """Map human scores linearly from [low, high], by default their own range, to [0, 1]."""
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


ERRORS = {"mse": mse, "mae": mae}


def bootstrap_errors(
    metric: Array,
    human: Array,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Interval]:
    """MSE and MAE with percentile bootstrap confidence intervals; rows are resampled."""
    intervals = {}
    for kind in POWERS:
        errors = _errors(metric, human, kind)
        mean = Mean.of(len(errors))
        intervals[kind] = bootstrap_interval(mean, errors, "inputs", resamples, confidence, seed)
    return intervals


def bootstrap_t_test(
    first: Array,
    second: Array,
    human: Array,
    error: str = "mse",
    resamples: int = 100,
    seed: int = 0,
) -> ErrorTest:
    """The WRDScore paper's t-test between two sets of bootstrap means, to reproduce its figures.

    It is not a valid test: it treats resamples as independent observations, so that its p-value
    shrinks with the number of resamples for the same data. Use `paired_test`.
    """
    sides = [_errors(metric, human, error) for metric in (first, second)]
    means = [
        bootstrap_values(Mean.of(len(rows)), rows, resamples=resamples, seed=int(own))
        for rows, own in zip(sides, np.random.SeedSequence(seed).generate_state(2), strict=True)
    ]
    t, p = stats.ttest_ind(*means)
    return ErrorTest(float(sides[0].mean() - sides[1].mean()), float(t), float(p))


def paired_test(
    first: Array,
    second: Array,
    human: Array,
    error: str = "mse",
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedErrorTest:
    """A paired t-test and a paired permutation test of the row-wise differences of the errors.

    Under the null hypothesis of the second the sign of each difference is random; its p-value is
    the share of sign flips with an absolute mean at least as large, the original one included.
    """
    differences = _errors(first, human, error) - _errors(second, human, error)
    mean = float(differences.mean())
    if not differences.any():
        return PairedErrorTest(0.0, 0.0, 1.0, 1.0)
    t, p = stats.ttest_1samp(differences, 0.0)
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (resamples, len(differences)))
    null = np.abs(signs @ differences / len(differences))
    extreme = (null >= abs(mean) - 1e-12 * np.abs(differences).mean()).sum()
    return PairedErrorTest(mean, float(t), float(p), float((1 + extreme) / (1 + resamples)))


def _errors(metric: Array, human: Array, kind: str) -> Array:
    if kind not in POWERS:
        raise InvalidInput(f"error={kind!r}; there is {', '.join(POWERS)}")
    human = np.asarray(human, np.float64)
    sample = LevelSample.of(np.flatnonzero(~np.isnan(human)), len(human), None, None)
    return np.abs(sample.scores(metric)[0] - human[sample.rows]) ** POWERS[kind]


__getattr__ = moved.old_names(__name__)
