"""Workers that shards are handed out to, wherever they are; one that dies is done without.

A worker asks for a shard when it begins the one that it got last, so that it never waits, and
scores all of them in one stream.
"""

from __future__ import annotations

import traceback
import warnings
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from freight.errors import FreightError
from freight.run.shards import Finished, Shard, ShardTask

MORE: Literal["more"] = "more"
"""What a worker says when it wants a shard; nothing in return means that it should finish up."""

TRIES = 3
"""How many workers may die over a shard before it is given up."""

KILLED = "it was killed, perhaps for want of memory"

Answer = Finished | FreightError | RuntimeError | Literal["more"]
"""What a worker says: a shard, what the user can mend, what it died of, or that it wants more."""


class Numbered(Protocol):
    """A shard, or something that stands for it."""

    @property
    def number(self) -> int:
        """Which shard it is."""
        ...


N = TypeVar("N", bound=Numbered)
W = TypeVar("W", bound="PoolWorker[Any]")


@dataclass(eq=False)
class PoolWorker(ABC, Generic[N]):
    """A worker as it is seen from here: what it holds, and whether it waits for more."""

    held: dict[int, N] = field(default_factory=dict)
    idle: bool = False

    @abstractmethod
    def tell(self, shard: N | None) -> None:
        """Send a shard, or word to finish up; if it has died, that is found out later."""


@dataclass(eq=False)
class Crew(Generic[W, N]):
    """Workers, and shards that have not been handed out: those that came back, then the rest.

    `listen` waits for what workers say, which is nothing from one that is dead; `replace` gives
    a new worker for a dead one, or none.
    """

    workers: list[W]
    rest: Iterator[N]
    listen: Callable[[Sequence[W]], Iterable[tuple[W, Answer | None]]]
    replace: Callable[[W], W | None]
    back: deque[N] = field(default_factory=deque)
    ended: bool = False
    deaths: Counter[int] = field(default_factory=Counter)

    def work(self) -> Iterator[Finished]:
        """Hand out and take in until nothing is left."""
        while True:
            for worker in self.workers:
                if worker.idle:
                    self._give(worker)
            if self.ended and not self.back and not any(one.held for one in self.workers):
                return
            for worker, answer in self.listen(self.workers):
                if isinstance(answer, Finished):
                    del worker.held[answer.record.number]
                    yield answer
                elif isinstance(answer, FreightError):
                    raise answer
                elif answer == MORE:
                    worker.idle = True
                else:
                    self._lose(worker, str(answer or KILLED))

    def _give(self, worker: W) -> None:
        shard = self.back.popleft() if self.back else next(self.rest, None)
        self.ended = self.ended or shard is None
        if shard is None and not worker.held:
            return
        if shard is not None:
            worker.held[shard.number] = shard
        worker.idle = False
        worker.tell(shard)

    def _lose(self, worker: W, fault: str) -> None:
        self.workers.remove(worker)
        self.back.extend(worker.held.values())
        self.deaths.update(list(worker.held))
        again = self.replace(worker)
        if again is not None:
            self.workers.append(again)
        if not self.workers or max(self.deaths.values(), default=0) >= TRIES:
            raise FreightError(
                f"no worker is left; the last one failed: {fault}; go on with --resume"
            )
        warnings.warn(f"a worker failed: {fault}; the others go on", stacklevel=5)


def serve(
    task: ShardTask, receive: Callable[[], Shard | None], send: Callable[[Answer], None]
) -> None:
    """The life of a worker: shards in, finished ones out, until something goes wrong."""
    try:
        while True:
            for done in task(_asked_for(receive, send)):
                send(done)
    except FreightError as error:
        send(error)
    except Exception as error:
        send(RuntimeError(traceback.format_exception_only(error)[-1].strip()))


def _asked_for(
    receive: Callable[[], Shard | None], send: Callable[[Answer], None]
) -> Iterator[Shard]:
    send(MORE)
    while (shard := receive()) is not None:
        send(MORE)
        yield shard
