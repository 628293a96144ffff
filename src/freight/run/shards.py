"""Shards: a fixed number of segments in a row, scored together and written as one file."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from freight.clouds import Tick
from freight.data import Corpus
from freight.data.tables import encoded
from freight.pipeline import Segment
from freight.results import Result, flag_kind
from freight.scoring import Scorer, score_stream

SHARD = 20_000
"""Segments in a shard where nothing else is said."""


@dataclass(frozen=True, eq=False)
class Shard:
    """Segments in a row; `before` is how many come before them."""

    number: int
    before: int
    segments: list[Segment]


@dataclass(frozen=True)
class Record:
    """What is kept of a finished shard: the digest of its file, and its part of the summary.

    By metric: the tally that its system scores are made of, and how often each flag was raised.
    """

    number: int
    rows: int
    sha256: str
    tallies: list[Any]
    flags: list[dict[str, int]]


@dataclass(frozen=True, eq=False)
class Finished:
    """A shard's record, and the bytes of its file."""

    record: Record
    content: bytes


@dataclass(frozen=True)
class Task:
    """What is done to every shard, anywhere: metrics, which columns of each, and the format.

    `notes` go into files that can hold some. Whoever does it, the bytes are the same.
    """

    metrics: tuple[Scorer, ...]
    columns: tuple[tuple[str, ...], ...]
    ending: str
    notes: Mapping[str, str]

    def __call__(self, shards: Iterable[Shard], tick: Tick | None = None) -> Iterator[Finished]:
        """Score shards in one stream, so that nothing stands still between two of them."""
        begun: deque[Shard] = deque()
        waiting: list[list[Result]] = [[] for _ in self.metrics]
        for results in score_stream(self.metrics, _segments(shards, begun), tick):
            for parts, result in zip(waiting, results, strict=True):
                parts.append(result)
            while begun and sum(map(len, waiting[0])) >= len(begun[0].segments):
                size = len(begun[0].segments)
                whole = [Result.joined(parts) for parts in waiting]
                waiting = [[_part(one, slice(size, None))] for one in whole]
                yield self._finish(begun.popleft(), [_part(one, slice(size)) for one in whole])

    def _finish(self, shard: Shard, results: Sequence[Result]) -> Finished:
        columns = table_columns(self.columns, results, shard.before)
        content = encoded(self.ending, self.notes, columns)
        flags = [Counter(flag_kind(f) for found in one.flags for f in found) for one in results]
        record = Record(
            number=shard.number,
            rows=len(shard.segments),
            sha256=hashlib.sha256(content).hexdigest(),
            tallies=[one.tally.tolist() for one in results],
            flags=[dict(sorted(found.items())) for found in flags],
        )
        return Finished(record, content)


def count_shards(segments: int, size: int) -> int:
    """How many shards there are."""
    return -(-segments // size)


def cut(corpus: Corpus, size: int, known: Collection[int]) -> Iterator[Shard]:
    """The shards that are not known yet; where one ends depends on nothing but the input."""
    pending = [k for k in range(count_shards(len(corpus), size)) if k not in known]
    if not pending:
        return
    at, stream = pending[0], corpus.since(pending[0] * size)
    for number in pending:
        deque(islice(stream, (number - at) * size), maxlen=0)
        yield Shard(number, number * size, list(islice(stream, size)))
        at = number + 1


def _segments(shards: Iterable[Shard], begun: deque[Shard]) -> Iterator[Segment]:
    """The segments of all shards, end to end; whose they are is noted."""
    for shard in shards:
        begun.append(shard)
        yield from shard.segments


def _part(result: Result, rows: slice) -> Result:
    return replace(
        result,
        segments={name: values[rows] for name, values in result.segments.items()},
        winners=result.winners[rows],
        flags=result.flags[rows],
        tallies=None if result.tallies is None else result.tallies[rows],
    )


def table_columns(
    columns: Sequence[Sequence[str]], results: Sequence[Result], before: int
) -> dict[str, list[Any]]:
    """The rows of a chunk, as columns, numbered from how many there were before."""
    found: dict[str, list[Any]] = {"segment": list(range(before + 1, before + len(results[0]) + 1))}
    for names, result in zip(columns, results, strict=True):
        for name in names:
            found[f"{result.name}:{name}"] = result[name].tolist()
        found[f"{result.name}:reference"] = result.winners.tolist()
    every = zip(*(result.flags for result in results), strict=True)
    found["flags"] = [sorted({flag for one in segment for flag in one}) for segment in every]
    return found
