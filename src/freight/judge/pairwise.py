"""Agreement pair by pair: preferences, accuracy with ties, and soft accuracy between systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import prange

from freight.errors import InvalidInput
from freight.judge.levels import Draws, LevelSample, Points, Rated, estimate
from freight.judge.weighted_correlation import row
from freight.kernels import batch_kernel, kernel, one_at_a_time
from freight.transport.types import Array


@dataclass(frozen=True, eq=False)
class Preferences:
    """The tau of WMT's direct assessments turned into preferences (DARR): a resamplable statistic.

    (concordant − discordant) / (concordant + discordant) over pairs of which people preferred
    one; a tie of the metric is discordant. A pair counts as often as its input was drawn, times
    what each of its two systems was.
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
        """Pairs (pair, 2) out of `size` rows, the better one first."""
        pairs = np.asarray(preferences)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
            raise InvalidInput(
                f"preferences have shape {pairs.shape}; give (pair, 2), at least one"
            )
        outside = pairs[(pairs < 0) | (pairs >= size)]
        if len(outside):
            raise InvalidInput(f"preferences name row {outside[0]}, and there are {size} rows")
        sample = LevelSample.of(np.unique(pairs), size, segments, systems)
        place = np.empty(size, np.int64)
        place[sample.rows] = np.arange(len(sample.rows))
        return cls(place[pairs[:, 0]], place[pairs[:, 1]], sample)

    def __call__(self, scores: Array, draws: Draws) -> Array:
        """One tau a resample, nan where no pair was drawn."""
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


class Calibrated(NamedTuple):
    """The share of pairs in which a metric says what people say, and its width of a tie."""

    value: float
    epsilon: float


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Pairwise accuracy with ties (Deutsch, Foster and Freitag, EMNLP 2023): resamplable.

    A pair is right if the metric orders it as people do, or ties it where they do; the metric ties
    what differs by at most epsilon. Level "text" is the paper's group-by-item: pairs within a
    segment, the mean over segments, one epsilon for all. "segment" takes all pairs of rows,
    "system" all pairs of system means. Without a given epsilon the best is found, in every
    resample anew.
    """

    rated: Rated
    epsilon: float | None = None

    @property
    def sample(self) -> LevelSample:
        """The rows that people gave a score."""
        return self.rated.sample

    def __call__(self, scores: Array, draws: Draws) -> Array:
        """One accuracy a resample, nan where there is no pair."""
        return self.calibrated(scores, draws)[0]

    def calibrated(self, scores: Array, draws: Draws) -> tuple[Array, Array]:
        """The accuracies and the epsilons that gave them."""
        return accuracies(self.rated.points(scores, draws), self.epsilon)


def pairwise_accuracy(
    metric: Array,
    human: Array,
    segments: Array | None = None,
    systems: Array | None = None,
    level: str = "text",
    epsilon: float | None = None,
) -> Calibrated:
    """Accuracy over pairs, ties included, with the best epsilon or with a given one."""
    if epsilon is not None and not epsilon >= 0:
        raise InvalidInput(f"epsilon={epsilon}; give a number from 0 up, or None to find the best")
    statistic = Accuracy(Rated.of(level, human, segments, systems), epsilon)
    value, width = statistic.calibrated(statistic.sample.scores(metric), statistic.sample.once)
    return Calibrated(float(value[0]), float(width[0]))


def soft_pairwise_accuracy(
    metric: Array,
    human: Array,
    segments: Array,
    systems: Array,
    resamples: int = 1000,
    seed: int = 0,
) -> float:
    """1 − mean |p_human − p_metric| over pairs of systems (Thompson et al., WMT 2024).

    p is how likely chance alone is to part two systems as far: a paired permutation test on the
    scores of the segments that both have, one-sided, the same sign flips for people and metric.
    An equal difference counts half, so that the order of two systems does not matter.
    """
    rated = Rated.of("system", human, segments, systems)
    at, once = rated.sample, rated.sample.once
    if len(np.unique(at.segments * once.systems.size + at.systems)) < len(at.rows):
        raise InvalidInput("a system has two rows for one segment; keep one")
    grid = np.full((2, once.segments.size, once.systems.size), np.nan)
    grid[:, at.segments, at.systems] = rated.sample.scores(metric)[0], rated.human
    first, second = np.triu_indices(once.systems.size, 1)
    if not len(first):
        raise InvalidInput("there is one system only; soft pairwise accuracy compares systems")
    differences = np.nan_to_num(grid[:, :, first] - grid[:, :, second])
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (resamples, once.segments.size))
    chance = [_chance(side, signs) for side in differences]
    return float(1.0 - np.abs(chance[0] - chance[1]).mean())


def _chance(differences: Array, signs: Array) -> Array:
    """For each pair the share of sign flips that part it at least as far, ties counting half."""
    excess = signs @ differences - differences.sum(axis=0)
    rounding = 1e-12 * np.abs(differences).sum(axis=0)
    return ((excess > rounding).mean(axis=0) + (excess >= -rounding).mean(axis=0)) / 2.0


WIDER = 1.0 + 1e-9
"""Pairs whose differences are equal but for rounding are tied together or not at all."""


def accuracies(points: Points, epsilon: float | None) -> tuple[Array, Array]:
    """The accuracy of each resample, and the epsilon used: the one given, or the smallest best."""
    metric, human, weights, starts, groups = points
    resamples = max(len(x) for x in (metric, human, weights, groups))
    accuracy = np.empty(resamples)
    width = np.full(resamples, np.nan if epsilon is None else epsilon)
    with one_at_a_time():
        _accuracies(metric, human, weights, starts, groups, accuracy, width)
    return accuracy, width


@batch_kernel
def _accuracies(
    metric: Array,
    human: Array,
    weights: Array,
    starts: Array,
    groups: Array,
    accuracy: Array,
    width: Array,
) -> None:
    for k in prange(accuracy.size):
        x, y, w = row(metric, k), row(human, k), row(weights, k)
        share = _shares(w, starts, row(groups, k))
        if np.isnan(width[k]):
            width[k] = _best_width(x, y, w, starts, share)
        accuracy[k] = _accuracy(x, y, w, starts, share, width[k])


@kernel
def _shares(w: Array, starts: Array, group_weights: Array) -> Array:
    """What a pair of weight 1 adds to the mean over groups, by group."""
    share = np.zeros(starts.size - 1)
    total = 0.0
    for g in range(share.size):
        inside = w[starts[g] : starts[g + 1]]
        pairs = (inside.sum() ** 2 - (inside * inside).sum()) / 2.0
        if pairs > 0.0 and group_weights[g] > 0.0:
            share[g] = group_weights[g] / pairs
            total += group_weights[g]
    return share / total  # not a number where no group has a pair


@kernel
def _accuracy(x: Array, y: Array, w: Array, starts: Array, share: Array, epsilon: float) -> float:
    right = 0.0
    for g in range(share.size):
        inside = 0.0
        for i in range(starts[g], starts[g + 1]):
            for j in range(i + 1, starts[g + 1]):
                apart = x[i] - x[j]
                said = 0.0 if abs(apart) <= epsilon else np.sign(apart)
                if said == np.sign(y[i] - y[j]):
                    inside += w[i] * w[j]
        right += share[g] * inside
    return right


@kernel
def _best_width(x: Array, y: Array, w: Array, starts: Array, share: Array) -> float:
    apart, gain = _tied(x, y, w, starts, share)
    order = np.argsort(apart)
    apart, gain = apart[order], gain[order]
    for g in range(share.size):
        for i in range(starts[g], starts[g + 1]):
            for j in range(i + 1, starts[g + 1]):
                # Concordant: lost as soon as a tie is at least as wide as the pair is apart.
                if (x[i] - x[j]) * np.sign(y[i] - y[j]) > 0.0:
                    place = np.searchsorted(apart, abs(x[i] - x[j]))
                    if place < apart.size:
                        gain[place] -= share[g] * w[i] * w[j]
    best, most, total = 0.0, 1e-12, 0.0
    for k in range(apart.size):
        total += gain[k]
        last = k + 1 == apart.size or apart[k + 1] > apart[k]
        if last and (apart[k] == 0.0 or total > most):
            best, most = apart[k], total + 1e-12
    return best


@kernel
def _tied(x: Array, y: Array, w: Array, starts: Array, share: Array) -> tuple[Array, Array]:
    """How far apart the metric puts each pair that people tied, and what the pair is worth."""
    count = 0
    for g in range(share.size):
        for i in range(starts[g], starts[g + 1]):
            for j in range(i + 1, starts[g + 1]):
                count += y[i] == y[j]
    apart, gain = np.empty(count), np.empty(count)
    count = 0
    for g in range(share.size):
        for i in range(starts[g], starts[g + 1]):
            for j in range(i + 1, starts[g + 1]):
                if y[i] == y[j]:
                    apart[count] = WIDER * abs(x[i] - x[j])
                    gain[count] = share[g] * w[i] * w[j]
                    count += 1
    return apart, gain
