"""Solvers as Triton kernels: one program per problem, so that its bits depend on nothing else.

Entropic problems without hard marginals: the sweeps are those of `sinkhorn_torch`, in float64. They
are in the log domain while potentials still move much; after that each eight of them share one
kernel, which has absorbed the potentials, and take no exponential per entry. A small problem stays
in the registers of its program, so that its data are read once however many sweeps it takes; a
larger one is read tile by tile, once per sweep. Exact problems with a free marginal are as in
`nearest`. `totals_on_device` computes what plans cost.
"""

import math
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from freight.transport.types import Terms

WIDEST = 1024
"""The columns of a wider problem do not fit into the registers of one program."""
_SMALL = 64
_TILE = 4096
"""A problem up to this width is one tile; the tiles of a wider one have so many entries."""

Data = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Costs (pair, hyp unit, ref unit), the masses of both sides, and the sizes of both."""


def sinkhorn_on_device(terms: Terms, data: Data) -> tuple[Tensor, Tensor, Tensor]:
    """Flow and duality gap in float64, and converged, which is never true of invalid data."""
    cost = data[0]
    count, rows, columns = cost.shape
    flow = torch.empty(cost.shape, dtype=torch.float64, device=cost.device)
    gap, converged = flow.new_empty(count), flow.new_empty(count, dtype=torch.bool)
    widths = [triton.next_power_of_2(side) for side in (rows, columns)]
    kernel: Any = _small_kernel
    inputs = [*_contiguous(data), _settings(terms, cost.device)]
    if max(rows, columns) > _SMALL:
        kernel, widths = _tiled_kernel, [max(1, _TILE // widths[1]), widths[1]]
        inputs.append(flow.new_empty((count, 2, rows)))  # potentials, and how far they moved
    warps = min(max(widths[0] * widths[1] // 512, 1), 8)
    with torch.cuda.device(cost.device):
        kernel[count,](
            *inputs, flow, gap, converged,
            rows, columns, terms.max_iterations, *widths, num_warps=warps,
        )  # fmt: skip
    return flow, gap, converged


def nearest_on_device(terms: Terms, data: Data) -> tuple[Tensor, Tensor, Tensor]:
    """The same for an exact problem with a free marginal; the gap is 0."""
    cost, hyp, ref, hyp_sizes, ref_sizes = _contiguous(data)
    count, rows, columns = cost.shape
    flow = torch.zeros(cost.shape, dtype=torch.float64, device=cost.device)
    gap, converged = flow.new_zeros(count), flow.new_empty(count, dtype=torch.bool)
    strides, penalty = (columns, 1), terms.hyp
    if terms.hyp == 0.0:  # the reference's units choose: read it all the other way round
        hyp, hyp_sizes, ref_sizes = ref, ref_sizes, hyp_sizes
        rows, columns, strides, penalty = columns, rows, (1, columns), terms.ref
    settings = _numbers((penalty, 1.0), cost.device)
    width = triton.next_power_of_2(columns)
    tile = max(1, min(_TILE // width, triton.next_power_of_2(rows)))
    kernel: Any = _nearest_kernel
    with torch.cuda.device(cost.device):
        kernel[count,](
            cost, hyp, hyp_sizes, ref_sizes, settings, flow, converged,
            rows, cost.shape[1] * cost.shape[2], *strides, tile, width,
        )  # fmt: skip
    return flow, gap, converged


def totals_on_device(terms: tuple[float, float, float], data: Data, flow: Tensor) -> Tensor:
    """Transport, objective and regularised value (pair, 3) of plans for hyp, ref and epsilon."""
    cost = data[0]
    count, rows, columns = cost.shape
    out = torch.empty((count, 3), dtype=torch.float64, device=cost.device)
    penalties = (x if 0.0 < x < math.inf else 0.0 for x in terms[:2])
    settings = _numbers((*penalties, terms[2], 1.0), cost.device)
    width = triton.next_power_of_2(columns)
    tile = max(1, min(_TILE // width, triton.next_power_of_2(rows)))
    kernel: Any = _totals_kernel
    with torch.cuda.device(cost.device):
        kernel[count,](
            *_contiguous(data), settings, flow.contiguous(), out, rows, columns, tile, width
        )
    return out


def _contiguous(data: Data) -> list[Tensor]:
    return [x.contiguous() for x in data]


@lru_cache(64)
def _numbers(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    """Numbers as a float64 tensor: Triton would pass plain ones in single precision."""
    return torch.tensor(numbers, dtype=torch.float64, device=device)


def _settings(terms: Terms, device: torch.device) -> Tensor:
    """The parameters of the sweeps."""
    sides = terms.hyp, terms.ref
    taus = [side / (side + terms.epsilon) for side in sides]
    powers = [terms.epsilon / side if side else 0.0 for side in sides]
    optimal = 2.0 / (1.0 + math.sqrt(max(1.0 - taus[0] * taus[1], 1e-3)))
    aim = 10.0 * terms.tolerance
    numbers = *sides, *taus, *powers, terms.epsilon, terms.tolerance, aim, optimal, 1.0
    return _numbers(numbers, device)


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
    """Masses (1 where the marginal is free), which are present, how many invalid, and the total."""
    given = tl.load(at, mask=inside, other=0.0).to(tl.float64)
    present = inside & tl.where(penalty > 0.0, given > 0.0, inside)
    faults = tl.sum((inside & ~((given >= 0.0) & (given < 1e300))).to(tl.int32), axis=0)
    mass = tl.where(penalty > 0.0, given, one)
    return tl.where(present, mass, one - one), present, faults, tl.sum(given, axis=0)


@triton.jit
def _step(sums, potential, moved, base, tau, present, one):  # type: ignore[no-untyped-def]
    """How far a potential is from its target, given the sums of a kernel that has absorbed it.

    `moved` is how far it has gone since. Where the sums have underflowed it stays, and the gap
    tells.
    """
    sound = present & (sums > 0.0)
    log_sums = tl.log(tl.where(sound, sums, one)) - potential
    return tl.where(sound, base - tau * log_sums - (potential + moved), one - one)


@triton.jit  # type: ignore[untyped-decorator]
def _small_kernel(  # type: ignore[no-untyped-def]
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
    hyp, hyp_present, hyp_faults, hyp_total = _mass(
        hyp_mass + pair * rows + i, hyp_in, hyp_penalty, one
    )
    ref, ref_present, ref_faults, ref_total = _mass(
        ref_mass + pair * columns + j, ref_in, ref_penalty, one
    )
    hyp_base = hyp_tau * tl.log(tl.where(hyp_present, hyp, one))
    ref_base = ref_tau * tl.log(tl.where(ref_present, ref, one))
    both = hyp_present[:, None] & ref_present[None, :]
    at = pair * rows * columns + i[:, None] * columns + j[None, :]
    inside_both = hyp_in[:, None] & ref_in[None, :]
    scaled_cost = tl.load(cost + at, mask=inside_both, other=0.0).to(tl.float64) / epsilon
    invalid = (inside_both & ~(tl.abs(scaled_cost) < 1e300)).to(tl.int32)
    faults = hyp_faults + ref_faults + tl.sum(tl.sum(invalid, axis=1), axis=0)
    faults += ((hyp_total <= 0.0) | (ref_total <= 0.0)).to(tl.int32)
    phi, psi = tl.where(hyp_present, zero, absent), tl.where(ref_present, zero, absent)
    factor, residual, previous = one, one * 1e300, one * 1e300
    sweep = 0
    while (sweep < max_iterations) & (residual > aim):
        change = zero
        if residual > 3.0:
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
        else:
            absorbed = tl.where(both, tl.exp(phi[:, None] + psi[None, :] - scaled_cost), zero)
            hyp_moved, ref_moved = tl.where(hyp_in, zero, zero), tl.where(ref_in, zero, zero)
            for _ in range(8):
                sums = tl.sum(absorbed * tl.exp(ref_moved)[None, :], axis=1)
                step = _step(sums, phi, hyp_moved, hyp_base, hyp_tau, hyp_present, one)
                hyp_moved += factor * step
                change = tl.max(tl.abs(step), axis=0)
                sums = tl.sum(absorbed * tl.exp(hyp_moved)[:, None], axis=0)
                step = _step(sums, psi, ref_moved, ref_base, ref_tau, ref_present, one)
                ref_moved += factor * step
                change = tl.maximum(change, tl.max(tl.abs(step), axis=0))
            phi += hyp_moved
            psi += ref_moved
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


@triton.jit  # type: ignore[untyped-decorator]
def _tiled_kernel(  # type: ignore[no-untyped-def]
    cost, hyp_mass, ref_mass, hyp_size, ref_size, settings, potentials, flow, gap, converged,
    rows, columns, max_iterations, TILE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """As above; every sweep reads tile by tile, and both sides are updated on the way.

    The potentials of hyp lie in memory, and the absorbed kernel where the plan will be. Those of
    ref are updated once all tiles have been seen: in the log domain the sums over them are kept
    with their maximum so far.
    """
    hyp_penalty, ref_penalty = tl.load(settings), tl.load(settings + 1)
    hyp_tau, ref_tau = tl.load(settings + 2), tl.load(settings + 3)
    hyp_power, ref_power = tl.load(settings + 4), tl.load(settings + 5)
    epsilon, tolerance = tl.load(settings + 6), tl.load(settings + 7)
    aim, optimal, one = tl.load(settings + 8), tl.load(settings + 9), tl.load(settings + 10)
    zero, absent = one - one, one * -1e30
    pair = tl.program_id(0).to(tl.int64)
    cost += pair * rows * columns
    flow += pair * rows * columns
    hyp_mass += pair * rows
    potentials += pair * rows * 2
    size = tl.load(hyp_size + pair).to(tl.int32)
    j = tl.arange(0, COLUMNS)
    ref_in = j < tl.load(ref_size + pair)
    ref, ref_present, faults, ref_total = _mass(
        ref_mass + pair * columns + j, ref_in, ref_penalty, one
    )
    ref_base = ref_tau * tl.log(tl.where(ref_present, ref, one))
    psi = tl.where(ref_present, zero, absent)
    hyp_total = zero
    for start in range(0, size, TILE):
        i = start + tl.arange(0, TILE)
        hyp_in = i < size
        mass, present, invalid_masses, total = _mass(hyp_mass + i, hyp_in, hyp_penalty, one)
        hyp_total += total
        faults += invalid_masses
        inside = hyp_in[:, None] & ref_in[None, :]
        at = i[:, None] * columns + j[None, :]
        costs = tl.load(cost + at, mask=inside, other=0.0).to(tl.float64)
        invalid = (inside & ~(tl.abs(costs) < 1e300)).to(tl.int32)
        faults += tl.sum(tl.sum(invalid, axis=1), axis=0)
        tl.store(potentials + i, tl.where(hyp_in, zero, zero), mask=hyp_in)
    faults += ((hyp_total <= 0.0) | (ref_total <= 0.0)).to(tl.int32)
    tl.debug_barrier()
    factor, residual, previous = one, one * 1e300, one * 1e300
    sweep = 0
    while (sweep < max_iterations) & (residual > aim) & (faults == 0):
        change = zero
        if residual > 3.0:
            for _ in range(8):
                change = zero
                top = tl.where(ref_in, absent, absent)
                sums = tl.where(ref_in, zero, zero)
                for start in range(0, size, TILE):
                    i = start + tl.arange(0, TILE)
                    mass, present, invalid_masses, total = _mass(
                        hyp_mass + i, i < size, hyp_penalty, one
                    )
                    both = present[:, None] & ref_present[None, :]
                    at = i[:, None] * columns + j[None, :]
                    scaled = tl.load(cost + at, mask=both, other=0.0).to(tl.float64) / epsilon
                    exponent = tl.where(both, psi[None, :] - scaled, absent)
                    peak = tl.max(exponent, axis=1)
                    norm = peak + tl.log(tl.sum(tl.exp(exponent - peak[:, None]), axis=1))
                    phi = tl.load(potentials + i, mask=i < size, other=0.0)
                    base = hyp_tau * tl.log(tl.where(present, mass, one))
                    step = tl.where(present, base - hyp_tau * norm - phi, zero)
                    phi += factor * step
                    tl.store(potentials + i, phi, mask=i < size)
                    change = tl.maximum(change, tl.max(tl.abs(step), axis=0))
                    exponent = tl.where(both, phi[:, None] - scaled, absent)
                    higher = tl.maximum(top, tl.max(exponent, axis=0))
                    fresh = tl.sum(tl.where(both, tl.exp(exponent - higher[None, :]), zero), axis=0)
                    sums = sums * tl.exp(top - higher) + fresh
                    top = higher
                norm = top + tl.log(tl.where(sums > 0.0, sums, one))
                step = tl.where(ref_present, ref_base - ref_tau * norm - psi, zero)
                psi += factor * step
                change = tl.maximum(change, tl.max(tl.abs(step), axis=0))
                tl.debug_barrier()
        else:
            ref_moved = tl.where(ref_in, zero, zero)
            for sweeps in range(8):
                change = zero
                sums = tl.where(ref_in, zero, zero)
                for start in range(0, size, TILE):
                    i = start + tl.arange(0, TILE)
                    mass, present, invalid_masses, total = _mass(
                        hyp_mass + i, i < size, hyp_penalty, one
                    )
                    both = present[:, None] & ref_present[None, :]
                    at = i[:, None] * columns + j[None, :]
                    phi = tl.load(potentials + i, mask=i < size, other=0.0)
                    hyp_moved = tl.load(potentials + rows + i, mask=i < size, other=0.0)
                    if sweeps == 0:
                        scaled = tl.load(cost + at, mask=both, other=0.0).to(tl.float64) / epsilon
                        exponent = tl.where(both, phi[:, None] + psi[None, :] - scaled, absent)
                        absorbed = tl.where(both, tl.exp(exponent), zero)
                        tl.store(flow + at, absorbed, mask=(i < size)[:, None] & ref_in[None, :])
                        hyp_moved = tl.where(present, zero, zero)
                    else:
                        absorbed = tl.load(flow + at, mask=both, other=0.0)
                    row_sums = tl.sum(absorbed * tl.exp(ref_moved)[None, :], axis=1)
                    base = hyp_tau * tl.log(tl.where(present, mass, one))
                    step = _step(row_sums, phi, hyp_moved, base, hyp_tau, present, one)
                    hyp_moved += factor * step
                    if sweeps == 7:
                        tl.store(potentials + i, phi + hyp_moved, mask=i < size)
                    else:
                        tl.store(potentials + rows + i, hyp_moved, mask=i < size)
                    change = tl.maximum(change, tl.max(tl.abs(step), axis=0))
                    sums += tl.sum(absorbed * tl.exp(hyp_moved)[:, None], axis=0)
                step = _step(sums, psi, ref_moved, ref_base, ref_tau, ref_present, one)
                ref_moved += factor * step
                change = tl.maximum(change, tl.max(tl.abs(step), axis=0))
                tl.debug_barrier()
            psi += ref_moved
        residual = change
        worse = (residual > previous) & (residual > 0.3)
        factor = tl.where(worse, 0.5 * (one + optimal), optimal)
        factor = tl.where(residual > 3.0, one, factor)
        previous = residual
        sweep += 8
    ref_sums = tl.where(ref_in, zero, zero)
    bound, dual = zero, zero
    for start in range(0, rows, TILE):
        i = start + tl.arange(0, TILE)
        mass, present, invalid_masses, total = _mass(hyp_mass + i, i < size, hyp_penalty, one)
        both = present[:, None] & ref_present[None, :]
        at = i[:, None] * columns + j[None, :]
        scaled = tl.load(cost + at, mask=both, other=0.0).to(tl.float64) / epsilon
        phi = tl.load(potentials + i, mask=i < size, other=0.0)
        exponent = tl.where(both, phi[:, None] + psi[None, :] - scaled, absent)
        plan = tl.where(both, tl.exp(exponent), zero)
        tl.store(flow + at, plan, mask=(i[:, None] < rows) & (j[None, :] < columns))
        sums = tl.sum(plan, axis=1)
        target = mass * tl.exp(tl.where(present, -hyp_power * phi, zero))
        dual += hyp_penalty * tl.sum(mass - target, axis=0) - epsilon * tl.sum(sums, axis=0)
        bound += hyp_penalty * _divergence(sums, target, one)
        ref_sums += tl.sum(plan, axis=0)
    target = ref * tl.exp(tl.where(ref_present, -ref_power * psi, zero))
    dual += ref_penalty * tl.sum(ref - target, axis=0)
    bound += ref_penalty * _divergence(ref_sums, target, one)
    bound = tl.where(faults > 0, zero / zero, bound)
    tl.store(gap + pair, bound)
    tl.store(converged + pair, bound <= tolerance * (one + tl.abs(dual)))


@triton.jit  # type: ignore[untyped-decorator]
def _nearest_kernel(  # type: ignore[no-untyped-def]
    cost, masses, row_sizes, column_sizes, settings, flow, converged,
    rows, cells, row_stride, column_stride, TILE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Every unit that chooses is a row; the units it chooses from are the columns."""
    penalty, one = tl.load(settings), tl.load(settings + 1)
    zero = one - one
    pair = tl.program_id(0).to(tl.int64)
    size = tl.load(row_sizes + pair).to(tl.int32)
    j = tl.arange(0, COLUMNS)
    column_in = j < tl.load(column_sizes + pair)
    faults, total = 0, zero
    for start in range(0, size, TILE):
        i = start + tl.arange(0, TILE)
        mass = tl.load(masses + pair * rows + i, mask=i < size, other=0.0).to(tl.float64)
        inside = (i < size)[:, None] & column_in[None, :]
        at = pair * cells + i[:, None] * row_stride + j[None, :] * column_stride
        costs = tl.load(cost + at, mask=inside, other=0.0).to(tl.float64)
        faults += tl.sum(((i < size) & ~((mass >= 0.0) & (mass < 1e300))).to(tl.int32), axis=0)
        faults += tl.sum(tl.sum((inside & ~(tl.abs(costs) < 1e300)).to(tl.int32), axis=1), axis=0)
        total += tl.sum(mass, axis=0)
        costs = tl.where(column_in[None, :], costs, one * 1e300)
        nearest = tl.argmin(costs, axis=1)
        sent = mass * tl.exp(-tl.min(costs, axis=1) / penalty)
        chosen = inside & (j[None, :] == nearest[:, None])
        tl.store(flow + at, tl.where(chosen, sent[:, None], zero), mask=inside)
    faults += (total <= 0.0).to(tl.int32)
    tl.store(converged + pair, faults == 0)


@triton.jit  # type: ignore[untyped-decorator]
def _totals_kernel(  # type: ignore[no-untyped-def]
    cost, hyp_mass, ref_mass, hyp_size, ref_size, settings, flow, out,
    rows, columns, TILE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    hyp_penalty, ref_penalty = tl.load(settings), tl.load(settings + 1)
    epsilon, one = tl.load(settings + 2), tl.load(settings + 3)
    zero = one - one
    pair = tl.program_id(0).to(tl.int64)
    size = tl.load(hyp_size + pair).to(tl.int32)
    j = tl.arange(0, COLUMNS)
    ref_in = j < tl.load(ref_size + pair)
    transport, penalties, entropy = zero, zero, zero
    ref_sums = tl.where(ref_in, zero, zero)
    for start in range(0, size, TILE):
        i = start + tl.arange(0, TILE)
        inside = (i < size)[:, None] & ref_in[None, :]
        at = pair * rows * columns + i[:, None] * columns + j[None, :]
        plan = tl.load(flow + at, mask=inside, other=0.0).to(tl.float64)
        costs = tl.load(cost + at, mask=inside, other=0.0).to(tl.float64)
        moved = plan > 0.0
        transport += tl.sum(tl.sum(tl.where(moved, plan * costs, zero), axis=1), axis=0)
        logs = tl.log(tl.where(moved, plan, one))
        entropy += tl.sum(tl.sum(plan * logs - plan, axis=1), axis=0)
        mass = tl.load(hyp_mass + pair * rows + i, mask=i < size, other=0.0).to(tl.float64)
        sums = tl.sum(plan, axis=1)
        penalties += hyp_penalty * _divergence(sums, mass, one)
        ref_sums += tl.sum(plan, axis=0)
    mass = tl.load(ref_mass + pair * columns + j, mask=ref_in, other=0.0).to(tl.float64)
    penalties += ref_penalty * _divergence(ref_sums, mass, one)
    tl.store(out + pair * 3, transport)
    tl.store(out + pair * 3 + 1, transport + penalties)
    tl.store(out + pair * 3 + 2, transport + penalties + epsilon * entropy)
