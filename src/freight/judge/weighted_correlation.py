"""Correlations of points that count several times each: the one definition of each of them.

A resample is the same points with other weights, whole numbers that say how often each was drawn,
so that a bootstrap copies nothing. Everything runs over a batch (resample, point); a side that is
the same in every resample has one row. Points lie group after group, `starts` (group + 1,) says
where, and the answer is (resample, group), nan where a side is constant.
"""

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel, one_at_a_time
from freight.transport.types import Array


def pearson(x: Array, y: Array, weights: Array, starts: Array) -> Array:
    """The correlation of the values."""
    out = np.empty((_resamples(x, y, weights), len(starts) - 1))
    with one_at_a_time():
        _pearsons(x, y, weights, starts, out)
    return out


def spearman(x: Array, y: Array, weights: Array, starts: Array) -> Array:
    """The correlation of the ranks, equal values sharing the mean of theirs."""
    return pearson(ranks(x, weights, starts), ranks(y, weights, starts), weights, starts)


def kendall(x: Array, y: Array, weights: Array, starts: Array) -> Array:
    """Tau-b: concordant less discordant pairs, over the geometric mean of the pairs not tied."""
    out = np.empty((_resamples(x, y, weights), len(starts) - 1))
    with one_at_a_time():
        _kendalls(x, y, weights, starts, out)
    return out


def ranks(x: Array, weights: Array, starts: Array) -> Array:
    """The rank of each point within its group, from 1, as if it were written out weight times."""
    out = np.zeros((_resamples(x, weights), x.shape[1]))
    with one_at_a_time():
        _rankings(x, weights, starts, out)
    return out


def constant(x: Array, weights: Array, starts: Array) -> Array:
    """Whether the points of a group that count at all have one and the same value."""
    counts = weights > 0
    low = np.minimum.reduceat(np.where(counts, x, np.inf), starts[:-1], axis=1)
    high = np.maximum.reduceat(np.where(counts, x, -np.inf), starts[:-1], axis=1)
    return ~(high > low)


@kernel
def row(batch: Array, k: int) -> Array:
    """A resample's row; the only one where all resamples share it."""
    return batch[min(np.int64(k), batch.shape[0] - 1)]


def _resamples(*arrays: Array) -> int:
    return max(len(array) for array in arrays)


@batch_kernel
def _pearsons(x: Array, y: Array, weights: Array, starts: Array, out: Array) -> None:
    for k in prange(out.shape[0]):
        a, b, w = row(x, k), row(y, k), row(weights, k)
        for g in range(starts.size - 1):
            start, end = starts[g], starts[g + 1]
            out[k, g] = _pearson(a[start:end], b[start:end], w[start:end])


@batch_kernel
def _kendalls(x: Array, y: Array, weights: Array, starts: Array, out: Array) -> None:
    for k in prange(out.shape[0]):
        a, b, w = row(x, k), row(y, k), row(weights, k)
        for g in range(starts.size - 1):
            start, end = starts[g], starts[g + 1]
            out[k, g] = _kendall(a[start:end], b[start:end], w[start:end])


@batch_kernel
def _rankings(x: Array, weights: Array, starts: Array, out: Array) -> None:
    for k in prange(out.shape[0]):
        a, w = row(x, k), row(weights, k)
        for g in range(starts.size - 1):
            start, end = starts[g], starts[g + 1]
            _rank(a[start:end], w[start:end], out[k, start:end])


@kernel
def _pearson(x: Array, y: Array, w: Array) -> float:
    total, x_mean, y_mean, last = 0.0, 0.0, 0.0, -1
    x_varies, y_varies = False, False
    for i in range(x.size):
        if w[i] > 0.0:
            total += w[i]
            x_mean += w[i] * x[i]
            y_mean += w[i] * y[i]
            # Asked of the values themselves: rounding gives a constant side some variance.
            x_varies |= last >= 0 and x[i] != x[last]
            y_varies |= last >= 0 and y[i] != y[last]
            last = i
    if not (x_varies and y_varies):
        return np.nan
    x_mean, y_mean = x_mean / total, y_mean / total
    xx, yy, xy = 0.0, 0.0, 0.0
    for i in range(x.size):
        if w[i] > 0.0:
            dx, dy = x[i] - x_mean, y[i] - y_mean
            xx += w[i] * dx * dx
            yy += w[i] * dy * dy
            xy += w[i] * dx * dy
    return max(-1.0, min(1.0, xy / (np.sqrt(xx) * np.sqrt(yy))))


@kernel
def _rank(x: Array, w: Array, out: Array) -> None:
    order = np.argsort(x)
    below, i = 0.0, 0
    while i < x.size:
        j, tied = i, 0.0
        while j < x.size and x[order[j]] == x[order[i]]:
            tied += w[order[j]]
            j += 1
        for k in range(i, j):
            out[order[k]] = below + (tied + 1.0) / 2.0
        below += tied
        i = j


@kernel
def _kendall(x: Array, y: Array, w: Array) -> float:
    by_y = np.argsort(y)
    place, y_tied = _places(y, w, by_y)
    order = by_y[np.argsort(x[by_y], kind="mergesort")]  # by x, then by y
    tree = np.zeros(x.size + 1)
    total, discordant, x_tied, both_tied = 0.0, 0.0, 0.0, 0.0
    x_block, both_block = 0.0, 0.0
    for k in range(x.size):
        i, before = order[k], order[max(k - 1, 0)]
        same_x = x[i] == x[before]
        same_both = same_x and place[i] == place[before]
        x_block = x_block + w[i] if same_x else w[i]
        both_block = both_block + w[i] if same_both else w[i]
        # (s + w)² − s² for the block so far, so that a block adds up to its square.
        x_tied += w[i] * (2.0 * x_block - w[i])
        both_tied += w[i] * (2.0 * both_block - w[i])
        if w[i] > 0.0:
            discordant += w[i] * (total - _sum_to(tree, place[i]))
            _add(tree, place[i], w[i])
            total += w[i]
    pairs = total * total
    if min(pairs - x_tied, pairs - y_tied) == 0.0:
        return np.nan
    net = (pairs - x_tied - y_tied + both_tied) / 2.0 - 2.0 * discordant
    return 2.0 * net / (np.sqrt(pairs - x_tied) * np.sqrt(pairs - y_tied))


@kernel
def _places(y: Array, w: Array, order: Array) -> tuple[Array, float]:
    """Ranks from 1 without gaps, and the squared weights of equal values, summed."""
    place = np.empty(y.size, np.int64)
    current, block, tied = 0, 0.0, 0.0
    for k in range(y.size):
        i = order[k]
        if k == 0 or y[i] != y[order[k - 1]]:
            current, block = current + 1, 0.0
        block += w[i]
        tied += w[i] * (2.0 * block - w[i])
        place[i] = current
    return place, tied


@kernel
def _sum_to(tree: Array, place: int) -> float:
    total = 0.0
    while place > 0:
        total += tree[place]
        place -= place & -place
    return total


@kernel
def _add(tree: Array, place: int, weight: float) -> None:
    while place < tree.size:
        tree[place] += weight
        place += place & -place
