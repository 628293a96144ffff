"""Pairs of measures in padded batches of fixed shape, so that a pair's bits are its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from freight.core.types import Measures, NestedMeasures, Pairs
from freight.errors import InvalidInput
from freight.transport.devices import scale_to_unit_length
from freight.transport.types import Array, send_to_device

STEP = 16
CELLS = 2**16
GPU_CELLS = 2**22
"""How many numbers the costs of a batch are."""
GPU_UNITS = 2**16
"""How many units a side of a batch has at most on a GPU, where they are gathered."""
WIDE = 4096
MOST_CELLS = 2**29
"""Beyond this width a side is padded to its own length; beyond so many cells there is no matrix."""


@dataclass(frozen=True, eq=False)
class PointPairs(Pairs):
    """Pairs that compare points.

    The batch has a fixed number of rows, so that a pair's bits do not depend on its neighbours:
    rows past the last pair are dummies, and they are cut here, before a cost sees anything.
    """

    padded_points: tuple[Tensor, Tensor]  # (row, unit, dim)
    spellings: tuple[Array, Array] | None = None
    """The ids of literal units (pair, unit), -1 for others; None where a side has no such unit."""

    @property
    def points(self) -> tuple[Tensor, Tensor]:
        """Of hyp and of ref (pair, unit, dim)."""
        hyp, ref = self.padded_points
        return hyp[: len(self.which)], ref[: len(self.which)]

    def similarity(self) -> Tensor:
        """Cosine similarity, never outside -1 to 1; that of a zero vector is 0."""
        hyp, ref = (
            scale_to_unit_length(points) if points.is_cuda else normalize(points, dim=-1)
            for points in self.padded_points
        )
        cosines = (hyp @ ref.mT)[: len(self.which)].clamp(-1.0, 1.0)
        return self._compared(cosines, 1.0, 0.0)

    def squared_distances(self, dtype: torch.dtype | None = None) -> Tensor:
        """Squared Euclidean distance between the points, in this precision."""
        hyp, ref = (points.to(dtype) if dtype else points for points in self.padded_points)
        squares = hyp.square().sum(-1)[..., None] + ref.square().sum(-1)[..., None, :]
        far = (squares - 2.0 * hyp @ ref.mT).clamp(min=0.0)[: len(self.which)]
        return self._compared(far, 0.0, squares[: len(self.which)])

    def orthogonal(self) -> Self:
        """The same pairs, every point of hyp orthogonal to every point of ref."""
        return replace(self, padded_points=_orthogonal(*self.padded_points), spellings=None)

    def _compared(self, values: Tensor, equal: float, orthogonal: float | Tensor) -> Tensor:
        """The values, but for two literal units: they are equal, or they are orthogonal."""
        if self.spellings is None:
            return values
        hyp, ref = (send_to_device(ids, values.device) for ids in self.spellings)
        literal = (hyp >= 0)[:, :, None] & (ref >= 0)[:, None, :]
        same = hyp[:, :, None] == ref[:, None, :]
        return torch.where(literal, torch.where(same, equal, orthogonal).to(values), values)


@dataclass(frozen=True, eq=False, kw_only=True)
class NestedPairs(PointPairs):
    """Pairs whose units are measures themselves: those of both sides, and which (pair, unit)."""

    hyp_parts: Measures
    ref_parts: Measures
    hyp_units: Array
    ref_units: Array

    def orthogonal(self) -> Self:
        """The same pairs, units and their parts orthogonal to those of the other side."""
        hyp, ref = _orthogonal(self.hyp_parts.points, self.ref_parts.points)
        return replace(
            super().orthogonal(),
            hyp_parts=replace(self.hyp_parts, points=hyp, literal=None),
            ref_parts=replace(self.ref_parts, points=ref, literal=None),
        )


Pairing = Callable[[Measures, Measures, Array], Iterator[Pairs]]


@runtime_checkable
class OmitsSharedMass(Protocol):
    """An optional ability of a pairing that may take out the mass which both texts share.

    Its batches have to give `ids`, so that an explanation can put that mass back.
    """

    @property
    def in_full(self) -> Pairing:
        """The same pairing with all the mass; itself where it takes none out."""
        ...


def side_by_side(
    hyp: Measures, ref: Measures, index: Array, step: int = STEP, fill: bool = True
) -> Iterator[Pairs]:
    """Gather the pairs of an index (pair, 2) batch by batch; rows past the last are dummies.

    Both sides are padded to the longer one rounded up, and every shape has its number of rows; a
    pair with a very long side is alone in its batch, and padded to the lengths of its own sides.
    Without `fill` there are no dummies, and a pair's bits depend on its batch.
    """
    sizes = np.diff(hyp.offsets)[index[:, 0]], np.diff(ref.offsets)[index[:, 1]]
    limits = (GPU_CELLS, GPU_UNITS) if hyp.points.is_cuda else (CELLS, CELLS)
    for width, rows, which in buckets(np.maximum(*sizes), step, *limits):
        widths = [width, width]
        if width > WIDE:
            widths = [int(_rounded_up(size[which[0]], STEP)) for size in sizes]
        check_cells(*widths)
        sides = [
            _gather(measures, index[which, side], widths[side], rows if fill else len(which))
            for side, measures in enumerate((hyp, ref))
        ]
        points, weights, counts, units = zip(*sides, strict=True)
        pairs = PointPairs(
            which=which,
            hyp_weights=weights[0],
            ref_weights=weights[1],
            hyp_sizes=counts[0],
            ref_sizes=counts[1],
            unknown=hyp.unknown[index[which, 0]],
            padded_points=(points[0], points[1]),
            spellings=_spellings((hyp, ref), units),
        )
        if isinstance(hyp, NestedMeasures) and isinstance(ref, NestedMeasures):
            yield NestedPairs(
                **vars(pairs),
                hyp_parts=hyp.parts,
                ref_parts=ref.parts,
                hyp_units=units[0],
                ref_units=units[1],
            )
        else:
            yield pairs


def buckets(
    sizes: Array, step: int = STEP, cells: int = CELLS, units: int = CELLS
) -> Iterator[tuple[int, int, Array]]:
    """Widths, the longest first, with their number of rows, and which of the sizes go together.

    A batch has at most so many cells and so many units a side, but at least one row.
    """
    widths = _rounded_up(sizes, step)
    for width in np.unique(widths)[::-1]:
        same = np.flatnonzero(widths == width)
        rows = max(1, min(cells // int(width) ** 2, units // int(width)))
        for start in range(0, len(same), rows):
            yield int(width), rows, same[start : start + rows]


def check_cells(hyp: int, ref: int) -> None:
    """Refuse two texts whose cost would not fit in memory."""
    if hyp * ref > MOST_CELLS:
        raise InvalidInput(
            f"two texts of up to {hyp:,} and {ref:,} units are too long to be matched with each"
            " other; cut them into pieces"
        )


def _rounded_up(sizes: Array, step: int) -> Array:
    return np.maximum(-(-sizes // step) * step, step)


def _gather(
    measures: Measures, texts: Array, width: int, rows: int
) -> tuple[torch.Tensor, Array, Array, Array]:
    """Points (rows, width, dim), masses and sizes of these texts, and which units those are.

    What is past a size repeats.
    """
    first = measures.offsets[texts]
    size = measures.offsets[texts + 1] - first
    inside = np.arange(width) < size[:, None]
    units = np.where(inside, first[:, None] + np.arange(width), first[:, None])
    ranges = np.zeros((2, rows), np.int64)
    ranges[:, : len(units)] = first, size
    points = measures.points[_spread(send_to_device(ranges, measures.points.device), width)]
    return points, np.where(inside, measures.weights[units], 0.0), size, units


def _spread(ranges: Tensor, width: int) -> Tensor:
    """The same units out of where each row starts and its size (2, row): few numbers to copy."""
    first, size = ranges[:, :, None]
    step = torch.arange(width, device=ranges.device)
    return first + torch.where(step < size, step, 0)


def _spellings(
    sides: tuple[Measures, Measures], units: tuple[Array, ...]
) -> tuple[Array, Array] | None:
    """The ids of the literal units among these (pair, unit); None where a side has none."""
    spelled = []
    for measures, chosen in zip(sides, units, strict=True):
        if measures.literal is None or not measures.literal[chosen].any():
            return None
        spelled.append(np.where(measures.literal[chosen], measures.ids[chosen], -1))
    return spelled[0], spelled[1]


def _orthogonal(hyp: Tensor, ref: Tensor) -> tuple[Tensor, Tensor]:
    """Points in twice the dimensions, those of one side orthogonal to those of the other."""
    return torch.cat((hyp, hyp * 0.0), -1), torch.cat((ref * 0.0, ref), -1)
