"""Arrays to a GPU and back through pinned memory, which is fast, and going there never waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from threading import RLock
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from freight.transport.types import Array

P = ParamSpec("P")
T = TypeVar("T")

QUIET = RLock()
"""Held by whoever reads a chunk on a GPU, and by whoever needs that nobody does."""


def sent(array: Array, device: torch.device) -> Tensor:
    """The array where the device can work on it."""
    there = torch.from_numpy(array)
    if device.type != "cuda":
        return there.to(device)
    return there.pin_memory().to(device, non_blocking=True)


def fetched(tensor: Tensor) -> Array:
    """The numbers of a tensor as an array."""
    if not tensor.is_cuda:
        return tensor.numpy()
    here = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return here.copy_(tensor).numpy()


@cache
def stream_for(purpose: str, device: torch.device) -> torch.cuda.Stream:
    """The stream of a device for one purpose, always the same.

    Torch has 32 and hands them out over and over: a new one may already be some other's.
    """
    cuda: Any = torch.cuda
    stream: torch.cuda.Stream = cuda.Stream(device)
    return stream


def apart(device: torch.device, work: Callable[P, T]) -> Callable[P, T]:
    """The work on a stream of its own, after all that this thread has asked of the GPU by now.

    It has to wait for its own results: what it was given may be gone once it returns. Streams come
    from a pool for each priority, over and over: an urgent one is never the encoder's.
    """
    asked = torch.cuda.current_stream(device).record_event()

    def done(*args: P.args, **kwargs: P.kwargs) -> T:
        cuda: Any = torch.cuda
        with torch.cuda.stream(cuda.Stream(device, priority=-1)):
            torch.cuda.current_stream(device).wait_event(asked)
            return work(*args, **kwargs)

    return done


def begun_early(
    items: Iterable[T], room: int = 1, size: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """Each item once later ones have been made too, as many as there is room for."""
    waiting: deque[T] = deque()
    held = 0
    for item in items:
        waiting.append(item)
        held += size(item)
        while held > room:
            held -= size(waiting[0])
            yield waiting.popleft()
    yield from waiting
