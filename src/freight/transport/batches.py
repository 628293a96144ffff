"""What every solver is given: a padded batch, checked, and how to treat its problems.

Arguments are converted (`to_numbers`), checked (`check_shapes`, `check_sizes`, `check_data`), and
become a `Batch` with its `Terms`.
"""

from typing import Any, NamedTuple

import numpy as np
import torch

from freight import kernels
from freight.errors import InvalidInput
from freight.transport.types import Array, Numbers


class Batch(NamedTuple):
    """Padded problems (pair, hyp unit, ref unit); units at and past the sizes do not exist."""

    cost: Array
    hyp_weights: Array
    ref_weights: Array
    hyp_sizes: Array
    ref_sizes: Array


class Terms(NamedTuple):
    """Penalties and epsilon of all problems, and when a solver may stop."""

    hyp: float
    ref: float
    epsilon: float
    tolerance: float
    max_iterations: int


class Solved(NamedTuple):
    """The plan of every problem, its duality gap, and whether that is within the tolerance."""

    flow: Array
    gap: Array
    converged: Array


def to_array(x: Any) -> Array:
    """A numpy array of a tensor, an array, or anything that numpy takes."""
    return x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)


def to_numbers(x: Any, cost: Any) -> Any:
    """Floating point numbers like the cost: a tensor of its device and dtype, or an array."""
    if isinstance(cost, torch.Tensor):
        dtype = cost.dtype if cost.dtype in (torch.float32, torch.float64) else torch.float32
        return torch.as_tensor(x, device=cost.device, dtype=dtype)
    array = to_array(x)
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"numbers are wanted, not {array.dtype}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def like(x: Array, kind: Any) -> Any:
    """This array as what the caller gave: an array, or a tensor of its device and precision."""
    if not isinstance(kind, torch.Tensor):
        return x
    tensor = torch.as_tensor(x, device=kind.device)
    return tensor.to(kind.dtype) if tensor.is_floating_point() else tensor


def send_to_device(array: Array, device: torch.device) -> torch.Tensor:
    """The array as a tensor on the device; to a GPU without waiting for the copy.

    Copies go through pinned memory: they are fast, and do not block the calling thread.
    """
    tensor = torch.from_numpy(array)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def fetch_array(tensor: torch.Tensor) -> Array:
    """The tensor as an array; from a GPU this waits for the result."""
    if not tensor.is_cuda:
        return tensor.numpy()
    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return pinned.copy_(tensor).numpy()


_FINE, _COST, _HYP_MASS, _REF_MASS, _HYP_TOTAL, _REF_TOTAL, _UNEQUAL = range(7)


def check_shapes(cost: Numbers, hyp_weights: Numbers, ref_weights: Numbers) -> None:
    """Cost (pair, n, m) needs masses (pair, n) and (pair, m), and no dimension may be 0."""
    if cost.ndim != 3 or 0 in cost.shape:
        raise InvalidInput(
            f"cost has shape {tuple(cost.shape)}; give one problem (n, m) or a batch"
            " (pair, n, m), neither of them empty"
        )
    for name, weights, axis in (("hyp", hyp_weights, 1), ("ref", ref_weights, 2)):
        wanted = (cost.shape[0], cost.shape[axis])
        if weights.shape != wanted:
            raise InvalidInput(
                f"{name}_weights has shape {tuple(weights.shape)}, but cost {tuple(cost.shape)}"
                f" needs {wanted} (for one problem, without the first)"
            )


def check_sizes(side: str, given: Numbers | None, pairs: int, width: int) -> Array:
    """How many units each problem has on a side; without sizes, the full width."""
    if given is None:
        return np.full(pairs, width, np.int64)
    result = np.atleast_1d(np.asarray(given.cpu() if isinstance(given, torch.Tensor) else given))
    if result.shape != (pairs,) or result.dtype.kind not in "iu":
        raise InvalidInput(f"{side}sizes must be whole numbers, one per problem ({pairs} here)")
    bad = np.flatnonzero((result < 1) | (result > width))
    if bad.size:
        raise InvalidInput(
            f"{side}sizes[{bad[0]}] is {result[bad[0]]}; a size lies between 1 and {width}"
        )
    return result.astype(np.int64)


def check_data(batch: Batch, terms: Terms, single: bool) -> None:
    """Refuse costs or masses that are not finite, negative masses, and totals that cannot match."""
    rtol = 1e-9 if batch.hyp_weights.dtype == np.float64 else 1e-5
    faults = kernels.find_faults(batch, terms.hyp, terms.ref, rtol)
    if not faults.any():
        return
    pair = int(np.argmax(faults[:, 0] != _FINE))
    fault, i, j = faults[pair].tolist()
    at, where = ("", "") if single else (f"{pair}, ", f" of problem {pair}")
    hyp_mass = batch.hyp_weights[pair, : batch.hyp_sizes[pair]]
    ref_mass = batch.ref_weights[pair, : batch.ref_sizes[pair]]
    rule = "masses are finite and not negative"
    raise InvalidInput(
        {
            _COST: f"cost[{at}{i}, {j}] is {batch.cost[pair, i, j]}; costs must be finite",
            _HYP_MASS: f"hyp_weights[{at}{i}] is {hyp_mass[i]}; {rule}",
            _REF_MASS: f"ref_weights[{at}{j}] is {ref_mass[j]}; {rule}",
            _HYP_TOTAL: f"hyp_weights{where} are all 0; give at least one unit mass",
            _REF_TOTAL: f"ref_weights{where} are all 0; give at least one unit mass",
            _UNEQUAL: f"both marginals{where} are hard, but hyp_weights sum to"
            f" {hyp_mass.sum():.12g} and ref_weights to {ref_mass.sum():.12g}; normalise both,"
            " or give a side a finite penalty",
        }[fault]
    )
