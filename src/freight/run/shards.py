"""Shards: a fixed number of consecutive segments, scored together and written as one file.

What is scored of a shard is kept from time to time until the shard is finished, so that a run that
is killed loses little however long a shard takes.

A `ShardTask` scores shards anywhere: in this process, in a worker process or in an actor. What is
kept of a finished shard is a `ShardRecord`, and the summary of a `Run` is made of these records.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from freight.core.flags import Flag
from freight.core.pipeline import ChunkSize, score_stream
from freight.core.result import Result, count_segments, mean_scores
from freight.core.scorers import PipelineScorer, SystemScorer
from freight.core.types import Progress, Segment
from freight.data import Corpus
from freight.data.files import Row
from freight.data.tables import encode_table
from freight.errors import InvalidInput
from freight.transport.types import Array

SHARD_SIZE = 20_000
"""The default number of segments per shard."""

CHECKPOINT = 30.0
"""After how many seconds, by default, what is scored of an unfinished shard is kept."""


@dataclass(frozen=True, eq=False)
class Shard:
    """Consecutive segments, and the columns that identify their rows.

    `kept` has the results of each metric for the first rows, where an earlier run has scored them;
    the segments are those of the other rows.
    """

    number: int
    row_names: dict[str, list[Any]]
    segments: list[Segment]
    kept: tuple[Result, ...] = ()

    @property
    def kept_rows(self) -> int:
        """How many rows are scored already."""
        return len(self.kept[0]) if self.kept else 0


@dataclass(frozen=True)
class ShardRecord:
    """What is kept of a finished shard: the digest of its file, and its part of the summary.

    For each metric: the tally that system scores are computed from, and how many segments have
    each flag.
    """

    number: int
    rows: int
    sha256: str
    tallies: list[Any]
    flags: list[dict[str, int]]


@dataclass(frozen=True, eq=False)
class FinishedShard:
    """A shard's record, the bytes of its file, and how many rows are new in it."""

    record: ShardRecord
    content: bytes
    new_rows: int


@dataclass(frozen=True, eq=False)
class PartialShard:
    """The results of each metric for the rows from `first` on of an unfinished shard."""

    number: int
    first: int
    results: tuple[Result, ...]

    @property
    def new_rows(self) -> int:
        """How many rows these are."""
        return len(self.results[0])

    def to_record(self) -> dict[str, Any]:
        """Plain data for JSON, from which the results come back to the bit."""
        return {"first": self.first, "results": [_plain_result(one) for one in self.results]}

    @classmethod
    def from_record(
        cls, number: int, record: Mapping[str, Any], metrics: Sequence[PipelineScorer]
    ) -> PartialShard:
        """Of these metrics, from plain data."""
        pairs = zip(record["results"], metrics, strict=True)
        return cls(number, record["first"], tuple(_result_of_plain(*both) for both in pairs))


def _plain_result(result: Result) -> dict[str, Any]:
    return {
        "segments": {name: _plain_array(values) for name, values in result.segments.items()},
        "winners": _plain_array(result.winners),
        "flags": [[_plain_flag(flag) for flag in flags] for flags in result.flags],
        "tallies": None if result.tallies is None else _plain_array(result.tallies),
    }


def _result_of_plain(plain: Mapping[str, Any], metric: PipelineScorer) -> Result:
    tallies = plain["tallies"]
    return Result(
        metric.name,
        metric.columns,
        {name: _array(values) for name, values in plain["segments"].items()},
        _array(plain["winners"]),
        tuple(tuple(Flag(*flag) for flag in flags) for flags in plain["flags"]),
        metric.signature,
        None if tallies is None else _array(tallies),
    )


def _plain_array(array: Array) -> list[Any]:
    return [array.dtype.str, array.tolist()]


def _array(plain: Sequence[Any]) -> Array:
    return np.array(plain[1], dtype=plain[0])


def _plain_flag(flag: Flag) -> list[Any]:
    return [x.item() if isinstance(x, np.generic) else x for x in flag.__getnewargs__()]


@dataclass(frozen=True)
class ShardTask:
    """What is done to each shard: score by these metrics, write these columns in this format.

    `notes` are written into formats that have metadata. What is scored of an unfinished shard is
    handed over every `checkpoint` seconds, at the end of a chunk. The bytes of a shard depend
    neither on that, nor on who does it, nor on the size of the chunks that are scored at a time.
    """

    metrics: tuple[PipelineScorer, ...]
    columns: tuple[tuple[str, ...], ...]
    ending: str
    notes: Mapping[str, str]
    chunk: ChunkSize | None = None
    checkpoint: float = CHECKPOINT
    escape: bool = False

    def score_shards(
        self, shards: Iterable[Shard], progress: Progress | None = None
    ) -> Iterator[FinishedShard | PartialShard]:
        """Score shards as one stream of segments, so that nothing waits between two of them."""
        begun: deque[Shard] = deque()
        handed_over, last = 0, time.monotonic()
        waiting: list[list[Result]] = [[] for _ in self.metrics]
        segments = _chain_segments(shards, begun)
        for results in score_stream(self.metrics, segments, progress, self.chunk):
            for parts, result in zip(waiting, results, strict=True):
                parts.append(result)
            while begun and sum(map(len, waiting[0])) >= len(begun[0].segments):
                size = len(begun[0].segments)
                whole = [Result.joined(parts) for parts in waiting]
                waiting = [[one.only(np.arange(size, len(one)))] for one in whole]
                yield self._finish(begun.popleft(), [one.only(np.arange(size)) for one in whole])
                handed_over, last = 0, time.monotonic()
            rows = sum(map(len, waiting[0]))
            if rows > handed_over and time.monotonic() - last >= self.checkpoint:
                fresh = tuple(
                    Result.joined(parts).only(np.arange(handed_over, rows)) for parts in waiting
                )
                shard = begun[0]
                yield PartialShard(shard.number, shard.kept_rows + handed_over, fresh)
                handed_over, last = rows, time.monotonic()

    def _finish(self, shard: Shard, results: Sequence[Result]) -> FinishedShard:
        if shard.kept:
            every = zip(shard.kept, results, strict=True)
            results = [Result.joined(both) for both in every]
        table = table_columns(shard.row_names, self.columns, results)
        content = encode_table(self.ending, self.notes, table, self.escape)
        record = ShardRecord(
            number=shard.number,
            rows=len(results[0]),
            sha256=hashlib.sha256(content).hexdigest(),
            tallies=[one.tally.tolist() for one in results],
            flags=[count_segments(one.flags) for one in results],
        )
        return FinishedShard(record, content, len(shard.segments))


def _chain_segments(shards: Iterable[Shard], begun: deque[Shard]) -> Iterator[Segment]:
    """The segments of all shards; each shard is put into `begun` when its first one is taken."""
    for shard in shards:
        begun.append(shard)
        yield from shard.segments


def cut_shards(
    corpus: Corpus,
    size: int,
    done: Collection[int],
    kept: Mapping[int, tuple[Result, ...]] = MappingProxyType({}),
) -> Iterator[Shard]:
    """The shards that are not done yet, with what is kept of them.

    Where a shard ends depends on the input alone.
    """
    count = -(-len(corpus) // size)
    pending = [number for number in range(count) if number not in done]
    if not pending:
        return
    at, first = pending[0], pending[0] * size
    stream, names_stream = corpus.since(first), corpus.row_names(first)
    for number in pending:
        for skipped in (stream, names_stream):
            deque(islice(skipped, (number - at) * size), maxlen=0)
        segments: list[Segment] = list(islice(stream, size))
        names, mine = as_columns(islice(names_stream, size)), kept.get(number, ())
        yield Shard(number, names, segments[len(mine[0]) if mine else 0 :], mine)
        at = number + 1


def as_columns(named: Iterable[Row]) -> dict[str, list[Any]]:
    """Rows as columns; a row that lacks a column has nothing in it."""
    rows = list(named)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def table_columns(
    names: Mapping[str, list[Any]], columns: Sequence[Sequence[str]], results: Sequence[Result]
) -> dict[str, list[Any]]:
    """The columns of a table of scores: row names, scores, winning references and flags.

    References are numbered from 1, as segments are. A column of the reader's own that has the name
    of one of these gets another.
    """
    table: dict[str, list[Any]] = {}
    for wanted, result in zip(columns, results, strict=True):
        for name in wanted:
            table[f"{result.name}:{name}"] = result[name].tolist()
        table[f"{result.name}:reference"] = (result.winners + 1).tolist()
    every = zip(*(result.flags for result in results), strict=True)
    table["flags"] = [sorted({flag for one in segment for flag in one}) for segment in every]
    given: dict[str, list[Any]] = {}
    for name, values in names.items():
        while name in table or name in given:
            name += " (given)"
        given[name] = values
    return {**given, **table}


SUMMARY = "summary.json"


@dataclass(frozen=True)
class Outcome:
    """A metric's system scores by column, the segments that have each flag, and the signature."""

    metric: str
    system: dict[str, float]
    flags: dict[str, int]
    signature: str


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, its files in input order, and an outcome for each metric."""

    folder: Path
    files: tuple[Path, ...]
    segments: int
    outcomes: tuple[Outcome, ...]

    def tables(self) -> Iterator[Any]:
        """The scores in input order as pyarrow tables, one per shard."""
        for file in self.files:
            yield _READERS[file.suffix](file)

    def summary(self) -> dict[str, Any]:
        """Plain data for JSON, with null for system scores that are not finite."""
        metrics = [
            {**vars(one), "system": {name: _finite(x) for name, x in one.system.items()}}
            for one in self.outcomes
        ]
        return {"segments": self.segments, "metrics": metrics}

    def summary_file(self) -> bytes:
        """The content of the summary's file."""
        return json.dumps(self.summary(), indent=1, ensure_ascii=False).encode() + b"\n"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def sum_records(task: ShardTask, records: Sequence[ShardRecord]) -> tuple[Outcome, ...]:
    """The outcome of each metric; records are summed in input order, so that no bit varies."""
    outcomes = []
    for k, (metric, names) in enumerate(zip(task.metrics, task.columns, strict=True)):
        tally: Any = 0.0
        flags: Counter[str] = Counter()
        for record in records:
            tally = tally + np.array(record.tallies[k])
            flags.update(record.flags[k])
        every = _system_scores(metric, tally)
        system = {name: every[name] for name in names}
        counts = dict(sorted(flags.items()))
        outcomes.append(Outcome(metric.name, system, counts, task.notes[metric.name]))
    return tuple(outcomes)


def _system_scores(metric: PipelineScorer, tally: Array) -> dict[str, float]:
    """System scores out of a tally: means, where it is sums and counts (2, column)."""
    if tally.ndim == 2:
        return mean_scores((column.name for column in metric.columns), tally)
    if not isinstance(metric, SystemScorer):
        raise InvalidInput(
            f"the results of {metric.name} have tallies; give it a method system_of(tally)"
        )
    return metric.system_of(tally)


def _read_parquet(file: Path) -> Any:
    from pyarrow import parquet

    return parquet.read_table(file)


def _read_json_lines(file: Path) -> Any:
    from pyarrow import json as lines

    return lines.read_json(file)


def _read_csv(file: Path) -> Any:
    from pyarrow import csv

    return csv.read_csv(file)


def _read_tsv(file: Path) -> Any:
    from pyarrow import csv

    unquoted = csv.ParseOptions(delimiter="\t", quote_char=False)
    return csv.read_csv(file, parse_options=unquoted)


_READERS = {
    ".parquet": _read_parquet,
    ".jsonl": _read_json_lines,
    ".csv": _read_csv,
    ".tsv": _read_tsv,
}
