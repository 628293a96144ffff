"""Small loops that the solvers share, written so that the compiler can use the vector unit."""

import numpy as np

from freight.kernels import kernel, summing
from freight.types import Array

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Adding this leaves the nearest whole number in the low bits of a float64.
_ROUND = 6755399441055744.0
_BLOCK = 512


@kernel
def exp_in_place(x: Array) -> None:
    """x = exp(x), within 4e-16 relatively; x is cut at -700 and 700, so the result stays a number.

    The mathematical library's is called number by number and takes four times as long.
    """
    room = np.empty(min(x.size, _BLOCK))
    for first in range(0, x.size, _BLOCK):
        block = x[first : first + _BLOCK]
        _exp_block(block, room[: block.size])


@kernel
def _exp_block(x: Array, scale: Array) -> None:
    bits = scale.view(np.int64)
    for k in range(x.size):
        scale[k] = min(max(x[k], -700.0), 700.0) * _LOG2_E + _ROUND
    for k in range(x.size):
        bits[k] = (bits[k] + 1023) << 52
    for k in range(x.size):
        y = min(max(x[k], -700.0), 700.0)
        whole = (y * _LOG2_E + _ROUND) - _ROUND
        r = (y - whole * _LN2_HIGH) - whole * _LN2_LOW
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        x[k] = (r + r * r * p + 1.0) * scale[k]


@summing
def dot(a: Array, b: Array) -> float:
    """The inner product."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@summing
def row_sums(matrix: Array, scale: Array, out: Array) -> None:
    """out = matrix @ scale."""
    for i in range(matrix.shape[0]):
        total = 0.0
        for j in range(matrix.shape[1]):
            total += matrix[i, j] * scale[j]
        out[i] = total


@summing
def column_sums(matrix: Array, scale: Array, out: Array) -> None:
    """out = scale @ matrix."""
    out[:] = 0.0
    for i in range(matrix.shape[0]):
        factor = scale[i]
        for j in range(matrix.shape[1]):
            out[j] += matrix[i, j] * factor
