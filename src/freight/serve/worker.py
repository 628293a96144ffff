"""One thread scores for all: what waits is gathered, encoded together, and handed back.

Scores have the same bits whatever they are scored with, so who waits together is nobody's concern.
Work is done in pieces, between which those whose time has passed are let go, and a large request
does not keep small ones waiting.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from freight.core.pipeline import score_together
from freight.core.result import Result
from freight.core.scorers import PipelineScorer
from freight.core.types import Encoder, Segment
from freight.errors import FreightError
from freight.explain.explanation import Explanation
from freight.kernels import set_threads
from freight.serve.jobs import Busy, Gauges, Job, JobPiece, Late, Limits, Stopping
from freight.serve.models import RequestedMetric, ServedModels

PAIRS, AREA = 256, 8_000_000
"""Where a batch ends: so many pairs, or characters squared: two pairs of 2,000 each."""

_LINGER, _STEP, _LEAST = 0.010, 0.001, 16
_Outcome = tuple[Job, list[Any] | BaseException]


class Worker:
    """The thread, and the queue before it; all but its start and stop belongs to the event loop."""

    def __init__(
        self, models: ServedModels, limits: Limits, gauges: Gauges, threads: int | None = None
    ) -> None:
        self._models, self._limits, self._gauges = models, limits, gauges
        self._threads = threads
        self._queue: deque[Job] = deque()
        self._waiting = 0
        self._last, self._rate = 1, 100.0
        self._wake = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="freight-worker", daemon=True)
        self.ready = False

    def start(self) -> None:
        """Load and compile what most requests need, then work."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Take nothing new, finish what waits."""
        with self._wake:
            self._stopping = True
            self._wake.notify()

    async def join(self) -> None:
        """Wait until the thread has finished."""
        await asyncio.to_thread(self._thread.join)

    @property
    def working(self) -> bool:
        """Whether it takes requests and answers them."""
        return self.ready and not self._stopping and self._thread.is_alive()

    async def score(
        self, segments: Sequence[Segment], wanted: Sequence[RequestedMetric]
    ) -> list[Result]:
        """One result a metric, or an error that says what to do."""
        return await self._ask(list(segments), wanted, explained=False)

    async def explain(self, segment: Segment, wanted: RequestedMetric) -> Explanation:
        """Why a hypothesis scores as it does."""
        found = await self._ask([segment], [wanted], explained=True)
        explanation: Explanation = found[0]
        return explanation

    async def _ask(
        self, segments: list[Segment], wanted: Sequence[RequestedMetric], explained: bool
    ) -> list[Any]:
        answer: asyncio.Future[list[Any]] = self._loop.create_future()
        job = Job(segments, tuple(dict.fromkeys(wanted)), explained, answer)
        self._enter(job)
        try:
            found = await asyncio.wait_for(answer, self._limits.seconds)
        except TimeoutError:
            raise Late(
                f"not done within {self._limits.seconds:g} seconds; send less at once, or come back"
                " later",
                begun=job.taken > 0,
            ) from None
        by_metric = dict(zip(job.wanted, found, strict=True))
        return [by_metric[one] for one in wanted]

    def _enter(self, job: Job) -> None:
        pairs = sum(size for size, _ in job.sizes) * len(job.wanted)
        with self._wake:
            if self._stopping:
                raise Stopping("the service is stopping; try another one, or later")
            if self._queue and self._waiting + pairs > self._limits.queue:
                raise Busy(
                    f"{self._waiting} pairs wait already, and at most {self._limits.queue} may",
                    self._waiting / self._rate,
                )
            self._queue.append(job)
            self._count(pairs)
            self._wake.notify()

    def _count(self, pairs: int) -> None:
        self._waiting += pairs
        self._gauges.queue.set(self._waiting)

    def _run(self) -> None:
        if self._threads is not None:
            set_threads(self._threads)  # numba counts them thread by thread
        self._warm()
        self.ready = True
        while not self._done:
            pieces = self._gather()
            start = time.perf_counter()
            try:
                self._work(pieces)
            except Exception as error:  # nobody waits for an answer that will not come
                self._deliver((piece.job, error) for piece in pieces)
            self._note(pieces, time.perf_counter() - start)

    @property
    def _done(self) -> bool:
        with self._wake:
            return self._stopping and not self._queue

    def _note(self, pieces: Sequence[JobPiece], seconds: float) -> None:
        pairs = sum(piece.pairs for piece in pieces)
        if pairs:
            self._rate = 0.8 * self._rate + 0.2 * pairs / max(seconds, 1e-6)
            self._gauges.batch(len(pieces), pairs)

    def _warm(self) -> None:
        """The first requests would wait for weights, and for kernels to be compiled."""
        for name in self._models.metrics:
            try:
                scorer = self._models.scorer(self._models.requested_metric(name))
                if scorer.parts and not self._stopping:
                    scorer.explain("A warm start.", ["A start that is warm."])
            except FreightError:  # IDF that is not learnt: those who ask are told
                continue

    def _gather(self) -> list[JobPiece]:
        """Wait for work; where several came last time, a moment longer, since they may again."""
        with self._wake:
            self._wake.wait_for(lambda: self._queue or self._stopping)
        begun, seen = time.perf_counter(), 0
        while seen < len(self._queue) < self._last and time.perf_counter() - begun < _LINGER:
            seen = len(self._queue)
            time.sleep(_STEP)
        with self._wake:
            return self._take()

    def _take(self) -> list[JobPiece]:
        """A fair share of every job, those that have waited longest first."""
        self._last = len(self._queue)
        fair = max(_LEAST, PAIRS // max(self._last, 1))
        pieces, unfinished, pairs, area = [], [], PAIRS, AREA
        while self._queue and pairs > 0 and area > 0:
            job = self._queue.popleft()
            before = job.taken
            if job.answer.done():
                job.taken = len(job.segments)
            else:
                piece = job.take(min(pairs, fair), area)
                pairs, area = pairs - piece.pairs, area - piece.area
                pieces.append(piece)
                unfinished += [job] if job.left else []
            done = sum(size for size, _ in job.sizes[before : job.taken])
            self._count(-done * len(job.wanted))
        self._queue.extend(unfinished)
        return pieces

    def _work(self, pieces: Sequence[JobPiece]) -> None:
        groups: dict[RequestedMetric, list[JobPiece]] = {}
        for piece in pieces:
            for wanted in piece.job.wanted:
                groups.setdefault(wanted, []).append(piece)
        scorers: dict[RequestedMetric, PipelineScorer] = {}
        for wanted, group in groups.items():
            try:
                scorers[wanted] = self._models.scorer(wanted)
            except Exception as error:
                self._deliver((piece.job, error) for piece in group)
        self._encode([(scorers[one], groups[one]) for one in scorers])
        for wanted, scorer in scorers.items():
            alive = [piece for piece in groups[wanted] if not piece.job.answer.done()]
            if alive:
                self._deliver(self._read(wanted, scorer, alive))

    def _encode(self, groups: Iterable[tuple[PipelineScorer, Sequence[JobPiece]]]) -> None:
        """What several metrics need of an encoder at once; it remembers until they ask."""
        layers: dict[Encoder, set[int]] = {}
        texts: dict[Encoder, dict[str, None]] = {}
        users: dict[Encoder, int] = {}
        for scorer, pieces in groups:
            found = [text for p in pieces for hyp, refs in p.segments for text in (hyp, *refs)]
            for part in {part.encoder: part for part in scorer.parts}.values():
                users[part.encoder] = users.get(part.encoder, 0) + 1
                layers.setdefault(part.encoder, set()).update(part.layers)
                texts.setdefault(part.encoder, {}).update(dict.fromkeys(found))
        for encoder in [one for one, count in users.items() if count > 1]:
            try:
                encoder.encode(list(texts[encoder]), sorted(layers[encoder]))
            except Exception:  # whose fault it is comes out when they are scored
                continue

    def _read(
        self, wanted: RequestedMetric, scorer: PipelineScorer, pieces: Sequence[JobPiece]
    ) -> list[_Outcome]:
        """Score together; where that fails, each by itself, so that nobody pays for another."""
        try:
            parts = _answers(scorer, pieces)
        except Exception as error:
            if len(pieces) == 1:
                return [(pieces[0].job, error)]
            return [found for piece in pieces for found in self._read(wanted, scorer, [piece])]
        scored = zip(pieces, parts, strict=True)
        whole = [piece.job for piece, part in scored if piece.job.add(wanted, part)]
        self._gauges.pairs.inc(sum(piece.pairs for piece in pieces))
        return [(job, job.result) for job in whole]

    def _deliver(self, outcomes: Iterable[_Outcome]) -> None:
        found = list(outcomes)
        if found:
            self._loop.call_soon_threadsafe(_set, found)


def _answers(scorer: PipelineScorer, pieces: Sequence[JobPiece]) -> list[Any]:
    """What each piece asks for, in their order."""
    asked = [piece for piece in pieces if not piece.job.explained]
    segments = [segment for piece in asked for segment in piece.segments]
    [whole] = (
        score_together([scorer], [hyp for hyp, _ in segments], [refs for _, refs in segments])
        if segments
        else [None]
    )
    found: list[Any] = []
    first = 0
    for piece in pieces:
        if piece.job.explained or whole is None:
            [(hyp, refs)] = piece.segments
            found.append(scorer.explain(hyp, list(refs)))
        else:
            found.append(whole.only(slice(first, first + len(piece.segments))))
            first += len(piece.segments)
    return found


def _set(outcomes: Iterable[_Outcome]) -> None:
    for job, found in outcomes:
        if job.answer.done():
            continue
        if isinstance(found, BaseException):
            job.answer.set_exception(found)
        else:
            job.answer.set_result(found)
