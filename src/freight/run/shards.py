"""Shards: a fixed number of segments in a row, scored together and written as one file."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from freight.core.pipeline import UNFLAGGED, Chunk, Segment
from freight.core.result import Result, flag_kind
from freight.core.scoring import Scorer, score_stream
from freight.core.types import Progress
from freight.data import Corpus
from freight.data.tables import encoded
from freight.transport.types import Array

SHARD = 20_000
"""Segments in a shard where nothing else is said."""


@dataclass(frozen=True, eq=False)
class Shard:
    """Segments in a row, and the columns that tell them apart."""

    number: int
    names: dict[str, list[Any]]
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
class ShardTask:
    """What is done to every shard, anywhere: metrics, which columns of each, and the format.

    `notes` go into files that can hold some. Whoever does it, the bytes are the same.
    """

    metrics: tuple[Scorer, ...]
    columns: tuple[tuple[str, ...], ...]
    ending: str
    notes: Mapping[str, str]

    def __call__(
        self, shards: Iterable[Shard], progress: Progress | None = None
    ) -> Iterator[Finished]:
        """Score shards in one stream, so that nothing stands still between two of them."""
        begun: deque[Shard] = deque()
        waiting: list[list[Result]] = [[] for _ in self.metrics]
        for results in score_stream(self.metrics, _segments(shards, begun), progress):
            for parts, result in zip(waiting, results, strict=True):
                parts.append(result)
            while begun and sum(map(len, waiting[0])) >= len(begun[0].segments):
                size = len(begun[0].segments)
                whole = [Result.joined(parts) for parts in waiting]
                waiting = [[one.only(np.arange(size, len(one)))] for one in whole]
                yield self._finish(begun.popleft(), [one.only(np.arange(size)) for one in whole])

    def _finish(self, shard: Shard, results: Sequence[Result]) -> Finished:
        columns = table_columns(shard.names, self.columns, results)
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
        segments: list[Segment] = list(islice(stream, size))
        yield Shard(number, row_names(corpus, number * size, len(segments)), segments)
        at = number + 1


def _segments(shards: Iterable[Shard], begun: deque[Shard]) -> Iterator[Segment]:
    """The segments of all shards, end to end; whose they are is noted."""
    for shard in shards:
        begun.append(shard)
        yield from shard.segments


def row_names(corpus: Corpus, before: int, count: int) -> dict[str, list[Any]]:
    """What tells rows apart: their numbers, or inputs and systems where there are several."""
    if corpus.places is not None:
        return corpus.places.columns(before, before + count)
    return {"segment": list(range(before + 1, before + count + 1))}


def table_columns(
    names: Mapping[str, list[Any]], columns: Sequence[Sequence[str]], results: Sequence[Result]
) -> dict[str, list[Any]]:
    """The rows of some results as columns: what tells them apart, scores and flags."""
    found = dict(names)
    for wanted, result in zip(columns, results, strict=True):
        for name in wanted:
            found[f"{result.name}:{name}"] = result[name].tolist()
        found[f"{result.name}:reference"] = result.winners.tolist()
    every = zip(*(result.flags for result in results), strict=True)
    found["flags"] = [sorted({flag for one in segment for flag in one}) for segment in every]
    return found


SUMMARY = "summary.json"


@dataclass(frozen=True)
class Outcome:
    """System scores by column and counted flags of a metric, and every choice that made them."""

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
        """The scores in input order as pyarrow tables, a shard at a time."""
        for file in self.files:
            yield _READERS[file.suffix](file)

    def written(self) -> bytes:
        """As a file."""
        metrics = [
            {**vars(one), "system": {name: _number(x) for name, x in one.system.items()}}
            for one in self.outcomes
        ]
        content = {"segments": self.segments, "metrics": metrics}
        return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


def summed(task: ShardTask, records: Sequence[Record]) -> tuple[Outcome, ...]:
    """The outcome of each metric; sums run in input order, so that no bit depends on the run."""
    found = []
    for k, (metric, names) in enumerate(zip(task.metrics, task.columns, strict=True)):
        tally: Any = 0.0
        flags: Counter[str] = Counter()
        for record in records:
            tally = tally + np.array(record.tallies[k])
            flags.update(record.flags[k])
        every = _system(metric, tally)
        system = {name: every[name] for name in names}
        counts = dict(sorted(flags.items()))
        found.append(Outcome(metric.name, system, counts, task.notes[metric.name]))
    return tuple(found)


def _system(metric: Scorer, tally: Array) -> dict[str, float]:
    """System scores out of a tally: only a result knows how, so one is made of nothing."""
    chunk = Chunk(["a"], np.zeros((1, 2), np.int64), np.zeros(1, np.int64))
    nothing = [
        ({column.name: np.zeros(1) for column in part.columns}, [UNFLAGGED])
        for part in metric.parts
    ]
    return metric.read(chunk, nothing).system_of(tally)


def _parquet(file: Path) -> Any:
    from pyarrow import parquet

    return parquet.read_table(file)


def _json_lines(file: Path) -> Any:
    from pyarrow import json as lines

    return lines.read_json(file)


def _comma(file: Path) -> Any:
    from pyarrow import csv

    return csv.read_csv(file)


def _tab(file: Path) -> Any:
    from pyarrow import csv

    plain = csv.ParseOptions(delimiter="\t", quote_char=False)
    return csv.read_csv(file, parse_options=plain)


_READERS = {".parquet": _parquet, ".jsonl": _json_lines, ".csv": _comma, ".tsv": _tab}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
