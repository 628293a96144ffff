"""The sweeps of `sinkhorn_torch` fused into one kernel of a GPU: a problem a program.

A small problem fits into the registers of a program, so that nothing is read twice however many
sweeps it takes, and its bits do not depend on its neighbours. All is in the log domain and float64.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor


def fused_potentials(
    cost: Tensor,
    bases: tuple[Tensor, Tensor],
    present: tuple[Tensor, Tensor],
    shares: tuple[float, float],
    epsilon: float,
    aim: float,
    best: float,
    cap: int,
    absent: float,
) -> tuple[Tensor, Tensor]:
    """The potentials at which none wants to move by more than `aim`, or those at the cap.

    `bases` are shares times logarithms of masses; `best` is how much a last sweep over-relaxes.
    """
    count, rows, columns = cost.shape
    phi, psi = (torch.empty_like(base) for base in bases)
    # Plain numbers would be handed over in single precision.
    settings = cost.new_tensor(
        [*shares, 1.0 / epsilon, aim, best, absent, 1.0], dtype=torch.float64
    )
    inputs = [x.contiguous() for x in (cost, *bases)]
    inside = [there.to(torch.int8) for there in present]
    sizes = {
        "ROWS": triton.next_power_of_2(rows),
        "COLUMNS": triton.next_power_of_2(columns),
    }
    kernel: Any = _potentials
    kernel[count,](*inputs, *inside, settings, phi, psi, rows, columns, cap, **sizes, num_warps=4)
    return phi, psi


@triton.jit  # type: ignore[untyped-decorator]
def _potentials(  # type: ignore[no-untyped-def]
    cost,
    hyp_base,
    ref_base,
    hyp_present,
    ref_present,
    settings,
    phi_out,
    psi_out,
    rows,
    columns,
    cap,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    hyp_share, ref_share = tl.load(settings), tl.load(settings + 1)
    sharpness, aim = tl.load(settings + 2), tl.load(settings + 3)
    best, absent, one = tl.load(settings + 4), tl.load(settings + 5), tl.load(settings + 6)
    pair = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    hyp_at, ref_at = pair * rows + i, pair * columns + j
    hyp_in = tl.load(hyp_present + hyp_at, mask=i < rows, other=0) != 0
    ref_in = tl.load(ref_present + ref_at, mask=j < columns, other=0) != 0
    hyp = tl.load(hyp_base + hyp_at, mask=i < rows, other=0.0)
    ref = tl.load(ref_base + ref_at, mask=j < columns, other=0.0)
    both = hyp_in[:, None] & ref_in[None, :]
    at = pair * rows * columns + i[:, None] * columns + j[None, :]
    price = tl.load(cost + at, mask=both, other=0.0).to(tl.float64) * sharpness
    phi = tl.where(hyp_in, one - one, absent)
    psi = tl.where(ref_in, one - one, absent)
    factor, residual, mark = one, one * 1e300, one * 1e300
    sweep = 0
    while (sweep < cap) & (residual > aim):
        wish = one - one
        for _ in range(8):
            exponent = tl.where(both, psi[None, :] - price, absent)
            top = tl.max(exponent, axis=1)
            sums = tl.sum(tl.exp(exponent - top[:, None]), axis=1)
            step = tl.where(hyp_in, hyp - hyp_share * (top + tl.log(sums)) - phi, 0.0)
            phi += factor * step
            wish = tl.max(tl.abs(step), axis=0)
            exponent = tl.where(both, phi[:, None] - price, absent)
            top = tl.max(exponent, axis=0)
            sums = tl.sum(tl.exp(exponent - top[None, :]), axis=0)
            step = tl.where(ref_in, ref - ref_share * (top + tl.log(sums)) - psi, 0.0)
            psi += factor * step
            wish = tl.maximum(wish, tl.max(tl.abs(step), axis=0))
        residual = wish
        worse = (residual > mark) & (residual > 0.3)
        factor = tl.where(worse, 0.5 * (1.0 + best), best)
        factor = tl.where(residual > 3.0, one, factor)
        mark = residual
        sweep += 8
    tl.store(phi_out + hyp_at, phi, mask=i < rows)
    tl.store(psi_out + ref_at, psi, mask=j < columns)
