"""The border of the solvers: data that cannot be a transport problem is named before it is used."""

import numpy as np
import torch

from freight.errors import InvalidInput
from freight.kernels import kernel
from freight.solvers.batches import Batch, Terms
from freight.types import Array, Numbers

_FINE, _COST, _HYP_MASS, _REF_MASS, _HYP_TOTAL, _REF_TOTAL, _UNEQUAL = range(7)


def check_shapes(cost: Numbers, hyp_weights: Numbers, ref_weights: Numbers) -> None:
    """Cost (pair, n, m) needs masses (pair, n) and (pair, m), and something on every side."""
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
    """How many units each problem has on a side; all of them where nothing is said."""
    if given is None:
        return np.full(pairs, width, np.int64)
    result = np.atleast_1d(np.asarray(given.cpu() if isinstance(given, torch.Tensor) else given))
    if result.shape != (pairs,) or result.dtype.kind not in "iu":
        raise InvalidInput(f"{side}sizes must be whole numbers, one a problem ({pairs} here)")
    bad = np.flatnonzero((result < 1) | (result > width))
    if bad.size:
        raise InvalidInput(
            f"{side}sizes[{bad[0]}] is {result[bad[0]]}; a size lies between 1 and {width}"
        )
    return result.astype(np.int64)


def check_data(batch: Batch, terms: Terms, single: bool) -> None:
    """Costs are finite, masses are finite and not negative, and every side has what it needs."""
    rtol = 1e-9 if batch.hyp_weights.dtype == np.float64 else 1e-5
    fault, pair, i, j = _first_fault(batch, terms.hyp, terms.ref, rtol)
    if fault == _FINE:
        return
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
            _UNEQUAL: f"both sides{where} are held, but hyp_weights sum to {hyp_mass.sum():.12g}"
            f" and ref_weights to {ref_mass.sum():.12g}; normalise both, or give a side a finite"
            " penalty",
        }[fault]
    )


@kernel
def _first_fault(batch: Batch, hyp: float, ref: float, rtol: float) -> tuple[int, int, int, int]:
    for k in range(batch.cost.shape[0]):
        n, m = batch.hyp_sizes[k], batch.ref_sizes[k]
        hyp_total, ref_total = 0.0, 0.0
        for i in range(n):
            weight = batch.hyp_weights[k, i]
            if not 0.0 <= weight < np.inf:
                return _HYP_MASS, k, i, 0
            hyp_total += weight
        for j in range(m):
            weight = batch.ref_weights[k, j]
            if not 0.0 <= weight < np.inf:
                return _REF_MASS, k, 0, j
            ref_total += weight
        if hyp > 0.0 and hyp_total == 0.0:
            return _HYP_TOTAL, k, 0, 0
        if ref > 0.0 and ref_total == 0.0:
            return _REF_TOTAL, k, 0, 0
        if hyp == ref == np.inf and abs(hyp_total - ref_total) > rtol * max(hyp_total, ref_total):
            return _UNEQUAL, k, 0, 0
        for i in range(n):
            for j in range(m):
                if not np.isfinite(batch.cost[k, i, j]):
                    return _COST, k, i, j
    return _FINE, 0, 0, 0
