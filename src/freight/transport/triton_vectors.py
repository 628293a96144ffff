"""Vectors on a GPU as Triton kernels: each is read once and written once.

One program per vector or pair of texts: bitwise the same whatever else is in the batch. Chains of
elementwise operations would read and write the vectors ten times, which takes as long as the
encoder itself where a metric keeps several layers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from freight.transport.types import Array, fetch_array, send_to_device

_Rows = tuple[Tensor, Tensor, int]

SHORTEST = 1e-12
"""What the length of a shorter vector counts as; also that of `torch.nn.functional.normalize`."""
MARGIN = 1e-5
"""By how much a product of unit vectors has to be larger: more than float32 rounding errors."""


_LAUNCHING = Lock()


@contextmanager
def launching(device: torch.device) -> Iterator[None]:
    """Launch on a device, one thread at a time: several would each compile the same kernel."""
    with _LAUNCHING, torch.cuda.device(device):
        yield


def cosines(hyp: _Rows, ref: _Rows) -> Tensor:
    """Cosines (row, unit, unit) of points of float32 that are packed, 0 for a zero vector.

    A side has its points, where each row starts and how many points it has, and the width. Nothing
    is gathered: one program per row and tile reads the points where they lie.
    """
    (points, ranges, width), (others, other_ranges, other_width) = hyp, ref
    rows, dim = ranges.shape[1], points.shape[1]
    out = points.new_empty((rows, width, other_width))
    tile = [max(16, min(64, triton.next_power_of_2(size))) for size in (width, other_width)]
    grid = rows, triton.cdiv(width, tile[0]), triton.cdiv(other_width, tile[1])
    kernel: Any = _cosines_kernel
    with launching(points.device):
        kernel[grid](
            points.contiguous(), others.contiguous(), ranges.contiguous(),
            other_ranges.contiguous(), out,
            rows, width, other_width, SHORTEST, dim, *tile, 32,
        )  # fmt: skip
    return out


def keep_their_units(layers: Tensor, means: Tensor, first: Array, size: Array) -> Array:
    """Which texts have, in all layers, one cheapest assignment to the means: each unit to its own.

    Layers (unit, layer, dim) have unit length; text k has `size[k]` units, from `first[k]` on. True
    only where a proof by potentials leaves a margin larger than rounding: no cycle of units gains
    by another assignment. Where that cannot be decided, as for long texts, the answer is False.
    """
    kept, depth = np.zeros(len(first), bool), layers.shape[1]
    widths = 2 ** np.ceil(np.log2(np.maximum(size, 16))).astype(np.int64)
    kernel: Any = _keep_kernel
    for width in (16, 32, 64, 128):
        which = np.flatnonzero(widths == width)
        if not len(which):
            continue
        out = layers.new_empty((len(which), depth), dtype=torch.bool)
        ranges = send_to_device(np.stack((first[which], size[which])), layers.device)
        with launching(layers.device):
            kernel[(len(which), depth)](
                layers, means, ranges, out,
                len(which), depth, MARGIN, layers.shape[2], width, 32, num_warps=width // 16,
            )  # fmt: skip
        kept[which] = fetch_array(out.all(dim=1))
    return kept


def standardise(layers: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    """Layers (unit, layer, dim) of float32 minus their mean, over their spread, concatenated.

    All layers of a unit become equally long: as long as they are on average.
    """
    given = layers.contiguous()
    count, depth, dim = given.shape
    out = given.new_empty((count, depth * dim))
    width = triton.next_power_of_2(depth), triton.next_power_of_2(dim)
    kernel: Any = _standardise_kernel
    with launching(given.device):
        kernel[(count,)](
            given, mean.contiguous(), spread.contiguous(), out,
            depth, dim, SHORTEST, *width, num_warps=8,
        )  # fmt: skip
    return out


def scatter_states(store: Tensor, states: Tensor, target: Tensor, position: Tensor) -> None:
    """Write the states (layer, token, dim) of these positions into the store (unit, layer, dim)."""
    depth, _, dim = states.shape
    kernel: Any = _scatter_kernel
    with launching(store.device):
        kernel[(len(target), depth)](
            store, states, target, position,
            states.stride(0), states.stride(1), depth, dim, triton.next_power_of_2(dim),
        )  # fmt: skip


@triton.jit
def _log1p(x, one):  # type: ignore[no-untyped-def]
    """log(1 + x), accurate for small x: the quotient corrects the rounding of 1 + x."""
    shifted = one + x
    return tl.where(
        shifted == one, x, tl.log(shifted) * (x / tl.where(shifted == one, one, shifted - one))
    )


@triton.jit
def divergence(sums, target, one):  # type: ignore[no-untyped-def]
    """KL(sums | target), every term non-negative."""
    present = target > 0.0
    x = tl.where(present, (sums - target) / tl.where(present, target, one), one - one)
    positive = x > -1.0
    inner = tl.where(positive, x, one - one)
    return tl.sum(
        target * tl.where(positive, (one + inner) * _log1p(inner, one) - inner, one), axis=0
    )


@triton.jit(do_not_specialize=["rows"])  # type: ignore[untyped-decorator]
def _cosines_kernel(  # type: ignore[no-untyped-def]
    hyp, ref, hyp_ranges, ref_ranges, out, rows, width, other_width, shortest,
    dim: tl.constexpr, N: tl.constexpr, M: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * N + tl.arange(0, N)
    j = tl.program_id(2) * M + tl.arange(0, M)
    d = tl.arange(0, K)
    hyp_first, hyp_size = tl.load(hyp_ranges + row), tl.load(hyp_ranges + rows + row)
    ref_first, ref_size = tl.load(ref_ranges + row), tl.load(ref_ranges + rows + row)
    hyp_at = hyp + (hyp_first + i)[:, None] * dim + d[None, :]
    ref_at = ref + (ref_first + j)[:, None] * dim + d[None, :]
    products = tl.zeros((N, M), tl.float32)
    hyp_squares, ref_squares = tl.zeros((N,), tl.float32), tl.zeros((M,), tl.float32)
    for start in range(0, dim, K):
        inside = (start + d < dim)[None, :]
        x = tl.load(hyp_at + start, mask=(i < hyp_size)[:, None] & inside, other=0.0)
        y = tl.load(ref_at + start, mask=(j < ref_size)[:, None] & inside, other=0.0)
        products = tl.dot(x, tl.trans(y), products, input_precision="tf32x3")
        hyp_squares += tl.sum(x * x, axis=1)
        ref_squares += tl.sum(y * y, axis=1)
    products /= tl.maximum(tl.sqrt(hyp_squares), shortest)[:, None]
    products /= tl.maximum(tl.sqrt(ref_squares), shortest)[None, :]
    at = (row * width + i)[:, None] * other_width + j[None, :]
    tl.store(out + at, products, mask=(i < width)[:, None] & (j < other_width)[None, :])


@triton.jit(do_not_specialize=["texts"])  # type: ignore[untyped-decorator]
def _keep_kernel(  # type: ignore[no-untyped-def]
    layers, means, ranges, out, texts, depth, margin,
    dim: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Longest paths: they end where no cycle gains by assigning its units to each other."""
    text, layer = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first, size = tl.load(ranges + text), tl.load(ranges + texts + text)
    i, d = tl.arange(0, N), tl.arange(0, K)
    mean_at = means + (first + i)[:, None] * dim + d[None, :]
    unit_at = layers + ((first + i) * depth + layer)[:, None] * dim + d[None, :]
    products = tl.zeros((N, N), tl.float32)
    for start in range(0, dim, K):
        inside = (i < size)[:, None] & (start + d < dim)[None, :]
        x = tl.load(mean_at + start, mask=inside, other=0.0)
        y = tl.load(unit_at + start, mask=inside, other=0.0)
        products = tl.dot(x, tl.trans(y), products, input_precision="tf32x3")
    same = i[:, None] == i[None, :]
    others = (i < size)[:, None] & (i < size)[None, :] & ~same
    own = tl.sum(tl.where(same, products, 0.0), axis=1)
    gain = tl.where(others, products - own[:, None] + margin, -1e30)
    length = tl.zeros((N,), tl.float32)
    longer, step = 1, 0
    while (longer > 0) & (step < N):
        reached = tl.maximum(length, tl.max(length[:, None] + gain, axis=0))
        longer = tl.sum((reached > length).to(tl.int32), axis=0)
        length = reached
        step += 1
    sound = tl.sum(tl.sum(tl.abs(products), axis=1), axis=0) < 1e30
    tl.store(out + text * depth + layer, (longer == 0) & sound)


@triton.jit  # type: ignore[untyped-decorator]
def _standardise_kernel(  # type: ignore[no-untyped-def]
    layers, mean, spread, out, depth, dim, shortest, DEPTH: tl.constexpr, WIDTH: tl.constexpr
):
    unit = tl.program_id(0).to(tl.int64) * depth * dim
    k, d = tl.arange(0, DEPTH), tl.arange(0, WIDTH)
    inside = (k < depth)[:, None] & (d < dim)[None, :]
    at = k[:, None] * dim + d[None, :]
    x = tl.load(layers + unit + at, mask=inside, other=0.0)
    x -= tl.load(mean + at, mask=inside, other=0.0)
    x /= tl.load(spread + at, mask=inside, other=1.0)
    length = tl.sqrt(tl.sum(x * x, axis=1))
    average = tl.sum(length, axis=0) / depth
    scale = tl.where(length > shortest, average / tl.maximum(length, shortest), 0.0)
    tl.store(out + unit + at, x * scale[:, None], mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _scatter_kernel(  # type: ignore[no-untyped-def]
    store, states, target, position, layer_stride, token_stride, depth, dim, WIDTH: tl.constexpr
):
    token, layer = tl.program_id(0), tl.program_id(1).to(tl.int64)
    unit, place = tl.load(target + token), tl.load(position + token)
    d = tl.arange(0, WIDTH)
    x = tl.load(states + layer * layer_stride + place * token_stride + d, mask=d < dim)
    tl.store(store + (unit * depth + layer) * dim + d, x.to(tl.float32), mask=d < dim)
