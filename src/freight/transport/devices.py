"""Copies between CPU and GPU through pinned memory, CUDA streams, and work that runs ahead.

Copies from pinned memory are fast, and those to the GPU do not block the calling thread.
"""

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

GPU_LOCK = RLock()
"""Taken to compute a chunk on a GPU, and to do what no other GPU work may disturb."""


def send_to_device(array: Array, device: torch.device) -> Tensor:
    """The array as a tensor on the device; to a GPU without waiting for the copy."""
    tensor = torch.from_numpy(array)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def fetch_array(tensor: Tensor) -> Array:
    """The tensor as an array; from a GPU this waits for the result."""
    if not tensor.is_cuda:
        return tensor.numpy()
    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return pinned.copy_(tensor).numpy()


@cache
def stream_for(purpose: str, device: torch.device) -> torch.cuda.Stream:
    """The stream of a device for one purpose, always the same.

    Torch has a pool of 32 and hands them out in turn: a new one may already be in use elsewhere.
    """
    cuda: Any = torch.cuda
    stream: torch.cuda.Stream = cuda.Stream(device)
    return stream


def on_own_stream(device: torch.device, work: Callable[P, T]) -> Callable[P, T]:
    """Wrap work to run on a CUDA stream of its own, after what this thread has queued so far.

    The work must wait for its own results: the memory of its arguments may be used again once it
    returns. There is a pool of streams per priority, so that one of high priority is never the
    encoder's.
    """
    queued = torch.cuda.current_stream(device).record_event()

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        cuda: Any = torch.cuda
        with torch.cuda.stream(cuda.Stream(device, priority=-1)):
            torch.cuda.current_stream(device).wait_event(queued)
            return work(*args, **kwargs)

    return run


def read_ahead(
    items: Iterable[T], room: int = 1, size: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """Yield items in order, but draw later ones first until their sizes exceed `room`."""
    waiting: deque[T] = deque()
    total = 0
    for item in items:
        waiting.append(item)
        total += size(item)
        while total > room:
            total -= size(waiting[0])
            yield waiting.popleft()
    yield from waiting
