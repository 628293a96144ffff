"""The pipeline on a GPU: while one chunk is solved, the next is encoded and one more is tokenized.

It runs the functions of `pipeline` concurrently and changes no score: without this module they
would run in turn, as on a CPU, where all of them need the same cores.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeVar

import torch

from freight.core.costs import GPU_CELLS
from freight.core.metric import Metric
from freight.core.pipeline import (
    ChunkSize,
    Encoded,
    PairCosts,
    Spoken,
    chunks,
    encode_chunk,
    encoders_of,
    language_flags,
    score_encoded,
    solve_and_read,
)
from freight.core.readouts import Reading
from freight.core.types import (
    Chunk,
    Encoder,
    Pairs,
    PairScores,
    PreparingEncoder,
    Progress,
    Segment,
)
from freight.transport.devices import GPU_LOCK, read_ahead, stream_for, work_in_threads
from freight.transport.solvers import solves_on_device
from freight.transport.types import Array

S = TypeVar("S")
T = TypeVar("T")
Prepared = tuple[Chunk, Mapping[Encoder, Any], Spoken]
_Begun = tuple[Chunk, list[Encoded], Spoken, list[torch.cuda.Event]]
"""A chunk and its texts' vectors, once the GPU has come to these events."""
_CostBatch = tuple[Pairs, torch.Tensor]

_SWITCH = 2e-4
"""The interpreter's switch interval while a GPU is used, in seconds."""
_CPU_CELLS = 2**20
"""How many cost entries one thread solves at a time on the CPU."""
_MOST = 4
_LAYER = 2**33
"""Chunks may grow k-fold, k up to _MOST, where a GPU has k times these bytes per layer kept."""


def overlapped_chunks(
    metrics: Sequence[Metric],
    segments: Iterable[Segment],
    size: ChunkSize,
    progress_of: Callable[[Chunk], Progress],
    gpus: Sequence[torch.device],
) -> Iterator[tuple[Chunk, list[PairScores]]]:
    """Each chunk with its scores and flags by each metric, in order."""
    memory = min(torch.cuda.get_device_properties(gpu).total_memory for gpu in gpus)
    streams = [stream_for("encoding", gpu) for gpu in gpus]
    solving = [stream_for("scoring", gpu, priority=-1) for gpu in gpus]

    def prepare(chunk: Chunk) -> Prepared:
        prepared: dict[Encoder, Any] = {
            encoder: encoder.prepare(chunk.texts)
            for encoder in encoders_of(metrics)
            if isinstance(encoder, PreparingEncoder)
        }
        return chunk, prepared, language_flags(metrics, chunk.texts, chunk.index)

    def encode(given: Prepared) -> _Begun:
        chunk, prepared, spoken = given
        with _on_streams(streams):
            encoded = list(encode_chunk(metrics, chunk, prepared, progress_of(chunk)))
        return chunk, encoded, spoken, [stream.record_event() for stream in streams]

    def score(given: _Begun) -> tuple[Chunk, list[PairScores]]:
        chunk, encoded, spoken, events = given
        with GPU_LOCK, _on_streams(solving):
            for stream, event in zip(solving, events, strict=True):
                stream.wait_event(event)
            return chunk, score_encoded(metrics, chunk, encoded, spoken)

    layers = len({layer for metric in metrics for layer in metric.layers})
    growth = max(1, min(_MOST, memory // (_LAYER * layers)))
    stream = chunks(segments, size, growth)
    with _frequent_switches():
        yield from make_ahead(score, make_ahead(encode, make_ahead(prepare, stream)))


@contextmanager
def _frequent_switches() -> Iterator[None]:
    """Shorten the interpreter's switch interval, so that no thread waits long for the GIL.

    A thread that launches GPU work releases the GIL and, while other threads compute, gets it back
    only after that interval; the default of 5 ms is longer than such work takes.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(_SWITCH, before))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def make_ahead(make: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """What is made of each item, in order; the next is made while the last is used."""
    with ThreadPoolExecutor(1) as worker:
        for begun in read_ahead(worker.submit(make, item) for item in items):
            yield begun.result()


@contextmanager
def _on_streams(streams: Sequence[torch.cuda.Stream]) -> Iterator[None]:
    """Run GPU work on these streams, so that it does not queue behind that of other threads.

    Keep the result until all that is computed from it is done: its memory is reused by the next
    work on these streams, which does not wait.
    """
    with ExitStack() as stack:
        for stream in streams:
            stack.enter_context(torch.cuda.stream(stream))
        yield


def overlapped_readings(metric: Metric, costs: PairCosts) -> Iterator[tuple[Pairs, Reading, Array]]:
    """Readings batch by batch; while the GPU computes costs, each thread solves a batch."""
    solved = work_in_threads(
        costs.device,
        partial(_solve_batch, metric),
        _shared_out(metric, costs.batches),
        GPU_CELLS,
        lambda batch: math.prod(batch[0].shape),
    )
    for (pairs, _), (reading, converged) in solved:
        yield pairs, reading, converged


def _shared_out(metric: Metric, batches: Iterable[_CostBatch]) -> Iterator[_CostBatch]:
    """The batches; those that the CPU is to solve in parts, so that all threads get their share."""
    for pairs, cost in batches:
        count = len(pairs.which)
        if not all(solves_on_device(problem, cost) for problem in metric.problems):
            count = max(1, _CPU_CELLS * count // math.prod(pairs.shape))
        for start in range(0, len(pairs.which), count):
            which = slice(start, start + count)
            yield pairs.rows(which), cost[which]


def _solve_batch(metric: Metric, batch: _CostBatch) -> tuple[Reading, Array]:
    return solve_and_read(metric, *batch)
