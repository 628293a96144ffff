"""Agreement over pairs: tau on preferences, accuracy with tie calibration, soft accuracy.

Pairwise accuracy credits a metric for tying what people tied. Real-valued metrics hardly ever tie
exactly, so two scores that differ by at most epsilon count as a tie, and the epsilon with the
highest accuracy is searched (tie calibration; Deutsch, Foster and Freitag, EMNLP 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from freight import kernels
from freight.errors import InvalidInput
from freight.judge.levels import Draws, LevelSample, Points, Rated, estimate
from freight.transport.types import Array


@dataclass(frozen=True, eq=False)
class Preferences:
    """WMT's Kendall-like tau on DARR preferences (relative rankings from direct assessment).

    (concordant − discordant) / (concordant + discordant) over pairs of which people preferred
    one; a tie of the metric is discordant. The weight of a pair in a resample is the product of
    the counts of its input and of its two systems.
    """

    better: Array
    worse: Array
    sample: LevelSample

    @classmethod
    def of(
        cls,
        preferences: Array,
        size: int,
        segments: Array | None = None,
        systems: Array | None = None,
    ) -> Preferences:
        """From pairs (pair, 2) of row numbers below `size`, the better row first."""
        pairs = np.asarray(preferences)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
            raise InvalidInput(
                f"preferences have shape {pairs.shape}; give (pair, 2), at least one"
            )
        outside = pairs[(pairs < 0) | (pairs >= size)]
        if len(outside):
            raise InvalidInput(f"preferences name row {outside[0]}, and there are {size} rows")
        sample = LevelSample.of(np.unique(pairs), size, segments, systems)
        position = np.empty(size, np.int64)
        position[sample.rows] = np.arange(len(sample.rows))
        return cls(position[pairs[:, 0]], position[pairs[:, 1]], sample)

    def __call__(self, scores: Array, draws: Draws) -> Array:
        """One tau per resample, nan where no pair was drawn."""
        concordant = scores.take(self.better, axis=1) > scores.take(self.worse, axis=1)
        weights = draws.segments.take(self.sample.segments[self.better], axis=1)
        for side in (self.better, self.worse):
            weights = weights * draws.systems.take(self.sample.systems[side], axis=1)
        right = (weights * concordant).sum(axis=1)
        total = np.broadcast_to(weights.sum(axis=1), right.shape)
        return np.divide(
            2.0 * right - total, total, out=np.full_like(right, np.nan), where=total > 0
        )


def darr_tau(metric: Array, preferences: Array) -> float:
    """The tau of a metric (row,) on preferences (pair, 2), the better row first."""
    return estimate(Preferences.of(preferences, len(metric)), metric)


class CalibratedAccuracy(NamedTuple):
    """The share of pairs on which metric and people agree, and the tie threshold epsilon."""

    value: float
    epsilon: float


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Pairwise accuracy with tie calibration: a statistic that can be resampled.

    A pair is correct if the metric orders it as people do, or ties it where they do; the metric
    ties scores that differ by at most epsilon. Level "text" is the paper's group-by-item: pairs
    within a segment, the mean over segments, one epsilon for all. "segment" takes all pairs of
    rows, "system" all pairs of system means. Without a given epsilon, the tie calibration is
    repeated in every resample.
    """

    rated: Rated
    epsilon: float | None = None

    @property
    def sample(self) -> LevelSample:
        """The rows with a human score."""
        return self.rated.sample

    def __call__(self, scores: Array, draws: Draws) -> Array:
        """One accuracy per resample, nan where there is no pair."""
        return self.calibrate(scores, draws)[0]

    @property
    def chance(self) -> float:
        """The accuracy of random scores: with no ties, or with all tied where that is higher.

        Tie calibration gets a little more than this where there are few pairs.
        """
        untied = Accuracy(self.rated, 0.0)
        ties = estimate(untied, np.zeros(self.sample.size))
        return max(ties, (1.0 - ties) / 2.0)

    def calibrate(self, scores: Array, draws: Draws) -> tuple[Array, Array]:
        """The accuracy of each resample, and the epsilon it was computed with."""
        return calibrated_accuracies(self.rated.points(scores, draws), self.epsilon)


def pairwise_accuracy(
    metric: Array,
    human: Array,
    segments: Array | None = None,
    systems: Array | None = None,
    level: str = "text",
    epsilon: float | None = None,
) -> CalibratedAccuracy:
    """Accuracy over pairs, ties included, with the best epsilon or with a given one."""
    if epsilon is not None and not epsilon >= 0:
        raise InvalidInput(f"epsilon={epsilon}; give a number from 0 up, or None for the best")
    statistic = Accuracy(Rated.of(level, human, segments, systems), epsilon)
    value, width = statistic.calibrate(statistic.sample.scores(metric), statistic.sample.once)
    return CalibratedAccuracy(float(value[0]), float(width[0]))


@dataclass(frozen=True, eq=False)
class SoftAccuracy:
    """Soft pairwise accuracy: a statistic of which systems can be resampled.

    Each pair of systems gets the one-sided p-value of a paired permutation test, whose null
    hypothesis is that their scores are exchangeable within the segments that both have; it is small
    where the first is better. People and metric see the same random sign flips. An equal difference
    counts half (mid-p), so that the order of the two systems does not matter.
    """

    rated: Rated
    permutations: int = 1000
    seed: int = 0

    @classmethod
    def of(
        cls, human: Array, segments: Array, systems: Array, permutations: int = 1000, seed: int = 0
    ) -> SoftAccuracy:
        """With one human score per row, and one row per segment and system."""
        rated = Rated.of("system", human, segments, systems)
        at, once = rated.sample, rated.sample.once
        if len(np.unique(at.segments * once.systems.size + at.systems)) < len(at.rows):
            raise InvalidInput("a system has two rows for one segment; keep one")
        if once.systems.size < 2:
            raise InvalidInput("there is one system only; soft pairwise accuracy compares systems")
        return cls(rated, permutations, seed)

    @property
    def sample(self) -> LevelSample:
        """The rows with a human score."""
        return self.rated.sample

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        """The numbers of the first and of the second system of each pair."""
        first, second = np.triu_indices(self.sample.once.systems.size, 1)
        return first, second

    @cached_property
    def human(self) -> Array:
        """One p-value per pair of systems, by people."""
        return self.p_values(self.rated.human, self.rated.human)

    @property
    def chance(self) -> float:
        """What a metric of random numbers gets on average: its p-values are uniform."""
        return float(0.5 + (self.human * (1.0 - self.human)).mean())

    def p_values(self, one: Array, other: Array) -> Array:
        """One p-value per pair: is the first system by `one` better than the second by `other`?"""
        first, second = self.pairs
        differences = np.nan_to_num(self._grid(one)[:, first] - self._grid(other)[:, second])
        excess = self._signs @ differences - differences.sum(axis=0)
        rounding = 1e-12 * np.abs(differences).sum(axis=0)
        return ((excess > rounding).mean(axis=0) + (excess >= -rounding).mean(axis=0)) / 2.0

    def __call__(self, scores: Array, draws: Draws) -> Array:
        """One accuracy per resample of systems; a system drawn twice makes no pair with itself."""
        errors = np.stack([np.abs(self.p_values(row, row) - self.human) for row in scores])
        first, second = self.pairs
        weights = draws.systems.take(first, axis=1) * draws.systems.take(second, axis=1)
        total = np.broadcast_to(weights.sum(axis=1), (max(len(weights), len(errors)),))
        lost = (weights * errors).sum(axis=1)
        return 1.0 - np.divide(lost, total, out=np.full(total.shape, np.nan), where=total > 0)

    def swapped(self, first: Array, second: Array, swaps: Array) -> tuple[Array, Array]:
        """The accuracies of two metrics (row,) whose systems are exchanged as `swaps` say.

        `swaps` is (permutation, system). A pair of systems has one p-value for each choice of the
        metric of either, so that no permutation needs a test of its own.
        """
        sides = first, second
        errors = np.array(
            [[np.abs(self.p_values(a, b) - self.human) for b in sides] for a in sides]
        )
        i, j = (swaps.astype(int).take(side, axis=1) for side in self.pairs)
        pair = np.arange(len(self.pairs[0]))
        lost, other = errors[i, j, pair], errors[1 - i, 1 - j, pair]
        return 1.0 - lost.mean(axis=1), 1.0 - other.mean(axis=1)

    @cached_property
    def _signs(self) -> Array:
        shape = self.permutations, self.sample.once.segments.size
        return np.random.default_rng(self.seed).choice((-1.0, 1.0), shape)

    def _grid(self, scores: Array) -> Array:
        """Scores (segment, system), nan where a system has no row."""
        at, once = self.sample, self.sample.once
        grid = np.full((once.segments.size, once.systems.size), np.nan)
        grid[at.segments, at.systems] = scores
        return grid


def soft_pairwise_accuracy(
    metric: Array,
    human: Array,
    segments: Array,
    systems: Array,
    resamples: int = 1000,
    seed: int = 0,
) -> float:
    """1 − mean |p_human − p_metric| over pairs of systems (Thompson et al., WMT 2024)."""
    return estimate(SoftAccuracy.of(human, segments, systems, resamples, seed), metric)


def pairwise_confidence_error(
    metric: Array,
    human: Array,
    segments: Array,
    systems: Array,
    resamples: int = 1000,
    seed: int = 0,
) -> float:
    """PCE: mean |p_human − p_metric|, 1 − soft pairwise accuracy."""
    return 1.0 - soft_pairwise_accuracy(metric, human, segments, systems, resamples, seed)


EPSILON_MARGIN = 1.0 + 1e-9
"""Factor that makes differences that are equal up to rounding tie together."""


def calibrated_accuracies(points: Points, epsilon: float | None) -> tuple[Array, Array]:
    """The accuracy and the epsilon of each resample: the given one, or the smallest best one."""
    given = np.nan if epsilon is None else epsilon
    return kernels.accuracies(*points, given, EPSILON_MARGIN)
