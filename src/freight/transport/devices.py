"""What is on a GPU: its lock, CUDA streams, work that runs ahead, and plans that stay there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from importlib.util import find_spec
from threading import RLock
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch

from freight.kernels import spare_threads, work_alone
from freight.transport.types import Array, Plans, Problem, fetch_array

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

GPU_LOCK = RLock()
"""A thread takes it to score a chunk on a GPU, or to capture a CUDA graph, one at a time."""


@cache
def stream_for(purpose: str, device: torch.device, priority: int = 0) -> torch.cuda.Stream:
    """The stream of a device for one purpose, always the same.

    Torch has a pool of 32 and hands them out in turn: a new one may already be in use elsewhere.
    """
    cuda: Any = torch.cuda
    stream: torch.cuda.Stream = cuda.Stream(device, priority=priority)
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


@cache
def vectors_on_device() -> Any:
    """The module of Triton kernels for vectors, or None where `triton` is not installed."""
    if find_spec("triton") is None:
        return None
    from freight.transport import triton_vectors

    return triton_vectors


def has_kernels(vectors: torch.Tensor) -> bool:
    """Whether the kernels for vectors take these: float32 on a GPU, without gradients."""
    plain = vectors.dtype == torch.float32 and not vectors.requires_grad
    return vectors.is_cuda and plain and vectors_on_device() is not None


def add_states(
    store: torch.Tensor,
    states: torch.Tensor,
    target: torch.Tensor,
    position: torch.Tensor,
    *,
    alone: bool,
) -> None:
    """Add the states (layer, token, dim) of some positions to their units (unit, layer, dim).

    `alone` says that nothing has been added to these units before, nor will be.
    """
    if alone and store.is_cuda and vectors_on_device():
        vectors_on_device().scatter_states(store, states, target, position)
    else:
        vectors = states[:, position].transpose(0, 1)
        store.index_add_(0, target, vectors.to(store.dtype))


def work_in_threads(
    device: torch.device,
    work: Callable[[S], T],
    items: Iterable[S],
    room: int = 1,
    size: Callable[[S], int] = lambda _: 1,
) -> Iterator[tuple[S, T]]:
    """Each item with what is made of it, in order; every spare thread works on one of its own.

    Later items are drawn ahead until their sizes exceed `room` for every thread.
    """
    threads = spare_threads()
    with ThreadPoolExecutor(threads, initializer=work_alone) as pool:
        begun = ((item, pool.submit(on_own_stream(device, work), item)) for item in items)
        for item, made in read_ahead(begun, threads * room, lambda one: size(one[0])):
            yield item, made.result()


class DevicePlans(Plans):
    """Plans on a GPU, read as arrays: what they cost has been computed there.

    Costs and flows are large: they are copied only when they are read, and a flow that was not kept
    is computed again. `results` (pair, 5) has gap, converged, transport, objective, regularised.
    """

    _values: Array
    _cost: torch.Tensor
    _flow: Callable[[], torch.Tensor]
    _mended: tuple[Array, Array] | None

    def __init__(
        self,
        problem: Problem,
        cost: torch.Tensor,
        masses: tuple[Array, Array],
        sizes: tuple[Array, Array],
        flow: Callable[[], torch.Tensor],
        results: Array,
    ) -> None:
        read = {
            "problem": problem,
            "hyp_weights": masses[0],
            "ref_weights": masses[1],
            "hyp_sizes": sizes[0],
            "ref_sizes": sizes[1],
            "gap": results[:, 0],
            "converged": results[:, 1] > 0.0,
        }
        vars(self).update(read, _values=results[:, 2:], _cost=cost, _flow=flow, _mended=None)

    def mend(self, which: Array, plans: Plans) -> None:
        """Put in these plans of arrays for some of the pairs."""
        self.gap[which], self.converged[which] = plans.gap, plans.converged
        self._values[which] = np.stack((plans.transport, plans.objective, plans.regularised), 1)
        vars(self)["_mended"] = which, plans.flow

    @cached_property
    def cost(self) -> Array:
        """Copied from the GPU."""
        return fetch_array(self._cost.double())

    @cached_property
    def flow(self) -> Array:
        """Copied from the GPU."""
        flow = fetch_array(self._flow())
        if self._mended is not None:
            flow[self._mended[0]] = self._mended[1]
        return flow

    @cached_property
    def _totals(self) -> tuple[Array, Array, Array]:
        transport, objective, regularised = self._values.T
        return transport, objective, regularised
