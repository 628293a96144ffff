"""CUDA graphs: what a model does for one batch shape is captured once and replayed afterwards.

Launching the dozen small kernels of a layer from Python takes about as long as the kernels
themselves, and longer where other threads need the interpreter too. A graph is launched as a whole
and computes the same bits.

Graphs are captured between two encodings, while no other thread of ours uses a GPU: a kernel that
is loaded elsewhere for the first time synchronises the device, which would break the capture.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from freight.encoders.batching import TokenBatch
from freight.transport.devices import GPU_LOCK, stream_for
from freight.transport.types import send_to_device

Run = Callable[[Mapping[str, Any], Sequence[int]], Tensor]
"""Runs a model: its inputs and the wanted layers give hidden states (layer, row, token, dim)."""

_Key = tuple[Any, ...]


@dataclass(frozen=True)
class _Request:
    """The inputs of a batch whose shape is to be captured."""

    inputs: Mapping[str, Tensor]
    numbers: Mapping[str, int]
    layers: Sequence[int]


@dataclass(frozen=True)
class _CapturedGraph:
    graph: torch.cuda.CUDAGraph
    inputs: Mapping[str, Tensor]
    states: Tensor
    free: torch.cuda.Event

    def replay(self, arrays: Mapping[str, Tensor]) -> Tensor:
        """The states for other inputs of the same shape."""
        stream = torch.cuda.current_stream(self.states.device)
        stream.wait_event(self.free)
        for name, buffer in self.inputs.items():
            buffer.copy_(arrays[name], non_blocking=True)
        self.graph.replay()
        states = self.states.clone()
        self.free.record(stream)
        return states


@dataclass
class CudaGraphs:
    """Runs a model, and replays a graph for batch shapes that are frequent; one thread at a time.

    A shape is captured once it has been seen `capture_after` times. At most `max_queued` replays
    are queued: with more, the queue of the GPU would fill up, and a thread that waits for room in
    it blocks all others.
    """

    run: Run
    device: torch.device
    capture_after: int = 4
    max_queued: int = 2
    enabled: bool = True
    _seen: Counter[_Key] = field(default_factory=Counter)
    _requests: dict[_Key, _Request] = field(default_factory=dict)
    _graphs: dict[_Key, _CapturedGraph] = field(default_factory=dict)
    _queued: deque[torch.cuda.Event] = field(default_factory=deque)
    _pool: Any = None

    @property
    def captured(self) -> int:
        """How many graphs there are."""
        return len(self._graphs)

    @torch.inference_mode()
    def states(self, batch: TokenBatch, layers: Sequence[int]) -> Tensor:
        """Hidden states (layer, row, token, dim) of a batch."""
        arrays = {name: send_to_device(x, self.device) for name, x in batch.arrays.items()}
        shapes = ((name, x.shape) for name, x in arrays.items())
        key = (tuple(layers), *shapes, *batch.numbers.items())
        if key in self._graphs:
            return self._replay(key, arrays)
        self._seen[key] += 1
        if self._seen[key] == self.capture_after:
            self._requests[key] = _Request(arrays, batch.numbers, layers)
        return self.run({**arrays, **batch.numbers}, layers)

    def _replay(self, key: _Key, arrays: Mapping[str, Tensor]) -> Tensor:
        while len(self._queued) >= self.max_queued:
            self._queued.popleft().synchronize()
        states = self._graphs[key].replay(arrays)
        cuda: Any = torch.cuda
        done = cuda.Event(blocking=True)
        done.record(cuda.current_stream(states.device))
        self._queued.append(done)
        return states

    @property
    def waiting(self) -> bool:
        """Whether a shape has been seen often enough to be captured."""
        return self.enabled and bool(self._requests)

    def capture(self) -> None:
        """Capture the shapes that have been seen often enough."""
        with GPU_LOCK:
            while self.waiting:
                self._capture(*self._requests.popitem())

    def _capture(self, key: _Key, request: _Request) -> None:
        """Capture one shape; a model that cannot be captured is not tried again."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        inputs = {name: x.clone() for name, x in request.inputs.items()}
        graph = torch.cuda.CUDAGraph()
        stream = stream_for("recording", self.device)
        try:
            with torch.cuda.graph(graph, self._pool, stream, capture_error_mode="thread_local"):
                states = self.run({**inputs, **request.numbers}, request.layers)
        except RuntimeError:
            self.enabled = False
        else:
            cuda: Any = torch.cuda
            self._graphs[key] = _CapturedGraph(graph, inputs, states, cuda.Event())
