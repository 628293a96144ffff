"""From tokens to encoder batches of fixed shape: windows over long texts, padded or packed rows.

A text that fits into the model is one window. A longer text is split into windows of full length
with a stride of half a window. The vectors of a token that several windows contain are averaged;
the first window provides the opening special tokens and the last window the closing ones.

Batch shapes come from a fixed table, so that the vectors of a text have the same bits whatever
other texts are in its batch. Padded batches: a length is rounded up to a multiple of 8, long ones
to coarser steps, and each length has as many rows as fit into a budget of tokens, at most 32;
missing rows are filled with dummies. Packed batches (GPUs with variable-length attention): windows
stand end to end in one row of a fixed number of tokens, without padding between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from freight.transport.types import Array

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_STEP = 8
_LENGTHS_PER_OCTAVE = 16
_MAX_ROWS = 32


class SpecialTokens(NamedTuple):
    """The ids of the special tokens before and after a text."""

    opening: tuple[int, ...]
    closing: tuple[int, ...]

    @property
    def total(self) -> int:
        """How many there are in all."""
        return len(self.opening) + len(self.closing)


class PackedWindows(NamedTuple):
    """Windows packed end to end.

    `ids` are token ids, special ones included; `units` is the unit of each token in the cloud (-1
    for special tokens that were added to a window in the middle of a text); window k has the tokens
    offsets[k] to offsets[k + 1] and belongs to the text owner[k].
    """

    ids: Array
    units: Array
    offsets: Array
    owner: Array

    @property
    def lengths(self) -> Array:
        """The number of tokens of each window."""
        return np.diff(self.offsets)

    @property
    def whole(self) -> bool:
        """Whether every text is one window, so that no unit is in two."""
        return len(self.owner) == int(self.owner.max(initial=-1)) + 1


class BatchShape(NamedTuple):
    """Rows and tokens per row of an encoder batch."""

    rows: int
    length: int


class TokenBatch(NamedTuple):
    """The inputs of a model, arrays and plain numbers, and where their tokens come from.

    Token `source[k]` of the packed windows is in the batch at `position[k]`, counted row by row.
    """

    arrays: dict[str, Array]
    numbers: dict[str, int]
    source: Array
    position: Array


def split_into_windows(
    ids: Array, offsets: Array, special: SpecialTokens, limit: int
) -> PackedWindows:
    """Split packed texts into windows of at most `limit` tokens, special ones included."""
    units = np.arange(len(ids))
    if (np.diff(offsets) <= limit).all():
        return PackedWindows(ids, units, offsets, np.arange(len(offsets) - 1))
    pieces: list[Array] = []
    owner: list[int] = []
    for text, (first, last) in enumerate(pairwise(offsets.tolist())):
        fits = last - first <= limit
        windows = [units[first:last]] if fits else _text_windows(first, last, special, limit)
        pieces += windows
        owner += [text] * len(windows)
    packed = np.concatenate(pieces)
    sizes = np.array([len(piece) for piece in pieces])
    added = packed < 0
    tokens = np.where(added, ids[~packed], ids[packed])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    return PackedWindows(tokens, np.where(added, -1, packed), starts, np.array(owner))


def _text_windows(first: int, last: int, special: SpecialTokens, limit: int) -> list[Array]:
    """The windows of one text as units; ~unit is a special token whose vector is not used."""
    opening, closing = len(special.opening), len(special.closing)
    room, count = limit - special.total, last - first - special.total
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


def batch_shape(length: int, limit: int, budget: int) -> BatchShape:
    """The shape of the padded batches in which windows of this length are encoded."""
    step = max(_STEP, next_power_of_two(length) // _LENGTHS_PER_OCTAVE)
    rounded = min(-(-length // step) * step, max(limit, length))
    return BatchShape(max(1, min(_MAX_ROWS, budget // rounded)), rounded)


def next_power_of_two(number: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << (number - 1).bit_length()


def plan_padded_batches(
    lengths: Array, limit: int, budget: int
) -> Iterator[tuple[BatchShape, Array]]:
    """Which windows are encoded together; the longest first: a lack of memory shows early."""
    shapes = {int(length): batch_shape(int(length), limit, budget) for length in np.unique(lengths)}
    rounded = np.array([shape.length for shape in shapes.values()])
    widths = rounded[np.searchsorted(list(shapes), lengths)]
    for shape in sorted(set(shapes.values()), key=lambda shape: -shape.length):
        same = np.flatnonzero(widths == shape.length)
        for start in range(0, len(same), shape.rows):
            yield shape, same[start : start + shape.rows]


def make_padded_batch(
    shape: BatchShape, windows: PackedWindows, chosen: Array, padding: int
) -> TokenBatch:
    """One window per row; a dummy row attends to its first token, so that it stays finite."""
    inside = np.arange(shape.length) < windows.lengths[chosen, None]
    source = ranges(windows.offsets[chosen], windows.lengths[chosen])
    ids = np.full(shape, padding, np.int64)
    mask = np.zeros(shape, np.int64)
    mask[:, 0] = 1
    ids[: len(inside)][inside] = windows.ids[source]
    mask[: len(inside)][inside] = 1
    arrays: dict[str, Array] = {"input_ids": ids, "attention_mask": mask}
    return TokenBatch(arrays, {}, source, np.flatnonzero(inside))


def ranges(starts: Array, sizes: Array) -> Array:
    """The ranges of these starts and sizes, concatenated."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


PACKED_ATTENTION = "freight_packed"

_FIRST_POSITIONS = {"bert": 0, "electra": 0, "roberta": 2, "xlm-roberta": 2, "camembert": 2}
"""Model types whose batches can be packed, with the number of a text's first position."""


def can_pack(model_type: str, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether batches of this kind of model can be packed on this device."""
    import torch

    if device.type != "cuda" or dtype == torch.float32 or model_type not in _FIRST_POSITIONS:
        return False
    try:
        from torch.nn.attention import varlen  # noqa: F401
    except ImportError:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def register_packed_attention() -> str:
    """Register our variable-length attention in `transformers`, and return its name."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(PACKED_ATTENTION, _attend)
    AttentionMaskInterface.register(PACKED_ATTENTION, _no_mask)
    return PACKED_ATTENTION


def plan_packed_batches(lengths: Array, budget: int) -> Iterator[tuple[BatchShape, Array]]:
    """Which windows go together into one row of `budget` tokens, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    start = 0
    while start < len(order):
        before = ends[start - 1] if start else 0
        size = max(budget, int(lengths[order[start]]))
        stop = int(np.searchsorted(ends, before + size, "right"))
        yield BatchShape(1, size), order[start:stop]
        start = stop


def make_packed_batch(
    shape: BatchShape,
    windows: PackedWindows,
    chosen: Array,
    padding: int,
    limit: int,
    model_type: str,
) -> TokenBatch:
    """All chosen windows in one row, filled up with dummy texts of at most `limit` tokens.

    The list of text boundaries is filled up with empty texts to a power of two, so that there are
    few shapes.
    """
    sizes = windows.lengths[chosen]
    used, room = int(sizes.sum()), shape.length
    fill = [min(limit, room - used - k) for k in range(0, room - used, limit)]
    bounds = np.concatenate(([0], np.cumsum([*sizes, *fill]))).astype(np.int32)
    source = ranges(windows.offsets[chosen], sizes)
    ids = np.full((1, room), padding, np.int64)
    ids[0, :used] = windows.ids[source]
    first = _FIRST_POSITIONS[model_type]
    positions = first + np.arange(room) - np.repeat(bounds[:-1], np.diff(bounds))
    arrays: dict[str, Array] = {
        "input_ids": ids,
        "position_ids": positions[None],
        "cu_seq_lens_q": np.pad(bounds, (0, next_power_of_two(len(bounds)) - len(bounds)), "edge"),
    }
    longest = max(int(sizes.max()), *fill, 1)
    numbers = {"max_length_q": next_power_of_two(longest)}
    return TokenBatch(arrays, numbers, source, np.arange(used))


def attend_packed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bounds: Tensor,
    longest: int,
    scaling: float | None = None,
) -> Tensor:
    """Attention (1, token, head, dim) inside each text; the sides are (1, head, token, dim)."""
    from torch.nn.attention.varlen import varlen_attn

    sides = [side[0].transpose(0, 1) for side in (query, key, value)]  # (token, head, dim)
    usual = scaling is None or scaling == query.shape[-1] ** -0.5
    options: dict[str, Any] = {} if usual else {"scale": scaling}
    ends = bounds, bounds, longest, longest
    attended: Any = varlen_attn(sides[0], sides[1], sides[2], *ends, **options)
    packed: Tensor = attended[None]
    return packed


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
    """The same, called as `transformers` does."""
    return attend_packed(query, key, value, cu_seq_lens_q, max_length_q, scaling), None


def _no_mask(*_: Any, **__: Any) -> None:
    """No mask is needed: the boundaries keep texts apart."""
