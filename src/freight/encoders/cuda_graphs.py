"""A model's work on one shape of batch, recorded once by the GPU and played again.

Asking a GPU for a layer's dozen of small steps takes Python about as long as the steps themselves,
and longer where other threads want Python too; a recording is asked for as a whole. It computes
what the model itself would, to the bit.

Recordings are made between two encodings, while nothing else of ours uses a GPU: a kernel that is
loaded elsewhere for the first time makes the GPU finish all its work, which spoils a recording.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from freight.encoders.batching import TokenBatch
from freight.encoders.hidden_states import hidden_states
from freight.transport.devices import QUIET, sent, stream_for

_SIGHTS = 4
"""A shape is worth recording when it has been met so many times."""

_ASKED = 2
"""So many are asked for before the first has to be done: more would fill the GPU's queue, and who
waits for room in there keeps all other threads out."""

_Key = tuple[Any, ...]


@dataclass(frozen=True)
class _Seen:
    """What a recording is made from."""

    inputs: Mapping[str, Tensor]
    numbers: Mapping[str, int]
    layers: Sequence[int]


@dataclass(frozen=True)
class _Recording:
    graph: torch.cuda.CUDAGraph
    inputs: Mapping[str, Tensor]
    states: Tensor
    free: torch.cuda.Event

    def play(self, arrays: Mapping[str, Tensor]) -> Tensor:
        """The states for other inputs of the same shape."""
        stream = torch.cuda.current_stream(self.states.device)
        stream.wait_event(self.free)
        for name, there in self.inputs.items():
            there.copy_(arrays[name], non_blocking=True)
        self.graph.replay()
        found = self.states.clone()
        self.free.record(stream)
        return found


@dataclass
class Recorder:
    """Runs a model, and plays what it has been seen to do often; one thread at a time."""

    model: Any
    able: bool = True
    _seen: Counter[_Key] = field(default_factory=Counter)
    _wanted: dict[_Key, _Seen] = field(default_factory=dict)
    _known: dict[_Key, _Recording] = field(default_factory=dict)
    _asked: deque[torch.cuda.Event] = field(default_factory=deque)
    _pool: Any = None

    @torch.inference_mode()
    def states(self, batch: TokenBatch, layers: Sequence[int]) -> Tensor:
        """Hidden states (layer, row, token, dim) of a batch."""
        arrays = {name: sent(x, self.model.device) for name, x in batch.arrays.items()}
        shapes = ((name, x.shape) for name, x in arrays.items())
        key = (tuple(layers), *shapes, *batch.numbers.items())
        if key in self._known:
            return self._played(key, arrays)
        self._seen[key] += 1
        if self._seen[key] == _SIGHTS:
            self._wanted[key] = _Seen(arrays, batch.numbers, layers)
        return hidden_states(self.model, {**arrays, **batch.numbers}, layers)

    def _played(self, key: _Key, arrays: Mapping[str, Tensor]) -> Tensor:
        while len(self._asked) >= _ASKED:
            self._asked.popleft().synchronize()
        found = self._known[key].play(arrays)
        cuda: Any = torch.cuda
        done = cuda.Event(blocking=True)
        done.record(cuda.current_stream(found.device))
        self._asked.append(done)
        return found

    def record(self) -> None:
        """Record what has been met often enough by now."""
        if self.able and self._wanted:
            with QUIET:
                while self.able and self._wanted:
                    self._record(*self._wanted.popitem())

    def _record(self, key: _Key, seen: _Seen) -> None:
        """Record it; a model that cannot be recorded is left alone from then on."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        inputs = {name: x.clone() for name, x in seen.inputs.items()}
        graph = torch.cuda.CUDAGraph()
        stream = stream_for("recording", self.model.device)
        try:
            with torch.cuda.graph(graph, self._pool, stream, capture_error_mode="thread_local"):
                states = hidden_states(self.model, {**inputs, **seen.numbers}, seen.layers)
        except RuntimeError:
            self.able = False
        else:
            cuda: Any = torch.cuda
            self._known[key] = _Recording(graph, inputs, states, cuda.Event())
