"""Free-support Wasserstein-2 barycentres: a text's layers become one cloud of as many points.

The fixed point of Alvarez-Esteban et al. (2016) with exact plans: match the points to every layer,
move each to the mean of what it was matched to, repeat until nothing moves. The start is the
unit-wise mean over the layers, which depends neither on the order of the units nor on how a solver
breaks ties; the problem has many local optima, so it is part of the definition.

Row and column constants change no plan, so inner products do for squared distances. A plan of the
simplex has at most two entries a unit, so moving the points costs next to nothing.
"""

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel, one_at_a_time, summing
from freight.transport.batches import equalise, gather, present
from freight.transport.elementary import dot
from freight.transport.simplex import improve, plant
from freight.transport.types import Array

_DISPLACEMENT = 1e-14


@batch_kernel
def barycenter_batch(
    layers: Array,
    weights: Array,
    sizes: Array,
    cap: int,
    points: Array,
    objective: Array,
    converged: Array,
) -> None:
    """Solve padded texts (text, layer, unit, dim) into points, objective (mean W2^2), converged."""
    for k in prange(layers.shape[0]):
        kept = present(weights[k], sizes[k], np.inf)
        mass = gather(weights[k], kept)
        stack, where = _compact(layers[k], sizes[k])
        objective[k], converged[k] = _settle(stack, kept, mass, cap, where)
        points[k, : sizes[k]] = where


@kernel
def _compact(layers: Array, size: int) -> tuple[Array, Array]:
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
def _settle(stack: Array, kept: Array, mass: Array, cap: int, where: Array) -> tuple[float, bool]:
    """Move the points until they stay; the objective where they are, and if they stay."""
    depth, size, dim = stack.shape
    spread = _spread(stack, kept, mass) / depth
    uniform = np.full(size, 1.0 / size)
    equalise(uniform, mass)
    # The masses stay the same, so each layer goes on from the tree of the step before.
    links = np.empty((depth, 5, size + kept.size), np.int64)
    flow = np.empty((depth, size + kept.size), np.int64)
    value = np.inf
    for step in range(cap):
        square = 0.0
        for i in range(size):
            square += dot(where[i], where[i]) / size
        if not np.isfinite(spread + square):
            return np.nan, False
        moved = np.zeros((size, dim))
        crossing, exact = 0.0, True
        for layer in range(depth):
            cost = _match(where, stack[layer], kept)
            if step == 0:
                links[layer], flow[layer] = plant(cost, uniform, mass)
            plan = np.zeros(cost.shape)
            gap, total = improve(cost, uniform, mass, links[layer], flow[layer], 1000, plan)
            exact = exact and gap <= 1e-9 * (1.0 + abs(total))
            crossing -= total / depth
            _gather_points(plan, stack[layer], kept, size / depth, moved)
        value = max(spread + square - 2.0 * crossing, 0.0)
        displacement = 0.0
        for i in range(size):
            displacement += _distance(moved[i], where[i])
        where[:] = moved
        if displacement < _DISPLACEMENT:
            return value, exact
    return value, False


@kernel
def _spread(stack: Array, kept: Array, mass: Array) -> float:
    total = 0.0
    for layer in range(stack.shape[0]):
        for j in range(kept.size):
            total += mass[j] * dot(stack[layer, kept[j]], stack[layer, kept[j]])
    return total


@summing
def _match(where: Array, layer: Array, kept: Array) -> Array:
    """Minus the inner products of the points with a layer's units that have mass.

    Three points against four units at a time: twelve sums fill the registers, and each number
    loaded is used three or four times. A ragged edge does its last unit again.
    """
    size, count = where.shape[0], kept.size
    cost = np.empty((size, count))
    for i in range(0, size, 3):
        j, k = min(i + 1, size - 1), min(i + 2, size - 1)
        for p in range(0, count, 4):
            q, r, s = min(p + 1, count - 1), min(p + 2, count - 1), min(p + 3, count - 1)
            ip = iq = ir = is_ = jp = jq = jr = js = kp = kq = kr = ks = 0.0
            for d in range(where.shape[1]):
                a, b, c = where[i, d], where[j, d], where[k, d]
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
def _gather_points(plan: Array, layer: Array, kept: Array, scale: float, moved: Array) -> None:
    for i in range(plan.shape[0]):
        for j in range(plan.shape[1]):
            if plan[i, j] > 0.0:
                _add(moved[i], layer[kept[j]], plan[i, j] * scale)


@summing
def _add(total: Array, vector: Array, scale: float) -> None:
    for d in range(total.size):
        total[d] += scale * vector[d]


@summing
def _distance(a: Array, b: Array) -> float:
    total = 0.0
    for d in range(a.size):
        total += (a[d] - b[d]) ** 2
    return total


_SAME = 1e-12


def mixtures(gram: Array, weights: Array, max_iterations: int = 1000) -> tuple[Array, Array]:
    """Coefficients (text, unit, layer * unit) and whether each text's points stay where they are.

    `gram` (text, layer * unit, layer * unit) is of layers end to end; all texts have as many units
    as there are `weights` (text, unit).
    """
    texts, size = weights.shape
    found = np.zeros((texts, size, gram.shape[1]), gram.dtype)
    converged = np.empty(texts, bool)
    with one_at_a_time():
        _mixtures(gram, weights, max_iterations, found, converged)
    return found, converged


@batch_kernel
def _mixtures(gram: Array, weights: Array, cap: int, found: Array, converged: Array) -> None:
    size = weights.shape[1]
    for k in prange(gram.shape[0]):
        kept = present(weights[k], size, np.inf)
        mass = gather(weights[k], kept)
        mix = np.zeros((size, gram.shape[1]))
        converged[k] = _settle_products(gram[k], kept, mass, cap, mix)
        found[k] = mix


@kernel
def _settle_products(gram: Array, kept: Array, mass: Array, cap: int, mix: Array) -> bool:
    """Change the mixtures until they stay; whether they do, and every plan was exact."""
    size, depth = mix.shape[0], mix.shape[1] // mix.shape[0]
    for i in range(size):
        for layer in range(depth):
            mix[i, layer * size + i] = 1.0 / depth
    uniform = np.full(size, 1.0 / size)
    equalise(uniform, mass)
    links = np.empty((depth, 5, size + kept.size), np.int64)
    flow = np.empty((depth, size + kept.size), np.int64)
    for step in range(cap):
        products = _products(mix, gram)
        if not np.isfinite(products.sum()):
            return False
        moved = np.zeros(mix.shape)
        exact = True
        for layer in range(depth):
            cost = np.empty((size, kept.size))
            for i in range(size):
                for j in range(kept.size):
                    cost[i, j] = -products[i, layer * size + kept[j]]
            if step == 0:
                links[layer], flow[layer] = plant(cost, uniform, mass)
            plan = np.zeros(cost.shape)
            gap, total = improve(cost, uniform, mass, links[layer], flow[layer], 1000, plan)
            exact = exact and gap <= 1e-9 * (1.0 + abs(total))
            for i in range(size):
                for j in range(kept.size):
                    moved[i, layer * size + kept[j]] = plan[i, j] * size / depth
        change = np.abs(moved - mix).max()
        mix[:] = moved
        if change < _SAME:
            return exact
    return False


@kernel
def _products(mix: Array, gram: Array) -> Array:
    """Inner products of the mixtures with all units; few of their coefficients are not 0."""
    found = np.zeros(mix.shape)
    for i in range(mix.shape[0]):
        for p in range(mix.shape[1]):
            share = mix[i, p]
            if share != 0.0:
                for q in range(mix.shape[1]):
                    found[i, q] += share * gram[p, q]
    return found
