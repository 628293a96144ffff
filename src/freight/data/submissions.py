"""Score files as the WMT metrics task has them: a line a segment, or a system, of one metric.

`mtme` is the layout of mt-metrics-eval, in which the path says most and a line holds a system and
its score. In the others, called after the year that had them first, a line says it all.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from freight.data.lines import lines
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.types import Array

MTME = "mtme"
_COMMON = ("metric", "pair", "set")
COLUMNS: dict[str, tuple[str, ...]] = {
    MTME: ("system", "score"),
    "wmt16": (*_COMMON, "system", "segment", "score"),
    "wmt17": (*_COMMON, "system", "segment", "score", "ensemble", "available"),
    "wmt21": (*_COMMON, "reference", "system", "segment", "score"),
    "wmt22": (*_COMMON, "domain", "document", "reference", "system", "segment", "score"),
    "wmt23": (*_COMMON, "domain", "document", "reference", "system", "segment", "score"),
}
"""What a line of segments holds; one of systems has neither segment nor document."""
_ZIPPED = ("wmt16", "wmt17", "wmt21", "wmt22")
_ALWAYS = {"domain": "all", "document": "all", "ensemble": "non-ensemble", "available": "no"}
_REFERENCE = re.compile(r"(?<![A-Za-z])ref[A-Za-z0-9]*")
_LEVELS = ("seg", "sys")


@dataclass(frozen=True)
class Task:
    """What was scored: the form to write, the language pair, the test set and the references."""

    form: str
    pair: str
    test_set: str
    references: tuple[str, ...]

    def system(self, name: str) -> str:
        """A system's name, out of the name of its file."""
        parts = name.split(".")
        around = {self.test_set, self.pair, "hyp", "txt", self.pair.rpartition("-")[2]}
        while len(parts) > 1 and parts[0] in around:
            parts = parts[1:]
        while len(parts) > 1 and parts[-1] in around:
            parts = parts[:-1]
        return ".".join(parts)

    def path(self, folder: Path, metric: str, level: str) -> Path:
        """Where the scores of a metric on a level are written."""
        if self.form == MTME:
            name = f"{metric}-{'.'.join(self.references)}.{level}.score"
            return folder / "metric-scores" / self.pair / name
        return folder / f"{metric}.{level}.score{'.gz' if self.form in _ZIPPED else ''}"


def reference_names(files: Sequence[str]) -> tuple[str, ...]:
    """What the files call themselves, refA for one; where they do not, ref, or refA, refB..."""
    found = [_REFERENCE.findall(Path(file).name) for file in files]
    names = [one[-1] if one else "" for one in found]
    if all(names) and len(set(names)) == len(names):
        return tuple(names)
    return ("ref",) if len(names) == 1 else tuple(f"ref{chr(65 + k)}" for k in range(len(names)))


def write_scores(
    folder: Path, task: Task, metric: str, systems: Sequence[str], segments: Array, whole: Array
) -> list[Path]:
    """Write scores (system, segment) and those of whole systems; what was written."""
    if np.isnan(segments).any():
        k, at = np.argwhere(np.isnan(segments))[0]
        raise InvalidInput(f"{metric} has no score for segment {at + 1} of {systems[k]}")
    names = [task.system(name) for name in systems]
    every = [
        {**_said(task, metric, name), "segment": str(at), "score": _number(score)}
        for name, row in zip(names, segments.tolist(), strict=True)
        for at, score in enumerate(row, 1)
    ]
    scored = zip(names, whole.tolist(), strict=True)
    total = [{**_said(task, metric, name), "score": _number(score)} for name, score in scored]
    written = []
    for level, records in zip(_LEVELS, (every, total), strict=True):
        held = [x for x in COLUMNS[task.form] if level == "seg" or x not in ("segment", "document")]
        path = task.path(folder, metric, level)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, ("\t".join(record[x] for x in held) for record in records))
        written.append(path)
    return written


@dataclass(frozen=True)
class Submission:
    """A metric's scores out of a file: by language pair and system, a number a segment."""

    metric: str
    scores: dict[tuple[str, str], dict[int, float]]


def read_scores(path: Path) -> Submission:
    """Read a .seg.score file, of any of the forms; segments are counted from 1."""
    metric, level = _parsed(path)
    if level != "seg":
        raise InvalidInput(f"{path} has scores of whole systems; give the .seg.score file")
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for number, record in _records(path):
        pair = record.get("pair") or path.parent.name
        mine = scores.setdefault((pair, record["system"]), {})
        segment = record.get("segment", str(len(mine) + 1))
        where = f"line {number} of {path}"
        if not segment.isdecimal() or int(segment) in mine:
            raise InvalidInput(f"{where}: segment {segment!r} is no number, or there already")
        try:
            mine[int(segment)] = float(record["score"])
        except ValueError:
            raise InvalidInput(f"{where}: {record['score']!r} is not a score") from None
        metric = record.get("metric", metric)
    if not scores:
        raise InvalidInput(f"{path} has no scores")
    return Submission(metric, scores)


def is_score_file(name: str) -> bool:
    """Whether a file is called as score files are."""
    return name.removesuffix(".gz").endswith(".score")


def _records(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    by_width = {len(held): held for held in COLUMNS.values()}
    for number, line in enumerate(lines(path), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        held = by_width.get(len(cells))
        if held is None:
            raise InvalidInput(f"line {number} of {path} has {len(cells)} cells; no form has")
        if number == 1 and not _is_number(cells[held.index("score")]):
            continue  # a heading
        yield number, dict(zip(held, (cell.strip() for cell in cells), strict=True))


def _parsed(path: Path) -> tuple[str, str]:
    name, _, level = path.name.removesuffix(".gz").removesuffix(".score").rpartition(".")
    if level not in _LEVELS:
        raise InvalidInput(f"{path} does not end in .seg.score")
    return name, level


def _said(task: Task, metric: str, system: str) -> dict[str, str]:
    known = {"metric": metric, "pair": task.pair, "set": task.test_set, "system": system}
    return {**_ALWAYS, **known, "reference": ".".join(task.references)}


def _write(path: Path, rows: Iterable[str]) -> None:
    """Whole or not at all; the same scores give the same bytes, zipped too."""
    content = "".join(f"{row}\n" for row in rows).encode()
    if path.suffix == ".gz":
        stream = io.BytesIO()
        with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as zipped:
            zipped.write(content)
        content = stream.getvalue()
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)


def _number(score: float) -> str:
    return repr(score)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
