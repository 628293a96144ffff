"""What is on a GPU: its lock, CUDA streams, work that runs ahead, and plans that stay there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from importlib.util import find_spec
from threading import RLock
from typing import Any, ParamSpec, TypeVar

import torch

from freight.kernels import spare_threads, work_alone
from freight.transport.types import Array, Plans, fetch_array, send_to_device

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

GPU_LOCK = RLock()
"""Taken to compute a chunk on a GPU, and to do what no other GPU work may disturb."""


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
    """Plans on a GPU, read as arrays: what they cost is computed there.

    Costs and flows are large, and are copied only when they are read.
    """

    _on_device: Plans

    def __init__(self, plans: Plans, masses: tuple[Array, Array], known: Array) -> None:
        read = {
            "problem": plans.problem,
            "hyp_weights": masses[0],
            "ref_weights": masses[1],
            "hyp_sizes": plans.hyp_sizes,
            "ref_sizes": plans.ref_sizes,
            "gap": fetch_array(plans.gap),
            "converged": fetch_array(plans.converged) & known,
        }
        vars(self).update(read, _on_device=plans)

    @cached_property
    def cost(self) -> Array:
        """Copied from the GPU."""
        return fetch_array(self._on_device.cost)

    @cached_property
    def flow(self) -> Array:
        """Copied from the GPU."""
        return fetch_array(self._on_device.flow)

    @cached_property
    def _totals(self) -> tuple[Array, Array, Array]:
        from freight.transport.triton_solvers import totals_on_device

        plans = self._on_device
        device = plans.cost.device
        sizes = (send_to_device(size, device) for size in (plans.hyp_sizes, plans.ref_sizes))
        data = plans.cost, plans.hyp_weights, plans.ref_weights, *sizes
        problem = plans.problem
        totals = totals_on_device((problem.hyp, problem.ref, problem.epsilon), data, plans.flow)
        transport, objective, regularised = fetch_array(totals).T
        return transport, objective, regularised
