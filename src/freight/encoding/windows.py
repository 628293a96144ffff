"""From tokens to batches of fixed shape: windows over long texts, and where their vectors belong.

A text that fits is one window. A longer one is cut into windows of full length at a stride of half,
and the vectors of a token that several windows saw are averaged; the first window gives the opening
special tokens and the last the closing ones.

Batches come from a fixed table: lengths are rounded up to a multiple of 8, long ones to coarser
steps, and each length has as many rows as a budget of tokens has room for, at most 32, filled up
with dummies. A text's vectors then have the same bits whatever its neighbours are.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from freight.types import Array

_STEP = 8
_STEPS = 16
"""Up to a power of two there are so many lengths, or fewer."""
_ROWS = 32


class Frame(NamedTuple):
    """The special tokens around a text."""

    opening: tuple[int, ...]
    closing: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.opening) + len(self.closing)


class Cut(NamedTuple):
    """Windows packed end to end: their token ids with special ones, the unit that each belongs to
    (-1 for nobody), and the text that each window is of.
    """

    ids: Array
    units: Array
    offsets: Array
    owner: Array

    @property
    def lengths(self) -> Array:
        """The tokens of each window."""
        return np.diff(self.offsets)


class Shape(NamedTuple):
    """Rows and tokens of an encoder batch."""

    rows: int
    length: int


class Batch(NamedTuple):
    """What a model is given, arrays and plain numbers, and where it all belongs.

    `place` is where the tokens of the chosen windows are among all packed ones, `taken` where they
    are in the batch, row after row.
    """

    arrays: dict[str, Array]
    numbers: dict[str, int]
    place: Array
    taken: Array


def cut(ids: Array, offsets: Array, frame: Frame, limit: int) -> Cut:
    """Packed texts as windows of at most `limit` tokens, their frame included."""
    units = np.arange(len(ids))
    if (np.diff(offsets) <= limit).all():
        return Cut(ids, units, offsets, np.arange(len(offsets) - 1))
    pieces: list[Array] = []
    owner: list[int] = []
    for text, (first, last) in enumerate(pairwise(offsets.tolist())):
        fits = last - first <= limit
        several = [units[first:last]] if fits else _windows(first, last, frame, limit)
        pieces += several
        owner += [text] * len(several)
    packed = np.concatenate(pieces)
    sizes = np.array([len(piece) for piece in pieces])
    lent = packed < 0  # special tokens of a window that are not the text's own
    tokens = np.where(lent, ids[~packed], ids[packed])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    return Cut(tokens, np.where(lent, -1, packed), starts, np.array(owner))


def _windows(first: int, last: int, frame: Frame, limit: int) -> list[Array]:
    """One text's windows as units; ~unit is a special token whose vector belongs to nobody."""
    opening, closing = len(frame.opening), len(frame.closing)
    room, count = limit - frame.size, last - first - frame.size
    starts = [0]
    while starts[-1] + room < count:
        starts.append(starts[-1] + max(room // 2, 1))
    before, after = first + np.arange(opening), last - closing + np.arange(closing)
    return [
        np.concatenate(
            (
                before if start == 0 else ~before,
                first + opening + np.arange(start, min(start + room, count)),
                after if start == starts[-1] else ~after,
            )
        )
        for start in starts
    ]


def shape_of(length: int, limit: int, budget: int) -> Shape:
    """The shape of the batches in which windows of this length are encoded."""
    step = max(_STEP, power(length) // _STEPS)
    rounded = min(-(-length // step) * step, max(limit, length))
    return Shape(max(1, min(_ROWS, budget // rounded)), rounded)


def power(number: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << (number - 1).bit_length()


def batches(lengths: Array, limit: int, budget: int) -> Iterator[tuple[Shape, Array]]:
    """Which windows go together, in fixed shapes, the longest first: memory fails early."""
    shapes = {int(length): shape_of(int(length), limit, budget) for length in np.unique(lengths)}
    rounded = np.array([shape.length for shape in shapes.values()])
    widths = rounded[np.searchsorted(list(shapes), lengths)]
    for shape in sorted(set(shapes.values()), key=lambda shape: -shape.length):
        same = np.flatnonzero(widths == shape.length)
        for start in range(0, len(same), shape.rows):
            yield shape, same[start : start + shape.rows]


def padded_batch(shape: Shape, pieces: Cut, chosen: Array, padding: int) -> Batch:
    """A window a row; dummy rows attend to something, and stay finite."""
    inside = np.arange(shape.length) < pieces.lengths[chosen, None]
    place = ranges(pieces.offsets[chosen], pieces.lengths[chosen])
    ids = np.full(shape, padding, np.int64)
    mask = np.zeros(shape, np.int64)
    mask[:, 0] = 1
    ids[: len(inside)][inside] = pieces.ids[place]
    mask[: len(inside)][inside] = 1
    return Batch({"input_ids": ids, "attention_mask": mask}, {}, place, np.flatnonzero(inside))


def ranges(starts: Array, sizes: Array) -> Array:
    """Numbers from each start on, so many each, end to end."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
