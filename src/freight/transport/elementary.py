"""exp, log, inner products and marginal sums, written so that the compiler vectorises them."""

import numpy as np

from freight.kernels import kernel, summing
from freight.transport.types import Array

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Added to a float64, this leaves the nearest integer in its low bits.
_ROUND = 6755399441055744.0
# Or-ed with a small integer, these are the bits of 2**52 plus that number.
_TWO_TO_52, _TWO_TO_52_BITS = 4503599627370496.0, 0x4330000000000000
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_BLOCK = 512
_FEW = 24


@kernel
def exp_in_place(x: Array) -> None:
    """x = exp(x), relative error at most 4e-16; x is clipped to [-700, 700], so nothing overflows.

    The library's exp takes one number at a time and two to four times as long, except for a few.
    """
    if x.size < _FEW:
        for k in range(x.size):
            x[k] = np.exp(min(max(x[k], -700.0), 700.0))
        return
    room = np.empty(min(x.size, _BLOCK))
    for first in range(0, x.size, _BLOCK):
        block = x[first : first + _BLOCK]
        _exp_block(block, room[: block.size])


@kernel
def log_in_place(x: Array) -> None:
    """x = log(x) for positive normal numbers, relative error at most 3e-16."""
    if x.size < _FEW:
        for k in range(x.size):
            x[k] = np.log(x[k])
        return
    room = np.empty(min(x.size, _BLOCK))
    for first in range(0, x.size, _BLOCK):
        block = x[first : first + _BLOCK]
        _log_block(block, room[: block.size])


@kernel
def _exp_block(x: Array, scale: Array) -> None:
    """exp(x) = 2**n exp(r) with n an integer and |r| < 0.35, where twelve terms are enough."""
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


@kernel
def _log_block(x: Array, power: Array) -> None:
    """log(2**n (1 + f)) = n log 2 + f - f^2/2 + s (f^2/2 + the tail), s = f / (2 + f)."""
    bits, power_bits = x.view(np.int64), power.view(np.int64)
    for k in range(x.size):
        n = (bits[k] - _SQRT_HALF_BITS) >> 52
        power_bits[k] = (n + 2048) | _TWO_TO_52_BITS
        bits[k] -= n << 52
    for k in range(x.size):
        whole = power[k] - (_TWO_TO_52 + 2048.0)
        f = x[k] - 1.0
        s = f / (f + 2.0)
        z = s * s
        p = 2.0 / 21.0
        p = p * z + 2.0 / 19.0
        p = p * z + 2.0 / 17.0
        p = p * z + 2.0 / 15.0
        p = p * z + 2.0 / 13.0
        p = p * z + 2.0 / 11.0
        p = p * z + 2.0 / 9.0
        p = p * z + 2.0 / 7.0
        p = p * z + 2.0 / 5.0
        p = p * z + 2.0 / 3.0
        half = 0.5 * f * f
        x[k] = whole * _LN2_HIGH - ((half - (s * (half + z * p) + whole * _LN2_LOW)) - f)


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
    n, m = matrix.shape
    out[:] = 0.0
    for i in range(0, n - 3, 4):  # four rows for each time that out is loaded and stored
        a, b, c, d = scale[i], scale[i + 1], scale[i + 2], scale[i + 3]
        for j in range(m):
            out[j] += (matrix[i, j] * a + matrix[i + 1, j] * b) + (
                matrix[i + 2, j] * c + matrix[i + 3, j] * d
            )
    for i in range(n - n % 4, n):
        for j in range(m):
            out[j] += matrix[i, j] * scale[i]
