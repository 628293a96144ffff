"""One thread scores for every client: requests that wait are batched, encoded together, answered.

Scores are bitwise the same whatever they are batched with, so that no client learns of the others.
Work is cut into bounded pieces, between any two pairs: after each piece requests whose time has
passed are dropped, and a large request does not keep small ones waiting.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from freight.core.result import Result
from freight.core.scorers import PipelineScorer
from freight.core.types import Encoder, Segment
from freight.data.languages import detect_surely
from freight.errors import FreightError
from freight.explain.explanation import Explanation
from freight.kernels import set_threads
from freight.serve.access import PrometheusMetrics
from freight.serve.jobs import Job, JobPiece, score_pieces
from freight.serve.models import RequestedMetric, ServedModels
from freight.serve.refusals import DeadlinePassed, Limits, QueueFull, ShuttingDown

BATCH_PAIRS, BATCH_WORK = 256, 8_000_000
"""Where a batch ends: so many pairs, or so much work by one metric (a pair of 2,000 characters)."""

_LINGER, _POLL, _SMALLEST_SHARE = 0.010, 0.001, 16
_LAST_PIECE = 10.0
"""Seconds that a worker which is stopped has for the piece that it is at."""


WorkerState = Literal["starting", "ready", "stopping", "failed"]
Outcome = tuple[Job, list[Any] | BaseException]


class Worker:
    """The thread and its queue; all but its start and stop belongs to the event loop."""

    def __init__(
        self,
        models: ServedModels,
        limits: Limits,
        metrics: PrometheusMetrics,
        threads: int | None = None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self._models, self._limits, self._metrics = models, limits, metrics
        self._threads, self._on_ready = threads, on_ready
        self._queue: deque[Job] = deque()
        self._waiting_pairs = 0
        self._last_jobs, self._pairs_per_second = 1, 100.0
        self._wake = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="freight-worker", daemon=True)
        self.warmed_up = threading.Event()

    def start(self) -> None:
        """Load and compile what most requests need, then work."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Accept nothing new, finish what waits."""
        with self._wake:
            self._stopping = True
            self._wake.notify()

    async def join(self, seconds: float = _LAST_PIECE) -> bool:
        """Wait until the thread has finished, or for so long; whether it has."""
        await asyncio.to_thread(self._thread.join, seconds)
        return not self._thread.is_alive()

    @property
    def state(self) -> WorkerState:
        """Whether it loads models, answers, or will answer nothing new."""
        if self._stopping:
            return "stopping"
        if self._thread.ident is not None and not self._thread.is_alive():
            return "failed"
        return "ready" if self.warmed_up.is_set() else "starting"

    async def score(
        self, segments: Sequence[Segment], metrics: Sequence[RequestedMetric]
    ) -> list[Result]:
        """One result per metric, or an error that says what to do."""
        return await self._submit(list(segments), metrics, explained=False)

    async def score_patiently(
        self, segments: Sequence[Segment], metrics: Sequence[RequestedMetric]
    ) -> list[Result]:
        """The same; where the queue is full, wait for room as long as a request may take."""
        until = time.monotonic() + self._limits.seconds
        while True:
            try:
                return await self.score(segments, metrics)
            except QueueFull as full:
                if time.monotonic() + full.seconds > until:
                    raise
                await asyncio.sleep(full.seconds)

    async def explain(self, segment: Segment, metric: RequestedMetric) -> Explanation:
        """Why a hypothesis scores as it does."""
        explanation: Explanation
        [explanation] = await self._submit([segment], [metric], explained=True)
        return explanation

    async def _submit(
        self, segments: list[Segment], metrics: Sequence[RequestedMetric], explained: bool
    ) -> list[Any]:
        answer: asyncio.Future[list[Any]] = self._loop.create_future()
        job = Job(segments, tuple(dict.fromkeys(metrics)), explained, answer)
        self._enqueue(job)
        try:
            results = await self._await_answer(answer)
        except TimeoutError:
            raise DeadlinePassed(
                f"not done within {self._limits.seconds:g} seconds; send less at once, or try again"
                " later",
                started=job.taken > 0,
            ) from None
        by_metric = dict(zip(job.metrics, results, strict=True))
        return [by_metric[one] for one in metrics]

    async def _await_answer(self, answer: asyncio.Future[list[Any]]) -> list[Any]:
        return await asyncio.wait_for(answer, self._limits.seconds)

    def _enqueue(self, job: Job) -> None:
        pairs = job.pairs * len(job.metrics)
        with self._wake:
            if self._stopping:
                raise ShuttingDown
            if self._queue and self._waiting_pairs + pairs > self._limits.queue:
                raise QueueFull(
                    f"{self._waiting_pairs} pairs wait already; the queue has room for"
                    f" {self._limits.queue}",
                    self._waiting_pairs / self._pairs_per_second,
                )
            self._queue.append(job)
            self._count_waiting(pairs)
            self._wake.notify()

    def _count_waiting(self, pairs: int) -> None:
        self._waiting_pairs += pairs
        self._metrics.queue.set(self._waiting_pairs)

    def _run(self) -> None:
        if self._threads is not None:
            set_threads(self._threads)
        self._warm_up()
        self.warmed_up.set()
        if not self._stopping:
            self._on_ready()
        while not self._is_finished:
            pieces = self._gather()
            start = time.perf_counter()
            try:
                self._work(pieces)
            except Exception as error:  # nobody may wait for an answer that will not come
                self._deliver((piece.job, error) for piece in pieces)
            self._record(pieces, time.perf_counter() - start)

    @property
    def _is_finished(self) -> bool:
        with self._wake:
            return self._stopping and not self._queue

    def _record(self, pieces: Sequence[JobPiece], seconds: float) -> None:
        pairs = sum(piece.pairs for piece in pieces)
        if pairs:
            rate = pairs / max(seconds, 1e-6)
            self._pairs_per_second = 0.8 * self._pairs_per_second + 0.2 * rate
            self._metrics.record_batch(len(pieces), pairs)

    def _warm_up(self) -> None:
        """Load weights, so that the first requests need not wait for them."""
        plain = [(name, None, None) for name in self._models.metrics]
        adapted = [(one.adapter.metric, name, None) for name, one in self._models.adapters.items()]
        others = [(name, None, encoder) for name, encoder in self._models.other_encoders]
        detect_surely(["Ein Satz, der nicht englisch ist."])
        for name, adapter, encoder in [*plain, *adapted, *others]:
            try:
                wanted = self._models.requested_metric(name, encoder, adapter=adapter)
                scorer = self._models.scorer(wanted)
                if scorer.parts and not self._stopping:
                    scorer.explain("A warm start.", ["A start that is warm."])
            except FreightError:  # IDF is not fitted: requests for this metric get the reason
                continue

    def _gather(self) -> list[JobPiece]:
        """Wait for work; if several jobs came last time, a moment longer for more of them."""
        with self._wake:
            self._wake.wait_for(lambda: self._queue or self._stopping)
        start, seen = time.perf_counter(), 0
        while seen < len(self._queue) < self._last_jobs and time.perf_counter() - start < _LINGER:
            seen = len(self._queue)
            time.sleep(_POLL)
        with self._wake:
            return self._next_batch()

    def _next_batch(self) -> list[JobPiece]:
        """A fair share of every job, those that have waited longest first.

        A job whose next pair does not fit waits for the next batch, and does not keep those behind
        it waiting.
        """
        self._last_jobs = len(self._queue)
        fair = max(_SMALLEST_SHARE, BATCH_PAIRS // max(self._last_jobs, 1))
        pieces: list[JobPiece] = []
        waiting, unfinished, pairs, work = [], [], BATCH_PAIRS, BATCH_WORK
        while self._queue and pairs > 0 and work > 0:
            job = self._queue.popleft()
            before = job.taken
            if job.is_over:
                job.taken = job.pairs
            elif pieces and job.work[job.taken] > work:
                waiting.append(job)
            else:
                piece = job.take(min(pairs, fair), work)
                pairs, work = pairs - piece.pairs, work - piece.work
                pieces.append(piece)
                unfinished += [job] if job.remaining else []
            self._count_waiting(-(job.taken - before) * len(job.metrics))
        self._queue.extendleft(reversed(waiting))
        self._queue.extend(unfinished)
        return pieces

    def _work(self, pieces: Sequence[JobPiece]) -> None:
        groups: dict[RequestedMetric, list[JobPiece]] = {}
        for piece in pieces:
            for metric in piece.job.metrics:
                groups.setdefault(metric, []).append(piece)
        scorers: dict[RequestedMetric, PipelineScorer] = {}
        for metric, group in groups.items():
            try:
                scorers[metric] = self._models.scorer(metric)
            except Exception as error:
                self._deliver((piece.job, error) for piece in group)
        for metric, scorer in scorers.items():
            groups[metric] = [one for one in groups[metric] if self._is_affordable(scorer, one)]
        self._encode([(scorer, _alive(groups[metric])) for metric, scorer in scorers.items()])
        for metric, scorer in scorers.items():
            alive = _alive(groups[metric])
            if alive:
                self._deliver(self._score_pieces(metric, scorer, alive))

    def _is_affordable(self, scorer: PipelineScorer, piece: JobPiece) -> bool:
        """Whether a job is within the limits, before its first piece is begun.

        A plan costs about the cube of its units, which are counted without their vectors.
        """
        job = piece.job
        if piece.first > 0:
            return True
        try:
            if job.explained or not scorer.parts:
                what = "an explanation" if job.explained else scorer.name
                self._limits.check_uncut(job.segments, what)
            texts = self._limits.long_texts(job.chunk.texts)
            for part in scorer.parts if texts else ():
                units = part.units(part.encoder.encode(texts, ()))
                self._limits.check_units(dict(zip(texts, np.diff(units.offsets), strict=True)))
        except Exception as error:
            self._deliver([(job, error)])
            return False
        return True

    def _encode(self, groups: Iterable[tuple[PipelineScorer, Sequence[JobPiece]]]) -> None:
        """Encode once what several metrics need of an encoder, which remembers it for them."""
        layers: dict[Encoder, set[int]] = {}
        texts: dict[Encoder, dict[str, None]] = {}
        users: dict[Encoder, int] = {}
        for scorer, pieces in groups:
            needed = [text for piece in pieces for text in piece.texts]
            for part in {part.encoder: part for part in scorer.parts}.values():
                users[part.encoder] = users.get(part.encoder, 0) + 1
                layers.setdefault(part.encoder, set()).update(part.layers)
                texts.setdefault(part.encoder, {}).update(dict.fromkeys(needed))
        for encoder in [one for one, count in users.items() if count > 1]:
            try:
                encoder.encode(list(texts[encoder]), sorted(layers[encoder]))
            except Exception:  # scoring will raise it again, for the request at fault
                continue

    def _score_pieces(
        self, metric: RequestedMetric, scorer: PipelineScorer, pieces: Sequence[JobPiece]
    ) -> list[Outcome]:
        """Score together; if that fails, each by itself, so that one error fails one request."""
        try:
            parts = score_pieces(scorer, pieces)
        except Exception as error:
            if len(pieces) == 1:
                return [(pieces[0].job, error)]
            return [one for piece in pieces for one in self._score_pieces(metric, scorer, [piece])]
        finished = [
            piece.job
            for piece, part in zip(pieces, parts, strict=True)
            if piece.job.add(metric, scorer, part, piece.last)
        ]
        self._metrics.pairs.inc(sum(piece.pairs for piece in pieces))
        return [(job, job.result) for job in finished]

    def _deliver(self, outcomes: Iterable[Outcome]) -> None:
        ready = list(outcomes)
        for job, outcome in ready:
            job.failed = job.failed or isinstance(outcome, BaseException)
        if ready:
            self._loop.call_soon_threadsafe(_set_answers, ready)


def _alive(pieces: Iterable[JobPiece]) -> list[JobPiece]:
    return [piece for piece in pieces if not piece.job.is_over]


def _set_answers(outcomes: Iterable[Outcome]) -> None:
    for job, outcome in outcomes:
        if job.answer.done():
            continue
        if isinstance(outcome, BaseException):
            job.answer.set_exception(outcome)
        else:
            job.answer.set_result(outcome)
