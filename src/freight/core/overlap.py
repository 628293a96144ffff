"""Chunks on their way: while one is solved, a GPU encodes the next and one more is tokenised; who
asked for the scores has the last.

Without a GPU everything is done in turn, since all of it wants the same cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from freight.core.pipeline import (
    Chunk,
    Encoded,
    Scored,
    Segment,
    chunks,
    encode_chunk,
    encoders_of,
    read_chunk,
)
from freight.core.types import Encoder, PreparingEncoder, Progress, device_of
from freight.transport.devices import GPU_LOCK, read_ahead, stream_for

if TYPE_CHECKING:
    from freight.core.metric import Metric


S = TypeVar("S")
T = TypeVar("T")
Prepared = tuple[Chunk, Mapping[Encoder, Any]]

_MOST = 8
_LAYER = 2**33
"""A GPU takes chunks as many times larger as it has so many bytes for every layer that is kept, up
to the most."""


def scored_chunks(
    metrics: Sequence[Metric], segments: Iterable[Segment], told: Callable[[Chunk], Progress]
) -> Iterator[tuple[Chunk, list[Scored]]]:
    """Each chunk with its scores and flags by each metric; `told` gives the progress of a chunk."""
    devices = {device_of(encoder) for encoder in encoders_of(metrics)}
    gpus = [device for device in devices if device.type == "cuda"]
    if not gpus:
        for chunk in chunks(segments):
            yield chunk, read_chunk(metrics, chunk, encode_chunk(metrics, chunk, {}, told(chunk)))
        return
    memory = min(torch.cuda.get_device_properties(gpu).total_memory for gpu in gpus)
    sides = [stream_for("encoding", gpu) for gpu in gpus]

    def prepare(chunk: Chunk) -> Prepared:
        return chunk, {
            encoder: encoder.prepare(chunk.texts)
            for encoder in encoders_of(metrics)
            if isinstance(encoder, PreparingEncoder)
        }

    def encode(given: Prepared) -> tuple[Chunk, list[Encoded]]:
        chunk, prepared = given
        return chunk, _beside(
            sides, lambda: list(encode_chunk(metrics, chunk, prepared, told(chunk)))
        )

    def read(given: tuple[Chunk, list[Encoded]]) -> tuple[Chunk, list[Scored]]:
        chunk, encoded = given
        with GPU_LOCK:
            return chunk, read_chunk(metrics, chunk, encoded)

    layers = len({layer for metric in metrics for layer in metric.layers})
    stream = chunks(segments, max(1, min(_MOST, memory // (_LAYER * layers))))
    yield from ahead(read, ahead(encode, ahead(prepare, stream)))


def ahead(make: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """What is made of each item, in order; the next is made while the last is looked at."""
    with ThreadPoolExecutor(1) as worker:
        for begun in read_ahead(worker.submit(make, item) for item in items):
            yield begun.result()


def _beside(sides: Sequence[torch.cuda.Stream], work: Callable[[], list[Encoded]]) -> list[Encoded]:
    """Work that does not wait in line with what other threads ask of the GPUs.

    What is found must be kept until all that is made of it is there: its memory is given to the
    next work on these streams, which waits for nobody.
    """
    if not sides:
        return work()
    with torch.cuda.stream(sides[0]):
        found = _beside(sides[1:], work)
    sides[0].synchronize()
    return found
