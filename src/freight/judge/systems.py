"""Systems compared by one metric: scores with confidence intervals, and significance tests.

A system score is a function of tallies, numbers per segment that are summed (for most metrics the
sum of scores and their count, for BLEU the n-gram statistics). A bootstrap sample sums the tallies
of the segments that were drawn; a permutation exchanges the tallies of two systems in random
segments. So both work for every metric, however its system score is computed.

`rank_systems` tests every pair of systems, one-sided; `compare_with_baseline` tests every system
against the first one, two-sided, with sacrebleu's two tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
        first, second = _common_rows(origins, rows[i], rows[j])
        common[i, j] = common[j, i] = len(first)
        if len(first) > 1:
            sides = result.only(first), result.only(second)
            p_values[:, i, j], p_values[:, j, i] = _one_sided_p_values(*sides, resamples, seed)
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
    randomization, which exchanges the outputs of both systems in random segments. Confidence
    intervals come from `samples` bootstrap samples, for "bs" from those of the test.
    """
    if test not in PAIRED_TESTS:
        raise InvalidInput(f"test={test!r}; there is {', '.join(PAIRED_TESTS)}")
    count = RESAMPLES[test] if resamples is None else resamples
    rows = [origins.rows_of(k) for k in range(len(origins.names))]
    drawn = count if test == "bs" else samples
    scores = [system_scores(result.only(index), drawn, seed) for index in rows]
    p_values = np.full((len(result.columns), len(rows)), np.nan)
    for k, index in enumerate(rows[1:], 1):
        first, second = _common_rows(origins, rows[0], index)
        if len(first) > 1:
            pair = result.only(first), result.only(second)
            p_values[:, k] = _TWO_SIDED[test](*pair, count, seed)
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


def permuted_differences(
    one: Result, other: Result, resamples: int, seed: int
) -> tuple[Array, Array]:
    """By how much the first system is better: observed (column,), and permuted (permutation, ·).

    Differences have the sign of the column: positive where the first system is better.
    """
    sign = np.array([1.0 if column.higher else -1.0 for column in one.columns])
    sides = one.row_tallies, other.row_tallies
    difference = sides[1] - sides[0]
    sums = sides[0].sum(axis=0), sides[1].sum(axis=0)
    observed = sign * (_scores(one, sums[:1]) - _scores(one, sums[1:]))[0]
    permuted = []
    for block in swap_blocks(_inputs(one), "inputs", resamples, seed):
        moved = _weighted_sums(block.astype(float), difference)
        permuted.append(sign * (_scores(one, sums[0] + moved) - _scores(one, sums[1] - moved)))
    return observed, np.concatenate(permuted)


def _one_sided_p_values(
    one: Result, other: Result, resamples: int, seed: int
) -> tuple[Array, Array]:
    """By column, permutation tests of both directions: the first better, the second better."""
    observed, permuted = permuted_differences(one, other, resamples, seed)
    # The original data count as one permutation; an undefined difference counts as larger.
    extreme = [~(sign * (permuted - observed) < -1e-12) for sign in (1.0, -1.0)]
    p = [(1 + counted.sum(axis=0)) / (1 + len(counted)) for counted in extreme]
    undefined = np.isnan(observed)
    return np.where(undefined, np.nan, p[0]), np.where(undefined, np.nan, p[1])


def _paired_bootstrap(one: Result, other: Result, resamples: int, seed: int) -> Array:
    """Two-sided p-values; the null distribution is that of the resamples, centred at its mean."""
    whole = np.array([[side.system[c.name] for c in one.columns] for side in (one, other)])
    drawn = [resampled_scores(side, resamples, seed) for side in (one, other)]
    differences = np.abs(drawn[1] - drawn[0])
    return _two_sided_p(differences - differences.mean(axis=0), np.abs(whole[1] - whole[0]))


def _approximate_randomization(one: Result, other: Result, resamples: int, seed: int) -> Array:
    """Two-sided p-values; under the null hypothesis the systems' outputs are exchangeable."""
    observed, permuted = permuted_differences(one, other, resamples, seed)
    return _two_sided_p(np.abs(permuted), np.abs(observed))


def _two_sided_p(null: Array, observed: Array) -> Array:
    """(1 + differences beyond the observed one) / (1 + all), as sacrebleu counts."""
    p = (1 + (null > observed + 1e-12).sum(axis=0)) / (1 + len(null))
    return np.where(np.isnan(observed), np.nan, p)


_TWO_SIDED = {"bs": _paired_bootstrap, "ar": _approximate_randomization}


def _common_rows(origins: RowOrigins, one: Array, other: Array) -> tuple[Array, Array]:
    """The rows of two systems that are for the same inputs, in the same order."""
    sides = origins.segments[one], origins.segments[other]
    _, first, second = np.intersect1d(*sides, assume_unique=True, return_indices=True)
    return one[first], other[second]


def _weighted_sums(weights: Array, tallies: Array) -> Array:
    """The sums (resample, ...) of tallies (segment, ...) under weights (resample, segment)."""
    return (weights @ tallies.reshape(len(tallies), -1)).reshape(-1, *tallies.shape[1:])


def _scores(result: Result, tallies: Iterable[Array]) -> Array:
    """From tallies (resample, ...) to system scores (resample, column)."""
    by_resample = [result.system_of(tally) for tally in tallies]
    return np.array([[scores[column.name] for column in result.columns] for scores in by_resample])


def _inputs(result: Result) -> LevelSample:
    return LevelSample.of(np.arange(len(result)), len(result), None, None)
