"""The pool with workers played by the test: which shard goes where, also when a worker dies."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from freight.errors import FreightError, InvalidInput
from freight.run.shards import FinishedShard, Shard, ShardRecord
from freight.run.worker_pool import (
    FromWorker,
    InputFault,
    NoMoreShards,
    PoolWorker,
    ShardRequest,
    ToWorker,
    WorkerFailure,
    WorkerPool,
    serve_shards,
)


def shards(count: int) -> Iterator[Shard]:
    return (Shard(number, {}, []) for number in range(count))


def finish(number: int) -> FinishedShard:
    return FinishedShard(ShardRecord(number, 1, "", [], []), b"", 1)


class PlayedWorker(PoolWorker[Shard]):
    """A worker that finishes a shard when it asks for another; it may fail at a shard."""

    def __init__(self, fails_at: int | None = None) -> None:
        super().__init__()
        self.fails_at = fails_at
        self.received: list[int] = []
        self.ended = False
        self.outbox: deque[FromWorker] = deque([ShardRequest()])

    def send_shard(self, shard: Shard) -> None:
        self.received.append(shard.number)
        if shard.number == self.fails_at:
            self.outbox.append(WorkerFailure("the test wants it"))
        else:
            self.outbox.extend([finish(shard.number), ShardRequest()])

    def send_end(self) -> None:
        self.ended = True


def receive(workers: Sequence[PlayedWorker]) -> Iterable[tuple[PlayedWorker, FromWorker]]:
    return [(worker, worker.outbox.popleft()) for worker in workers if worker.outbox]


def numbers(pool: WorkerPool[PlayedWorker, Shard]) -> list[int]:
    return [
        done.record.number for done in pool.finished_shards() if isinstance(done, FinishedShard)
    ]


def test_shards_go_to_whoever_asks() -> None:
    workers = [PlayedWorker(), PlayedWorker()]
    assert sorted(numbers(WorkerPool(list(workers), shards(5), receive, lambda _: None))) == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip
    assert [worker.received for worker in workers] == [[0, 2, 4], [1, 3]]


def test_the_shard_of_a_dead_worker_goes_to_another() -> None:
    workers = [PlayedWorker(), PlayedWorker(fails_at=1)]
    pool = WorkerPool(list(workers), shards(4), receive, lambda _: None)
    with pytest.warns(UserWarning, match="a worker failed: the test wants it; the others go on"):
        assert sorted(numbers(pool)) == [0, 1, 2, 3]
    assert 1 in workers[0].received
    assert pool.workers == [workers[0]]


def test_a_shard_that_kills_three_workers_ends_the_run() -> None:
    pool = WorkerPool(
        [PlayedWorker(fails_at=0)], shards(2), receive, lambda _: PlayedWorker(fails_at=0)
    )
    with (
        pytest.warns(UserWarning, match="a worker failed"),
        pytest.raises(FreightError, match="is left; the last one failed: the test wants it"),
    ):
        numbers(pool)


def test_a_fault_of_the_input_ends_the_run() -> None:
    worker = PlayedWorker()
    worker.outbox.append(InputFault(InvalidInput("a text is too long")))
    with pytest.raises(InvalidInput, match=r"^a text is too long$"):
        numbers(WorkerPool([worker], shards(2), receive, lambda _: None))


class PlayedTask:
    """A task that finishes each shard at once, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def score_shards(self, given: Iterable[Shard]) -> Iterator[FinishedShard]:
        for shard in given:
            if self.error:
                raise self.error
            yield finish(shard.number)


class Stop(BaseException):
    """Ends the loop of a worker."""


def served(task: Any, *messages: ToWorker) -> list[FromWorker]:
    inbox, sent = deque(messages), list[FromWorker]()

    def next_message() -> ToWorker:
        if not inbox:
            raise Stop
        return inbox.popleft()

    with suppress(Stop):
        serve_shards(task, next_message, sent.append)
    return sent


def test_a_worker_asks_for_the_next_shard_before_it_scores_one() -> None:
    one, two = shards(2)
    sent = served(PlayedTask(), one, two, NoMoreShards())
    kinds = [type(message).__name__ for message in sent]
    assert kinds == [
        "ShardRequest", "ShardRequest", "FinishedShard", "ShardRequest", "FinishedShard",
        "ShardRequest",
    ]  # fmt: skip


def test_a_worker_reports_why_it_ends() -> None:
    first = next(shards(1))
    fault = served(PlayedTask(InvalidInput("a text is too long")), first)[-1]
    assert isinstance(fault, InputFault)
    assert str(fault.error) == "a text is too long"
    failure = served(PlayedTask(RuntimeError("CUDA error")), first)[-1]
    assert failure == WorkerFailure("RuntimeError: CUDA error")
