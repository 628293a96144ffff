"""Files in, shards out, on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numba
import torch

from freight.core.scoring import Scorer
from freight.core.types import Progress, device_of
from freight.data import Corpus
from freight.errors import FreightError
from freight.kernels import set_threads
from freight.run.journal import Surroundings
from freight.run.resume import Engine, Request, carry_out
from freight.run.shards import SHARD, Finished, Run, Shard, ShardTask
from freight.run.worker_pool import Answer, Crew, PoolWorker, serve


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
    progress: Progress | None = None,
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
        return carry_out(request, engine, progress)


class _Here:
    """The engine of one process: this one."""

    def look(self, metrics: Sequence[Scorer]) -> Surroundings:
        return Surroundings.here(metrics)

    def work(
        self, task: ShardTask, shards: Iterator[Shard], progress: Progress | None
    ) -> Iterator[Finished]:
        try:
            yield from task(shards, progress)
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


_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Processes:
    """An engine: so many processes, each with so many threads, each with a GPU where there are."""

    count: int
    threads: int
    gpus: bool = False

    def look(self, metrics: Sequence[Scorer]) -> Surroundings:
        """As here."""
        return Surroundings.here(metrics)

    def work(
        self, task: ShardTask, shards: Iterator[Shard], progress: Progress | None
    ) -> Iterator[Finished]:
        """The finished shards, as they come."""
        workers = self._started(task)
        crew = Crew(list(workers), shards, _listen, lambda worker: None)
        try:
            for done in crew.work():
                if progress:
                    progress(done.record.rows)
                yield done
        finally:
            for worker in workers:
                worker.stop()

    def _started(self, task: ShardTask) -> list[_Process]:
        visible = _visible_gpus() if self.gpus else []
        context = multiprocessing.get_context("spawn")
        workers = []
        for k in range(self.count):
            mine, theirs = context.Pipe()
            gpu = visible[k % len(visible)] if visible else None
            process = context.Process(target=_live, args=(theirs, gpu, self.threads), daemon=True)
            process.start()
            theirs.close()
            workers.append(_Process(mine, process))
        for worker in workers:
            worker.send(task)
        return workers


class _Process(PoolWorker[Shard]):
    def __init__(self, pipe: Connection[Any, Any], process: BaseProcess) -> None:
        super().__init__()
        self.pipe, self.process = pipe, process

    def tell(self, shard: Shard | None) -> None:
        self.send(shard)

    def send(self, what: ShardTask | Shard | None) -> None:
        with suppress(OSError):  # it has died; reading from it will say so
            self.pipe.send(what)

    def answer(self) -> Answer | None:
        try:
            found: Answer = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return found

    def stop(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


def _listen(workers: Sequence[_Process]) -> Iterable[tuple[_Process, Answer | None]]:
    speaking = wait([worker.pipe for worker in workers])
    return [(worker, worker.answer()) for worker in workers if worker.pipe in speaking]


def _visible_gpus() -> list[str]:
    import torch

    said = os.environ.get(_VISIBLE)
    return said.split(",") if said else [str(k) for k in range(torch.cuda.device_count())]


def _live(pipe: Connection[Any, Any], gpu: str | None, threads: int) -> None:
    """The life of a process, which ends with its parent's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops us
    if gpu is not None:
        os.environ[_VISIBLE] = gpu
    from freight.kernels import set_threads

    set_threads(threads)
    task: ShardTask = pipe.recv()
    inbox: SimpleQueue[Shard | None] = SimpleQueue()
    Thread(target=_receive, args=(pipe, inbox), daemon=True).start()
    serve(task, inbox.get, pipe.send)


def _receive(pipe: Connection[Any, Any], inbox: SimpleQueue[Shard | None]) -> None:
    try:
        while True:
            inbox.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(1)
