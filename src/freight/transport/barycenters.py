"""Free-support Wasserstein-2 barycenters: the layers of a text become one cloud of as many points.

The fixed point iteration of Alvarez-Esteban et al. (2016) with exact plans: match the points to
every layer, move each to the mean of what it is matched to, repeat until nothing moves. It starts
from the unit-wise mean over the layers, which depends neither on the order of the units nor on how
a solver breaks ties; the problem has many local optima, so the start is part of the definition.

`barycenter` takes the points themselves; `barycenter_coefficients` takes only their inner products
and returns each barycenter point as a combination of the units, for points that stay on a GPU or
that need gradients.
"""

from __future__ import annotations

from typing import Never

import numpy as np

from freight import kernels
from freight.errors import InvalidInput, NotConverged
from freight.transport.types import (
    Array,
    Barycenters,
    Numbers,
    check_sizes,
    like,
    to_array,
    to_numbers,
)

__all__ = ["barycenter", "barycenter_coefficients", "sparse_coefficients"]


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
