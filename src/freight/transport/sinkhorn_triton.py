"""Small entropic problems without hard marginals, by one Triton kernel: one program per problem.

A small problem fits into the registers of a program, so that its data are read once however many
sweeps it takes, and its bits do not depend on the other problems of the batch. The sweeps are those
of `sinkhorn_torch`, all in the log domain and in float64.
"""

import math
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from freight.transport.batches import Terms


def sinkhorn_fused(
    terms: Terms, cost: Tensor, masses: tuple[Tensor, Tensor], sizes: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Flow and duality gap in float64, and converged, which is never true of invalid data."""
    count, rows, columns = cost.shape
    flow = torch.empty(cost.shape, dtype=torch.float64, device=cost.device)
    gap, converged = flow.new_empty(count), flow.new_empty(count, dtype=torch.bool)
    inputs = [x.contiguous() for x in (cost, *masses, *sizes)]
    blocks = [triton.next_power_of_2(side) for side in (rows, columns)]
    warps = min(max(blocks[0] * blocks[1] // 512, 1), 8)
    settings = _settings(terms, cost.device)
    outputs = flow, gap, converged
    kernel: Any = _solve_kernel
    with torch.cuda.device(cost.device):
        kernel[count,](
            *inputs,
            settings,
            *outputs,
            rows,
            columns,
            terms.max_iterations,
            *blocks,
            num_warps=warps,
        )
    return outputs


@lru_cache(64)
def _settings(terms: Terms, device: torch.device) -> Tensor:
    """The parameters as a float64 tensor: Triton would pass plain numbers in single precision."""
    sides = terms.hyp, terms.ref
    taus = [side / (side + terms.epsilon) for side in sides]
    powers = [terms.epsilon / side if side else 0.0 for side in sides]
    optimal = 2.0 / (1.0 + math.sqrt(max(1.0 - taus[0] * taus[1], 1e-3)))
    aim = 10.0 * terms.tolerance
    numbers = [*sides, *taus, *powers, terms.epsilon, terms.tolerance, aim, optimal, 1.0]
    return torch.tensor(numbers, dtype=torch.float64, device=device)


@triton.jit
def _log1p(x, one):  # type: ignore[no-untyped-def]
    """log(1 + x), accurate for small x: the quotient corrects the rounding of 1 + x."""
    shifted = one + x
    return tl.where(
        shifted == one, x, tl.log(shifted) * (x / tl.where(shifted == one, one, shifted - one))
    )


@triton.jit
def _divergence(sums, target, one):  # type: ignore[no-untyped-def]
    """KL(sums | target), every term non-negative."""
    present = target > 0.0
    x = tl.where(present, (sums - target) / tl.where(present, target, one), one - one)
    positive = x > -1.0
    inner = tl.where(positive, x, one - one)
    return tl.sum(
        target * tl.where(positive, (one + inner) * _log1p(inner, one) - inner, one), axis=0
    )


@triton.jit
def _mass(at, inside, penalty, one):  # type: ignore[no-untyped-def]
    """Masses (1 where the marginal is free), the units with mass, and how many are invalid."""
    given = tl.load(at, mask=inside, other=0.0).to(tl.float64)
    present = inside & tl.where(penalty > 0.0, given > 0.0, inside)
    faults = tl.sum((inside & ~((given >= 0.0) & (given < 1e300))).to(tl.int32), axis=0)
    faults += (tl.sum(given, axis=0) <= 0.0).to(tl.int32)
    mass = tl.where(penalty > 0.0, given, one)
    return tl.where(present, mass, one - one), present, faults


@triton.jit  # type: ignore[untyped-decorator]
def _solve_kernel(  # type: ignore[no-untyped-def]
    cost, hyp_mass, ref_mass, hyp_size, ref_size, settings, flow, gap, converged,
    rows, columns, max_iterations, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    hyp_penalty, ref_penalty = tl.load(settings), tl.load(settings + 1)
    hyp_tau, ref_tau = tl.load(settings + 2), tl.load(settings + 3)
    hyp_power, ref_power = tl.load(settings + 4), tl.load(settings + 5)
    epsilon, tolerance = tl.load(settings + 6), tl.load(settings + 7)
    aim, optimal, one = tl.load(settings + 8), tl.load(settings + 9), tl.load(settings + 10)
    zero, absent = one - one, one * -1e30
    pair = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    hyp_in, ref_in = i < tl.load(hyp_size + pair), j < tl.load(ref_size + pair)
    hyp, hyp_present, hyp_faults = _mass(hyp_mass + pair * rows + i, hyp_in, hyp_penalty, one)
    ref, ref_present, ref_faults = _mass(ref_mass + pair * columns + j, ref_in, ref_penalty, one)
    hyp_base = hyp_tau * tl.log(tl.where(hyp_present, hyp, one))
    ref_base = ref_tau * tl.log(tl.where(ref_present, ref, one))
    both = hyp_present[:, None] & ref_present[None, :]
    at = pair * rows * columns + i[:, None] * columns + j[None, :]
    inside_both = hyp_in[:, None] & ref_in[None, :]
    scaled_cost = tl.load(cost + at, mask=inside_both, other=0.0).to(tl.float64) / epsilon
    invalid = (inside_both & ~(tl.abs(scaled_cost) < 1e300)).to(tl.int32)
    faults = hyp_faults + ref_faults + tl.sum(tl.sum(invalid, axis=1), axis=0)
    phi, psi = tl.where(hyp_present, zero, absent), tl.where(ref_present, zero, absent)
    factor, residual, previous = one, one * 1e300, one * 1e300
    sweep = 0
    while (sweep < max_iterations) & (residual > aim):
        change = zero
        for _ in range(8):
            exponent = tl.where(both, psi[None, :] - scaled_cost, absent)
            top = tl.max(exponent, axis=1)
            sums = tl.sum(tl.exp(exponent - top[:, None]), axis=1)
            step = tl.where(hyp_present, hyp_base - hyp_tau * (top + tl.log(sums)) - phi, zero)
            phi += factor * step
            change = tl.max(tl.abs(step), axis=0)
            exponent = tl.where(both, phi[:, None] - scaled_cost, absent)
            top = tl.max(exponent, axis=0)
            sums = tl.sum(tl.exp(exponent - top[None, :]), axis=0)
            step = tl.where(ref_present, ref_base - ref_tau * (top + tl.log(sums)) - psi, zero)
            psi += factor * step
            change = tl.maximum(change, tl.max(tl.abs(step), axis=0))
        residual = change
        worse = (residual > previous) & (residual > 0.3)
        factor = tl.where(worse, 0.5 * (one + optimal), optimal)
        factor = tl.where(residual > 3.0, one, factor)
        previous = residual
        sweep += 8
    plan = tl.where(both, tl.exp(phi[:, None] + psi[None, :] - scaled_cost), zero)
    tl.store(flow + at, plan, mask=(i[:, None] < rows) & (j[None, :] < columns))
    hyp_target = hyp * tl.exp(tl.where(hyp_present, -hyp_power * phi, zero))
    ref_target = ref * tl.exp(tl.where(ref_present, -ref_power * psi, zero))
    hyp_sums, ref_sums = tl.sum(plan, axis=1), tl.sum(plan, axis=0)
    dual = hyp_penalty * tl.sum(hyp - hyp_target, axis=0)
    dual += ref_penalty * tl.sum(ref - ref_target, axis=0) - epsilon * tl.sum(hyp_sums, axis=0)
    bound = hyp_penalty * _divergence(hyp_sums, hyp_target, one)
    bound += ref_penalty * _divergence(ref_sums, ref_target, one)
    bound = tl.where(faults > 0, zero / zero, bound)
    tl.store(gap + pair, bound)
    tl.store(converged + pair, bound <= tolerance * (one + tl.abs(dual)))
