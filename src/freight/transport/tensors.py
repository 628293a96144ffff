"""Problems that come as tensors: what stays on their device, and what visits the CPU."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from freight.errors import InvalidInput
from freight.transport.arrays import solve_arrays
from freight.transport.batches import Batch, Solved, Terms, check_data
from freight.transport.devices import sent
from freight.transport.gradients import differentiable, without_gradient
from freight.transport.sinkhorn_torch import sinkhorn_tensors
from freight.transport.types import Array, Problem

_WIDEST = 64
"""Wider problems do not fit into the registers of one program."""


def to_array(x: Any) -> Array:
    """A numpy array of this, whatever it is."""
    return x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)


def to_numbers(x: Any, cost: Any) -> Any:
    """Floating numbers of the kind of the cost: a tensor beside it, or an array."""
    if isinstance(cost, Tensor):
        dtype = cost.dtype if cost.dtype in (torch.float32, torch.float64) else torch.float32
        return torch.as_tensor(x, device=cost.device, dtype=dtype)
    array = to_array(x)
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"numbers are wanted, not {array.dtype}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def like(x: Array, kind: Any) -> Any:
    """This array as the caller's kind, on its device; floating numbers in its precision."""
    if not isinstance(kind, Tensor):
        return x
    tensor = torch.as_tensor(x, device=kind.device)
    return tensor.to(kind.dtype) if tensor.is_floating_point() else tensor


def solve_tensors(problem: Problem, batch: Batch, terms: Terms, single: bool) -> Solved:
    """Solve on the device where that pays or gradients are wanted, and on the CPU otherwise."""
    cost: Any = batch.cost
    tracked = [x.requires_grad for x in batch[:3]]  # type: ignore[attr-defined]
    if problem.epsilon > 0 and (cost.is_cuda or any(tracked)):
        return _entropic(problem, batch, terms, single)
    for name, wanted, penalty in zip(
        ("hyp", "ref"), tracked[1:], (terms.hyp, terms.ref), strict=True
    ):
        if wanted and penalty == math.inf:
            raise InvalidInput(
                f"the masses of a held side have gradients only with epsilon > 0; detach"
                f" {name}_weights, or give the problem some blur"
            )
    arrays = _arrays(batch)
    check_data(arrays, terms, single)
    solved = solve_arrays(arrays, terms)
    flow, gap, converged = (like(x, cost) for x in solved)
    if tracked[0] and any(0 < x < math.inf for x in (terms.hyp, terms.ref)):
        flow = without_gradient(flow, cost)
    return Solved(flow, gap, converged)


def _arrays(batch: Batch) -> Batch:
    return Batch(*(to_array(x) for x in batch))


def solved_alone(problem: Problem, cost: Tensor) -> bool:
    """Whether a kernel of the GPU solves each of these by itself, whatever its neighbours."""
    priced = max(problem.hyp, problem.ref) < math.inf
    small = cost.is_cuda and max(cost.shape[1:]) <= _WIDEST
    return problem.epsilon > 0 and priced and small and _fused() is not None


@cache
def _fused() -> Callable[..., tuple[Tensor, Tensor, Tensor]] | None:
    """The kernel, where `triton` is there and can compile it."""
    try:
        from freight.transport.sinkhorn_triton import fused_plans

        one = torch.ones((1, 1, 1), dtype=torch.float64, device="cuda")
        sizes = torch.ones(1, dtype=torch.int64, device="cuda")
        fused_plans(Terms(1.0, 1.0, 1.0, 0.1, 8), one, (one[0], one[0]), (sizes, sizes))
    except Exception:  # a compiler that is not set up raises what it likes
        return None
    return fused_plans


def _entropic(problem: Problem, batch: Batch, terms: Terms, single: bool) -> Solved:
    cost, hyp_weights, ref_weights = (torch.as_tensor(x) for x in batch[:3])
    with torch.no_grad():
        fused = _fused() if solved_alone(problem, cost) else None
        if fused:
            sizes = [sent(size, cost.device) for size in batch[3:]]
            found = fused(terms, cost, (hyp_weights, ref_weights), sizes)
        else:
            found = _swept(problem, batch, terms, single)
        flow, gap, converged = _rescued(found, batch, terms, single)
    if any(x.requires_grad for x in (cost, hyp_weights, ref_weights)):
        flow = differentiable(problem, cost, hyp_weights, ref_weights, flow)
    return Solved(flow.to(cost.dtype), gap.to(cost.dtype), converged)  # type: ignore[arg-type]


def _swept(
    problem: Problem, batch: Batch, terms: Terms, single: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """All problems of the batch together, sweep by sweep."""
    cost, hyp_weights, ref_weights = (torch.as_tensor(x) for x in batch[:3])
    hyp_inside, ref_inside = (
        torch.arange(width, device=cost.device) < torch.as_tensor(size, device=cost.device)[:, None]
        for width, size in zip(cost.shape[1:], batch[3:], strict=True)
    )
    hyp = hyp_weights.where(hyp_inside, 0.0)
    ref = ref_weights.where(ref_inside, 0.0)
    inside = hyp_inside[:, :, None] & ref_inside[:, None, :]
    clean = cost.where(inside, 0.0)
    held = problem.hyp == problem.ref == math.inf
    if not _sound(clean, hyp, ref, held):
        check_data(_arrays(batch), terms, single)
    if held:
        ref = ref * (hyp.sum(-1, keepdim=True) / ref.sum(-1, keepdim=True))
    hyp_present = hyp > 0 if terms.hyp else hyp_inside
    ref_present = ref > 0 if terms.ref else ref_inside
    return sinkhorn_tensors(problem, terms, clean, hyp, ref, hyp_present, ref_present)


def _sound(cost: Tensor, hyp: Tensor, ref: Tensor, held: bool) -> bool:
    """A quick look on the device; the careful one, which names the culprit, is on the CPU."""
    fine = cost.isfinite().all()
    if held:
        fine = fine & torch.allclose(hyp.sum(-1), ref.sum(-1), rtol=1e-9, atol=0.0)
    for mass in (hyp, ref):
        fine = fine & mass.isfinite().all() & (mass >= 0).all() & (mass.sum(-1) > 0).all()
    return bool(fine)


def _rescued(
    found: tuple[Tensor, Tensor, Tensor], batch: Batch, terms: Terms, single: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """What the device's sweeps left unfinished, finished by the CPU's Newton steps."""
    flow, gap, converged = found
    if bool(converged.all()):
        return found
    arrays = _arrays(batch)
    check_data(arrays, terms, single)
    left = (~converged).nonzero()[:, 0]
    rest = Batch(*(x[to_array(left)] for x in arrays))
    solved = (torch.as_tensor(x, device=flow.device) for x in solve_arrays(rest, terms))
    flow[left], gap[left], converged[left] = solved
    return flow, gap, converged
