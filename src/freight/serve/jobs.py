"""What a request asks for, cut into pieces of bounded work, and what a metric makes of a piece.

A piece ends between any two pairs, also between the references of one hypothesis: the scores of
pairs are kept, and become those of segments once the last of them is there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from freight.core.pipeline import ChunkSize, compose, score_chunks, score_together
from freight.core.result import Result
from freight.core.scorers import PipelineScorer
from freight.core.types import Chunk, PairScores, Segment
from freight.explain.explanation import Explanation
from freight.serve.models import RequestedMetric
from freight.serve.refusals import segment_work, work_of
from freight.transport.types import Array

_SHORT = 1_000_000
"""Work that ends soon enough: to be able to stop Python code makes it two or three times slower."""


@dataclass(eq=False)
class Job:
    """Segments to score, or one to explain, with each of some metrics.

    It is done piece by piece, and its answer is set once every piece is done by every metric.
    """

    segments: list[Segment]
    metrics: tuple[RequestedMetric, ...]
    explained: bool
    answer: asyncio.Future[list[Any]]
    taken: int = 0
    failed: bool = False
    _parts: dict[RequestedMetric, list[Any]] = field(default_factory=dict)
    _results: dict[RequestedMetric, Any] = field(default_factory=dict)

    @cached_property
    def chunk(self) -> Chunk:
        """All of it as pairs."""
        texts: dict[str, int] = {}
        index = [
            [texts.setdefault(compose(text), len(texts)) for text in (hyp, ref)]
            for hyp, refs in self.segments
            for ref in refs
        ]
        owner = np.repeat(np.arange(len(self.segments)), [len(refs) for _, refs in self.segments])
        return Chunk(list(texts), np.array(index), owner)

    @property
    def pairs(self) -> int:
        """How many there are."""
        return len(self.chunk.index)

    @cached_property
    def work(self) -> list[int]:
        """What each pair costs a metric."""
        texts = self.chunk.texts
        return [work_of(texts[hyp], texts[ref]) for hyp, ref in self.chunk.index.tolist()]

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.failed or self.answer.done()

    @property
    def remaining(self) -> int:
        """How many pairs are in no piece yet."""
        return self.pairs - self.taken

    def take(self, pairs: int, work: int) -> JobPiece:
        """The next pairs, at most so many and of so much work but at least one; or all to explain.

        An explanation is of one segment, which is not cut.
        """
        first = self.taken
        while self.remaining:
            work -= self.work[self.taken]
            enough = self.taken - first >= pairs or work < 0
            if enough and self.taken > first and not self.explained:
                break
            self.taken += 1
        return JobPiece(self, first, self.taken)

    def add(self, metric: RequestedMetric, scorer: PipelineScorer, part: Any, last: int) -> bool:
        """Keep what came out for the pairs up to `last`, and say whether nothing is left to do."""
        parts = self._parts.setdefault(metric, [])
        parts.append(part)
        if last == self.pairs:
            self._results[metric] = self._join(scorer, self._parts.pop(metric))
        return len(self._results) == len(self.metrics)

    def _join(self, scorer: PipelineScorer, parts: list[Any]) -> Any:
        if self.explained:
            return parts[0]
        if not scorer.parts:
            return Result.joined([part for part in parts if part is not None])
        return scorer.read(self.chunk, [_join_pairs(one) for one in zip(*parts, strict=True)])

    @property
    def result(self) -> list[Any]:
        """The result of each metric, all pieces together."""
        return [self._results[one] for one in self.metrics]


@dataclass(frozen=True)
class JobPiece:
    """Consecutive pairs of a job."""

    job: Job
    first: int
    last: int

    @property
    def pairs(self) -> int:
        """How many there are."""
        return self.last - self.first

    @property
    def work(self) -> int:
        """What they cost a metric."""
        return sum(self.job.work[self.first : self.last])

    @property
    def texts(self) -> list[str]:
        """Their texts."""
        chunk = self.job.chunk
        return [chunk.texts[k] for k in np.unique(chunk.index[self.first : self.last])]

    @property
    def single_pairs(self) -> list[Segment]:
        """Each pair by itself."""
        texts, index = self.job.chunk.texts, self.job.chunk.index[self.first : self.last]
        return [(texts[hyp], [texts[ref]]) for hyp, ref in index]

    @property
    def finished_segments(self) -> list[Segment]:
        """The segments whose last pair is here: what a metric scores that takes whole segments."""
        owner: Array = self.job.chunk.segments
        ends = np.flatnonzero(np.diff(owner, append=-1))
        here = owner[ends[(ends >= self.first) & (ends < self.last)]]
        return [self.job.segments[k] for k in here]


def score_pieces(scorer: PipelineScorer, pieces: Sequence[JobPiece]) -> list[Any]:
    """What each piece asks for, in their order.

    That is an explanation; or the scores of its pairs by each part of the scorer; or, where the
    scorer has no parts, the result of the segments that are finished with it, if there are any.
    """
    scored = [piece for piece in pieces if not piece.job.explained]
    parts = iter((_score_pairs if scorer.parts else _score_segments)(scorer, scored))
    return [_explain(scorer, piece) if piece.job.explained else next(parts) for piece in pieces]


def _explain(scorer: PipelineScorer, piece: JobPiece) -> Explanation:
    [(hyp, refs)] = piece.job.segments
    return scorer.explain(hyp, list(refs))


def _score_pairs(scorer: PipelineScorer, pieces: Sequence[JobPiece]) -> Iterator[list[PairScores]]:
    if not pieces:
        return
    pairs = [pair for piece in pieces for pair in piece.single_pairs]
    chunks = score_chunks(scorer.parts, pairs, ChunkSize(), lambda _: lambda _: None)
    scores = [_join_pairs(one) for one in zip(*(scored for _, scored in chunks), strict=True)]
    first = 0
    for piece in pieces:
        here = slice(first, first := first + piece.pairs)
        yield [
            PairScores({name: values[here] for name, values in columns.items()}, flags[here])
            for columns, flags in scores
        ]


def _join_pairs(parts: Sequence[PairScores]) -> PairScores:
    """Scores of consecutive pairs, as one."""
    columns = {name: np.concatenate([one.columns[name] for one in parts]) for name in parts[0][0]}
    return PairScores(columns, [raised for part in parts for raised in part.flags])


def _score_segments(scorer: PipelineScorer, pieces: Sequence[JobPiece]) -> Iterator[Result | None]:
    counts = [len(piece.finished_segments) for piece in pieces]
    segments = [segment for piece in pieces for segment in piece.finished_segments]
    if segments:
        hyps, refs = zip(*segments, strict=True)
        long = sum(map(segment_work, segments)) > _SHORT
        with stopped_once(_nobody_waits(pieces)) if long else nullcontext():
            [result] = score_together([scorer], hyps, refs)
    first = 0
    for count in counts:
        yield result.only(slice(first, first := first + count)) if count else None


def _nobody_waits(pieces: Sequence[JobPiece]) -> Callable[[], bool]:
    return lambda: all(piece.job.is_over for piece in pieces)


class NobodyWaits(Exception):
    """Work was stopped because the time of all who asked for it has passed."""


@contextmanager
def stopped_once(is_over: Callable[[], bool]) -> Iterator[None]:
    """Stop Python code of this thread, some calls after it is over, where it cannot be cut.

    For code without state of its own, which may be left anywhere.
    """
    calls = 0

    def check(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += 1
        if calls & 1023 == 0 and is_over():
            raise NobodyWaits

    before = sys.getprofile()
    sys.setprofile(check)
    try:
        yield
    finally:
        sys.setprofile(before)
