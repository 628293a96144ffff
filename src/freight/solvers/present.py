"""Which units of a padded problem take part: the ones inside the size that have mass.

A unit without mass can neither send nor receive where its side is held or priced. Where its side
is free it can still be matched, so there it stays. What is past the size does not exist.
"""

import numpy as np

from freight.kernels import kernel
from freight.types import Array


@kernel
def present(weights: Array, size: int, penalty: float) -> Array:
    """The indices of the units that take part on one side of one problem."""
    kept = np.empty(size, np.int64)
    count = 0
    for unit in range(size):
        if penalty == 0.0 or weights[unit] > 0.0:
            kept[count] = unit
            count += 1
    return kept[:count]


@kernel
def compact(cost: Array, rows: Array, columns: Array, unit: float) -> Array:
    """The cost between the units that take part, in this unit and in float64."""
    small = np.empty((rows.size, columns.size))
    gapless = columns[-1] == columns.size - 1  # then the loop over a row can be vectorised
    for i in range(rows.size):
        row = cost[rows[i]]
        for j in range(columns.size):
            small[i, j] = row[j if gapless else columns[j]] / unit
    return small


@kernel
def gather(weights: Array, kept: Array) -> Array:
    """The masses of the units that take part, in float64."""
    small = np.empty(kept.size)
    for i in range(kept.size):
        small[i] = weights[kept[i]]
    return small


@kernel
def equalise(hyp_weights: Array, ref_weights: Array) -> None:
    """Between held sides the totals agree but for rounding; let them agree altogether."""
    ref_weights *= hyp_weights.sum() / ref_weights.sum()


@kernel
def scatter(small: Array, rows: Array, columns: Array, flow: Array) -> None:
    """Put a plan between the units that take part back where the caller's units are."""
    gapless = columns[-1] == columns.size - 1
    for i in range(rows.size):
        row = flow[rows[i]]
        for j in range(columns.size):
            row[j if gapless else columns[j]] = small[i, j]
