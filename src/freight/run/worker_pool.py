"""A pool of workers that score shards, whether processes or actors; a worker may die.

A worker asks for the next shard as soon as it begins the one before, so that it never waits, and
scores all of them in one stream. The shards of a worker that died go to the others.
"""

from __future__ import annotations

import traceback
import warnings
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from freight.errors import FreightError
from freight.run.shards import FinishedShard, PartialShard, Shard, ShardTask


@dataclass(frozen=True)
class ShardRequest:
    """A worker asks for another shard."""


@dataclass(frozen=True)
class NoMoreShards:
    """The answer to a request: no shard is left, so score to the end those that you have."""


@dataclass(frozen=True)
class InputFault:
    """Something that the user has to correct, and that would stop every other worker too."""

    error: FreightError


@dataclass(frozen=True)
class WorkerFailure:
    """The worker has ended; `reason` completes the sentence 'a worker failed: ...'."""

    reason: str = "it was killed, perhaps for want of memory"


ToWorker = Shard | NoMoreShards
FromWorker = ShardRequest | FinishedShard | PartialShard | InputFault | WorkerFailure


class ShardHandle(Protocol):
    """A shard, or a reference to one in a cluster's memory."""

    @property
    def number(self) -> int:
        """The number of the shard."""
        ...


H = TypeVar("H", bound=ShardHandle)
W = TypeVar("W", bound="PoolWorker[Any]")


@dataclass(eq=False)
class PoolWorker(ABC, Generic[H]):
    """A worker as the pool sees it: the shards it has, and whether it waits for another."""

    assigned: dict[int, H] = field(default_factory=dict)
    waiting: bool = False

    @abstractmethod
    def send_shard(self, shard: H) -> None:
        """Send a shard; a worker that has died reports that through its messages."""

    @abstractmethod
    def send_end(self) -> None:
        """Send that there are no more shards."""


@dataclass(eq=False)
class WorkerPool(Generic[W, H]):
    """Hands out shards to workers and collects finished ones.

    `receive` waits for messages of the workers. `replace` returns a new worker for one that has
    died, or None. A shard over which `attempts` workers have died ends the run.
    """

    workers: list[W]
    shards: Iterator[H]
    receive: Callable[[Sequence[W]], Iterable[tuple[W, FromWorker]]]
    replace: Callable[[W], W | None]
    attempts: int = 3
    _returned: deque[H] = field(default_factory=deque, init=False)
    _exhausted: bool = field(default=False, init=False)
    _deaths: Counter[int] = field(default_factory=Counter, init=False)

    def finished_shards(self) -> Iterator[FinishedShard | PartialShard]:
        """All shards, in the order in which they are finished, and parts of them before that."""
        while True:
            for worker in self.workers:
                if worker.waiting:
                    self._answer_request(worker)
            if self._is_done():
                return
            for worker, message in self.receive(self.workers):
                match message:
                    case FinishedShard():
                        del worker.assigned[message.record.number]
                        yield message
                    case PartialShard():
                        yield message
                    case InputFault():
                        raise message.error
                    case ShardRequest():
                        worker.waiting = True
                    case WorkerFailure():
                        self._remove_worker(worker, message.reason)

    def _is_done(self) -> bool:
        assigned = any(worker.assigned for worker in self.workers)
        return self._exhausted and not self._returned and not assigned

    def _answer_request(self, worker: W) -> None:
        """Send the next shard, or the end to a worker that has shards; others keep waiting."""
        shard = self._returned.popleft() if self._returned else next(self.shards, None)
        if shard is not None:
            worker.assigned[shard.number] = shard
            worker.waiting = False
            worker.send_shard(shard)
            return
        self._exhausted = True
        if worker.assigned:
            worker.waiting = False
            worker.send_end()

    def _remove_worker(self, worker: W, reason: str) -> None:
        self.workers.remove(worker)
        self._returned.extend(worker.assigned.values())
        self._deaths.update(list(worker.assigned))
        replacement = self.replace(worker)
        if replacement is not None:
            self.workers.append(replacement)
        if not self.workers or max(self._deaths.values(), default=0) >= self.attempts:
            raise FreightError(
                f"no worker is left; the last one failed: {reason}; go on with --resume"
            )
        warnings.warn(f"a worker failed: {reason}; the others go on", stacklevel=5)


def serve_shards(
    task: ShardTask, receive: Callable[[], ToWorker], send: Callable[[FromWorker], None]
) -> None:
    """What a worker does: receive shards and send finished ones, until something fails."""
    try:
        while True:
            for done in task.score_shards(_requested_shards(receive, send)):
                send(done)
    except FreightError as error:
        send(InputFault(error))
    except Exception as error:
        send(WorkerFailure(traceback.format_exception_only(error)[-1].strip()))


def _requested_shards(
    receive: Callable[[], ToWorker], send: Callable[[FromWorker], None]
) -> Iterator[Shard]:
    send(ShardRequest())
    while not isinstance(shard := receive(), NoMoreShards):
        send(ShardRequest())
        yield shard
