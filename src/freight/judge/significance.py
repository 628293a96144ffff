"""Tests of metrics: bootstrap confidence intervals, Williams' test, paired permutation tests.

Tests of systems are in `freight.judge.systems`. All p-values here are one-sided. The null
hypothesis is that both metrics agree equally well with human scores, the alternative that the first
metric (the row of a matrix) agrees better than the second (the column). The p-value is the
probability, under the null hypothesis, of a difference at least as large as the observed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from freight import moved
from freight.errors import InvalidInput
from freight.judge.correlation import Correlation, correlation_matrix
from freight.judge.levels import Draws, LevelSample, Statistic, estimate
from freight.judge.pairwise import SoftAccuracy
from freight.transport.types import Array

BLOCK = 4_000_000
"""Numbers kept in memory at once while resampling; results do not depend on it."""


class Interval(NamedTuple):
    """A value with its bootstrap mean and percentile confidence interval, low to high.

    `undefined` resamples, in which the statistic has no value, are counted and left out.
    """

    value: float
    mean: float
    low: float
    high: float
    undefined: int


class Difference(NamedTuple):
    """The first metric's statistic minus the second's, with a one-sided p-value."""

    value: float
    p: float


def williams_test(r12: Array | float, r13: Array | float, r23: Array | float, n: int) -> Array:
    """One-sided p-values of Williams' test that two correlations with a shared variable are equal.

    Variable 1 is the human score, 2 and 3 are metrics, r are Pearson correlations over n rows. The
    null hypothesis is that the population correlations 12 and 13 are equal, the alternative that
    12 is greater; the statistic has Student's t distribution with n - 3 degrees of freedom.
    """
    if n < 4:
        raise InvalidInput(f"Williams' test needs at least 4 rows, and there are {n}")
    r12, r13, r23 = np.asarray(r12), np.asarray(r13), np.asarray(r23)
    k = np.maximum(1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23, 0.0)
    spread = 2 * k * (n - 1) / (n - 3) + ((r12 + r13) ** 2 / 4) * (1 - r23) ** 3
    difference = r12 - r13
    scale = np.sqrt((n - 1) * (1 + r23))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Of the same scores on another scale only rounding is different.
        t = np.where(np.abs(difference) < 1e-12, 0.0, difference * scale / np.sqrt(spread))
    return np.asarray(stats.t.sf(t, n - 3))


def williams_p_values(metrics: Array, human: Array) -> Array:
    """Williams' test of every pair of metrics (metric, row), one-sided: the row above the column.

    The diagonal is nan.
    """
    statistic = Correlation.of("segment", "pearson", human)
    scores = np.concatenate([statistic.sample.scores(metric) for metric in np.asarray(metrics)])
    r = correlation_matrix(np.vstack((statistic.rated.human, scores)))
    p_values = williams_test(r[1:, :1], r[:1, 1:], r[1:, 1:], scores.shape[1])
    np.fill_diagonal(p_values, np.nan)
    return p_values


def bootstrap_interval(
    statistic: Statistic,
    metric: Array,
    over: str = "inputs",
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """A percentile bootstrap confidence interval.

    Every resample draws inputs, systems or both (`over`) with replacement, as many as there are.
    """
    values = bootstrap_values(statistic, metric, over, resamples, seed)
    return percentile_interval(estimate(statistic, metric), values, confidence)


def bootstrap_values(
    statistic: Statistic, metric: Array, over: str = "inputs", resamples: int = 1000, seed: int = 0
) -> Array:
    """The statistic in each resample; one seed gives every metric the same resamples."""
    scores = statistic.sample.scores(metric)
    draws = draw_blocks(statistic.sample, over, resamples, seed)
    return np.concatenate([statistic(scores, block) for block in draws])


def percentile_interval(value: float, resampled: Array, confidence: float = 0.95) -> Interval:
    """The estimate from the original sample with the central quantiles of its resampled values."""
    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence={confidence}; give a number between 0 and 1")
    defined = resampled[~np.isnan(resampled)]
    undefined = len(resampled) - len(defined)
    if not len(defined):
        return Interval(value, np.nan, np.nan, np.nan, undefined)
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(value, float(defined.mean()), float(low), float(high), undefined)


def permutation_test(
    statistic: Statistic,
    first: Array,
    second: Array,
    over: str = "inputs",
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """A paired permutation test (approximate randomization), one-sided: is the first better?

    Under the null hypothesis the standardised scores of the two metrics are exchangeable. Every
    permutation swaps them at random for whole inputs, for whole systems, or for each row by itself
    ("both"); the p-value is (1 + permutations with a difference at least as large) / (1 + all).
    """
    p = permutation_p_values(statistic, np.stack((first, second)), over, resamples, seed)[0, 1]
    return Difference(estimate(statistic, first) - estimate(statistic, second), float(p))


def permutation_p_values(
    statistic: Statistic,
    metrics: Array,
    over: str = "inputs",
    resamples: int = 1000,
    seed: int = 0,
) -> Array:
    """`permutation_test` of every pair of metrics (metric, row): the row above the column.

    The diagonal is nan.
    """
    scores = [_standardise(statistic.sample.scores(metric)) for metric in np.asarray(metrics)]

    def differences(i: int, j: int) -> Array:
        swaps = swap_blocks(statistic.sample, over, resamples, seed)
        return np.concatenate(
            [_permuted_differences(statistic, scores[i], scores[j], some) for some in swaps]
        )

    return _permutation_p_values(statistic, scores, differences)


def soft_accuracy_p_values(
    statistic: SoftAccuracy, metrics: Array, resamples: int = 1000, seed: int = 0
) -> Array:
    """`permutation_p_values` over systems for soft pairwise accuracy, all permutations at once."""
    scores = [_standardise(statistic.sample.scores(metric)) for metric in np.asarray(metrics)]
    first_rows = np.unique(statistic.sample.systems, return_index=True)[1]

    def differences(i: int, j: int) -> Array:
        swaps = swap_blocks(statistic.sample, "systems", resamples, seed)
        by_system = np.concatenate([some[:, first_rows] for some in swaps])
        one, other = statistic.swapped(scores[i][0], scores[j][0], by_system)
        return one - other

    return _permutation_p_values(statistic, scores, differences)


def _permutation_p_values(
    statistic: Statistic, scores: Sequence[Array], differences: Callable[[int, int], Array]
) -> Array:
    """One-sided p-values from the `differences` of each two metrics under the null hypothesis."""
    p_values = np.full((len(scores), len(scores)), np.nan)
    observed = [statistic(side, statistic.sample.once)[0] for side in scores]
    for i, j in zip(*np.triu_indices(len(scores), 1), strict=True):
        null = differences(int(i), int(j))
        for a, b, sign in ((i, j, 1.0), (j, i, -1.0)):
            excess = sign * null - (observed[a] - observed[b])
            # The original data count as one permutation; an undefined difference counts as larger.
            p = (1 + (~(excess < -1e-12)).sum()) / (1 + len(null))
            p_values[a, b] = np.nan if np.isnan(observed[a] - observed[b]) else p
    return p_values


def draw_blocks(sample: LevelSample, over: str, resamples: int, seed: int) -> Iterator[Draws]:
    """Bootstrap samples in blocks: how often each input and system was drawn.

    What `over` does not resample has the count 1.
    """
    _check(sample, over, resamples)
    # One random stream for inputs and one for systems, so that results do not depend on BLOCK.
    streams = np.random.default_rng(seed).spawn(2)
    chosen = over != "systems", over != "inputs"
    for count in _blocks(len(sample.rows), resamples):
        segments, systems = (
            _counts(rng, once.size, count) if drawn else once
            for rng, once, drawn in zip(streams, sample.once, chosen, strict=True)
        )
        yield Draws(segments, systems)


def swap_blocks(sample: LevelSample, over: str, resamples: int, seed: int) -> Iterator[Array]:
    """Permutations in blocks (permutation, row): whether the two sides are swapped in this row."""
    _check(sample, over, resamples)
    rows = np.arange(len(sample.rows))
    unit = {"inputs": sample.segments, "systems": sample.systems, "both": rows}[over]
    rng = np.random.default_rng(seed)
    for count in _blocks(len(rows), resamples):
        yield (rng.random((count, int(unit.max()) + 1)) < 0.5).take(unit, axis=1)


def _permuted_differences(statistic: Statistic, first: Array, second: Array, swaps: Array) -> Array:
    once = statistic.sample.once
    one, other = np.where(swaps, second, first), np.where(swaps, first, second)
    return statistic(one, once) - statistic(other, once)


def _standardise(scores: Array) -> Array:
    spread = scores.std()
    # Rounded, so that the same scores on another scale have the same ties.
    return np.round((scores - scores.mean()) / (spread if spread > 0 else 1.0), 9)


def _blocks(rows: int, resamples: int) -> Iterator[int]:
    block = max(1, BLOCK // rows)
    for start in range(0, resamples, block):
        yield min(block, resamples - start)


def _counts(rng: np.random.Generator, size: int, resamples: int) -> Array:
    drawn = rng.integers(size, size=(resamples, size)) + size * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * resamples).reshape(-1, size).astype(float)


def _check(sample: LevelSample, over: str, resamples: int) -> None:
    if over not in ("inputs", "systems", "both"):
        raise InvalidInput(f"over={over!r}; there is inputs, systems, both")
    if resamples < 1:
        raise InvalidInput(f"resamples={resamples}; give a number from 1 up")
    segments, systems = (side.size for side in sample.once)
    if (over == "systems" and systems < 2) or (over == "inputs" and segments < 2):
        raise InvalidInput(f"over={over!r} needs at least two {over}; there is one")


__getattr__ = moved.old_names(__name__)
