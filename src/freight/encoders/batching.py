"""From tokens to batches of fixed shape: windows over long texts, and where their vectors belong.

A text that fits is one window. A longer one is cut into windows of full length at a stride of half,
and the vectors of a token that several windows saw are averaged; the first window gives the opening
special tokens and the last the closing ones.

Batches come from a fixed table: lengths are rounded up to a multiple of 8, long ones to coarser
steps, and each length has as many rows as a budget of tokens has room for, at most 32, filled up
with dummies. A text's vectors then have the same bits whatever its neighbours are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from freight.transport.types import Array

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


class TokenBatch(NamedTuple):
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


def padded_batch(shape: Shape, pieces: Cut, chosen: Array, padding: int) -> TokenBatch:
    """A window a row; dummy rows attend to something, and stay finite."""
    inside = np.arange(shape.length) < pieces.lengths[chosen, None]
    place = ranges(pieces.offsets[chosen], pieces.lengths[chosen])
    ids = np.full(shape, padding, np.int64)
    mask = np.zeros(shape, np.int64)
    mask[:, 0] = 1
    ids[: len(inside)][inside] = pieces.ids[place]
    mask[: len(inside)][inside] = 1
    return TokenBatch({"input_ids": ids, "attention_mask": mask}, {}, place, np.flatnonzero(inside))


def ranges(starts: Array, sizes: Array) -> Array:
    """Numbers from each start on, so many each, end to end."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


ATTENTION = "freight_packed"

_FIRST_POSITIONS = {"bert": 0, "electra": 0, "roberta": 2, "xlm-roberta": 2, "camembert": 2}
"""Model types that can be packed, with the number of a text's first position."""


def packs(model_type: str, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether this kind of model can be run so here."""
    if device.type != "cuda" or dtype == torch.float32 or model_type not in _FIRST_POSITIONS:
        return False
    try:
        from torch.nn.attention import varlen  # noqa: F401
    except ImportError:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def register() -> str:
    """The name of our attention, known to `transformers` from now on."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(ATTENTION, _attend)
    AttentionMaskInterface.register(ATTENTION, _unmasked)
    return ATTENTION


def packed_batches(lengths: Array, budget: int) -> Iterator[tuple[Shape, Array]]:
    """Which windows go together in one row of so many tokens, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    start = 0
    while start < len(order):
        before = ends[start - 1] if start else 0
        size = max(budget, int(lengths[order[start]]))
        stop = int(np.searchsorted(ends, before + size, "right"))
        yield Shape(1, size), order[start:stop]
        start = stop


def packed_batch(
    shape: Shape, pieces: Cut, chosen: Array, padding: int, limit: int, model_type: str
) -> TokenBatch:
    """The model's inputs, filled up with dummy texts, and where the tokens of each window are.

    Texts of no length at all follow, up to a power of two, so that there are few shapes.
    """
    sizes = pieces.lengths[chosen]
    used, room = int(sizes.sum()), shape.length
    fill = [min(limit, room - used - k) for k in range(0, room - used, limit)]
    bounds = np.concatenate(([0], np.cumsum([*sizes, *fill]))).astype(np.int32)
    place = ranges(pieces.offsets[chosen], sizes)
    ids = np.full((1, room), padding, np.int64)
    ids[0, :used] = pieces.ids[place]
    first = _FIRST_POSITIONS[model_type]
    positions = first + np.arange(room) - np.repeat(bounds[:-1], np.diff(bounds))
    inputs: dict[str, Array] = {
        "input_ids": ids,
        "position_ids": positions[None],
        "cu_seq_lens_q": np.pad(bounds, (0, power(len(bounds)) - len(bounds)), "edge"),
    }
    longest = max(int(sizes.max()), *fill, 1)
    return TokenBatch(inputs, {"max_length_q": power(longest)}, place, np.arange(used))


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    cu_seq_lens_q: Tensor,
    max_length_q: int,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    from torch.nn.attention.varlen import varlen_attn

    sides = [side[0].transpose(0, 1) for side in (query, key, value)]  # (token, head, dim)
    usual = scaling is None or scaling == query.shape[-1] ** -0.5
    options: dict[str, Any] = {} if usual else {"scale": scaling}
    bounds = cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q
    found: Any = varlen_attn(sides[0], sides[1], sides[2], *bounds, **options)
    return found[None], None


def _unmasked(*_: Any, **__: Any) -> None:
    """Texts are told apart by where they begin, not by a mask."""
