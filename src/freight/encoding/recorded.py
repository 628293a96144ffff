"""A model's work on one shape of batch, recorded once by the GPU and played again.

Asking a GPU for a layer's dozen of small steps takes Python about as long as the steps themselves,
and longer where other threads want Python too; a recording is asked for as a whole. It computes
what the model itself would, to the bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from freight.encoding.states import hidden_states
from freight.encoding.windows import Batch
from freight.transfers import sent, stream_for

_SIGHTS = 4
"""A shape is worth recording when it has been met so many times."""

_Key = tuple[Any, ...]

_ONE = Lock()
"""Recordings are made one after the other, on the stream of their device."""


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
    _known: dict[_Key, _Recording] = field(default_factory=dict)
    _pool: Any = None

    @torch.inference_mode()
    def states(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        """Hidden states (layer, row, token, dim) of a batch."""
        arrays = {name: sent(x, self.model.device) for name, x in batch.arrays.items()}
        shapes = ((name, x.shape) for name, x in arrays.items())
        key = (tuple(layers), *shapes, *batch.numbers.items())
        self._seen[key] += 1
        if self.able and key not in self._known and self._seen[key] >= _SIGHTS:
            self._record(key, arrays, batch.numbers, layers)
        if key in self._known:
            return self._known[key].play(arrays)
        return hidden_states(self.model, {**arrays, **batch.numbers}, layers)

    def _record(
        self,
        key: _Key,
        arrays: Mapping[str, Tensor],
        numbers: Mapping[str, int],
        layers: Sequence[int],
    ) -> None:
        """Record it; a model that cannot be recorded is left alone from then on."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        inputs = {name: x.clone() for name, x in arrays.items()}
        graph = torch.cuda.CUDAGraph()
        stream = stream_for("recording", self.model.device)
        recording = torch.cuda.graph(graph, self._pool, stream, capture_error_mode="thread_local")
        try:
            with _ONE, recording:
                states = hidden_states(self.model, {**inputs, **numbers}, layers)
        except RuntimeError:
            self.able = False
        else:
            cuda: Any = torch.cuda
            self._known[key] = _Recording(graph, inputs, states, cuda.Event())
