"""Solvers for every transport problem of one form, and the choice between them.

minimise <C,P> + hyp KL(P1|a) + ref KL(P'1|b) + epsilon sum(P log P - P)  over P >= 0
"""

from collections.abc import Mapping
from typing import Never

import numpy as np
import torch

from freight.errors import InvalidInput, NotConverged
from freight.kernels import one_at_a_time
from freight.transport.arrays import solve_arrays
from freight.transport.barycenters import barycenter_batch
from freight.transport.batches import Batch, Solved, Terms, check_data, check_shapes, check_sizes
from freight.transport.tensors import like, solve_tensors, to_array, to_numbers
from freight.transport.types import Array, Barycenters, Numbers, Plans, Problem

__all__ = ["barycenter", "solve"]


def solve(
    problem: Problem,
    cost: Numbers,
    hyp_weights: Numbers,
    ref_weights: Numbers,
    hyp_sizes: Numbers | None = None,
    ref_sizes: Numbers | None = None,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 1000,
    strict: bool = True,
    **unknown: Never,
) -> Plans:
    """Solve one problem (n, m) or a padded batch (pair, n, m), numpy or torch, and return the same.

    Units past `hyp_sizes` and `ref_sizes` do not exist, whatever their cost or mass says. A plan is
    converged when its duality gap is at most tolerance * (1 + |value|). With `strict` a problem
    that is not raises `NotConverged`; otherwise look at `converged`.

    Tensors on a GPU, or that want gradients, stay tensors where epsilon > 0. Gradients flow to
    cost and masses through everything that is read off an entropic plan; at epsilon = 0 they flow
    to the cost through `objective` (and `transport`, where neither side is priced).
    """
    _refuse("solve", unknown, "tolerance, max_iterations, strict")
    if not isinstance(problem, Problem):
        raise InvalidInput(f"the first argument is a Problem(hyp, ref, epsilon), not {problem!r}")
    if not 0 < tolerance < 1 or max_iterations < 1:
        raise InvalidInput("tolerance lies between 0 and 1, max_iterations is at least 1")
    given = [to_numbers(x, cost) for x in (cost, hyp_weights, ref_weights)]
    single = given[0].ndim == 2
    data = [x[None] for x in given] if single else given
    check_shapes(*data)
    pairs, n, m = data[0].shape
    batch = Batch(
        data[0],
        data[1],
        data[2],
        check_sizes("hyp_", hyp_sizes, pairs, n),
        check_sizes("ref_", ref_sizes, pairs, m),
    )
    terms = Terms(problem.hyp, problem.ref, problem.epsilon, tolerance, max_iterations)
    if isinstance(given[0], torch.Tensor):
        solved = solve_tensors(problem, batch, terms, single)
    else:
        check_data(batch, terms, single)
        solved = solve_arrays(batch, terms)
    _complain(solved, strict)
    flow, gap, converged = solved
    if single:
        flow, gap, converged = flow[0], gap[0].item(), converged[0].item()
    sizes = batch.hyp_sizes, batch.ref_sizes
    return Plans(problem, given[0], given[1], given[2], *sizes, flow, gap, converged)


def barycenter(
    points: Numbers,
    weights: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    max_iterations: int = 1000,
    strict: bool = True,
    **unknown: Never,
) -> Barycenters:
    """Free-support Wasserstein-2 barycentres of points (text, layer, n, dim) or (layer, n, dim).

    The masses `weights` (text, n) are those of the units in every layer, uniform where none are
    given; the barycentre has n points of equal mass. `objective` is the mean over the layers of the
    squared distance to them.
    """
    _refuse("barycenter", unknown, "max_iterations, strict")
    layers = to_numbers(to_array(points), None)
    single = layers.ndim == 3
    layers = layers[None] if single else layers
    if layers.ndim != 4 or 0 in layers.shape:
        raise InvalidInput(
            f"points has shape {tuple(points.shape)}; give (text, layer, n, dim), none of them 0"
        )
    texts, _, width, dim = layers.shape
    count = check_sizes("", sizes, texts, width)
    mass = _masses(weights, np.arange(width) < count[:, None], single)
    where, objective = np.zeros((texts, width, dim)), np.empty(texts)
    converged = np.empty(texts, bool)
    with one_at_a_time():
        barycenter_batch(layers, mass, count, max_iterations, where, objective, converged)
    if not np.isfinite(objective).all():
        raise InvalidInput(
            f"the points of text {int(np.argmin(np.isfinite(objective)))} are not all finite"
        )
    if strict and not converged.all():
        raise NotConverged(_unfinished(converged, "still moving at max_iterations"))
    if single:
        return Barycenters(like(where[0], points), objective[0].item(), converged[0].item())
    return Barycenters(like(where, points), like(objective, points), like(converged, points))


def _refuse(function: str, unknown: Mapping[str, object], options: str) -> None:
    if unknown:
        raise InvalidInput(f"{function} has no option {next(iter(unknown))!r}; there is {options}")


def _masses(weights: Numbers | None, inside: Array, single: bool) -> Array:
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


def _complain(solved: Solved, strict: bool) -> None:
    converged = to_array(solved.converged)
    if strict and not converged.all():
        worst = float(np.nanmax(to_array(solved.gap)))
        raise NotConverged(
            _unfinished(converged, f"the largest gap is {worst:.3g}")
            + "; raise max_iterations or tolerance, or pass strict=False and look at `converged`"
        )


def _unfinished(converged: Array, why: str) -> str:
    bad = np.flatnonzero(~converged)
    return (
        f"{bad.size} of {converged.size} problems (the first is {bad[0]}) did not converge: {why}"
    )
