"""Free-support Wasserstein-2 barycenters: the layers of a text become one cloud of as many points.

The fixed point iteration of Alvarez-Esteban et al. (2016) with exact plans: match the points to
every layer, move each to the mean of what it is matched to, repeat until nothing moves. It starts
from the unit-wise mean over the layers, which depends neither on the order of the units nor on how
a solver breaks ties; the problem has many local optima, so the start is part of the definition.

`barycenter` takes the points themselves; `barycenter_coefficients` takes only their inner products
and returns each barycenter point as a combination of the units, for points that stay on a GPU or
that need gradients. `packed_barycenters` takes texts of all sizes, packed end to end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, Never

import numpy as np

from freight import kernels
from freight.errors import InvalidInput, NotConverged
from freight.transport.types import (
    Array,
    Barycenters,
    Numbers,
    check_sizes,
    fetch_array,
    like,
    send_to_device,
    to_array,
    to_numbers,
)

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "barycenter",
    "barycenter_coefficients",
    "packed_barycenters",
    "sparse_coefficients",
]

_CELLS = 2**24
"""How many inner products are taken at a time."""


def barycenter(
    points: Numbers,
    weights: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    max_iterations: int = 1000,
    strict: bool = True,
    **unknown: Never,
) -> Barycenters:
    """Free-support Wasserstein-2 barycenters of points (text, layer, n, dim) or (layer, n, dim).

    Each text is a stack of point clouds, one per layer, and gets one barycenter of n points of
    equal mass. `weights` (text, n) are the masses of the units, the same in every layer; without
    them they are uniform. `sizes` (text,) says how many of the n units exist. `objective` is the
    mean over the layers of the squared Wasserstein distance to the barycenter. With `strict` a text
    whose points still move after `max_iterations` raises `NotConverged`.
    """
    if unknown:
        raise InvalidInput(
            f"barycenter has no option {next(iter(unknown))!r}; there is max_iterations, strict"
        )
    layers = to_numbers(to_array(points), None)
    single = layers.ndim == 3
    layers = layers[None] if single else layers
    if layers.ndim != 4 or 0 in layers.shape:
        raise InvalidInput(
            f"points has shape {tuple(points.shape)}; give (text, layer, n, dim), none of them 0"
        )
    texts, _, width, dim = layers.shape
    count = check_sizes("", sizes, texts, width)
    mass = _normalize_masses(weights, np.arange(width) < count[:, None], single)
    stacked = layers.reshape(texts, -1, dim)
    positions, objective, converged = kernels.barycenters(stacked, mass, count, max_iterations)
    if not np.isfinite(objective).all():
        raise InvalidInput(
            f"the points of text {int(np.argmin(np.isfinite(objective)))} are not all finite"
        )
    if strict and not converged.all():
        bad = np.flatnonzero(~converged)
        raise NotConverged(
            f"{bad.size} of {texts} problems (the first is {bad[0]}) did not converge: still moving"
            " at max_iterations"
        )
    if single:
        return Barycenters(like(positions[0], points), objective[0].item(), converged[0].item())
    return Barycenters(like(positions, points), like(objective, points), like(converged, points))


def barycenter_coefficients(
    gram: Array, weights: Array, max_iterations: int = 1000
) -> tuple[Array, Array]:
    """Barycenters from inner products alone: coefficients (text, unit, layer * unit), converged.

    `gram` (text, layer * unit, layer * unit) has the inner products of all units, layer after
    layer; every text has as many units as there are `weights` (text, unit), which sum to 1. The
    points of the barycenter are the coefficients times the units.
    """
    places, values, converged = sparse_coefficients(gram, weights, max_iterations)
    (texts, size), length = weights.shape, gram.shape[1]
    coefficients = np.zeros((texts, size * length + 1), gram.dtype)
    np.put_along_axis(coefficients, places, values.astype(gram.dtype, copy=False), axis=1)
    return coefficients[:, :-1].reshape(texts, size, length), converged


def sparse_coefficients(
    gram: Array, weights: Array, max_iterations: int = 1000
) -> tuple[Array, Array, Array]:
    """The same coefficients without those that are 0: places (text, entry), values, converged.

    A place counts the coefficients of a text; the one past the last says that there is no entry.
    """
    places, values, converged = kernels.barycenter_coefficients(gram, weights, max_iterations)
    return places.astype(np.int64), values, converged


def packed_barycenters(layers: Tensor, offsets: Array, weights: Array) -> tuple[Tensor, Array]:
    """Barycenter points (unit, dim) of texts packed end to end, and which texts (text,) settled.

    `layers` is (unit, layer, dim), `weights` (unit,); a text whose units weigh nothing has none. On
    a GPU most barycenters of equal masses are proved there to be the mean over the layers, where
    each point stays with its own unit in every layer; only the others are matched.
    """
    import torch

    from freight.transport.devices import has_kernels, vectors_on_device

    sizes = np.diff(offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    left = np.bincount(owner, weights, len(sizes)) > 0
    settled = np.ones(len(sizes), bool)
    solve, kind = (_mixed, torch.float32) if layers.is_cuda else (_exact, torch.float64)
    points = layers.new_zeros((len(owner), layers.shape[2]), dtype=kind)
    if has_kernels(layers):
        equal = np.flatnonzero(left & _equal_masses(weights, offsets))
        points = layers.mean(dim=1)
        kept = vectors_on_device().keep_their_units(layers, points, offsets[equal], sizes[equal])
        left[equal[kept]] = False
    for same, (moved, converged) in solve(_same_sizes(layers, offsets, left), weights):
        points[same.where], settled[same.texts] = moved, converged
    return points, settled


def _equal_masses(weights: Array, offsets: Array) -> Array:
    """Whether all units of a text have the same mass (text,)."""
    sizes, unequal = np.diff(offsets), np.zeros(len(offsets) - 1)
    first = np.repeat(weights[np.minimum(offsets[:-1], len(weights) - 1)], sizes)
    np.add.at(unequal, np.repeat(np.arange(len(sizes)), sizes), weights != first)
    result: Array = unequal == 0
    return result


class _SameSize(NamedTuple):
    """Texts of one size, their units (text, unit), and the layers of these."""

    texts: Array
    units: Array
    where: Tensor
    layers: Tensor  # (text, layer, unit, dim)


_Settled = Iterator[tuple[_SameSize, "tuple[Tensor, Array]"]]
"""Texts with the points (text, unit, dim) of their barycenters, and which have settled."""


def _same_sizes(layers: Tensor, offsets: Array, kept: Array) -> Iterator[_SameSize]:
    """Those of one size together, at most as many as have so many inner products."""
    sizes, depth = np.diff(offsets), layers.shape[1]
    for size in np.unique(sizes[kept]):
        same = np.flatnonzero((sizes == size) & kept)
        rows = max(1, _CELLS // (depth * int(size)) ** 2)
        for start in range(0, len(same), rows):
            texts = same[start : start + rows]
            units = offsets[texts][:, None] + np.arange(size)
            where = send_to_device(units, layers.device)
            yield _SameSize(texts, units, where, layers[where].transpose(1, 2))


def _exact(batches: Iterable[_SameSize], weights: Array) -> _Settled:
    """All in double precision."""
    import torch

    for same in batches:
        bary = barycenter(same.layers.numpy(), weights[same.units], strict=False)
        yield same, (torch.as_tensor(bary.points), bary.converged)


def _mixed(batches: Iterable[_SameSize], weights: Array) -> _Settled:
    """On a GPU, where only inner products are fetched, and coefficients that are not 0 sent.

    Those of the next texts are computed while the CPU matches the last ones. Inner products of
    single precision would move points back and forth where units are close.
    """
    from freight.transport.devices import read_ahead

    def match(same: _SameSize) -> tuple[_SameSize, Tensor, Future[tuple[Array, ...]]]:
        flat = same.layers.flatten(1, 2).double()
        gram = fetch_array(flat @ flat.mT)
        return same, flat, worker.submit(sparse_coefficients, gram, weights[same.units])

    with ThreadPoolExecutor(1) as worker:
        for same, flat, work in read_ahead(map(match, batches), room=2):
            places, values, settled = work.result()
            (count, size), length = same.units.shape, flat.shape[1]
            shares = flat.new_zeros((count, size * length + 1))
            shares.scatter_(1, *(send_to_device(x, flat.device) for x in (places, values)))
            dense = shares[:, :-1].reshape(count, size, length)
            yield same, ((dense @ flat).float(), settled)


def _normalize_masses(weights: Numbers | None, inside: Array, single: bool) -> Array:
    """Masses (text, n) that sum to 1 per text and are 0 past its size."""
    if weights is None:
        return inside / inside.sum(axis=1, keepdims=True)
    mass = to_array(weights).astype(np.float64)
    mass = mass[None] if single else mass
    if mass.shape != inside.shape:
        raise InvalidInput(f"weights has shape {mass.shape}, the points need {inside.shape}")
    mass = np.where(inside, mass, 0.0)
    if not np.isfinite(mass).all() or (mass < 0).any():
        raise InvalidInput("weights must be finite and not negative")
    totals = mass.sum(axis=1, keepdims=True)
    if (totals == 0).any():
        raise InvalidInput(f"the weights of text {int(np.argmin(totals))} are all 0")
    result: Array = mass / totals
    return result
