"""Batches without padding: texts end to end in one row, each attending to itself alone.

A batch has a fixed number of tokens, filled up with dummies, so that a text's vectors have the same
bits whatever its neighbours are. Needs a CUDA GPU, half precision, and a model whose attention goes
through the interface of `transformers` and whose positions can be said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from freight.encoding.windows import Batch, Cut, Shape, power, ranges
from freight.types import Array

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
) -> Batch:
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
    return Batch(inputs, {"max_length_q": power(longest)}, place, np.arange(used))


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
