"""Transport as data: the form of a problem, padded batches, and plans, which know their values.

What a caller gives is converted (`to_numbers`), checked (`check_shapes`, `check_sizes`,
`check_data`), and becomes a `Batch` with its `Terms`. Numbers are numpy arrays or torch tensors;
torch is imported only where there are tensors.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from freight import kernels
from freight.errors import InvalidInput

if TYPE_CHECKING:
    import torch

Array: TypeAlias = npt.NDArray[Any]
Numbers: TypeAlias = "Array | torch.Tensor"


def is_tensor(x: Any) -> TypeGuard[torch.Tensor]:
    """Whether this is a tensor; there can be none before torch is imported."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


@dataclass(frozen=True)
class Problem:
    """The form of an optimal transport problem: one penalty per marginal, and epsilon.

    For a cost matrix C and masses a (hyp) and b (ref), the plan P >= 0 minimises

        <C, P> + hyp KL(P 1 | a) + ref KL(P' 1 | b) + epsilon sum(P log P - P)

    with KL(p | w) = sum(p log(p / w) - p + w). P 1 are the row sums of P, the hyp marginal, and
    P' 1 its column sums, the ref marginal. `hyp` and `ref` are the penalties on the marginals
    (POT's `reg_m`), which decide how each is treated:

    - `inf` (the default): a hard marginal, met exactly (balanced transport).
    - a positive number: a KL-relaxed marginal (unbalanced transport). The plan may move less or
      more mass than a unit has; the smaller the penalty, the cheaper that is.
    - 0: a free marginal, without constraint or penalty. The other marginal must not be free.

    `epsilon` is the weight of the entropic regularisation; 0 asks for an exact plan.

    >>> Problem()                                        # balanced and exact: ot.emd
    Problem(hyp=inf, ref=inf, epsilon=0.0)
    >>> Problem(epsilon=0.05)                            # balanced and entropic: ot.sinkhorn
    Problem(hyp=inf, ref=inf, epsilon=0.05)
    >>> Problem(hyp=0.23, ref=0.31, epsilon=0.009)       # unbalanced and entropic
    Problem(hyp=0.23, ref=0.31, epsilon=0.009)
    >>> Problem(ref=0)                                   # each hyp unit to its nearest ref unit
    Problem(hyp=inf, ref=0.0, epsilon=0.0)
    """

    hyp: float = math.inf
    ref: float = math.inf
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        for name in ("hyp", "ref", "epsilon"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or math.isnan(value) or value < 0:
                raise InvalidInput(f"{name}={value!r} is not a number from 0 up")
            object.__setattr__(self, name, float(value))
        if math.isinf(self.epsilon):
            raise InvalidInput("epsilon=inf leaves nothing but the entropy; give a finite number")
        if self.hyp == 0 and self.ref == 0:
            raise InvalidInput(
                "with hyp=0 and ref=0 both marginals are free and the best plan is empty; give at"
                " least one side a penalty above 0"
            )


@dataclass(frozen=True, eq=False)
class Plans:
    """The solution of a batch of problems, or of one: transport plans and what they cost.

    `flow` is the transport plan, shaped like `cost`: (pair, n, m), or (n, m) for one problem; it is
    0 past the sizes. `gap` bounds how far the plan's value is from the optimum (the duality gap),
    and `converged` says whether it is within the tolerance that was asked for. `transport`,
    `objective` and `regularised` are computed from the plan when they are first read.

    Arrays are of the caller's kind (numpy or torch, on its device), with one number per problem;
    for one problem they are plain numbers.
    """

    problem: Problem
    cost: Any
    hyp_weights: Any
    ref_weights: Any
    hyp_sizes: Array
    ref_sizes: Array
    flow: Any
    gap: Any
    converged: Any

    @property
    def transport(self) -> Any:
        """The transport cost alone, <C, P>."""
        return self._totals[0]

    @property
    def objective(self) -> Any:
        """The transport cost plus the KL penalties of the relaxed marginals, without entropy."""
        return self._totals[1]

    @property
    def regularised(self) -> Any:
        """The objective plus the entropy term; its gradient with respect to the cost is `flow`."""
        return self._totals[2]

    @cached_property
    def _totals(self) -> tuple[Any, Any, Any]:
        terms = self.problem.hyp, self.problem.ref, self.problem.epsilon
        if is_tensor(self.cost):
            hyp = _clear_padding(self.hyp_weights, self.hyp_sizes)
            ref = _clear_padding(self.ref_weights, self.ref_sizes)
            return tensor_totals(self.cost, self.flow, hyp, ref, *terms)
        single = self.cost.ndim == 2
        data = self.cost, self.hyp_weights, self.ref_weights, self.flow
        cost, hyp, ref, flow = (x[None] for x in data) if single else data
        batch = cost, hyp, ref, self.hyp_sizes, self.ref_sizes
        out = kernels.totals(batch, flow, *terms)
        transport, objective, regularised = (float(x[0]) if single else x for x in out.T)
        return transport, objective, regularised


class SparsePlans(Plans):
    """Exact plans stored as lists of entries, since few are above 0.

    For long texts, filling a dense flow takes longer than solving. `transport` is the cost of each
    plan, `entries` are the places and the masses of its entries; the dense flow is made when it is
    first read, and so are the costs in double precision.
    """

    _cost: Array
    _entries: tuple[Array, Array]
    _transport: Array

    def __init__(
        self,
        batch: Batch,
        gap: Array,
        converged: Array,
        transport: Array,
        *entries: Array,
    ) -> None:
        read = {"problem": Problem(), **batch._asdict(), "gap": gap, "converged": converged}
        del read["cost"]
        vars(self).update(read, _cost=batch.cost, _transport=transport, _entries=entries)

    @cached_property
    def cost(self) -> Array:
        """In double precision."""
        return self._cost.astype(np.float64, copy=False)

    @cached_property
    def flow(self) -> Array:
        """The entries where they belong, 0 elsewhere."""
        pairs, n, m = self._cost.shape
        flow = np.zeros((pairs, n * m + 1))
        np.put_along_axis(flow, *self._entries, axis=1)
        return flow[:, :-1].reshape(pairs, n, m)

    @property
    def _totals(self) -> tuple[Array, Array, Array]:
        return self._transport, self._transport, self._transport


@dataclass(frozen=True, eq=False)
class Barycenters:
    """One free-support barycenter per text: its points, and the mean W2^2 to the text's layers."""

    points: Any
    objective: Any
    converged: Any


def _clear_padding(weights: torch.Tensor, sizes: Array) -> torch.Tensor:
    """The masses with 0 at and past the sizes, where the caller may have left anything."""
    width = weights.shape[-1]
    if (sizes == width).all():
        return weights
    import torch

    inside = torch.as_tensor(np.arange(width) < sizes[:, None], device=weights.device)
    return weights.where(inside.view(weights.shape), 0.0)


def tensor_totals(
    cost: torch.Tensor,
    flow: torch.Tensor,
    hyp_weights: torch.Tensor,
    ref_weights: torch.Tensor,
    hyp: float,
    ref: float,
    epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same three values on tensors, differentiable; flow and masses are 0 past the sizes."""
    cost = cost.where(flow > 0, 0.0)  # past the sizes it may be anything
    transport = (cost * flow).sum((-2, -1))
    if epsilon == 0.0:
        # At an exact optimum the derivative through the flow cancels (envelope theorem).
        flow = flow.detach()
    objective = (cost * flow).sum((-2, -1))
    for dim, weights, penalty in ((-1, hyp_weights, hyp), (-2, ref_weights, ref)):
        sums = flow.sum(dim)
        if 0.0 < penalty < math.inf:
            ratio = sums / weights.where(weights > 0, 1.0)
            terms = sums * ratio.where(sums > 0, 1.0).log() - sums + weights
            objective = objective + penalty * terms.sum(-1)
    entropy = (flow * flow.where(flow > 0, 1.0).log() - flow).sum((-2, -1))
    return transport, objective, objective + epsilon * entropy if epsilon else objective


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
    return x.detach().cpu().numpy() if is_tensor(x) else np.asarray(x)


def to_numbers(x: Any, cost: Any) -> Any:
    """Floating point numbers like the cost: a tensor of its device and dtype, or an array."""
    if is_tensor(cost):
        import torch

        dtype = cost.dtype if cost.dtype in (torch.float32, torch.float64) else torch.float32
        return torch.as_tensor(x, device=cost.device, dtype=dtype)
    array = to_array(x)
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"numbers are wanted, not {array.dtype}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def like(x: Array, kind: Any) -> Any:
    """This array as what the caller gave: an array, or a tensor of its device and precision."""
    if not is_tensor(kind):
        return x
    import torch

    tensor = torch.as_tensor(x, device=kind.device)
    return tensor.to(kind.dtype) if tensor.is_floating_point() else tensor


def send_to_device(array: Array, device: torch.device) -> torch.Tensor:
    """The array as a tensor on the device; to a GPU without waiting for the copy.

    Copies go through pinned memory: they are fast, and do not block the calling thread. It alone
    fills that memory: torch would share it out, and wait for threads that solve problems.
    """
    import torch

    tensor = torch.from_numpy(array)
    if device.type != "cuda":
        return tensor.to(device)
    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    np.copyto(pinned.numpy(), array)
    return pinned.to(device, non_blocking=True)


def fetch_array(tensor: torch.Tensor) -> Array:
    """The tensor as an array; from a GPU this waits for the result."""
    if not tensor.is_cuda:
        return tensor.numpy()
    import torch

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
    result = np.atleast_1d(np.asarray(given.cpu() if is_tensor(given) else given))
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
            f" {hyp_mass.sum():.12g} and ref_weights to {ref_mass.sum():.12g}; normalize both,"
            " or give a side a finite penalty",
        }[fault]
    )
