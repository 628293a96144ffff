"""Vectors on a GPU as Triton kernels: each is read once and written once.

One program per vector, so that its bits depend on nothing else. Chains of elementwise operations
would read and write them ten times, which takes as long as the encoder itself where a metric keeps
several layers.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

SHORTEST = 1e-12
"""What the length of a shorter vector counts as; also that of `torch.nn.functional.normalize`."""


def directions(vectors: Tensor) -> Tensor:
    """The vectors (..., dim) of float32 scaled to unit length."""
    given = vectors.contiguous()
    out = torch.empty_like(given)
    dim = given.shape[-1]
    kernel: Any = _directions_kernel
    with torch.cuda.device(given.device):
        kernel[(given.numel() // dim,)](given, out, dim, SHORTEST, triton.next_power_of_2(dim))
    return out


def standardise(layers: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    """Layers (unit, layer, dim) of float32 less their mean, by their spread, end to end.

    All layers of a unit become equally long: as long as they are on average.
    """
    given = layers.contiguous()
    count, depth, dim = given.shape
    out = given.new_empty((count, depth * dim))
    width = triton.next_power_of_2(depth), triton.next_power_of_2(dim)
    kernel: Any = _standardise_kernel
    with torch.cuda.device(given.device):
        kernel[(count,)](
            given, mean.contiguous(), spread.contiguous(), out,
            depth, dim, SHORTEST, *width, num_warps=8,
        )  # fmt: skip
    return out


def scatter_states(store: Tensor, states: Tensor, target: Tensor, position: Tensor) -> None:
    """Write the states (layer, token, dim) of these positions into the store (unit, layer, dim)."""
    depth, _, dim = states.shape
    kernel: Any = _scatter_kernel
    with torch.cuda.device(store.device):
        kernel[(len(target), depth)](
            store, states, target, position,
            states.stride(0), states.stride(1), depth, dim, triton.next_power_of_2(dim),
        )  # fmt: skip


@triton.jit  # type: ignore[untyped-decorator]
def _directions_kernel(vectors, out, dim, shortest, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64) * dim
    d = tl.arange(0, WIDTH)
    x = tl.load(vectors + row + d, mask=d < dim, other=0.0)
    length = tl.sqrt(tl.sum(x * x, axis=0))
    tl.store(out + row + d, x / tl.maximum(length, shortest), mask=d < dim)


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
