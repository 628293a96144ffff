"""Priced problems with blur, solved by one kernel of a GPU: a problem a program.

A small problem fits into the registers of a program, so that nothing is read twice however many
sweeps it takes, and its bits do not depend on its neighbours. The sweeps are those of
`sinkhorn_torch`, all in the log domain and float64.
"""

import math
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from freight.transport.batches import Terms


def fused_plans(
    terms: Terms, cost: Tensor, masses: tuple[Tensor, Tensor], sizes: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Flow and gap in float64, and converged, which unsound data never are."""
    count, rows, columns = cost.shape
    flow = torch.empty(cost.shape, dtype=torch.float64, device=cost.device)
    gap, converged = flow.new_empty(count), flow.new_empty(count, dtype=torch.bool)
    inputs = [x.contiguous() for x in (cost, *masses, *sizes)]
    wide = [triton.next_power_of_2(side) for side in (rows, columns)]
    warps = min(max(wide[0] * wide[1] // 512, 1), 8)
    settings = _settings(terms, cost.device)
    outputs = flow, gap, converged
    kernel: Any = _plans
    with torch.cuda.device(cost.device):
        kernel[count,](
            *inputs, settings, *outputs, rows, columns, terms.cap, *wide, num_warps=warps
        )
    return outputs


@lru_cache(64)
def _settings(terms: Terms, device: torch.device) -> Tensor:
    """Numbers for the kernel, which would be given plain ones in single precision."""
    sides = terms.hyp, terms.ref
    shares = [side / (side + terms.epsilon) for side in sides]
    powers = [terms.epsilon / side if side else 0.0 for side in sides]
    best = 2.0 / (1.0 + math.sqrt(max(1.0 - shares[0] * shares[1], 1e-3)))
    aim = 10.0 * terms.tolerance
    numbers = [*sides, *shares, *powers, terms.epsilon, terms.tolerance, aim, best, 1.0]
    return torch.tensor(numbers, dtype=torch.float64, device=device)


@triton.jit
def _log1p(x, one):  # type: ignore[no-untyped-def]
    """log(1 + x), exact for small x: what 1 + x loses the quotient gives back."""
    above = one + x
    return tl.where(above == one, x, tl.log(above) * (x / tl.where(above == one, one, above - one)))


@triton.jit
def _divergence(sums, wanted, one):  # type: ignore[no-untyped-def]
    """KL(sums|wanted), term by term non-negative."""
    there = wanted > 0.0
    x = tl.where(there, (sums - wanted) / tl.where(there, wanted, one), one - one)
    some = x > -1.0
    inner = tl.where(some, x, one - one)
    return tl.sum(wanted * tl.where(some, (one + inner) * _log1p(inner, one) - inner, one), axis=0)


@triton.jit
def _mass(at, inside, penalty, one):  # type: ignore[no-untyped-def]
    """Masses of a side, 1 where it is free; who is there; and how often that is nonsense."""
    given = tl.load(at, mask=inside, other=0.0).to(tl.float64)
    there = inside & tl.where(penalty > 0.0, given > 0.0, inside)
    wrong = tl.sum((inside & ~((given >= 0.0) & (given < 1e300))).to(tl.int32), axis=0)
    wrong += (tl.sum(given, axis=0) <= 0.0).to(tl.int32)
    mass = tl.where(penalty > 0.0, given, one)
    return tl.where(there, mass, one - one), there, wrong


@triton.jit  # type: ignore[untyped-decorator]
def _plans(  # type: ignore[no-untyped-def]
    cost, hyp_mass, ref_mass, hyp_size, ref_size, settings, flow, gap, converged,
    rows, columns, cap, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    hyp_penalty, ref_penalty = tl.load(settings), tl.load(settings + 1)
    hyp_share, ref_share = tl.load(settings + 2), tl.load(settings + 3)
    hyp_power, ref_power = tl.load(settings + 4), tl.load(settings + 5)
    epsilon, tolerance = tl.load(settings + 6), tl.load(settings + 7)
    aim, best, one = tl.load(settings + 8), tl.load(settings + 9), tl.load(settings + 10)
    zero, absent = one - one, one * -1e30
    pair = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    hyp_in, ref_in = i < tl.load(hyp_size + pair), j < tl.load(ref_size + pair)
    hyp, hyp_there, hyp_wrong = _mass(hyp_mass + pair * rows + i, hyp_in, hyp_penalty, one)
    ref, ref_there, ref_wrong = _mass(ref_mass + pair * columns + j, ref_in, ref_penalty, one)
    hyp_base = hyp_share * tl.log(tl.where(hyp_there, hyp, one))
    ref_base = ref_share * tl.log(tl.where(ref_there, ref, one))
    both = hyp_there[:, None] & ref_there[None, :]
    at = pair * rows * columns + i[:, None] * columns + j[None, :]
    known = hyp_in[:, None] & ref_in[None, :]
    price = tl.load(cost + at, mask=known, other=0.0).to(tl.float64) / epsilon
    odd = (known & ~(tl.abs(price) < 1e300)).to(tl.int32)
    wrong = hyp_wrong + ref_wrong + tl.sum(tl.sum(odd, axis=1), axis=0)
    phi, psi = tl.where(hyp_there, zero, absent), tl.where(ref_there, zero, absent)
    factor, residual, mark = one, one * 1e300, one * 1e300
    sweep = 0
    while (sweep < cap) & (residual > aim):
        wish = zero
        for _ in range(8):
            exponent = tl.where(both, psi[None, :] - price, absent)
            top = tl.max(exponent, axis=1)
            sums = tl.sum(tl.exp(exponent - top[:, None]), axis=1)
            step = tl.where(hyp_there, hyp_base - hyp_share * (top + tl.log(sums)) - phi, zero)
            phi += factor * step
            wish = tl.max(tl.abs(step), axis=0)
            exponent = tl.where(both, phi[:, None] - price, absent)
            top = tl.max(exponent, axis=0)
            sums = tl.sum(tl.exp(exponent - top[None, :]), axis=0)
            step = tl.where(ref_there, ref_base - ref_share * (top + tl.log(sums)) - psi, zero)
            psi += factor * step
            wish = tl.maximum(wish, tl.max(tl.abs(step), axis=0))
        residual = wish
        worse = (residual > mark) & (residual > 0.3)
        factor = tl.where(worse, 0.5 * (one + best), best)
        factor = tl.where(residual > 3.0, one, factor)
        mark = residual
        sweep += 8
    plan = tl.where(both, tl.exp(phi[:, None] + psi[None, :] - price), zero)
    tl.store(flow + at, plan, mask=(i[:, None] < rows) & (j[None, :] < columns))
    hyp_wanted = hyp * tl.exp(tl.where(hyp_there, -hyp_power * phi, zero))
    ref_wanted = ref * tl.exp(tl.where(ref_there, -ref_power * psi, zero))
    hyp_sums, ref_sums = tl.sum(plan, axis=1), tl.sum(plan, axis=0)
    dual = hyp_penalty * tl.sum(hyp - hyp_wanted, axis=0)
    dual += ref_penalty * tl.sum(ref - ref_wanted, axis=0) - epsilon * tl.sum(hyp_sums, axis=0)
    found = hyp_penalty * _divergence(hyp_sums, hyp_wanted, one)
    found += ref_penalty * _divergence(ref_sums, ref_wanted, one)
    found = tl.where(wrong > 0, zero / zero, found)
    tl.store(gap + pair, found)
    tl.store(converged + pair, found <= tolerance * (one + tl.abs(dual)))
