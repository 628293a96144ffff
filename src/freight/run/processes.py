"""Shards shared out among processes, one for each GPU or for some of the cores.

A worker holds two shards, so that it never waits for the next one. One that dies is done without:
its shards go to the others.
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
from typing import Any

from freight.clouds import Tick
from freight.errors import FreightError
from freight.run.shards import Finished, Shard, Task

_HELD = 2
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
        pending, workers = _Pending(first, shards), self._started(task)
        try:
            while True:
                _hand_out(pending, workers)
                busy = {worker.pipe: worker for worker in workers if worker.held}
                if not busy:
                    return
                for ready in wait(list(busy)):
                    worker = busy[ready]  # type: ignore[index]
                    done = worker.answer()
                    if done is None:
                        workers.remove(worker)
                        pending.back(worker, left=len(workers))
                        continue
                    _hand_out(pending, workers)
                    if tick:
                        tick(done.record.rows)
                    yield done
        finally:
            for worker in workers:
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
class _Worker:
    number: int
    pipe: Connection[Any, Any]
    process: BaseProcess
    held: deque[Shard] = field(default_factory=deque)
    fault: str = "it was killed, perhaps for want of memory"

    def give(self, shard: Shard) -> None:
        self.held.append(shard)
        self.tell(shard)

    def tell(self, what: Task | Shard) -> None:
        with suppress(OSError):  # it has died; reading from it will say so
            self.pipe.send(what)

    def answer(self) -> Finished | None:
        """The shard that it has finished; nothing where it is of no more use."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            return None
        if isinstance(answer, FreightError):
            raise answer
        if isinstance(answer, str):
            self.fault = answer
            return None
        self.held.popleft()
        found: Finished = answer
        return found

    def stop(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


class _Pending:
    """Shards to be handed out: first those that came back."""

    def __init__(self, first: Shard, rest: Iterator[Shard]) -> None:
        self._back, self._rest = deque([first]), rest

    def next(self) -> Shard | None:
        return self._back.popleft() if self._back else next(self._rest, None)

    def back(self, worker: _Worker, left: int) -> None:
        self._back.extend(worker.held)
        worker.stop()
        if not left:
            raise FreightError(
                f"the last worker process failed: {worker.fault}; go on with --resume"
            )
        warnings.warn(
            f"worker process {worker.number} failed: {worker.fault}; the others go on", stacklevel=5
        )


def _hand_out(pending: _Pending, workers: list[_Worker]) -> None:
    while True:
        idlest = min(workers, key=lambda worker: len(worker.held))
        if len(idlest.held) >= _HELD or (shard := pending.next()) is None:
            return
        idlest.give(shard)


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
    inbox: SimpleQueue[Shard] = SimpleQueue()
    Thread(target=_receive, args=(pipe, inbox), daemon=True).start()
    while True:
        shard = inbox.get()
        try:
            pipe.send(task(shard))
        except FreightError as error:
            pipe.send(error)
        except Exception as error:
            pipe.send(traceback.format_exception_only(error)[-1].strip())
            return


def _receive(pipe: Connection[Any, Any], inbox: SimpleQueue[Shard]) -> None:
    try:
        while True:
            inbox.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(1)
