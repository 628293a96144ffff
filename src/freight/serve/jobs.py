"""What requests ask of the worker, and how much of it has been done."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from freight.core.result import Result
from freight.core.types import Segment
from freight.errors import FreightError, InvalidInput
from freight.serve.models import RequestedMetric


class Busy(FreightError):
    """Too much waits already; `seconds` says when to come back."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = max(1, math.ceil(seconds))


class Late(FreightError):
    """The time that a request may take has passed; `begun` if it was being worked on."""

    def __init__(self, message: str, begun: bool) -> None:
        super().__init__(message)
        self.begun = begun


class Stopping(FreightError):
    """The service is being stopped, and takes nothing new."""


@dataclass(eq=False)
class Job:
    """Segments to be scored, or one to be explained, by each of some metrics.

    It is done piece by piece, and its answer is set once every piece is.
    """

    segments: list[Segment]
    wanted: tuple[RequestedMetric, ...]
    explained: bool
    answer: asyncio.Future[list[Any]]
    taken: int = 0
    _parts: dict[RequestedMetric, list[Any]] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> list[tuple[int, int]]:
        """Of each segment its pairs, and how large their problems are, in characters squared."""
        return [
            (len(refs), sum((len(hyp) + 1) * (len(ref) + 1) for ref in refs))
            for hyp, refs in self.segments
        ]

    @property
    def left(self) -> int:
        """How many segments nobody has taken yet."""
        return len(self.segments) - self.taken

    def take(self, pairs: int, area: int) -> JobPiece:
        """The next segments, up to so many pairs of such a size, and at least one."""
        first = self.taken
        while self.left and (self.taken == first or (pairs > 0 and area > 0)):
            size = self.sizes[self.taken]
            pairs, area = pairs - size[0], area - size[1]
            self.taken += 1
        return JobPiece(self, first, self.taken)

    def add(self, wanted: RequestedMetric, part: Any) -> bool:
        """Keep what came out for a piece; whether that was the last."""
        self._parts.setdefault(wanted, []).append(part)
        done = [sum(map(_count, self._parts.get(one, ()))) for one in self.wanted]
        return min(done) == len(self.segments)

    @property
    def result(self) -> list[Any]:
        """What there is for each metric, all pieces together."""
        if self.explained:
            return [self._parts[one][0] for one in self.wanted]
        return [Result.joined(self._parts[one]) for one in self.wanted]


@dataclass(frozen=True)
class JobPiece:
    """Consecutive segments of a job."""

    job: Job
    first: int
    last: int

    @property
    def segments(self) -> list[Segment]:
        """What is to be scored."""
        return self.job.segments[self.first : self.last]

    @property
    def pairs(self) -> int:
        """How many pairs that is."""
        return sum(pairs for pairs, _ in self.job.sizes[self.first : self.last])

    @property
    def area(self) -> int:
        """How large their problems are."""
        return sum(area for _, area in self.job.sizes[self.first : self.last])


def _count(part: Any) -> int:
    return len(part) if isinstance(part, Result) else 1


_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Gauges:
    """Counters of one service; another one in the same process has its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "freight_requests", "Requests answered.", ("route", "method", "status"),
            registry=self._registry,
        )  # fmt: skip
        self._seconds = self._histogram(
            "freight_request_seconds", "From the first byte to the answer.", _SECONDS, ("route",)
        )
        self._refusals = Counter(
            "freight_refusals", "Requests refused, by status.", ("status",), registry=self._registry
        )
        self._batch_requests = self._histogram(
            "freight_batch_requests", "Requests that were scored together.", _SIZES
        )
        self._batch_pairs = self._histogram(
            "freight_batch_pairs", "Pairs that were scored together.", _SIZES
        )
        self.pairs = Counter("freight_pairs_scored", "Pairs scored.", registry=self._registry)
        self.queue = Gauge("freight_queue_pairs", "Pairs that wait.", registry=self._registry)
        self.active = Gauge("freight_active_requests", "In progress.", registry=self._registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if status >= 400:
            self._refusals.labels(str(status)).inc()

    def batch(self, requests: int, pairs: int) -> None:
        """A batch was scored."""
        self._batch_requests.observe(requests)
        self._batch_pairs.observe(pairs)

    def text(self) -> bytes:
        """All of it in the format that Prometheus reads."""
        return generate_latest(self._registry)

    def _histogram(
        self, name: str, about: str, buckets: Sequence[float], labels: Sequence[str] = ()
    ) -> Histogram:
        return Histogram(name, about, labels, buckets=buckets, registry=self._registry)


METRICS = 8
"""The most metrics of a request."""


@dataclass(frozen=True)
class Limits:
    """What is refused, and when: sizes of a request, its seconds, and how much may wait.

    `queue` counts pairs that wait to be scored, `concurrency` requests that are being read,
    waited for or answered.
    """

    body: int = 2**20
    texts: int = 512
    characters: int = 2000
    seconds: float = 30.0
    concurrency: int = 256
    queue: int = 512

    def check(self, segments: Sequence[Segment]) -> None:
        """Refuse too many texts, too long ones, and what is no text; the cure is said."""
        count = sum(1 + len(refs) for _, refs in segments)
        if count > self.texts:
            raise InvalidInput(
                f"there are {count:,} texts; send at most {self.texts:,} at once, in several"
                " requests, or start the service with a larger --texts"
            )
        for k, (hyp, refs) in enumerate(segments):
            self._check_text(hyp, f"pairs.{k}.hyp")
            for r, ref in enumerate(refs):
                self._check_text(ref, f"pairs.{k}.refs.{r}")

    def _check_text(self, text: str, where: str) -> None:
        if len(text) > self.characters:
            raise InvalidInput(
                f"{where} has {len(text):,} characters; a text has at most {self.characters:,}, or"
                " start the service with a larger --characters"
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput(
                f"{where} has half a character, which is no text; send whole ones (a lone"
                " surrogate)"
            ) from None
