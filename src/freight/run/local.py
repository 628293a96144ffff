"""Files in, shards out, on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numba
import torch

from freight.clouds import Tick
from freight.data import Corpus
from freight.encoding.keeping import device_of
from freight.errors import FreightError
from freight.kernels import set_threads
from freight.run.durable import Engine, Request, carry_out
from freight.run.manifest import Surroundings
from freight.run.processes import Processes
from freight.run.shards import SHARD, Finished, Shard, Task
from freight.run.summary import Run
from freight.scoring import Scorer


def local(
    metrics: Sequence[Scorer],
    corpus: Corpus,
    output: str | Path,
    *,
    resume: bool = False,
    shard: int = SHARD,
    ending: str = ".parquet",
    columns: Sequence[Sequence[str]] | None = None,
    workers: int | None = None,
    threads: int | None = None,
    tick: Tick | None = None,
) -> Run:
    """Score a corpus into a folder of shards, or with `resume` what is missing there.

    There is a process for each GPU unless `workers` says otherwise. `threads` are those of each
    process, by default an equal share of the cores; the bits of a transformer on the CPU depend on
    them, and its signature says so.
    """
    gpus = _gpus(metrics)
    count = workers or max(gpus, 1)
    request = Request(metrics, corpus, Path(output), resume, shard, ending, columns)
    share = threads or max((os.cpu_count() or 1) // count, 1)
    engine: Engine = _Here() if count == 1 else Processes(count, share, gpus > 0)
    with _threads(share if threads or count > 1 else None):  # signatures tell what workers do
        return carry_out(request, engine, tick)


class _Here:
    """The engine of one process: this one."""

    def look(self, metrics: Sequence[Scorer]) -> Surroundings:
        return Surroundings.here(metrics)

    def work(self, task: Task, shards: Iterator[Shard], tick: Tick | None) -> Iterator[Finished]:
        try:
            yield from task(shards, tick)
        except RuntimeError as error:
            if "CUDA error" not in str(error):
                raise
            reason = str(error).splitlines()[0]
            raise FreightError(f"the GPU failed ({reason}); go on with --resume") from error


def _gpus(metrics: Sequence[Scorer]) -> int:
    """How many GPUs the metrics can be shared out among."""
    encoders = {part.encoder for metric in metrics for part in metric.parts}
    anywhere = [device_of(one) == torch.device("cuda") for one in encoders]
    return torch.cuda.device_count() if any(anywhere) else 0


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """So many threads for a while, or as many as there are."""
    before = numba.get_num_threads(), torch.get_num_threads()
    if count is not None:
        set_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(before[0])
        torch.set_num_threads(before[1])
