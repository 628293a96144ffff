"""What a run comes to: system scores and flags, out of the records of its shards."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from freight.pipeline import UNFLAGGED, Chunk
from freight.run.shards import Record, Task
from freight.scoring import Scorer
from freight.types import Array

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


def summed(task: Task, records: Sequence[Record]) -> tuple[Outcome, ...]:
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
