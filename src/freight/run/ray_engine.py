"""The same on a Ray cluster: the driver reads and writes, actors score.

Ray Data would read for us, but neither keeps to exact shards nor knows which are finished. So the
driver cuts the input and hands shards to actors, no more than they ask for, and an actor or a node
that dies is replaced by another as soon as there is room for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from freight.core.scoring import Scorer
from freight.core.types import Progress
from freight.data import Corpus
from freight.errors import InvalidInput, MissingPart
from freight.kernels import set_threads
from freight.run.journal import Surroundings
from freight.run.resume import Request, carry_out
from freight.run.shards import SHARD, Finished, Run, Shard, ShardTask
from freight.run.worker_pool import Answer, Crew, PoolWorker, serve


def on_ray(
    metrics: Sequence[Scorer],
    corpus: Corpus,
    output: str | Path,
    *,
    address: str | None = None,
    resume: bool = False,
    shard: int = SHARD,
    ending: str = ".parquet",
    columns: Sequence[Sequence[str]] | None = None,
    workers: int | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Run:
    """Score a corpus into a folder of shards, as `local` does, by actors of a Ray cluster.

    An actor takes a GPU where the cluster has any, otherwise `threads` cores; there are as many as
    there is room for unless `workers` says otherwise. A cluster that is not yet joined is joined at
    `address`, or at $RAY_ADDRESS, or started on this machine.
    """
    request = Request(metrics, corpus, Path(output), resume, shard, ending, columns)
    with _joined(address) as ray:
        there = ray.cluster_resources()
        gpus = int(there.get("GPU", 0))
        room = gpus or int(there.get("CPU", 0)) // threads
        if not (workers or room):
            raise InvalidInput(f"the cluster has no {threads} cores on one node; say fewer threads")
        return carry_out(request, _Ray(ray, workers or room, threads, gpus > 0), progress)


@dataclass(frozen=True)
class _Ray:
    """An engine: so many actors, each with so many threads, each with a GPU where there are."""

    ray: Any
    count: int
    threads: int
    gpus: bool

    def look(self, metrics: Sequence[Scorer]) -> Surroundings:
        """As a worker has it, who may have a GPU where the driver has none."""
        task = self.ray.remote(**self._needs)(_look)
        found: Surroundings = self.ray.get(task.remote(list(metrics), self.threads))
        return found

    def work(
        self, task: ShardTask, shards: Iterator[Shard], progress: Progress | None
    ) -> Iterator[Finished]:
        """The finished shards, as they come."""
        shared = self.ray.put(task)
        first = [self._actor(shared) for _ in range(self.count)]
        put = (_Put(shard.number, self.ray.put(shard)) for shard in shards)

        def replace(worker: _Remote) -> _Remote:
            self.ray.kill(worker.actor)
            return self._actor(shared)

        crew = Crew(first, put, self._listen, replace)
        try:
            for done in crew.work():
                if progress:
                    progress(done.record.rows)
                yield done
        finally:
            for worker in crew.workers:
                self.ray.kill(worker.actor)

    @property
    def _needs(self) -> dict[str, Any]:
        return {"num_cpus": self.threads, "num_gpus": 1 if self.gpus else 0}

    def _actor(self, task: Any) -> _Remote:
        kind = self.ray.remote(max_concurrency=3, **self._needs)(_Actor)
        return _Remote(kind.remote(task, self.threads))

    def _listen(self, workers: Sequence[_Remote]) -> Iterable[tuple[_Remote, Answer | None]]:
        by_answer = {worker.answer: worker for worker in workers}
        ready, _ = self.ray.wait(list(by_answer), fetch_local=False)
        return [(by_answer[answer], self._heard(by_answer[answer])) for answer in ready]

    def _heard(self, worker: _Remote) -> Answer | None:
        try:
            found: Answer = self.ray.get(worker.answer)
        except self.ray.exceptions.RayError:
            return None
        worker.answer = worker.actor.answer.remote()
        return found


@dataclass(frozen=True)
class _Put:
    """A shard in the cluster's memory."""

    number: int
    shard: Any


class _Remote(PoolWorker[_Put]):
    def __init__(self, actor: Any) -> None:
        super().__init__()
        self.actor = actor
        self.answer = actor.answer.remote()

    def tell(self, shard: _Put | None) -> None:
        self.actor.tell.remote(None if shard is None else shard.shard)


class _Actor:
    """A worker on a node of the cluster, which scores on a thread of its own."""

    def __init__(self, task: ShardTask, threads: int) -> None:
        set_threads(threads)
        self._inbox: SimpleQueue[Shard | None] = SimpleQueue()
        self._outbox: SimpleQueue[Answer] = SimpleQueue()
        ends = self._inbox.get, self._outbox.put
        Thread(target=serve, args=(task, *ends), daemon=True).start()

    def tell(self, shard: Shard | None) -> None:
        """Take a shard, or word to finish up."""
        self._inbox.put(shard)

    def answer(self) -> Answer:
        """The next thing to be said, once there is one."""
        return self._outbox.get()


def _look(metrics: Sequence[Scorer], threads: int) -> Surroundings:
    set_threads(threads)
    return Surroundings.here(metrics)


@contextmanager
def _joined(address: str | None) -> Iterator[Any]:
    """Ray, as part of a cluster; one that was joined for this is left again."""
    try:
        import ray
    except ImportError as error:
        raise MissingPart.extra("ray", "ray") from error
    mine = not ray.is_initialized()
    if mine:
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        except (ConnectionError, ValueError) as error:
            raise InvalidInput(f"no Ray cluster at {address}: {error}") from None
    try:
        yield ray
    finally:
        if mine:
            ray.shutdown()
