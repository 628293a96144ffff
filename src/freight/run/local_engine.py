"""Runs on this machine: in this process, or in several, one for each GPU by default."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import torch

from freight.core.pipeline import ChunkSize, adapt
from freight.core.scorers import PipelineScorer, Scorer
from freight.core.types import Progress, device_of
from freight.data import Corpus
from freight.errors import FreightError
from freight.kernels import get_kernel_threads, set_kernel_threads, set_threads
from freight.run.journal import Environment
from freight.run.resume import Engine, RunRequest, score_to_folder
from freight.run.shards import (
    CHECKPOINT,
    SHARD_SIZE,
    FinishedShard,
    PartialShard,
    Run,
    Shard,
    ShardTask,
)
from freight.run.worker_pool import (
    FromWorker,
    NoMoreShards,
    PoolWorker,
    ToWorker,
    WorkerFailure,
    WorkerPool,
    serve_shards,
)


def local(
    metrics: Sequence[Scorer],
    corpus: Corpus,
    output: str | Path,
    *,
    resume: bool = False,
    shard: int = SHARD_SIZE,
    checkpoint: float = CHECKPOINT,
    ending: str = ".parquet",
    columns: Sequence[Sequence[str]] | None = None,
    chunk: ChunkSize | None = None,
    escape: bool = False,
    workers: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> Run:
    """Score a corpus into a folder of shards; with `resume`, only what is missing.

    A file has `shard` segments; what is scored of one is kept every `checkpoint` seconds until it
    is finished. `note` is told what was there when a run is resumed. `escape` is for CSV and TSV.
    There is one process per GPU unless `workers` is given. `threads` is the number of threads of
    each process, by default an equal share of the cores; the bits of a transformer on the CPU
    depend on it, and its signature contains it.
    """
    scorers = [adapt(metric) for metric in metrics]
    gpus = _usable_gpus(scorers)
    count = workers or max(gpus, 1)
    request = RunRequest(
        scorers,
        corpus,
        Path(output),
        resume,
        shard,
        checkpoint,
        ending,
        columns,
        chunk,
        escape,
    )
    share = threads or max((os.cpu_count() or 1) // count, 1)
    engine: Engine = ThisProcess() if count == 1 else Processes(count, share, gpus > 0)
    # Signatures are made here, so this process has to have as many threads as the workers.
    with _limited_threads(share if threads or count > 1 else None):
        return score_to_folder(request, engine, progress, note)


def _usable_gpus(metrics: Sequence[PipelineScorer]) -> int:
    """The number of GPUs that the metrics can be distributed over."""
    encoders = {part.encoder for metric in metrics for part in metric.parts}
    on_any_gpu = any(device_of(one) == torch.device("cuda") for one in encoders)
    return torch.cuda.device_count() if on_any_gpu else 0


@contextmanager
def _limited_threads(count: int | None) -> Iterator[None]:
    """Use this many threads in the context; None changes nothing."""
    before = get_kernel_threads(), torch.get_num_threads()
    if count is not None:
        set_threads(count)
    try:
        yield
    finally:
        set_kernel_threads(before[0])
        torch.set_num_threads(before[1])


class ThisProcess:
    """The engine that scores in this process."""

    def environment(self, metrics: Sequence[PipelineScorer]) -> Environment:
        """That of this process."""
        return Environment.of_this_process(metrics)

    def score_shards(
        self, task: ShardTask, shards: Iterator[Shard], progress: Progress | None
    ) -> Iterator[FinishedShard | PartialShard]:
        """The finished shards in order; a failed GPU is an error in one line."""
        try:
            yield from task.score_shards(shards, progress)
        except RuntimeError as error:
            if "CUDA error" not in str(error):
                raise
            reason = str(error).splitlines()[0]
            raise FreightError(f"the GPU failed ({reason}); go on with --resume") from error


@dataclass(frozen=True)
class Processes:
    """The engine of several processes with some threads each, and a GPU each where there are."""

    count: int
    threads: int
    gpus: bool = False

    def environment(self, metrics: Sequence[PipelineScorer]) -> Environment:
        """That of this process, which is the same in all of them."""
        return Environment.of_this_process(metrics)

    def score_shards(
        self, task: ShardTask, shards: Iterator[Shard], progress: Progress | None
    ) -> Iterator[FinishedShard | PartialShard]:
        """The finished shards, in the order in which the processes finish them."""
        workers = self._start_workers(task)
        pool = WorkerPool(list(workers), shards, _receive_messages, lambda worker: None)
        try:
            for done in pool.finished_shards():
                if progress:
                    progress(done.new_rows)
                yield done
        finally:
            for worker in workers:
                worker.stop()

    def _start_workers(self, task: ShardTask) -> list[_ProcessWorker]:
        visible = _visible_gpus() if self.gpus else []
        context = multiprocessing.get_context("spawn")
        workers = []
        for k in range(self.count):
            ours, theirs = context.Pipe()
            gpu = visible[k % len(visible)] if visible else None
            process = context.Process(
                target=_work_in_process, args=(theirs, gpu, self.threads), daemon=True
            )
            process.start()
            theirs.close()
            workers.append(_ProcessWorker(ours, process))
        for worker in workers:
            worker.send(task)
        return workers


class _ProcessWorker(PoolWorker[Shard]):
    """A worker process, seen from its parent."""

    def __init__(self, pipe: Connection[Any, Any], process: BaseProcess) -> None:
        super().__init__()
        self.pipe, self.process = pipe, process

    def send_shard(self, shard: Shard) -> None:
        self.send(shard)

    def send_end(self) -> None:
        self.send(NoMoreShards())

    def send(self, message: ShardTask | ToWorker) -> None:
        with suppress(OSError):  # it has died, which `receive` reports
            self.pipe.send(message)

    def receive(self) -> FromWorker:
        try:
            message: FromWorker = self.pipe.recv()
        except (EOFError, OSError):
            return WorkerFailure()
        return message

    def stop(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


def _receive_messages(
    workers: Sequence[_ProcessWorker],
) -> Iterable[tuple[_ProcessWorker, FromWorker]]:
    ready = wait([worker.pipe for worker in workers])
    return [(worker, worker.receive()) for worker in workers if worker.pipe in ready]


_VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"


def _visible_gpus() -> list[str]:
    visible = os.environ.get(_VISIBLE_GPUS)
    return visible.split(",") if visible else [str(k) for k in range(torch.cuda.device_count())]


def _work_in_process(pipe: Connection[Any, Any], gpu: str | None, threads: int) -> None:
    """The main function of a worker process, which ends when its parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops us
    if gpu is not None:
        os.environ[_VISIBLE_GPUS] = gpu
    set_threads(threads)
    task: ShardTask = pipe.recv()
    inbox: SimpleQueue[ToWorker] = SimpleQueue()
    Thread(target=_fill_inbox, args=(pipe, inbox), daemon=True).start()
    serve_shards(task, inbox.get, pipe.send)


def _fill_inbox(pipe: Connection[Any, Any], inbox: SimpleQueue[ToWorker]) -> None:
    try:
        while True:
            inbox.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(1)
