"""Solve transport problems: check the batch, choose the solver, return the plans.

    minimise <C,P> + hyp KL(P1|a) + ref KL(P'1|b) + epsilon sum(P log P - P)  over P >= 0

C is the cost matrix and P the plan, with row sums P1 and column sums P'1; a and b are the masses of
hyp and ref, `hyp` and `ref` the penalties on their marginals (POT's `reg_m`).

| epsilon | marginals | solver |
| --- | --- | --- |
| 0 | both hard | `simplex`: transportation simplex |
| 0 | one free | `nearest`: each unit to its nearest neighbour |
| 0 | otherwise | `interior_point`: primal-dual interior point |
| above 0 | any, on the CPU | `sinkhorn`: over-relaxed sweeps, then Newton |
| above 0 | any, on a GPU or with gradients | `sinkhorn_torch` |

A sweep is one Sinkhorn iteration: it updates the potential f of hyp, then g of ref. On a GPU
`triton_solvers` solves entropic problems without a hard marginal and exact ones with a free
marginal, up to 1,024 units on a side, and does the sweeps of entropic ones with a hard marginal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Never

import numpy as np
import torch
from torch import Tensor

from freight import kernels
from freight.errors import InvalidInput, NotConverged
from freight.transport.devices import DevicePlans
from freight.transport.gradients import attach_gradient, refuse_gradient
from freight.transport.sinkhorn_torch import sinkhorn_tensors
from freight.transport.types import (
    Array,
    Batch,
    Numbers,
    Plans,
    Problem,
    Solved,
    SparsePlans,
    Terms,
    check_data,
    check_shapes,
    check_sizes,
    fetch_array,
    like,
    send_to_device,
    to_array,
    to_numbers,
)

__all__ = ["solve", "solve_in_arrays", "solve_on_device", "solves_on_device"]


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
    """Solve one transport problem, or a padded batch of problems of the same form.

    `cost` is (n, m) with masses (n,) and (m,), or (pair, n, m) with masses (pair, n) and (pair, m);
    numpy arrays or torch tensors, and the plans are of the same kind. Every combination of hard,
    KL-relaxed and free marginals, exact or entropic, is a `Problem` and is solved to a duality gap:

    >>> cost, a, b = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5, 0.5]), np.array([0.2, 0.8])
    >>> plan = solve(Problem(), cost, a, b)
    >>> plan.flow
    array([[0.2, 0.3],
           [0. , 0.5]])
    >>> round(plan.transport, 12), plan.converged
    (0.3, True)

    In a batch, units at and past `hyp_sizes` and `ref_sizes` do not exist, whatever the padding
    contains. Costs may be negative; masses need not sum to 1, but two hard marginals need equal
    totals.

    A plan is converged when its duality gap is at most tolerance * (1 + |value|). With `strict` a
    problem that does not get there within `max_iterations` raises `NotConverged`; without, look
    at `converged`.

    Tensors are solved on their own device where epsilon > 0 and they are on a GPU or require
    gradients, else on the CPU. Gradients reach cost and masses through everything computed from an
    entropic plan; at epsilon = 0 they reach the cost through `objective` (and through `transport`,
    where no marginal is KL-relaxed).
    """
    if unknown:
        raise InvalidInput(
            f"solve has no option {next(iter(unknown))!r};"
            " there is tolerance, max_iterations, strict"
        )
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
        solved = _solve_tensors(problem, batch, terms, single)
    else:
        check_data(batch, terms, single)
        solved = _solve_arrays(batch, terms)
    _raise_unconverged(solved, strict)
    flow, gap, converged = solved
    if single:
        flow, gap, converged = flow[0], gap[0].item(), converged[0].item()
    sizes = batch.hyp_sizes, batch.ref_sizes
    return Plans(problem, given[0], given[1], given[2], *sizes, flow, gap, converged)


def solves_on_device(problem: Problem, cost: Tensor) -> bool:
    """Whether a Triton kernel solves these, bitwise the same whatever else is in the batch."""
    hard, free = math.inf in (problem.hyp, problem.ref), 0.0 in (problem.hyp, problem.ref)
    return (not hard if problem.epsilon > 0 else free) and _fits_kernels(cost)


def _fits_kernels(cost: Tensor) -> bool:
    """Whether costs are on a GPU that has the kernels, and narrow enough for them."""
    if not cost.is_cuda or _triton_solvers() is None:
        return False
    narrow: bool = max(cost.shape[1:]) <= _triton_solvers().WIDEST
    return narrow


def solve_on_device(
    problems: Sequence[Problem],
    cost: Tensor,
    masses: tuple[Array, Array],
    sizes: tuple[Array, Array],
    max_iterations: int = 1000,
) -> list[DevicePlans]:
    """Plans of problems that a kernel solves; all of them together are waited for once.

    What does not converge there is solved on the CPU, except where a cost is not a number.
    """
    solvers, device = _triton_solvers(), cost.device
    hyp, ref = (send_to_device(mass, device) for mass in masses)
    data = cost, hyp, ref, *send_to_device(np.stack(sizes), device)
    flows, results = [], []
    for problem in problems:
        terms = Terms(problem.hyp, problem.ref, problem.epsilon, 1e-9, max_iterations)
        if problem.epsilon > 0.0:
            flow, result, _ = solvers.sinkhorn_on_device(terms, data)
            flows.append(partial(_kept, flow))
        else:
            _, result = solvers.nearest_on_device(terms, data)
            flows.append(partial(_nearest_flow, terms, data))
        results.append(result)
    fetched = fetch_array(torch.stack(results))
    given = zip(problems, flows, fetched, strict=True)
    plans = [DevicePlans(problem, cost, masses, sizes, *one) for problem, *one in given]
    for plan in plans:
        rest = np.flatnonzero(~plan.converged)
        if not len(rest):
            continue
        costs = fetch_array(cost[send_to_device(rest, device)].double())
        known = ~(np.isnan(costs) & _inside(costs, sizes, rest)).any(axis=(1, 2))
        if known.any():
            parts = [x[rest[known]] for x in (*masses, *sizes)]
            plan.mend(rest[known], solve(plan.problem, costs[known], *parts, strict=False))
    return plans


def solve_in_arrays(
    problems: Sequence[Problem],
    cost: Array,
    masses: tuple[Array, Array],
    sizes: tuple[Array, Array],
    sparse: bool = False,
) -> list[Plans]:
    """Plans of the same costs; a problem with a cost that is not a number has not converged.

    Where they are `sparse`, a plan of hard marginals is kept by its entries alone: beside a GPU,
    where every thread has problems of its own, large arrays take longer than their problems.
    """
    exact = [sparse and problem == Problem() for problem in problems]
    if all(exact) and (plans := _solve_sparse(cost, masses, sizes)):
        return [plans] * len(problems)
    array = cost.astype(np.float64, copy=False)
    unknown = np.any(np.isnan(array), axis=(1, 2))
    if unknown.any():
        array = np.where(unknown[:, None, None], 0.0, array)
    solved = [solve(problem, array, *masses, *sizes, strict=False) for problem in problems]
    return [replace(plan, converged=plan.converged & ~unknown) for plan in solved]


def _solve_sparse(
    cost: Array, masses: tuple[Array, Array], sizes: tuple[Array, Array]
) -> SparsePlans | None:
    """Exact plans of hard marginals by their entries; None where some data are invalid."""
    batch, terms = Batch(cost, *masses, *sizes), Terms(math.inf, math.inf, 0.0, 1e-9, 1000)
    if kernels.find_faults(batch, math.inf, math.inf, 1e-9).any():
        return None
    return SparsePlans(batch, *kernels.simplex_entries(batch, terms))


def _inside(costs: Array, sizes: tuple[Array, Array], which: Array) -> Array:
    """Whether costs (pair, n, m) are between units that exist."""
    hyp, ref = (
        np.arange(width) < size[which, None]
        for width, size in zip(costs.shape[1:], sizes, strict=True)
    )
    inside: Array = hyp[:, :, None] & ref[:, None, :]
    return inside


def _kept(flow: Tensor) -> Tensor:
    return flow


def _nearest_flow(terms: Terms, data: tuple[Tensor, ...]) -> Tensor:
    flow = torch.zeros(data[0].shape, dtype=torch.float64, device=data[0].device)
    _triton_solvers().nearest_on_device(terms, data, flow)
    return flow


def _raise_unconverged(solved: Solved, strict: bool) -> None:
    if not strict:
        return
    converged = to_array(solved.converged)
    if converged.all():
        return
    bad = np.flatnonzero(~converged)
    raise NotConverged(
        f"{bad.size} of {converged.size} problems (the first is {bad[0]}) did not converge: the"
        f" largest gap is {float(np.nanmax(to_array(solved.gap))):.3g}; raise max_iterations or"
        " tolerance, or pass strict=False and look at `converged`"
    )


def _solve_arrays(batch: Batch, terms: Terms) -> Solved:
    """Solve a checked batch on the CPU, in float64."""
    if terms.epsilon > 0.0:
        solver = kernels.sinkhorn
    elif terms.hyp == 0.0 or terms.ref == 0.0:
        solver = kernels.nearest
    elif terms.hyp == terms.ref == np.inf:
        solver = kernels.simplex
    else:
        solver = kernels.interior_point
    return Solved(*solver(batch, terms))


def _solve_tensors(problem: Problem, batch: Batch, terms: Terms, single: bool) -> Solved:
    """Solve on the device where that is faster or gradients are wanted, else on the CPU."""
    cost: Any = batch.cost
    tracked = [x.requires_grad for x in batch[:3]]  # type: ignore[attr-defined]
    if problem.epsilon > 0 and (cost.is_cuda or any(tracked)):
        return _solve_entropic(problem, batch, terms, single)
    for name, tracks, penalty in zip(
        ("hyp", "ref"), tracked[1:], (terms.hyp, terms.ref), strict=True
    ):
        if tracks and penalty == math.inf:
            raise InvalidInput(
                f"the masses of a hard marginal have gradients only with epsilon > 0; detach"
                f" {name}_weights, or give the problem an epsilon above 0"
            )
    if solves_on_device(problem, cost):
        with torch.no_grad():
            there = torch.zeros(cost.shape, dtype=torch.float64, device=cost.device)
            there, results = _triton_solvers().nearest_on_device(terms, _on_device(batch), there)
            solved: Any = _finish_on_cpu(_judged(there, results), batch, terms, single)
    else:
        arrays = _to_arrays(batch)
        check_data(arrays, terms, single)
        solved = _solve_arrays(arrays, terms)
    flow, gap, converged = (like(x, cost) for x in solved)
    if tracked[0] and any(0 < x < math.inf for x in (terms.hyp, terms.ref)):
        flow = refuse_gradient(flow, cost)
    return Solved(flow, gap, converged)


def _to_arrays(batch: Batch) -> Batch:
    return Batch(*(to_array(x) for x in batch))


@cache
def _triton_solvers() -> Any:
    """The module of Triton kernels, or None where `triton` is not installed or cannot compile."""
    try:
        from freight.transport import triton_solvers

        one = torch.ones((1, 1, 1), dtype=torch.float64, device="cuda")
        sizes = torch.ones(1, dtype=torch.int64, device="cuda")
        terms = Terms(1.0, 1.0, 1.0, 0.1, 8)
        triton_solvers.sinkhorn_on_device(terms, (one, one[0], one[0], sizes, sizes))
    except Exception:  # a compiler that is not set up raises what it likes
        return None
    return triton_solvers


def _on_device(batch: Batch) -> tuple[Tensor, ...]:
    """The batch as tensors on the device of its costs."""
    cost, hyp, ref = (torch.as_tensor(x) for x in batch[:3])
    return cost, hyp, ref, *(send_to_device(size, cost.device) for size in batch[3:])


def _judged(flow: Tensor, results: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a kernel gives: the flow, its gap, and whether that is within the tolerance."""
    return flow, results[:, 0].clone(), results[:, 1] > 0.0


def _solve_entropic(problem: Problem, batch: Batch, terms: Terms, single: bool) -> Solved:
    cost, hyp_weights, ref_weights = (torch.as_tensor(x) for x in batch[:3])
    with torch.no_grad():
        if solves_on_device(problem, cost):
            there, results, _ = _triton_solvers().sinkhorn_on_device(terms, _on_device(batch))
            solved = _judged(there, results)
        else:
            solved = _solve_by_sweeps(problem, batch, terms, single)
        flow, gap, converged = _finish_on_cpu(solved, batch, terms, single)
    if any(x.requires_grad for x in (cost, hyp_weights, ref_weights)):
        flow = attach_gradient(problem, cost, hyp_weights, ref_weights, flow)
    return Solved(flow.to(cost.dtype), gap.to(cost.dtype), converged)  # type: ignore[arg-type]


def _solve_by_sweeps(
    problem: Problem, batch: Batch, terms: Terms, single: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Sweep over all problems of the batch at once."""
    cost, hyp_weights, ref_weights = (torch.as_tensor(x) for x in batch[:3])
    hyp_inside, ref_inside = (
        torch.arange(width, device=cost.device) < torch.as_tensor(size, device=cost.device)[:, None]
        for width, size in zip(cost.shape[1:], batch[3:], strict=True)
    )
    hyp = hyp_weights.where(hyp_inside, 0.0)
    ref = ref_weights.where(ref_inside, 0.0)
    inside = hyp_inside[:, :, None] & ref_inside[:, None, :]
    clean = cost.where(inside, 0.0)
    balanced = problem.hyp == problem.ref == math.inf
    if not _is_sound(clean, hyp, ref, balanced):
        check_data(_to_arrays(batch), terms, single)
    if balanced:
        ref = ref * (hyp.sum(-1, keepdim=True) / ref.sum(-1, keepdim=True))
    hyp_present = hyp > 0 if terms.hyp else hyp_inside
    ref_present = ref > 0 if terms.ref else ref_inside
    sweep = None
    # Few wide problems are too few programs to fill a GPU.
    if _fits_kernels(cost) and max(cost.shape[1:]) <= 64 * len(cost):
        sizes = [send_to_device(size, cost.device) for size in batch[3:]]
        sweep = partial(_sweep_on_device, terms, (clean, hyp, ref, *sizes))
    return sinkhorn_tensors(problem, terms, clean, hyp, ref, hyp_present, ref_present, sweep)


def _sweep_on_device(terms: Terms, data: tuple[Tensor, ...], aim: float) -> Sequence[Tensor]:
    """The potentials after the sweeps of a kernel."""
    _, _, potentials = _triton_solvers().sinkhorn_on_device(terms, data, aim)
    return potentials.split([*data[0].shape[1:]], dim=1)


def _is_sound(cost: Tensor, hyp: Tensor, ref: Tensor, balanced: bool) -> bool:
    """A quick check on the device; the one that names the culprit is on the CPU."""
    fine = cost.isfinite().all()
    if balanced:
        fine = fine & torch.allclose(hyp.sum(-1), ref.sum(-1), rtol=1e-9, atol=0.0)
    for mass in (hyp, ref):
        fine = fine & mass.isfinite().all() & (mass >= 0).all() & (mass.sum(-1) > 0).all()
    return bool(fine)


def _finish_on_cpu(
    solved: tuple[Tensor, Tensor, Tensor], batch: Batch, terms: Terms, single: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve again, by the Newton steps of the CPU, what did not converge on the device."""
    flow, gap, converged = solved
    if bool(converged.all()):
        return solved
    arrays = _to_arrays(batch)
    check_data(arrays, terms, single)
    unfinished = (~converged).nonzero()[:, 0]
    rest = Batch(*(x[to_array(unfinished)] for x in arrays))
    again = (torch.as_tensor(x, device=flow.device) for x in _solve_arrays(rest, terms))
    flow[unfinished], gap[unfinished], converged[unfinished] = again
    return flow, gap, converged
