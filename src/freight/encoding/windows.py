"""From tokens to batches of fixed shape: windows over long texts, and where their vectors belong.

A text that fits is one window. A longer one is cut into windows of full length at a stride of half,
and the vectors of a token that several windows saw are averaged; the first window gives the opening
special tokens and the last the closing ones.

Batches come from a fixed table: lengths are rounded up to a multiple of 16, and each length has
its number of rows, filled up with dummies. A text's vectors then have the same bits whatever its
neighbours are.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from freight.types import Array

STEP = 16
ROWS = 32


class Frame(NamedTuple):
    """The special tokens around a text."""

    opening: tuple[int, ...]
    closing: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.opening) + len(self.closing)


class Window(NamedTuple):
    """Token ids with their special tokens, and the unit that each belongs to; -1 for nobody."""

    ids: Array
    units: Array


class Shape(NamedTuple):
    """Rows and tokens of an encoder batch."""

    rows: int
    length: int


def windows(ids: Sequence[int], first_unit: int, frame: Frame, room: int) -> list[Window]:
    """One text's windows of at most `room` tokens, whose units start at `first_unit`."""
    count, opening = len(ids), len(frame.opening)
    starts = [0]
    while starts[-1] + room < count:
        starts.append(starts[-1] + max(room // 2, 1))
    cut = []
    for start in starts:
        inner = ids[start : start + room]
        units = first_unit + opening + start + np.arange(len(inner))
        before = first_unit + np.arange(opening) if start == 0 else np.full(opening, -1)
        after = first_unit + opening + count + np.arange(len(frame.closing))
        if start != starts[-1]:
            after = np.full(len(frame.closing), -1)
        full = np.array([*frame.opening, *inner, *frame.closing], np.int64)
        cut.append(Window(full, np.concatenate((before, units, after)).astype(np.int64)))
    return cut


def shape_of(length: int, limit: int, budget: int) -> Shape:
    """The shape of the batches in which windows of this length are encoded."""
    rounded = min(-(-length // STEP) * STEP, max(limit, length))
    return Shape(max(1, min(ROWS, budget // rounded)), rounded)


def batches(cut: Sequence[Window], limit: int, budget: int) -> Iterator[tuple[Shape, list[Window]]]:
    """Windows in batches of fixed shape, the longest first, so that memory fails early."""
    by_shape: dict[Shape, list[Window]] = {}
    for window in cut:
        by_shape.setdefault(shape_of(window.ids.size, limit, budget), []).append(window)
    for shape in sorted(by_shape, key=lambda s: -s.length):
        same = by_shape[shape]
        for start in range(0, len(same), shape.rows):
            yield shape, same[start : start + shape.rows]
