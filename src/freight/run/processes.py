"""Workers that are processes of this machine, one for each GPU or for some of the cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Thread
from typing import Any

from freight.clouds import Tick
from freight.run.crew import Answer, Crew, Worker, serve
from freight.run.manifest import Surroundings
from freight.run.shards import Finished, Shard, Task
from freight.scoring import Scorer

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

    def work(self, task: Task, shards: Iterator[Shard], tick: Tick | None) -> Iterator[Finished]:
        """The finished shards, as they come."""
        workers = self._started(task)
        crew = Crew(list(workers), shards, _listen, lambda worker: None)
        try:
            for done in crew.work():
                if tick:
                    tick(done.record.rows)
                yield done
        finally:
            for worker in workers:
                worker.stop()

    def _started(self, task: Task) -> list[_Process]:
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


class _Process(Worker[Shard]):
    def __init__(self, pipe: Connection[Any, Any], process: BaseProcess) -> None:
        super().__init__()
        self.pipe, self.process = pipe, process

    def tell(self, shard: Shard | None) -> None:
        self.send(shard)

    def send(self, what: Task | Shard | None) -> None:
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
    task: Task = pipe.recv()
    inbox: SimpleQueue[Shard | None] = SimpleQueue()
    Thread(target=_receive, args=(pipe, inbox), daemon=True).start()
    serve(task, inbox.get, pipe.send)


def _receive(pipe: Connection[Any, Any], inbox: SimpleQueue[Shard | None]) -> None:
    try:
        while True:
            inbox.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(1)
