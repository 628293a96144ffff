"""Accuracy over pairs with ties, and the width of a tie that makes it best.

Widening a tie gains the pairs that people tied and loses those that the metric had ordered as
people did, so only differences between tied pairs can be best: they are sorted once, every other
pair finds its place among them, and one sweep adds up.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from freight.judge.levels import Points
from freight.judge.weighted import row
from freight.kernels import batch_kernel, kernel, one_at_a_time
from freight.types import Array

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
