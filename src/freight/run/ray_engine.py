"""Runs on a Ray cluster: the driver reads and writes, actors score.

Ray Data could read for us, but it neither keeps to exact shards nor knows which are finished. So
the driver cuts the input and sends shards to actors when they ask for them. An actor or a node
that dies is replaced as soon as there is room for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from freight.core.pipeline import ChunkSize, adapt
from freight.core.scorers import PipelineScorer, Scorer
from freight.core.types import Progress
from freight.data import Corpus
from freight.errors import InvalidInput, MissingPart
from freight.kernels import set_threads
from freight.run.journal import Environment
from freight.run.resume import RunRequest, score_to_folder
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


def on_ray(
    metrics: Sequence[Scorer],
    corpus: Corpus,
    output: str | Path,
    *,
    address: str | None = None,
    resume: bool = False,
    shard: int = SHARD_SIZE,
    checkpoint: float = CHECKPOINT,
    ending: str = ".parquet",
    columns: Sequence[Sequence[str]] | None = None,
    chunk: ChunkSize | None = None,
    escape: bool = False,
    workers: int | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> Run:
    """Score a corpus into a folder of shards, as `local` does, by actors of a Ray cluster.

    An actor takes a GPU where the cluster has any, otherwise `threads` cores; there are as many
    actors as there is room for unless `workers` is given. Where Ray is not initialised yet, it
    connects to the cluster at `address` or at $RAY_ADDRESS, or starts one on this machine.
    """
    scorers = [adapt(metric) for metric in metrics]
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
    with _connect(address) as ray:
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0))
        room = gpus or int(resources.get("CPU", 0)) // threads
        if not (workers or room):
            raise InvalidInput(f"the cluster has no {threads} cores on one node; say fewer threads")
        engine = RayActors(ray, workers or room, threads, gpus > 0)
        return score_to_folder(request, engine, progress, note)


@contextmanager
def _connect(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster; a connection that is made here is closed again."""
    try:
        import ray
    except ImportError as error:
        raise MissingPart.extra("ray", "ray") from error
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        except (ConnectionError, ValueError) as error:
            raise InvalidInput(f"no Ray cluster at {address}: {error}") from None
    try:
        yield ray
    finally:
        if is_ours:
            ray.shutdown()


@dataclass(frozen=True)
class RayActors:
    """The engine of several actors with some threads each, and a GPU each where there are."""

    ray: Any
    count: int
    threads: int
    gpus: bool

    def environment(self, metrics: Sequence[PipelineScorer]) -> Environment:
        """That of a node of the cluster, which may have a GPU where the driver has none."""
        task = self.ray.remote(**self._resources)(_environment_on_node)
        environment: Environment = self.ray.get(task.remote(list(metrics), self.threads))
        return environment

    def score_shards(
        self, task: ShardTask, shards: Iterator[Shard], progress: Progress | None
    ) -> Iterator[FinishedShard | PartialShard]:
        """The finished shards, in the order in which the actors finish them."""
        shared = self.ray.put(task)
        workers = [self._start_worker(shared) for _ in range(self.count)]
        stored = (_StoredShard(shard.number, self.ray.put(shard)) for shard in shards)

        def replace(worker: _ActorWorker) -> _ActorWorker:
            self.ray.kill(worker.actor)
            return self._start_worker(shared)

        pool = WorkerPool(workers, stored, self._receive_messages, replace)
        try:
            for done in pool.finished_shards():
                if progress:
                    progress(done.new_rows)
                yield done
        finally:
            for worker in pool.workers:
                self.ray.kill(worker.actor)

    @property
    def _resources(self) -> dict[str, Any]:
        return {"num_cpus": self.threads, "num_gpus": 1 if self.gpus else 0}

    def _start_worker(self, task: Any) -> _ActorWorker:
        kind = self.ray.remote(max_concurrency=3, **self._resources)(_ScoringActor)
        return _ActorWorker(kind.remote(task, self.threads))

    def _receive_messages(
        self, workers: Sequence[_ActorWorker]
    ) -> Iterable[tuple[_ActorWorker, FromWorker]]:
        by_message = {worker.next_message: worker for worker in workers}
        ready, _ = self.ray.wait(list(by_message), fetch_local=False)
        return [(by_message[one], self._receive(by_message[one])) for one in ready]

    def _receive(self, worker: _ActorWorker) -> FromWorker:
        try:
            message: FromWorker = self.ray.get(worker.next_message)
        except self.ray.exceptions.RayError:
            return WorkerFailure()
        worker.next_message = worker.actor.next_message.remote()
        return message


@dataclass(frozen=True)
class _StoredShard:
    """A shard in the memory of the cluster."""

    number: int
    shard: Any


class _ActorWorker(PoolWorker[_StoredShard]):
    """An actor, seen from the driver."""

    def __init__(self, actor: Any) -> None:
        super().__init__()
        self.actor = actor
        self.next_message = actor.next_message.remote()

    def send_shard(self, shard: _StoredShard) -> None:
        self.actor.put.remote(shard.shard)

    def send_end(self) -> None:
        self.actor.put.remote(NoMoreShards())


class _ScoringActor:
    """A worker on a node of the cluster, which scores in a thread of its own."""

    def __init__(self, task: ShardTask, threads: int) -> None:
        set_threads(threads)
        self._inbox: SimpleQueue[ToWorker] = SimpleQueue()
        self._outbox: SimpleQueue[FromWorker] = SimpleQueue()
        ends = self._inbox.get, self._outbox.put
        Thread(target=serve_shards, args=(task, *ends), daemon=True).start()

    def put(self, message: ToWorker) -> None:
        """Take a message of the driver."""
        self._inbox.put(message)

    def next_message(self) -> FromWorker:
        """The next message to the driver, once there is one."""
        return self._outbox.get()


def _environment_on_node(metrics: Sequence[PipelineScorer], threads: int) -> Environment:
    set_threads(threads)
    return Environment.of_this_process(metrics)
