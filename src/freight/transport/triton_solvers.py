"""Solvers as Triton kernels, a program per problem: bitwise the same whatever else is in the batch.

The sweeps of entropic problems are those of `sinkhorn_torch`, in float64. They are in the log
domain while potentials still move much. After that the Gibbs kernel exp((f + g - C) / epsilon) is
recomputed every eight sweeps, and sweeps take no exponential per entry. A small problem stays in
registers, so that its data are read once however many sweeps it takes; a larger one is read tile by
tile, twice per sweep, in single precision until potentials hardly move. Exact problems with a free
marginal are solved as in `nearest`. Costs may be in single precision; a plan is computed with it.
"""

import math
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from freight.transport.triton_vectors import divergence, launching
from freight.transport.types import Terms

WIDEST = 1024
"""The columns of a wider problem do not fit into the registers of one program."""
_SMALL = 64
"""A problem up to this width is one tile, and so wide are the tiles of a wider one."""
_CELLS = 4096
"""How many costs are looked at together where each unit goes to its nearest."""

Data = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Costs (pair, hyp unit, ref unit), the masses of both sides, and the sizes of both."""


def sinkhorn_on_device(terms: Terms, data: Data, aim: float | None = None) -> tuple[Tensor, ...]:
    """Flow; for each pair (pair, 5) its duality gap, whether that is within the tolerance, and
    transport, objective and regularised value; the potentials of both sides over epsilon.

    All are in float64; invalid data never are within. With `aim`, how little a potential may move
    at the end, a marginal may be hard: the potentials count then, and flow and gap do not.
    """
    cost = data[0]
    count, rows, columns = cost.shape
    flow = torch.empty(cost.shape, dtype=torch.float64, device=cost.device)
    results, potentials = flow.new_empty((count, 5)), flow.new_empty((count, rows + columns))
    widths = [triton.next_power_of_2(side) for side in (rows, columns)]
    kernel: Any = _small_kernel
    inputs = [*(x.contiguous() for x in data), _settings(terms, aim, cost.device)]
    warps = min(max(widths[0] * widths[1] // 512, 1), 8)
    if max(rows, columns) > _SMALL:
        kernel, widths, warps = _tiled_kernel, [max(width, _SMALL) for width in widths], 16
        inputs.append(flow.new_empty((count, 2 * sum(widths))))
        widths.append(_SMALL)
    inputs += [flow, results, potentials]
    with launching(cost.device):
        kernel[count,](*inputs, rows, columns, terms.max_iterations, *widths, num_warps=warps)
    return flow, results, potentials


def nearest_on_device(
    terms: Terms, data: Data, flow: Tensor | None = None
) -> tuple[Tensor | None, Tensor]:
    """The same without potentials, of an exact problem with a free marginal; fills a flow of 0s."""
    cost, hyp, ref, hyp_sizes, ref_sizes = (x.contiguous() for x in data)
    count, rows, columns = cost.shape
    results = torch.empty((count, 5), dtype=torch.float64, device=cost.device)
    strides, penalty = (columns, 1), terms.hyp
    if terms.hyp == 0.0:  # the reference's units choose: read it all the other way round
        hyp, hyp_sizes, ref_sizes = ref, ref_sizes, hyp_sizes
        rows, columns, strides, penalty = columns, rows, (1, columns), terms.ref
    settings = _numbers((penalty, penalty if penalty < math.inf else 0.0, 1.0), cost.device)
    width = triton.next_power_of_2(columns)
    tile = max(1, min(_CELLS // width, triton.next_power_of_2(rows)))
    kernel: Any = _nearest_kernel
    with launching(cost.device):
        kernel[count,](
            cost, hyp, hyp_sizes, ref_sizes, settings, results if flow is None else flow, results,
            rows, cost.shape[1] * cost.shape[2], *strides, flow is not None, tile, width,
        )  # fmt: skip
    return flow, results


@lru_cache(64)
def _numbers(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    """Numbers as a float64 tensor: Triton would pass plain ones in single precision."""
    return torch.tensor(numbers, dtype=torch.float64, device=device)


def _settings(terms: Terms, aim: float | None, device: torch.device) -> Tensor:
    """The parameters of the sweeps."""
    sides = terms.hyp, terms.ref
    taus = [1.0 if side == math.inf else side / (side + terms.epsilon) for side in sides]
    powers = [terms.epsilon / side if side else 0.0 for side in sides]
    optimal = 2.0 / (1.0 + math.sqrt(max(1.0 - taus[0] * taus[1], 1e-3)))
    aims = terms.tolerance, aim or 10.0 * terms.tolerance
    numbers = *sides, *taus, *powers, terms.epsilon, *aims, optimal, 1.0
    return _numbers(numbers, device)


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

    `moved` is how far it has gone since. Where the sums underflow it stays, and the gap tells.
    """
    sound = present & (sums > 0.0)
    log_sums = tl.log(tl.where(sound, sums, one)) - potential
    return tl.where(sound, base - tau * log_sums - (potential + moved), one - one)


@triton.jit
def _relaxation(residual, previous, optimal, one):  # type: ignore[no-untyped-def]
    """The factor of the next sweeps: 1 where the residual grew and is above 3, else the optimum."""
    return tl.where((residual > previous) & (residual > 3.0), one, optimal)


@triton.jit
def _judge(  # type: ignore[no-untyped-def]
    hyp, hyp_sums, phi, ref, ref_sums, psi, transport, faults, settings, out
):
    """Store the gap, whether it is small enough, and the three values; the potentials are logs."""
    hyp_penalty, ref_penalty = tl.load(settings), tl.load(settings + 1)
    hyp_power, ref_power = tl.load(settings + 4), tl.load(settings + 5)
    epsilon, tolerance, one = tl.load(settings + 6), tl.load(settings + 7), tl.load(settings + 10)
    zero = one - one
    phi, psi = tl.where(phi > -1e29, phi, zero), tl.where(psi > -1e29, psi, zero)
    hyp_target, ref_target = hyp * tl.exp(-hyp_power * phi), ref * tl.exp(-ref_power * psi)
    moved = epsilon * tl.sum(hyp_sums, axis=0)
    dual = hyp_penalty * tl.sum(hyp - hyp_target, axis=0) - moved
    dual += ref_penalty * tl.sum(ref - ref_target, axis=0)
    bound = hyp_penalty * divergence(hyp_sums, hyp_target, one)
    bound += ref_penalty * divergence(ref_sums, ref_target, one)
    bound = tl.where(faults > 0, zero / zero, bound)
    penalties = hyp_penalty * divergence(hyp_sums, hyp, one)
    penalties += ref_penalty * divergence(ref_sums, ref, one)
    logs = tl.sum(hyp_sums * phi, axis=0) + tl.sum(ref_sums * psi, axis=0)
    tl.store(out, bound)
    tl.store(out + 1, tl.where(bound <= tolerance * (one + tl.abs(dual)), one, zero))
    tl.store(out + 2, transport)
    tl.store(out + 3, transport + penalties)
    tl.store(out + 4, penalties + epsilon * logs - moved)


@triton.jit  # type: ignore[untyped-decorator]
def _small_kernel(  # type: ignore[no-untyped-def]
    cost, hyp_mass, ref_mass, hyp_size, ref_size, settings, flow, out, potentials,
    rows, columns, max_iterations, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    hyp_penalty, ref_penalty = tl.load(settings), tl.load(settings + 1)
    hyp_tau, ref_tau = tl.load(settings + 2), tl.load(settings + 3)
    epsilon, aim = tl.load(settings + 6), tl.load(settings + 8)
    optimal, one = tl.load(settings + 9), tl.load(settings + 10)
    zero, absent = one - one, one * -1e30
    pair = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    hyp_in, ref_in = i < tl.load(hyp_size + pair), j < tl.load(ref_size + pair)
    hyp_mass, ref_mass = hyp_mass + pair * rows, ref_mass + pair * columns
    hyp, hyp_present, hyp_faults, hyp_total = _mass(hyp_mass + i, hyp_in, hyp_penalty, one)
    ref, ref_present, ref_faults, ref_total = _mass(ref_mass + j, ref_in, ref_penalty, one)
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
    factor, residual, previous, sweep = one, one * 1e300, one * 1e300, 0
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
        factor = _relaxation(residual, previous, optimal, one)
        previous = residual
        sweep += 8
    plan = tl.where(both, tl.exp(phi[:, None] + psi[None, :] - scaled_cost), zero)
    tl.store(flow + at, plan, mask=(i[:, None] < rows) & (j[None, :] < columns))
    paid = epsilon * tl.sum(tl.sum(plan * scaled_cost, axis=1), axis=0)
    hyp_sums, ref_sums = tl.sum(plan, axis=1), tl.sum(plan, axis=0)
    tl.store(potentials + pair * (rows + columns) + i, phi, mask=i < rows)
    tl.store(potentials + pair * (rows + columns) + rows + j, psi, mask=j < columns)
    _judge(hyp, hyp_sums, phi, ref, ref_sums, psi, paid, faults, settings, out + pair * 5)


@triton.jit  # type: ignore[untyped-decorator]
def _log_sums(  # type: ignore[no-untyped-def]
    cost, potentials, out, size, other_size, stride, other_stride, epsilon, one, TILE: tl.constexpr
):
    """The logarithms of the sums of exp(potential - cost / epsilon), in single precision."""
    absent, one = (one * -1e30).to(tl.float32), one.to(tl.float32)
    per_cost = (one / epsilon).to(tl.float32)
    for start in range(0, size, TILE):
        i = start + tl.arange(0, TILE)
        top = tl.zeros((TILE, TILE), tl.float32) + absent
        sums = tl.zeros((TILE, TILE), tl.float32)
        for begin in range(0, other_size, TILE):
            j = begin + tl.arange(0, TILE)
            inside = (i < size)[:, None] & (j < other_size)[None, :]
            at = i[:, None] * stride + j[None, :] * other_stride
            scaled = tl.load(cost + at, mask=inside, other=0.0).to(tl.float32) * per_cost
            potential = tl.load(potentials + j).to(tl.float32)
            exponent = tl.where(inside, potential[None, :] - scaled, absent)
            fall = tl.exp(-tl.abs(exponent - top))
            sums = tl.where(exponent > top, sums * fall + one, sums + fall)
            top = tl.maximum(top, exponent)
        peak = tl.max(top, axis=1)
        total = tl.sum(sums * tl.exp(top - peak[:, None]), axis=1)
        tl.store(out + i, (peak + tl.log(total)).to(tl.float64))
    tl.debug_barrier()


@triton.jit  # type: ignore[untyped-decorator]
def _sums(  # type: ignore[no-untyped-def]
    plan, factors, out, size, other_size, stride, other_stride, TILE: tl.constexpr
):
    """The sums over the other side's units, each times its factor."""
    for start in range(0, size, TILE):
        i = start + tl.arange(0, TILE)
        sums = tl.zeros((TILE, TILE), tl.float64)
        for begin in range(0, other_size, TILE):
            j = begin + tl.arange(0, TILE)
            inside = (i < size)[:, None] & (j < other_size)[None, :]
            at = i[:, None] * stride + j[None, :] * other_stride
            entries = tl.load(plan + at, mask=inside, other=0.0).to(tl.float64)
            sums += entries * tl.load(factors + j)[None, :]
        tl.store(out + i, tl.sum(sums, axis=1))
    tl.debug_barrier()


@triton.jit  # type: ignore[untyped-decorator]
def _absorb(  # type: ignore[no-untyped-def]
    cost, hyp_at, ref_at, flow, size, other_size, rows, columns, stride, epsilon,
    TILE: tl.constexpr, PAID: tl.constexpr,
):  # fmt: skip
    """Store the plan of these potentials, 0 past the sizes; what it pays, where that is asked."""
    paid = tl.zeros((TILE, TILE), tl.float64)
    for start in range(0, rows, TILE):
        i = start + tl.arange(0, TILE)
        for begin in range(0, columns, TILE):
            j = begin + tl.arange(0, TILE)
            inside = (i < size)[:, None] & (j < other_size)[None, :]
            at = i[:, None] * stride + j[None, :]
            scaled = tl.load(cost + at, mask=inside, other=0.0).to(tl.float64) / epsilon
            exponent = tl.load(hyp_at + i)[:, None] + tl.load(ref_at + j)[None, :] - scaled
            plan = tl.exp(tl.where(inside, exponent, -1e30))
            there = (i < rows)[:, None] & (j < columns)[None, :]
            tl.store(flow + at, plan.to(flow.dtype.element_ty), mask=there)
            if PAID:
                paid += plan * scaled
    tl.debug_barrier()
    return epsilon * tl.sum(tl.sum(paid, axis=1), axis=0)


@triton.jit
def _share(at, values):  # type: ignore[no-untyped-def]
    """Store a vector for all threads to read."""
    tl.debug_barrier()
    tl.store(at, values)
    tl.debug_barrier()


@triton.jit  # type: ignore[untyped-decorator]
def _sweeps(  # type: ignore[no-untyped-def]
    cost, kernel, vectors, n, m, columns, phi, psi, hyp_base, ref_base, hyp_present, ref_present,
    factor, settings, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Sweep with a kernel that has absorbed these potentials: those after it, the last change."""
    hyp_tau, ref_tau = tl.load(settings + 2), tl.load(settings + 3)
    epsilon, one = tl.load(settings + 6), tl.load(settings + 10)
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    hyp_at, ref_at = vectors, vectors + ROWS
    hyp_out, ref_out = vectors + ROWS + COLUMNS, vectors + 2 * ROWS + COLUMNS
    _share(hyp_at + i, phi)
    _share(ref_at + j, psi)
    _absorb(cost, hyp_at, ref_at, kernel, n, m, n, m, columns, epsilon, TILE, False)
    change = one - one
    hyp_moved, ref_moved = tl.where(i < n, change, change), tl.where(j < m, change, change)
    for _ in range(8):
        _share(ref_at + j, tl.exp(ref_moved))
        _sums(kernel, ref_at, hyp_out, n, m, columns, 1, TILE)
        sums = tl.load(hyp_out + i, mask=i < n, other=0.0)
        step = _step(sums, phi, hyp_moved, hyp_base, hyp_tau, hyp_present, one)
        hyp_moved += factor * step
        change = tl.max(tl.abs(step), axis=0)
        _share(hyp_at + i, tl.exp(hyp_moved))
        _sums(kernel, hyp_at, ref_out, m, n, 1, columns, TILE)
        sums = tl.load(ref_out + j, mask=j < m, other=0.0)
        step = _step(sums, psi, ref_moved, ref_base, ref_tau, ref_present, one)
        ref_moved += factor * step
        change = tl.maximum(change, tl.max(tl.abs(step), axis=0))
    return phi + hyp_moved, psi + ref_moved, change


@triton.jit  # type: ignore[untyped-decorator]
def _tiled_kernel(  # type: ignore[no-untyped-def]
    cost, hyp_mass, ref_mass, hyp_size, ref_size, settings, vectors, flow, out, potentials,
    rows, columns, max_iterations, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """As above; every sweep reads tile by tile, once for the rows and once for the columns.

    The kernel lies where the plan will be; `vectors` has the factors of tiles, and their sums.
    """
    hyp_penalty, ref_penalty = tl.load(settings), tl.load(settings + 1)
    hyp_tau, ref_tau = tl.load(settings + 2), tl.load(settings + 3)
    epsilon, aim = tl.load(settings + 6), tl.load(settings + 8)
    optimal, one = tl.load(settings + 9), tl.load(settings + 10)
    zero, absent = one - one, one * -1e30
    pair = tl.program_id(0).to(tl.int64)
    cost += pair * rows * columns
    flow += pair * rows * columns
    n, m = tl.load(hyp_size + pair).to(tl.int32), tl.load(ref_size + pair).to(tl.int32)
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    vectors += pair * 2 * (ROWS + COLUMNS)
    hyp_at, coarse = vectors, flow.to(tl.pointer_type(tl.float32))
    ref_at, hyp_out, ref_out = hyp_at + ROWS, hyp_at + ROWS + COLUMNS, hyp_at + 2 * ROWS + COLUMNS
    hyp_mass, ref_mass = hyp_mass + pair * rows, ref_mass + pair * columns
    hyp, hyp_present, faults, hyp_total = _mass(hyp_mass + i, i < n, hyp_penalty, one)
    ref, ref_present, ref_faults, ref_total = _mass(ref_mass + j, j < m, ref_penalty, one)
    hyp_base = hyp_tau * tl.log(tl.where(hyp_present, hyp, one))
    ref_base = ref_tau * tl.log(tl.where(ref_present, ref, one))
    phi, psi = tl.where(hyp_present, zero, absent), tl.where(ref_present, zero, absent)
    faults += ref_faults + ((hyp_total <= 0.0) | (ref_total <= 0.0)).to(tl.int32)
    for start in range(0, n, TILE):
        for begin in range(0, m, TILE):
            row, column = start + tl.arange(0, TILE), begin + tl.arange(0, TILE)
            inside = (row < n)[:, None] & (column < m)[None, :]
            costs = tl.load(cost + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
            invalid = (inside & ~(tl.abs(costs.to(tl.float64)) < 1e300)).to(tl.int32)
            faults += tl.sum(tl.sum(invalid, axis=1), axis=0)
    factor, residual, previous, sweep = one, one * 1e300, one * 1e300, 0
    while (sweep < max_iterations) & (residual > aim) & (faults == 0):
        change = zero
        if residual > 3.0:
            for _ in range(8):
                _share(ref_at + j, psi)
                _log_sums(cost, ref_at, hyp_out, n, m, columns, 1, epsilon, one, TILE)
                norm = tl.load(hyp_out + i, mask=i < n, other=0.0)
                step = tl.where(hyp_present, hyp_base - hyp_tau * norm - phi, zero)
                phi += factor * step
                change = tl.max(tl.abs(step), axis=0)
                _share(hyp_at + i, phi)
                _log_sums(cost, hyp_at, ref_out, m, n, 1, columns, epsilon, one, TILE)
                norm = tl.load(ref_out + j, mask=j < m, other=0.0)
                step = tl.where(ref_present, ref_base - ref_tau * norm - psi, zero)
                psi += factor * step
                change = tl.maximum(change, tl.max(tl.abs(step), axis=0))
        elif residual > 1e-6:
            phi, psi, change = _sweeps(
                cost, coarse, vectors, n, m, columns, phi, psi, hyp_base, ref_base,
                hyp_present, ref_present, factor, settings, ROWS, COLUMNS, TILE,
            )  # fmt: skip
        else:
            phi, psi, change = _sweeps(
                cost, flow, vectors, n, m, columns, phi, psi, hyp_base, ref_base,
                hyp_present, ref_present, factor, settings, ROWS, COLUMNS, TILE,
            )  # fmt: skip
        # Sweeps in double precision come last.
        residual = tl.where(residual > 1e-6, tl.maximum(change, 1e-6), change)
        factor = _relaxation(residual, previous, optimal, one)
        previous = residual
        sweep += 8
    _share(hyp_at + i, phi)
    _share(ref_at + j, psi)
    paid = _absorb(cost, hyp_at, ref_at, flow, n, m, rows, columns, columns, epsilon, TILE, True)
    _share(hyp_at + i, tl.where(i < n, one, one))
    _share(ref_at + j, tl.where(j < m, one, one))
    _sums(flow, ref_at, hyp_out, n, m, columns, 1, TILE)
    _sums(flow, hyp_at, ref_out, m, n, 1, columns, TILE)
    hyp_sums = tl.load(hyp_out + i, mask=i < n, other=0.0)
    ref_sums = tl.load(ref_out + j, mask=j < m, other=0.0)
    tl.store(potentials + pair * (rows + columns) + i, phi, mask=i < rows)
    tl.store(potentials + pair * (rows + columns) + rows + j, psi, mask=j < columns)
    _judge(hyp, hyp_sums, phi, ref, ref_sums, psi, paid, faults, settings, out + pair * 5)


@triton.jit  # type: ignore[untyped-decorator]
def _nearest_kernel(  # type: ignore[no-untyped-def]
    cost, masses, row_sizes, column_sizes, settings, flow, out,
    rows, cells, row_stride, column_stride,
    ENTER: tl.constexpr, TILE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Every unit that chooses is a row; the units it chooses from are the columns."""
    penalty, finite, one = tl.load(settings), tl.load(settings + 1), tl.load(settings + 2)
    zero = one - one
    pair = tl.program_id(0).to(tl.int64)
    size = tl.load(row_sizes + pair).to(tl.int32)
    j = tl.arange(0, COLUMNS)
    column_in = j < tl.load(column_sizes + pair)
    faults, total, transport, penalties = 0, zero, zero, zero
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
        least = tl.min(costs, axis=1)
        sent = mass * tl.exp(-least / penalty)
        transport += tl.sum(tl.where(i < size, sent * least, zero), axis=0)
        penalties += finite * divergence(sent, mass, one)
        if ENTER:
            chosen = inside & (j[None, :] == tl.argmin(costs, axis=1)[:, None])
            tl.store(flow + at, tl.where(chosen, sent[:, None], zero), mask=inside)
    sound = (faults == 0) & (total > 0.0)
    tl.store(out + pair * 5, tl.where(sound, zero, zero / zero))
    tl.store(out + pair * 5 + 1, tl.where(sound, one, zero))
    tl.store(out + pair * 5 + 2, transport)
    tl.store(out + pair * 5 + 3, transport + penalties)
    tl.store(out + pair * 5 + 4, transport + penalties)
