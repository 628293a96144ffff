"""Free-support Wasserstein-2 barycentres: a text's layers become one cloud of as many points.

Alvarez-Esteban et al.'s fixed point (Cuturi and Doucet's, with plans that are exact): match the
points to every layer, move each point to the mean of what it was matched to, repeat until nothing
moves. The start is the unit-wise mean over the layers, which depends neither on the order of the
units nor on how a solver breaks ties; the problem has many local optima, so it is part of the
definition. All texts of a batch, and all their layers, are matched in one call of the simplex.
"""

import numpy as np

from freight.kernels import PARALLEL
from freight.solvers.batches import Batch, Terms
from freight.solvers.simplex import simplex_batch
from freight.types import Array

_DISPLACEMENT = 1e-14


def barycenters(
    layers: Array, weights: Array, sizes: Array, cap: int
) -> tuple[Array, Array, Array]:
    """Points (text, unit, dim), objective and converged for layers (text, layer, unit, dim)."""
    inside = np.arange(layers.shape[2]) < sizes[:, None]
    layers = np.where(inside[:, None, :, None], layers, 0.0)
    points = layers.mean(axis=1)
    converged = np.zeros(len(layers), bool)
    objective = np.empty(len(layers))
    moving = np.arange(len(layers))
    for _ in range(cap):
        batch, mass, size = layers[moving], weights[moving], sizes[moving]
        moved, objective[moving], exact = _move(points[moving], batch, mass, size)
        displacement = ((moved - points[moving]) ** 2).sum(axis=(1, 2))
        points[moving] = moved
        converged[moving] = (displacement < _DISPLACEMENT) & exact
        moving = moving[~converged[moving]]
        if not moving.size:
            break
    return points, objective, converged


def _move(points: Array, layers: Array, weights: Array, sizes: Array) -> tuple[Array, Array, Array]:
    """One step, the mean squared distance of the points before it to their layers, and if exact."""
    texts, depth, width, _ = layers.shape
    uniform = (np.arange(width) < sizes[:, None]) / sizes[:, None]
    # Row and column constants change no plan, so inner products will do for the squared distances.
    products = layers @ points[:, None].swapaxes(-1, -2)
    flow = np.zeros((texts * depth, width, width))
    repeat = np.repeat(sizes, depth)
    batch = Batch(
        -products.swapaxes(-1, -2).reshape(flow.shape),
        np.repeat(uniform, depth, axis=0),
        np.repeat(weights, depth, axis=0),
        repeat,
        repeat,
    )
    gap, solved = np.empty(len(flow)), np.empty(len(flow), bool)
    with PARALLEL:
        simplex_batch(batch, Terms(np.inf, np.inf, 0.0, 1e-9, 1000), flow, gap, solved)
    flow = flow.reshape(texts, depth, width, width)
    moved = (flow @ layers).mean(axis=1) * sizes[:, None, None]
    squares = np.einsum("tu,tud,tud->t", uniform, points, points)
    squares += np.einsum("tu,tlud,tlud->t", weights, layers, layers) / depth
    crossing = np.einsum("tlij,tlji->t", flow, products) / depth
    exact: Array = np.all(solved.reshape(texts, depth), axis=1)
    return moved, np.maximum(squares - 2.0 * crossing, 0.0), exact
