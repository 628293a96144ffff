"""Barycentres out of inner products alone: for vectors that lie on a GPU, or are very long.

The points of a free-support barycentre are mixtures of the units of all layers, so the Gram matrix
of those units says all that matching needs, and only it has to leave the GPU. What comes back are
the coefficients of the mixtures. The steps are those of `barycenters`, as are start and stop.
"""

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel, one_at_a_time
from freight.solvers.present import equalise, gather, present
from freight.solvers.simplex import improve, plant
from freight.types import Array

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
        converged[k] = _settle(gram[k], kept, mass, cap, mix)
        found[k] = mix


@kernel
def _settle(gram: Array, kept: Array, mass: Array, cap: int, mix: Array) -> bool:
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
