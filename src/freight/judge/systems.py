"""Whole systems by one metric: their scores with intervals, and whether one beats another.

A system's score is made of tallies, numbers a segment that add up: a resample is their sum over
other segments, a permutation swaps the segments of two systems, whatever the score is made from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from freight.core.result import Result
from freight.data.corpus import RowOrigins
from freight.errors import InvalidInput
from freight.judge.levels import LevelSample
from freight.judge.significance import Interval, draw_blocks, interval, swap_blocks
from freight.transport.types import Array


@dataclass(frozen=True, eq=False)
class Standing:
    """One column of a metric: the systems' scores, and p that the row beats the column by chance.

    Two systems are compared on the inputs that both have, `common` many.
    """

    column: str
    higher: bool
    names: tuple[str, ...]
    scores: tuple[Interval, ...]
    beats: Array
    common: Array

    @property
    def order(self) -> list[int]:
        """The systems, the best first; those without a score come last."""
        values = np.array([score.value for score in self.scores])
        found: list[int] = np.argsort(-values if self.higher else values, kind="stable").tolist()
        return found


def standings(
    result: Result, places: RowOrigins, resamples: int = 1000, seed: int = 0
) -> list[Standing]:
    """By column: what each system scores, and which beats which, by paired permutations."""
    rows = [places.rows_of(k) for k in range(len(places.names))]
    scores = [system_scores(result.only(index), resamples, seed) for index in rows]
    beats = np.full((len(result.columns), len(rows), len(rows)), np.nan)
    common = np.diag([len(index) for index in rows])
    for i, j in zip(*np.triu_indices(len(rows), 1), strict=True):
        one, other = places.segments[rows[i]], places.segments[rows[j]]
        both, first, second = np.intersect1d(one, other, assume_unique=True, return_indices=True)
        common[i, j] = common[j, i] = len(both)
        if len(both) > 1:
            sides = result.only(rows[i][first]), result.only(rows[j][second])
            beats[:, i, j], beats[:, j, i] = _chances(*sides, resamples, seed)
    return [
        Standing(
            column.name,
            column.higher,
            places.names,
            tuple(found[column.name] for found in scores),
            beats[k],
            common,
        )
        for k, column in enumerate(result.columns)
    ]


def system_scores(result: Result, resamples: int = 1000, seed: int = 0) -> dict[str, Interval]:
    """By column: the score of all segments together, with a bootstrap interval."""
    found = resampled_scores(result, resamples, seed)
    whole = result.system
    names = [column.name for column in result.columns]
    return {name: interval(whole[name], found[:, k]) for k, name in enumerate(names)}


def resampled_scores(result: Result, resamples: int, seed: int) -> Array:
    """Scores (resample, column); results of as many segments have the same segments drawn."""
    if len(result) < 2:
        return np.full((1, len(result.columns)), np.nan)
    blocks = draw_blocks(_inputs(result), "inputs", resamples, seed)
    tallies = result.row_tallies
    sums = (_weighed(block.segments, tallies) for block in blocks)
    return np.concatenate([_scores(result, some) for some in sums])


def swapped_leads(one: Result, other: Result, resamples: int, seed: int) -> tuple[Array, Array]:
    """By how much the first of two systems is better (column,), and with segments swapped.

    The second is (permutation, column).
    """
    sign = np.array([1.0 if column.higher else -1.0 for column in one.columns])
    sides = one.row_tallies, other.row_tallies
    moved = sides[1] - sides[0]
    sums = sides[0].sum(axis=0), sides[1].sum(axis=0)
    observed = sign * (_scores(one, sums[:1]) - _scores(one, sums[1:]))[0]
    chance = []
    for block in swap_blocks(_inputs(one), "inputs", resamples, seed):
        gains = _weighed(block.astype(float), moved)
        chance.append(sign * (_scores(one, sums[0] + gains) - _scores(one, sums[1] - gains)))
    return observed, np.concatenate(chance)


def _chances(one: Result, other: Result, resamples: int, seed: int) -> tuple[Array, Array]:
    """By column the p that either of two systems beats the other by chance, swapping segments."""
    observed, chance = swapped_leads(one, other, resamples, seed)
    # The data as they are count as one of the permutations, an undefined one as as far.
    further = [~(way * (chance - observed) < -1e-12) for way in (1.0, -1.0)]
    p = [(1 + found.sum(axis=0)) / (1 + len(found)) for found in further]
    undefined = np.isnan(observed)
    return np.where(undefined, np.nan, p[0]), np.where(undefined, np.nan, p[1])


def _weighed(weights: Array, tallies: Array) -> Array:
    """The sums (resample, ...) of tallies that count so often each (resample, segment)."""
    return (weights @ tallies.reshape(len(tallies), -1)).reshape(-1, *tallies.shape[1:])


def _scores(result: Result, tallies: Iterable[Array]) -> Array:
    """From tallies (resample, ...) to scores (resample, column)."""
    found = [result.system_of(tally) for tally in tallies]
    return np.array([[scores[column.name] for column in result.columns] for scores in found])


def _inputs(result: Result) -> LevelSample:
    return LevelSample.of(np.arange(len(result)), len(result), None, None)


TESTS = {"bs": "bootstrap resampling", "ar": "approximate randomisation"}
RESAMPLES = {"bs": 1000, "ar": 10_000}
"""As often as sacrebleu does, where nothing else is said."""


@dataclass(frozen=True, eq=False)
class Paired:
    """One column of a metric: systems' scores, and p that each differs from the first by chance."""

    column: str
    names: tuple[str, ...]
    scores: tuple[Interval, ...]
    p: Array


def against_first(
    result: Result,
    places: RowOrigins,
    test: str = "bs",
    resamples: int | None = None,
    seed: int = 0,
    samples: int = 1000,
) -> list[Paired]:
    """By column: whether systems differ from the first, on the inputs that both have.

    `test` is bs, which draws inputs with replacement, or ar, which swaps the two systems' segments
    at random. Intervals come from `samples` bootstrap samples, for bs from those of the test.
    """
    if test not in TESTS:
        raise InvalidInput(f"test={test!r}; there is {', '.join(TESTS)}")
    trials = RESAMPLES[test] if resamples is None else resamples
    rows = [places.rows_of(k) for k in range(len(places.names))]
    drawn = trials if test == "bs" else samples
    scores = [system_scores(result.only(index), drawn, seed) for index in rows]
    p = np.full((len(result.columns), len(rows)), np.nan)
    for k, index in enumerate(rows[1:], 1):
        sides = places.segments[rows[0]], places.segments[index]
        both, first, second = np.intersect1d(*sides, assume_unique=True, return_indices=True)
        if len(both) > 1:
            pair = result.only(rows[0][first]), result.only(index[second])
            p[:, k] = _DIFFERENT[test](*pair, trials, seed)
    return [
        Paired(column.name, places.names, tuple(found[column.name] for found in scores), p[k])
        for k, column in enumerate(result.columns)
    ]


def _by_bootstrap(one: Result, other: Result, resamples: int, seed: int) -> Array:
    """How often resamples differ by more than their mean difference and the one that there is."""
    whole = np.array([[side.system[c.name] for c in one.columns] for side in (one, other)])
    drawn = [resampled_scores(side, resamples, seed) for side in (one, other)]
    differences = np.abs(drawn[1] - drawn[0])
    return _chance(differences - differences.mean(axis=0), np.abs(whole[1] - whole[0]))


def _by_permutation(one: Result, other: Result, resamples: int, seed: int) -> Array:
    observed, swapped = swapped_leads(one, other, resamples, seed)
    return _chance(np.abs(swapped), np.abs(observed))


def _chance(found: Array, observed: Array) -> Array:
    """The share of what is further than observed, which counts itself as one of them."""
    p = (1 + (found > observed + 1e-12).sum(axis=0)) / (1 + len(found))
    return np.where(np.isnan(observed), np.nan, p)


_DIFFERENT = {"bs": _by_bootstrap, "ar": _by_permutation}
