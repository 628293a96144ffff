"""Pairs of measures in padded batches of fixed shape, so that a pair's bits are its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch

from freight.core.weightings import Measures
from freight.errors import InvalidInput
from freight.transport.devices import send_to_device
from freight.transport.types import Array

STEP = 16
CELLS = 2**16
GPU_CELLS = 2**20
"""How many numbers the costs of a batch are."""
WIDE = 4096
MOST_CELLS = 2**29
"""Beyond this width a side is padded to its own length; beyond so many cells there is no matrix."""


class Positions(NamedTuple):
    """Where the units of either side stand in hyp and in ref, 0 to 1 (pair, unit); nan: nowhere."""

    hyp: tuple[Array, Array]
    ref: tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Parts:
    """What the units of either side are made of: measures, and which of them (pair, unit)."""

    hyp: Measures
    ref: Measures
    hyp_units: Array
    ref_units: Array

    def __getitem__(self, rows: slice) -> Parts:
        """Those of some of the pairs."""
        return replace(self, hyp_units=self.hyp_units[rows], ref_units=self.ref_units[rows])

    def unrelated(self) -> Parts:
        """The same, the parts of the one side at right angles to those of the other."""
        hyp, ref = _apart(self.hyp.points, self.ref.points)
        return replace(self, hyp=replace(self.hyp, points=hyp), ref=replace(self.ref, points=ref))


class Pairs(NamedTuple):
    """Two padded sides, their true sizes, and which pairs of the index these are.

    Points may have more rows than there are pairs, dummies that keep the shape. `unknown` is the
    share of the hypothesis that the encoder has no vector for, `moved` the share of the mass that
    is to move at all; where units have a place in their text, `places` says it. A pairing that
    knows the `cosines` (pair, unit, unit) between the sides already gives no points; one whose
    sides are not the units of their texts in a row says what they are by `ids` (pair, unit). Where
    units are measures themselves, `parts` has them.
    """

    which: Array
    points: tuple[torch.Tensor, torch.Tensor] | None
    hyp_weights: Array
    ref_weights: Array
    hyp_sizes: Array
    ref_sizes: Array
    unknown: Array
    moved: Array | None = None
    places: Positions | None = None
    cosines: Array | None = None
    ids: tuple[Array, Array] | None = None
    parts: Parts | None = None

    @property
    def masses(self) -> tuple[Array, Array]:
        """Of both sides."""
        return self.hyp_weights, self.ref_weights

    @property
    def sizes(self) -> tuple[Array, Array]:
        """Of both sides."""
        return self.hyp_sizes, self.ref_sizes

    @property
    def cells(self) -> int:
        """How many numbers the costs of these pairs are."""
        return self.hyp_weights.size * self.ref_weights.shape[1]

    def alone(self, row: int) -> Pairs:
        """One of the pairs, as a batch of one."""
        return Pairs(*(_cut(field, slice(row, row + 1)) for field in self))

    def unrelated(self) -> Pairs:
        """The same, every unit of the one side at a right angle to every unit of the other."""
        if self.points is None:
            return self._replace(cosines=np.zeros_like(self.cosines))
        parts = self.parts and self.parts.unrelated()
        return self._replace(points=_apart(*self.points), parts=parts)


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


def side_by_side(hyp: Measures, ref: Measures, index: Array) -> Iterator[Pairs]:
    """Gather the pairs of an index (pair, 2) batch by batch; rows past the last are dummies.

    Both sides are padded to the longer one rounded up, and every shape has its number of rows; a
    pair with a very long side is alone in its batch, and padded to the lengths of its own sides.
    """
    sizes = np.diff(hyp.offsets)[index[:, 0]], np.diff(ref.offsets)[index[:, 1]]
    cells = GPU_CELLS if hyp.points.is_cuda else CELLS
    for width, rows, which in buckets(np.maximum(*sizes), cells=cells):
        widths = [width, width]
        if width > WIDE:
            widths = [int(_rounded_up(size[which[0]], STEP)) for size in sizes]
        check_cells(*widths)
        sides = [
            _gather(measures, index[which, side], widths[side], rows)
            for side, measures in enumerate((hyp, ref))
        ]
        points, weights, counts, units = zip(*sides, strict=True)
        unknown = hyp.unknown[index[which, 0]]
        yield Pairs(
            which, (points[0], points[1]), weights[0], weights[1], counts[0], counts[1], unknown,
            parts=Parts(hyp.parts, ref.parts, *units) if hyp.parts and ref.parts else None,
        )  # fmt: skip


def buckets(sizes: Array, step: int = STEP, cells: int = CELLS) -> Iterator[tuple[int, int, Array]]:
    """Widths, the longest first, with their number of rows, and which of the sizes go together."""
    widths = _rounded_up(sizes, step)
    for width in np.unique(widths)[::-1]:
        same = np.flatnonzero(widths == width)
        rows = max(1, cells // int(width) ** 2)
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
    full = np.zeros((rows, width), np.int64)
    full[: len(units)] = units
    points = measures.points[send_to_device(full, measures.points.device)]
    return points, np.where(inside, measures.weights[units], 0.0), size, units


def _apart(hyp: torch.Tensor, ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in twice the dimensions, those of the one side at right angles to the other's."""
    return torch.cat((hyp, hyp * 0.0), -1), torch.cat((ref * 0.0, ref), -1)


def _cut(field: Any, rows: slice) -> Any:
    """These rows of an array, or of every array in a tuple of them."""
    if field is None or not isinstance(field, tuple):
        return None if field is None else field[rows]
    parts = (_cut(part, rows) for part in field)
    return Positions(*parts) if isinstance(field, Positions) else tuple(parts)
