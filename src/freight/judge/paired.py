"""Systems against a first one, the baseline: two-sided paired tests, as sacrebleu makes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freight.data.places import Places
from freight.errors import InvalidInput
from freight.judge.significance import Interval
from freight.judge.standings import resampled_scores, swapped_leads, system_scores
from freight.results import Result
from freight.types import Array

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
    places: Places,
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
