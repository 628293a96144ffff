"""What requests ask of the worker, and how much of it has been done."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from freight.errors import FreightError
from freight.pipeline import Segment
from freight.results import Result
from freight.serve.offer import Wanted


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
    wanted: tuple[Wanted, ...]
    explained: bool
    answer: asyncio.Future[list[Any]]
    taken: int = 0
    _parts: dict[Wanted, list[Any]] = field(default_factory=dict)

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

    def take(self, pairs: int, area: int) -> Piece:
        """The next segments, up to so many pairs of such a size, and at least one."""
        first = self.taken
        while self.left and (self.taken == first or (pairs > 0 and area > 0)):
            size = self.sizes[self.taken]
            pairs, area = pairs - size[0], area - size[1]
            self.taken += 1
        return Piece(self, first, self.taken)

    def add(self, wanted: Wanted, part: Any) -> bool:
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
class Piece:
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
