"""Shards shared out among processes, one for each GPU or for some of the cores.

A worker asks for a shard when it begins the one that it got last, so that it never waits. One that
dies is done without: its shards go to the others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Thread
from typing import Any, Literal

from freight.clouds import Tick
from freight.errors import FreightError
from freight.run.shards import Finished, Shard, Task

MORE: Literal["more"] = "more"
"""What a worker says when it wants a shard; nothing in return means that it should finish up."""

_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Processes:
    """An engine: so many processes, each with so many threads, each with a GPU where there are."""

    count: int
    threads: int
    gpus: bool = False

    def __call__(
        self, task: Task, shards: Iterator[Shard], tick: Tick | None
    ) -> Iterator[Finished]:
        """The finished shards, as they come."""
        first = next(shards, None)
        if first is None:
            return
        crew = _Crew(self._started(task), deque([first]), shards)
        try:
            for done in crew.work():
                if tick:
                    tick(done.record.rows)
                yield done
        finally:
            for worker in crew.workers:
                worker.stop()

    def _started(self, task: Task) -> list[_Worker]:
        visible = _visible_gpus() if self.gpus else []
        context = multiprocessing.get_context("spawn")
        workers = []
        for k in range(self.count):
            mine, theirs = context.Pipe()
            gpu = visible[k % len(visible)] if visible else None
            process = context.Process(target=_serve, args=(theirs, gpu, self.threads), daemon=True)
            process.start()
            theirs.close()
            workers.append(_Worker(k + 1, mine, process))
        for worker in workers:
            worker.tell(task)
        return workers


@dataclass(eq=False)
class _Crew:
    """The workers, the shards that came back from dead ones, and those not handed out yet."""

    workers: list[_Worker]
    back: deque[Shard]
    rest: Iterator[Shard]
    ended: bool = False

    def work(self) -> Iterator[Finished]:
        """Hand out and take in until nothing is left."""
        while True:
            for worker in self.workers:
                if worker.idle:
                    self._give(worker)
            if self.ended and not self.back and not any(worker.held for worker in self.workers):
                return
            speaking = {worker.pipe: worker for worker in self.workers}
            for pipe in wait(list(speaking)):
                answer = speaking[pipe].answer()  # type: ignore[index]
                if answer is None:
                    self._lose(speaking[pipe])  # type: ignore[index]
                elif answer != MORE:
                    yield answer

    def _give(self, worker: _Worker) -> None:
        shard = self.back.popleft() if self.back else next(self.rest, None)
        self.ended = self.ended or shard is None
        if shard is not None or worker.held:
            worker.give(shard)

    def _lose(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        self.back.extend(worker.held.values())
        worker.stop()
        if not self.workers:
            raise FreightError(
                f"the last worker process failed: {worker.fault}; go on with --resume"
            )
        warnings.warn(
            f"worker process {worker.number} failed: {worker.fault}; the others go on", stacklevel=5
        )


@dataclass(eq=False)
class _Worker:
    number: int
    pipe: Connection[Any, Any]
    process: BaseProcess
    held: dict[int, Shard] = field(default_factory=dict)
    idle: bool = False
    fault: str = "it was killed, perhaps for want of memory"

    def give(self, shard: Shard | None) -> None:
        if shard is not None:
            self.held[shard.number] = shard
        self.idle = False
        self.tell(shard)

    def tell(self, what: Task | Shard | None) -> None:
        with suppress(OSError):  # it has died; reading from it will say so
            self.pipe.send(what)

    def answer(self) -> Finished | Literal["more"] | None:
        """What it has finished, or that it wants more; nothing where it is of no more use."""
        try:
            answer: Finished | Exception | Literal["more"] = self.pipe.recv()
        except (EOFError, OSError):
            return None
        if isinstance(answer, FreightError):
            raise answer
        if isinstance(answer, Exception):
            self.fault = str(answer)
            return None
        if isinstance(answer, Finished):
            del self.held[answer.record.number]
        else:
            self.idle = True
        return answer

    def stop(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


def _visible_gpus() -> list[str]:
    import torch

    said = os.environ.get(_VISIBLE)
    return said.split(",") if said else [str(k) for k in range(torch.cuda.device_count())]


def _serve(pipe: Connection[Any, Any], gpu: str | None, threads: int) -> None:
    """The life of a worker, which ends with its parent's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops us
    if gpu is not None:
        os.environ[_VISIBLE] = gpu
    from freight.kernels import set_threads

    set_threads(threads)
    task: Task = pipe.recv()
    inbox: SimpleQueue[Shard | None] = SimpleQueue()
    Thread(target=_receive, args=(pipe, inbox), daemon=True).start()
    try:
        while True:
            for done in task(_asked_for(pipe, inbox)):
                pipe.send(done)
    except FreightError as error:
        pipe.send(error)
    except Exception as error:
        pipe.send(RuntimeError(traceback.format_exception_only(error)[-1].strip()))


def _asked_for(pipe: Connection[Any, Any], inbox: SimpleQueue[Shard | None]) -> Iterator[Shard]:
    pipe.send(MORE)
    while (shard := inbox.get()) is not None:
        pipe.send(MORE)
        yield shard


def _receive(pipe: Connection[Any, Any], inbox: SimpleQueue[Shard | None]) -> None:
    try:
        while True:
            inbox.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(1)
