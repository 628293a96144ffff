"""One linear system that two methods share: Newton steps on a pair of potentials.

    | diag(p)   W      | |x|   |r|
    | Wᵀ        diag(q)| |y| = |s|        W ≥ 0, and the matrix positive semi-definite

The longer side is eliminated, which leaves a Cholesky factor of the shorter one.
"""

import numpy as np

from freight.kernels import kernel, summing
from freight.types import Array


@kernel
def solve_bordered(w: Array, p: Array, q: Array, r: Array, s: Array, x: Array, y: Array) -> None:
    """Write the solution into x and y; a direction without curvature is left almost alone."""
    n, m = w.shape
    if n < m:
        _eliminate(w.T.copy(), q, p, s, r, y, x)
    else:
        _eliminate(w, p, q, r, s, x, y)


@kernel
def _eliminate(w: Array, p: Array, q: Array, r: Array, s: Array, x: Array, y: Array) -> None:
    n, m = w.shape
    schur = np.zeros((m, m))
    for j in range(m):
        schur[j, j] = q[j]
        y[j] = s[j]
    for i in range(n):
        scale = 1.0 / p[i]
        _subtract_outer(schur, w[i], scale)
        for j in range(m):
            y[j] -= w[i, j] * scale * r[i]
    _factor(schur, q)
    for j in range(m):
        y[j] = (y[j] - _dot(schur[j], y, j)) / schur[j, j]
    for j in range(m - 1, -1, -1):
        y[j] /= schur[j, j]
        for k in range(j):
            y[k] -= schur[j, k] * y[j]
    for i in range(n):
        x[i] = (r[i] - _dot(w[i], y, m)) / p[i]


@kernel
def _factor(schur: Array, diagonal: Array) -> None:
    """Cholesky in place, lower triangle; a pivot lost to rounding leaves its unknown at 0."""
    for j in range(schur.shape[0]):
        for k in range(j):
            schur[j, k] = (schur[j, k] - _dot(schur[j], schur[k], k)) / schur[k, k]
        pivot = schur[j, j] - _dot(schur[j], schur[j], j)
        schur[j, j] = np.sqrt(pivot) if pivot > 1e-14 * diagonal[j] else 1e150


@summing
def _dot(a: Array, b: Array, count: int) -> float:
    total = 0.0
    for k in range(count):
        total += a[k] * b[k]
    return total


@summing
def _subtract_outer(schur: Array, row: Array, scale: float) -> None:
    for j in range(row.size):
        factor = row[j] * scale
        if factor != 0.0:
            for k in range(j + 1):
                schur[j, k] -= factor * row[k]
