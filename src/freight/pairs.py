"""Pairs of measures in padded batches of fixed shape, so that a pair's bits are its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from freight.types import Array
from freight.weightings import Measures

_STEP = 16
_CELLS = 2**16


class Pairs(NamedTuple):
    """Two padded sides, their true sizes, and which pairs of the index these are."""

    which: Array
    hyp_points: torch.Tensor
    ref_points: torch.Tensor
    hyp_weights: Array
    ref_weights: Array
    hyp_sizes: Array
    ref_sizes: Array


def side_by_side(hyp: Measures, ref: Measures, index: Array) -> Iterator[Pairs]:
    """Gather the pairs of an index (pair, 2) batch by batch; rows past the last are dummies.

    Both sides are padded to the longer one rounded up, and every shape has its number of rows.
    """
    sizes = np.diff(hyp.offsets)[index[:, 0]], np.diff(ref.offsets)[index[:, 1]]
    widths = np.maximum(-(-np.maximum(*sizes) // _STEP) * _STEP, _STEP)
    for width in np.unique(widths)[::-1]:
        same = np.flatnonzero(widths == width)
        rows = max(1, _CELLS // int(width) ** 2)
        for start in range(0, len(same), rows):
            which = same[start : start + rows]
            sides = [
                _gather(measures, index[which, side], int(width), rows)
                for side, measures in enumerate((hyp, ref))
            ]
            points, weights, counts = zip(*sides, strict=True)
            yield Pairs(which, points[0], points[1], *weights, *counts)


def _gather(
    measures: Measures, texts: Array, width: int, rows: int
) -> tuple[torch.Tensor, Array, Array]:
    """Points (rows, width, dim), masses and sizes of these texts; what is past a size repeats."""
    first = measures.offsets[texts]
    size = measures.offsets[texts + 1] - first
    inside = np.arange(width) < size[:, None]
    units = np.where(inside, first[:, None] + np.arange(width), first[:, None])
    full = np.zeros((rows, width), np.int64)
    full[: len(units)] = units
    points = measures.points[torch.as_tensor(full, device=measures.points.device)]
    return points, np.where(inside, measures.weights[units], 0.0), size
