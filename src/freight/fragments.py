"""How broken the order of words is in a plan: WMDO's chunks."""

from __future__ import annotations

from freight.kernels import kernel
from freight.types import Array

_TIE = 1e-12


@kernel
def fragmentation(flow: Array, hyp_sizes: Array, ref_sizes: Array, out: Array) -> None:
    """Chunks over matched words, at most 1, for every pair.

    Each reference word is matched to the hypothesis word that sends it most, among equals to the
    one nearest to the match before; one that is not right behind that match opens a chunk.
    """
    for pair in range(out.size):
        chunks, previous, matched = 1, -1, 0
        for j in range(ref_sizes[pair]):
            best, largest = -1, 0.0
            for i in range(hyp_sizes[pair]):
                mass = flow[pair, i, j]
                nearer = abs(i - previous) < abs(best - previous)
                if mass > largest + _TIE or (mass > largest - _TIE and mass > 0 and nearer):
                    best, largest = i, max(mass, largest)
            if best < 0:
                continue
            matched += 1
            if best != previous + 1:
                chunks += 1
            previous = best
        out[pair] = min(1.0, chunks / max(matched, 1))
