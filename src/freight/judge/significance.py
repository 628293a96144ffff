"""Is the difference real: Williams' test, bootstrap intervals and paired permutation tests.

All p-values are one-sided: small ones say that the first metric (the row) agrees better with
people than the second (the column).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import stats

from freight.errors import InvalidInput
from freight.judge.correlation import Correlation, correlation_matrix
from freight.judge.levels import Draws, LevelSample, Statistic, estimate
from freight.transport.types import Array

BLOCK = 4_000_000
"""Numbers held at once while resampling; what is found does not depend on it."""


class Interval(NamedTuple):
    """A number with what its resamples say of it; those that were undefined are only counted."""

    value: float
    mean: float
    low: float
    high: float
    undefined: int


class Difference(NamedTuple):
    """How much better the first of two metrics agrees with people, and how likely by chance."""

    value: float
    p: float


def williams(r12: Array | float, r13: Array | float, r23: Array | float, n: int) -> Array:
    """Williams' test of two correlations that share a side: p that 2 beats 3 by chance.

    1 is people, 2 and 3 are the metrics, r Pearson's correlations over n rows.
    """
    if n < 4:
        raise InvalidInput(f"Williams' test needs at least 4 rows, and there are {n}")
    r12, r13, r23 = np.asarray(r12), np.asarray(r13), np.asarray(r23)
    k = np.maximum(1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23, 0.0)
    spread = 2 * k * (n - 1) / (n - 3) + ((r12 + r13) ** 2 / 4) * (1 - r23) ** 3
    difference = r12 - r13
    scale = np.sqrt((n - 1) * (1 + r23))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(difference == 0, 0.0, difference * scale / np.sqrt(spread))
    return np.asarray(stats.t.sf(t, n - 3))


def williams_matrix(metrics: Array, human: Array) -> Array:
    """For metrics (metric, row) the p that the row beats the column by chance; nan with itself."""
    statistic = Correlation.of("segment", "pearson", human)
    scores = np.concatenate([statistic.sample.scores(metric) for metric in np.asarray(metrics)])
    r = correlation_matrix(np.vstack((statistic.rated.human, scores)))
    found = williams(r[1:, :1], r[:1, 1:], r[1:, 1:], scores.shape[1])
    np.fill_diagonal(found, np.nan)
    return found


def bootstrap(
    statistic: Statistic,
    metric: Array,
    over: str = "inputs",
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """A percentile interval from drawing inputs, systems or both with replacement."""
    found = resampled(statistic, metric, over, resamples, seed)
    return interval(estimate(statistic, metric), found, confidence)


def resampled(
    statistic: Statistic, metric: Array, over: str = "inputs", resamples: int = 1000, seed: int = 0
) -> Array:
    """The statistic of each resample; the same seed draws the same for every metric."""
    scores = statistic.sample.scores(metric)
    draws = draw_blocks(statistic.sample, over, resamples, seed)
    return np.concatenate([statistic(scores, block) for block in draws])


def interval(value: float, found: Array, confidence: float = 0.95) -> Interval:
    """The percentile interval of resampled values, around the value of the data as they are."""
    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence={confidence}; give a number between 0 and 1")
    defined = found[~np.isnan(found)]
    undefined = len(found) - len(defined)
    if not len(defined):
        return Interval(value, np.nan, np.nan, np.nan, undefined)
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(value, float(defined.mean()), float(low), float(high), undefined)


def permutation(
    statistic: Statistic,
    first: Array,
    second: Array,
    over: str = "inputs",
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """Swap two metrics' scores at random: how often do they then differ as much as they do?

    The scores are standardised first. They are swapped for whole inputs, for whole systems, or for
    each row by itself ("both").
    """
    p = permutation_matrix(statistic, np.stack((first, second)), over, resamples, seed)[0, 1]
    return Difference(estimate(statistic, first) - estimate(statistic, second), float(p))


def permutation_matrix(
    statistic: Statistic,
    metrics: Array,
    over: str = "inputs",
    resamples: int = 1000,
    seed: int = 0,
) -> Array:
    """For metrics (metric, row) the p that the row beats the column by chance; nan with itself."""
    scores = [_standardised(statistic.sample.scores(metric)) for metric in np.asarray(metrics)]
    found = np.full((len(scores), len(scores)), np.nan)
    observed = [statistic(side, statistic.sample.once)[0] for side in scores]
    for i, j in zip(*np.triu_indices(len(scores), 1), strict=True):
        swaps = swap_blocks(statistic.sample, over, resamples, seed)
        chance = np.concatenate([_swapped(statistic, scores[i], scores[j], s) for s in swaps])
        for a, b, sign in ((i, j, 1.0), (j, i, -1.0)):
            excess = sign * chance - (observed[a] - observed[b])
            # The data as they are count as one of the permutations, an undefined one as as far.
            p = (1 + (~(excess < -1e-12)).sum()) / (1 + len(chance))
            found[a, b] = np.nan if np.isnan(observed[a] - observed[b]) else p
    return found


def draw_blocks(sample: LevelSample, over: str, resamples: int, seed: int) -> Iterator[Draws]:
    """Blocks of resamples: the counts of what was drawn, 1 for what was not up for drawing."""
    _check(sample, over, resamples)
    # A stream for inputs and one for systems, so that the size of a block changes nothing.
    streams = np.random.default_rng(seed).spawn(2)
    chosen = over != "systems", over != "inputs"
    for count in _blocks(len(sample.rows), resamples):
        segments, systems = (
            _counts(rng, once.size, count) if drawn else once
            for rng, once, drawn in zip(streams, sample.once, chosen, strict=True)
        )
        yield Draws(segments, systems)


def swap_blocks(sample: LevelSample, over: str, resamples: int, seed: int) -> Iterator[Array]:
    """Blocks of permutations (permutation, row): whether the two metrics are swapped there."""
    _check(sample, over, resamples)
    rows = np.arange(len(sample.rows))
    place = {"inputs": sample.segments, "systems": sample.systems, "both": rows}[over]
    rng = np.random.default_rng(seed)
    for count in _blocks(len(rows), resamples):
        yield (rng.random((count, int(place.max()) + 1)) < 0.5).take(place, axis=1)


def _swapped(statistic: Statistic, first: Array, second: Array, swaps: Array) -> Array:
    once = statistic.sample.once
    one, other = np.where(swaps, second, first), np.where(swaps, first, second)
    return statistic(one, once) - statistic(other, once)


def _standardised(scores: Array) -> Array:
    spread = scores.std()
    # Rounded, so that the same scores on another scale are the same scores, ties and all.
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
