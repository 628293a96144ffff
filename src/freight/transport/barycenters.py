"""Free-support Wasserstein-2 barycenters: the layers of a text become one cloud of as many points.

The fixed point iteration of Alvarez-Esteban et al. (2016) with exact plans: match the points to
every layer, move each to the mean of what it is matched to, repeat until nothing moves. It starts
from the unit-wise mean over the layers, which depends neither on the order of the units nor on how
a solver breaks ties; the problem has many local optima, so the start is part of the definition.

Terms that depend on a row or a column alone change no plan, so negated inner products serve as the
cost in place of squared distances. A plan of the simplex has few entries per unit, so moving the
points costs next to nothing.

`barycenter` takes the points themselves; `barycenter_coefficients` takes only their inner products
and returns each barycenter point as a combination of the units, for points that stay on a GPU or
that need gradients.
"""

from typing import Never

import numpy as np
from numba import prange

from freight.errors import InvalidInput, NotConverged
from freight.kernels import batch_kernel, kernel, one_at_a_time, summing
from freight.transport.batches import (
    balance_totals,
    check_sizes,
    compact_weights,
    like,
    support,
    to_array,
    to_numbers,
)
from freight.transport.elementary import dot
from freight.transport.simplex import initial_tree, solve_from_tree
from freight.transport.types import Array, Barycenters, Numbers

__all__ = ["barycenter", "barycenter_coefficients"]

_DISPLACEMENT = 1e-14  # squared, of all points together
_SAME = 1e-12  # the largest change of a coefficient


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
    positions, objective = np.zeros((texts, width, dim)), np.empty(texts)
    converged = np.empty(texts, bool)
    with one_at_a_time():
        _barycenter_batch(layers, mass, count, max_iterations, positions, objective, converged)
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
    texts, size = weights.shape
    coefficients = np.zeros((texts, size, gram.shape[1]), gram.dtype)
    converged = np.empty(texts, bool)
    with one_at_a_time():
        _coefficients_batch(gram, weights, max_iterations, coefficients, converged)
    return coefficients, converged


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


@batch_kernel
def _barycenter_batch(
    layers: Array,
    weights: Array,
    sizes: Array,
    max_iterations: int,
    points: Array,
    objective: Array,
    converged: Array,
) -> None:
    """Solve padded texts (text, layer, unit, dim) into points, objective (mean W2^2), converged."""
    for k in prange(layers.shape[0]):
        kept = support(weights[k], sizes[k], np.inf)
        mass = compact_weights(weights[k], kept)
        stack, positions = _stack_layers(layers[k], sizes[k])
        objective[k], converged[k] = _iterate_points(stack, kept, mass, max_iterations, positions)
        points[k, : sizes[k]] = positions


@kernel
def _stack_layers(layers: Array, size: int) -> tuple[Array, Array]:
    """The layers without padding, in float64, and their unit-wise mean."""
    depth, _, dim = layers.shape
    stack, mean = np.empty((depth, size, dim)), np.zeros((size, dim))
    for layer in range(depth):
        for unit in range(size):
            _copy_and_add(layers[layer, unit], stack[layer, unit], mean[unit], 1.0 / depth)
    return stack, mean


@summing
def _copy_and_add(source: Array, copy: Array, total: Array, scale: float) -> None:
    for d in range(source.size):
        x = np.float64(source[d])
        copy[d] = x
        total[d] += scale * x


@kernel
def _iterate_points(
    stack: Array, kept: Array, mass: Array, max_iterations: int, positions: Array
) -> tuple[float, bool]:
    """Move the points until they stay; the objective, and whether they stay and plans are exact."""
    depth, size, dim = stack.shape
    spread = _spread(stack, kept, mass) / depth
    uniform = np.full(size, 1.0 / size)
    balance_totals(uniform, mass)
    # The masses never change, so each layer starts from its optimal tree of the step before.
    links = np.empty((depth, 5, size + kept.size), np.int64)
    flow = np.empty((depth, size + kept.size), np.int64)
    value = np.inf
    for step in range(max_iterations):
        square = 0.0
        for i in range(size):
            square += dot(positions[i], positions[i]) / size
        if not np.isfinite(spread + square):
            return np.nan, False
        moved = np.zeros((size, dim))
        crossing, exact = 0.0, True
        for layer in range(depth):
            cost = _negated_products(positions, stack[layer], kept)
            if step == 0:
                links[layer], flow[layer] = initial_tree(cost, uniform, mass)
            plan = np.zeros(cost.shape)
            gap, total = solve_from_tree(cost, uniform, mass, links[layer], flow[layer], 1000, plan)
            exact = exact and gap <= 1e-9 * (1.0 + abs(total))
            crossing -= total / depth
            _add_matched(plan, stack[layer], kept, size / depth, moved)
        value = max(spread + square - 2.0 * crossing, 0.0)
        displacement = 0.0
        for i in range(size):
            displacement += _squared_distance(moved[i], positions[i])
        positions[:] = moved
        if displacement < _DISPLACEMENT:
            return value, exact
    return value, False


@kernel
def _spread(stack: Array, kept: Array, mass: Array) -> float:
    """The sum over the layers of the mean squared norm of their units."""
    total = 0.0
    for layer in range(stack.shape[0]):
        for j in range(kept.size):
            total += mass[j] * dot(stack[layer, kept[j]], stack[layer, kept[j]])
    return total


@summing
def _negated_products(positions: Array, layer: Array, kept: Array) -> Array:
    """The negated inner products of the points with the units of a layer that have mass.

    Three points against four units at a time: twelve sums fill the registers, and each number
    loaded is used three or four times. At the edge the last unit is computed again.
    """
    size, count = positions.shape[0], kept.size
    cost = np.empty((size, count))
    for i in range(0, size, 3):
        j, k = min(i + 1, size - 1), min(i + 2, size - 1)
        for p in range(0, count, 4):
            q, r, s = min(p + 1, count - 1), min(p + 2, count - 1), min(p + 3, count - 1)
            ip = iq = ir = is_ = jp = jq = jr = js = kp = kq = kr = ks = 0.0
            for d in range(positions.shape[1]):
                a, b, c = positions[i, d], positions[j, d], positions[k, d]
                w, x = layer[kept[p], d], layer[kept[q], d]
                y, z = layer[kept[r], d], layer[kept[s], d]
                ip, iq, ir, is_ = ip - a * w, iq - a * x, ir - a * y, is_ - a * z
                jp, jq, jr, js = jp - b * w, jq - b * x, jr - b * y, js - b * z
                kp, kq, kr, ks = kp - c * w, kq - c * x, kr - c * y, ks - c * z
            cost[i, p], cost[i, q], cost[i, r], cost[i, s] = ip, iq, ir, is_
            cost[j, p], cost[j, q], cost[j, r], cost[j, s] = jp, jq, jr, js
            cost[k, p], cost[k, q], cost[k, r], cost[k, s] = kp, kq, kr, ks
    return cost


@kernel
def _add_matched(plan: Array, layer: Array, kept: Array, scale: float, moved: Array) -> None:
    """Add to each point the units that it is matched to, weighted by the plan."""
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            if plan[i, j] > 0.0:
                _add(moved[i], layer[kept[j]], plan[i, j] * scale)


@summing
def _add(total: Array, vector: Array, scale: float) -> None:
    for d in range(total.size):
        total[d] += scale * vector[d]


@summing
def _squared_distance(a: Array, b: Array) -> float:
    total = 0.0
    for d in range(a.size):
        total += (a[d] - b[d]) ** 2
    return total


@batch_kernel
def _coefficients_batch(
    gram: Array, weights: Array, max_iterations: int, out: Array, converged: Array
) -> None:
    size = weights.shape[1]
    for k in prange(gram.shape[0]):
        kept = support(weights[k], size, np.inf)
        mass = compact_weights(weights[k], kept)
        coefficients = np.zeros((size, gram.shape[1]))
        converged[k] = _iterate_coefficients(gram[k], kept, mass, max_iterations, coefficients)
        out[k] = coefficients


@kernel
def _iterate_coefficients(
    gram: Array, kept: Array, mass: Array, max_iterations: int, coefficients: Array
) -> bool:
    """Change the coefficients until they stay; whether they do and every plan was exact."""
    size, depth = coefficients.shape[0], coefficients.shape[1] // coefficients.shape[0]
    for i in range(size):
        for layer in range(depth):
            coefficients[i, layer * size + i] = 1.0 / depth
    uniform = np.full(size, 1.0 / size)
    balance_totals(uniform, mass)
    links = np.empty((depth, 5, size + kept.size), np.int64)
    flow = np.empty((depth, size + kept.size), np.int64)
    for step in range(max_iterations):
        products = _combine_products(coefficients, gram)
        if not np.isfinite(products.sum()):
            return False
        moved = np.zeros(coefficients.shape)
        exact = True
        for layer in range(depth):
            cost = np.empty((size, kept.size))
            for i in range(size):
                for j in range(kept.size):
                    cost[i, j] = -products[i, layer * size + kept[j]]
            if step == 0:
                links[layer], flow[layer] = initial_tree(cost, uniform, mass)
            plan = np.zeros(cost.shape)
            gap, total = solve_from_tree(cost, uniform, mass, links[layer], flow[layer], 1000, plan)
            exact = exact and gap <= 1e-9 * (1.0 + abs(total))
            for i in range(size):
                for j in range(kept.size):
                    moved[i, layer * size + kept[j]] = plan[i, j] * size / depth
        change = np.abs(moved - coefficients).max()
        coefficients[:] = moved
        if change < _SAME:
            return exact
    return False


@kernel
def _combine_products(coefficients: Array, gram: Array) -> Array:
    """Inner products of the points with all units; few of their coefficients are not 0."""
    out = np.zeros(coefficients.shape)
    for i in range(coefficients.shape[0]):
        for p in range(coefficients.shape[1]):
            share = coefficients[i, p]
            if share != 0.0:
                for q in range(coefficients.shape[1]):
                    out[i, q] += share * gram[p, q]
    return out
