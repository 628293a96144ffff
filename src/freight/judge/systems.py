"""Systems compared by one metric: scores with confidence intervals, and significance tests.

A system score is a function of tallies, numbers per segment that are summed (for most metrics the
sum of scores and their count, for BLEU the n-gram statistics). A bootstrap sample sums the tallies
of the segments that were drawn; a permutation exchanges the tallies of two systems in random
segments. So both work for every metric, however its system score is computed.

`rank_systems` tests every pair of systems, one-sided; `compare_with_baseline` tests every system
against the first one, two-sided. A p-value counts the resamples with a difference at least as
large as the observed one, ties included: two systems with the same outputs have p = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from freight.core.result import Result
from freight.data.corpus import RowOrigins
from freight.errors import InvalidInput
from freight.judge.levels import LevelSample
from freight.judge.significance import Interval, draw_blocks, percentile_interval, swap_blocks
from freight.transport.types import Array


@dataclass(frozen=True, eq=False)
class SystemRanking:
    """The systems by one column of a metric, with one-sided p-values for every pair.

    `p_values[i, j]` tests the null hypothesis that systems i and j score equally well against the
    alternative that i is better, on the `common[i, j]` inputs that both have; nan where these are
    fewer than two.
    """

    column: str
    higher: bool
    names: tuple[str, ...]
    scores: tuple[Interval, ...]
    p_values: Array
    common: Array

    @property
    def order(self) -> list[int]:
        """The numbers of the systems, the best first; those without a score come last."""
        values = np.array([score.value for score in self.scores])
        order: list[int] = np.argsort(-values if self.higher else values, kind="stable").tolist()
        return order


def rank_systems(
    result: Result, origins: RowOrigins, resamples: int = 1000, seed: int = 0
) -> list[SystemRanking]:
    """One ranking per column, with paired permutation tests (approximate randomization).

    Confidence intervals are percentile bootstrap intervals; both use `resamples` resamples of the
    inputs.
    """
    rows = [origins.rows_of(k) for k in range(len(origins.names))]
    scores = [system_scores(result.only(index), resamples, seed) for index in rows]
    p_values = np.full((len(result.columns), len(rows), len(rows)), np.nan)
    common = np.diag([len(index) for index in rows])
    for i, j in zip(*np.triu_indices(len(rows), 1), strict=True):
        first, second = common_rows(origins, rows[i], rows[j])
        common[i, j] = common[j, i] = len(first)
        if len(first) > 1:
            sides = result.only(first), result.only(second)
            differences = permuted_differences(*sides, resamples, seed)
            p_values[:, i, j] = differences.p_values(np.positive)
            p_values[:, j, i] = differences.p_values(np.negative)
    return [
        SystemRanking(
            column.name,
            column.higher,
            origins.names,
            tuple(by_column[column.name] for by_column in scores),
            p_values[k],
            common,
        )
        for k, column in enumerate(result.columns)
    ]


PAIRED_TESTS = {"bs": "paired bootstrap resampling", "ar": "paired approximate randomization"}
RESAMPLES = {"bs": 1000, "ar": 10_000}
"""The default number of resamples of each test, as in sacrebleu."""


@dataclass(frozen=True, eq=False)
class BaselineComparison:
    """The systems by one column of a metric, each tested against the first one, the baseline.

    `p_values[k]` is two-sided, for the null hypothesis that system k and the baseline score equally
    well; the baseline's own is nan.
    """

    column: str
    names: tuple[str, ...]
    scores: tuple[Interval, ...]
    p_values: Array


def compare_with_baseline(
    result: Result,
    origins: RowOrigins,
    test: str = "bs",
    resamples: int | None = None,
    seed: int = 0,
    samples: int = 1000,
) -> list[BaselineComparison]:
    """One comparison per column of every system with the first, on the inputs that both have.

    `test` is "bs", the paired bootstrap, which draws inputs with replacement, or "ar", approximate
    randomization, which exchanges the outputs of both systems in random segments. The latter is
    a valid test for any number of segments, the former only where many of them differ. Confidence
    intervals come from `samples` bootstrap samples, for "bs" from those of the test.

    sacrebleu counts only differences larger than the observed one, and its bootstrap takes absolute
    differences minus their mean: under the null hypothesis its bootstrap rejects one in nine times
    at the level .05, and its randomization half of the time where two segments differ.
    """
    if test not in PAIRED_TESTS:
        raise InvalidInput(f"test={test!r}; there is {', '.join(PAIRED_TESTS)}")
    count = RESAMPLES[test] if resamples is None else resamples
    rows = [origins.rows_of(k) for k in range(len(origins.names))]
    drawn = count if test == "bs" else samples
    scores = [system_scores(result.only(index), drawn, seed) for index in rows]
    p_values = np.full((len(result.columns), len(rows)), np.nan)
    for k, index in enumerate(rows[1:], 1):
        first, second = common_rows(origins, rows[0], index)
        if len(first) > 1:
            pair = result.only(first), result.only(second)
            p_values[:, k] = _DIFFERENCES[test](*pair, count, seed).p_values(np.abs)
    return [
        BaselineComparison(
            column.name,
            origins.names,
            tuple(by_column[column.name] for by_column in scores),
            p_values[k],
        )
        for k, column in enumerate(result.columns)
    ]


def system_scores(result: Result, resamples: int = 1000, seed: int = 0) -> dict[str, Interval]:
    """By column, the score of all segments together with a percentile bootstrap interval."""
    resampled = resampled_scores(result, resamples, seed)
    whole = result.system
    names = [column.name for column in result.columns]
    return {name: percentile_interval(whole[name], resampled[:, k]) for k, name in enumerate(names)}


def resampled_scores(result: Result, resamples: int, seed: int) -> Array:
    """System scores (resample, column); one seed draws the same segments for every system."""
    if len(result) < 2:
        return np.full((1, len(result.columns)), np.nan)
    blocks = draw_blocks(_inputs(result), "inputs", resamples, seed)
    tallies = result.row_tallies
    sums = (_weighted_sums(block.segments, tallies) for block in blocks)
    return np.concatenate([_scores(result, some) for some in sums])


class PairedDifferences(NamedTuple):
    """By how much one system is better by each column: observed, and under the null hypothesis.

    Differences within `tie` of each other, which is far below any that is meant, are equal.
    """

    observed: Array  # (column,)
    null: Array  # (resample, column)
    tie: Array  # (column,)

    def p_values(self, sides: Callable[[Array], Array]) -> Array:
        """(1 + resamples at least as extreme as the observed difference) / (1 + all).

        The original data count as one resample; an undefined difference counts as larger. `sides`
        makes of a difference what is compared: itself, its negative, or its absolute value.
        """
        extreme = ~(sides(self.null) < sides(self.observed) - self.tie)
        p = (1 + extreme.sum(axis=0)) / (1 + len(self.null))
        return np.where(np.isnan(self.observed), np.nan, p)


def permuted_differences(
    one: Result, other: Result, resamples: int, seed: int
) -> PairedDifferences:
    """Approximate randomization: under the null hypothesis outputs of both are exchangeable."""
    sides = one.row_tallies, other.row_tallies
    difference = sides[1] - sides[0]
    sums = sides[0].sum(axis=0), sides[1].sum(axis=0)
    permuted = []
    for block in swap_blocks(_inputs(one), "inputs", resamples, seed):
        moved = _weighted_sums(block.astype(float), difference)
        permuted.append(_scores(one, sums[0] + moved) - _scores(one, sums[1] - moved))
    return _signed(one, _scores(one, np.stack(sums)), np.concatenate(permuted))


def bootstrap_differences(
    one: Result, other: Result, resamples: int, seed: int
) -> PairedDifferences:
    """Paired bootstrap: under the null hypothesis the differences spread as those of the samples.

    Those spread about the observed difference, and are centred at 0. The variance over samples of n
    segments is too small by (n - 1) / n, so they are scaled by the root of n / (n - 1).
    """
    whole = _scores(one, np.stack((one.tally, other.tally)))
    drawn = [resampled_scores(side, resamples, seed) for side in (one, other)]
    spread = (drawn[0] - drawn[1]) - (whole[0] - whole[1])
    return _signed(one, whole, spread * math.sqrt(len(one) / (len(one) - 1)))


def _signed(result: Result, scores: Array, null: Array) -> PairedDifferences:
    """Differences of the scores (system, column), positive where the first system is better."""
    sign = np.array([1.0 if column.higher else -1.0 for column in result.columns])
    tie = 1e-10 * np.abs(scores).max(axis=0)
    return PairedDifferences(sign * (scores[0] - scores[1]), sign * null, tie)


_DIFFERENCES = {"bs": bootstrap_differences, "ar": permuted_differences}


def common_rows(origins: RowOrigins, one: Array, other: Array) -> tuple[Array, Array]:
    """The rows of two systems that are for the same inputs, in the same order."""
    sides = origins.segments[one], origins.segments[other]
    _, first, second = np.intersect1d(*sides, assume_unique=True, return_indices=True)
    return one[first], other[second]


def _weighted_sums(weights: Array, tallies: Array) -> Array:
    """The sums (resample, ...) of tallies (segment, ...) under weights (resample, segment)."""
    return (weights @ tallies.reshape(len(tallies), -1)).reshape(-1, *tallies.shape[1:])


def _scores(result: Result, tallies: Array) -> Array:
    """From tallies (resample, ...) to system scores (resample, column)."""
    names = [column.name for column in result.columns]
    if result.total is None:  # means, of all resamples at once
        sums, counts = np.moveaxis(tallies[..., [*map(list(result.segments).index, names)]], 1, 0)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    by_resample = [result.system_of(tally) for tally in tallies]
    return np.array([[scores[name] for name in names] for scores in by_resample])


def _inputs(result: Result) -> LevelSample:
    return LevelSample.of(np.arange(len(result)), len(result), None, None)
