"""Files of the WMT metrics tasks: human judgements as distributed, and metrics' score files.

Judgements are folders of parallel lines (2015, 2016) or tables that refer to texts (2017 to 2020):

DAseg-wmt-newstest2016/                  wmt18-metrics-task-package/
  DAseg.newstest2016.human.cs-en           manual-evaluation/RR-seglevel.csv
  DAseg.newstest2016.mt-system.cs-en       .../newstest2018.SYSTEM.cs-en
  DAseg.newstest2016.reference.cs-en       .../newstest2018-csen-ref.en

A score file has one line per system and segment; its columns depend on the year, and `mtme` is the
form of the toolkit mt-metrics-eval.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from freight.data.files import is_typed, lines
from freight.data.judgements import Judgements, Output, assemble, rating
from freight.data.output import write_whole
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.transport.types import Array


HUMAN, HYP, REF = "human", "mt-system", "reference"
_ROLES = {"human": HUMAN, "mt-system": HYP, "system": HYP, "reference": REF, "ref": REF}
_LANG_PAIR = re.compile(r"[a-z]{2,3}-[a-z]{2,3}")
_SEPARATOR = re.compile(r"[,\s]+")


def read_parallel(folder: Path, encoding: str = "utf-8") -> Judgements:
    """A set from a folder of parallel files: ratings, outputs and references, line by line.

    File names are parts joined by dots: one part is the role (human, mt-system or system,
    reference or ref), one may be a language pair, and files with the same other parts belong
    together.
    """
    groups: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in sorted(folder.iterdir()):
        parts = path.name.removesuffix(".gz").split(".")
        role = next((part for part in parts if part in _ROLES), None)
        if role is not None:
            rest = ".".join(part for part in parts if part != role)
            groups[rest][_ROLES[role]] = path
    if not groups:
        raise InvalidInput(
            f"{folder} has no files of judgements, as DAseg.newstest2016.human.cs-en is one"
        )
    outputs = (
        o
        for name, files in groups.items()
        for o in _parallel_outputs(folder, name, files, encoding)
    )
    return assemble(folder, outputs)


def is_wmt_table(path: Path, encoding: str = "utf-8") -> bool:
    """Whether the heading is that of a WMT table, of segments or of systems."""
    if is_typed(path):
        return False
    heading = set(_cells(next(lines(path, encoding), "")))
    return {"LP", "SID"} <= heading or {"LP", "SYSTEM", "HUMAN"} <= heading


def read_wmt_table(path: Path, texts: Path | None = None, encoding: str = "utf-8") -> Judgements:
    """A set from ratings or preferences by language pair, segment and system.

    The texts are searched by file name. Cells are separated by spaces or commas. WMT18's heading
    lacks the name of its second column, DATA. A text of several systems (A+B) counts for the first.
    """
    if texts is None:
        texts = path.parent.parent if path.parent.name == "manual-evaluation" else path.parent
    folder, rows = _TextFiles(texts, encoding), list(wmt_rows(path, encoding))
    if not rows:
        raise InvalidInput(f"{path} has no rows")
    columns = set(rows[0][1])
    if {"DATA", "BETTER", "WORSE"} <= columns:
        sides = ((number, row, row[side]) for number, row in rows for side in ("BETTER", "WORSE"))
        outputs = (folder.output(path, number, row, system) for number, row, system in sides)
        return assemble(path, outputs, in_pairs=True)
    if {"DATA", "SYSTEM", "HUMAN"} <= columns:
        return assemble(path, (_rated_output(folder, path, number, row) for number, row in rows))
    has = " ".join(rows[0][1])
    raise InvalidInput(f"{path} has {has}; it needs LP DATA SID with BETTER WORSE or SYSTEM HUMAN")


def wmt_rows(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a WMT table, numbered from 1."""
    several = lines(path, encoding)
    heading = _cells(next(several))
    for number, line in enumerate(several, 1):
        cells = _cells(line)
        if len(cells) == len(heading) + 1 and "DATA" not in heading:
            heading.insert(1, "DATA")
        if len(cells) != len(heading):
            raise InvalidInput(
                f"row {number} of {path} has {len(cells)} cells, the heading {len(heading)}"
            )
        yield number, dict(zip(heading, cells, strict=True))


def _parallel_outputs(
    folder: Path, name: str, files: dict[str, Path], encoding: str
) -> Iterator[Output]:
    for role in (HUMAN, HYP, REF):
        if role not in files:
            raise InvalidInput(f"{folder} has no {role} file beside {next(iter(files.values()))}")
    texts = {role: _lines(files[role], encoding) for role in (HUMAN, HYP, REF)}
    for role, some in texts.items():
        if len(some) != len(texts[HYP]):
            raise InvalidInput(
                f"{files[HYP]} has {len(texts[HYP])} lines but {files[role]} has {len(some)}"
            )
    pair = next((part for part in name.split(".") if _LANG_PAIR.fullmatch(part)), "")
    for number, (value, hyp, ref) in enumerate(zip(*texts.values(), strict=True), 1):
        read = rating(value.strip(), f"line {number} of {files[HUMAN]}", textual=True)
        yield Output(number, pair, f"{name} {number}", "", hyp, (ref,), {HUMAN: read})


def _rated_output(folder: _TextFiles, path: Path, number: int, row: dict[str, str]) -> Output:
    output = folder.output(path, number, row, row["SYSTEM"])
    read = rating(row["HUMAN"], f"row {number} of {path}: HUMAN", textual=True)
    return output._replace(ratings={HUMAN: read})


class _TextFiles:
    """All files below a folder by name; a file is read when one of its lines is needed."""

    def __init__(self, folder: Path, encoding: str) -> None:
        self._folder, self._encoding = folder, encoding
        self._read: dict[Path, list[str]] = {}

    def output(self, path: Path, number: int, row: dict[str, str], system: str) -> Output:
        """The output that a row of the table refers to."""
        pair, data = row["LP"], row["DATA"]
        system = system.partition("+")[0]
        where = f"row {number} of {path}"
        if not row["SID"].isdecimal() or not int(row["SID"]):
            raise InvalidInput(f"{where}: SID is {row['SID']!r}, not the number of a line")
        segment = int(row["SID"])
        source, _, target = pair.partition("-")
        names = [f"{data}.{system}.{pair}", f"{data}.{system}"]
        hyp = self._line(names, segment, where)
        ref = self._line([f"{data}-{source}{target}-ref.{target}"], segment, where)
        return Output(number, pair, f"{data} {segment}", system, hyp, (ref,))

    def _line(self, names: list[str], number: int, where: str) -> str:
        path = next((self._paths[name] for name in names if name in self._paths), None)
        if path is None:
            raise InvalidInput(f"{where}: there is no file {names[0]} below {self._folder}")
        if path not in self._read:
            self._read[path] = _lines(path, self._encoding)
        if number > len(self._read[path]):
            raise InvalidInput(
                f"{where} asks for line {number} of {path}, which has {len(self._read[path])}"
            )
        return self._read[path][number - 1]

    @cached_property
    def _paths(self) -> dict[str, Path]:
        paths = sorted(Path(at) / name for at, _, names in os.walk(self._folder) for name in names)
        return {path.name.removesuffix(".gz"): path for path in reversed(paths)}


def _cells(line: str) -> list[str]:
    return _SEPARATOR.split(line.strip())


def _lines(path: Path, encoding: str) -> list[str]:
    return [line.removesuffix("\n").removesuffix("\r") for line in lines(path, encoding)]


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
"""The columns of a segment score file; a system score file has neither segment nor document."""
_ZIPPED = ("wmt16", "wmt17", "wmt21", "wmt22")
_CONSTANT_CELLS = {
    "domain": "all",
    "document": "all",
    "ensemble": "non-ensemble",
    "available": "no",
}
_REFERENCE = re.compile(r"(?<![A-Za-z])ref[A-Za-z0-9]*")
_LEVELS = ("seg", "sys")


@dataclass(frozen=True)
class WmtTask:
    """The form of the files to write, the language pair, the test set and the references."""

    form: str
    pair: str
    test_set: str
    references: tuple[str, ...]

    def system(self, name: str) -> str:
        """A system's name, taken from the name of its file."""
        parts = name.split(".")
        around = {self.test_set, self.pair, "hyp", "txt", self.pair.rpartition("-")[2]}
        while len(parts) > 1 and parts[0] in around:
            parts = parts[1:]
        while len(parts) > 1 and parts[-1] in around:
            parts = parts[:-1]
        return ".".join(parts)

    def path(self, folder: Path, metric: str, level: str) -> Path:
        """The file for the scores of a metric on a level, seg or sys."""
        if self.form == MTME:
            name = f"{metric}-{'.'.join(self.references)}.{level}.score"
            return folder / "metric-scores" / self.pair / name
        return folder / f"{metric}.{level}.score{'.gz' if self.form in _ZIPPED else ''}"


def reference_names(files: Sequence[str]) -> tuple[str, ...]:
    """The reference names in the file names, such as refA; otherwise ref, or refA, refB..."""
    matches = [_REFERENCE.findall(Path(file).name) for file in files]
    names = [one[-1] if one else "" for one in matches]
    if all(names) and len(set(names)) == len(names):
        return tuple(names)
    return ("ref",) if len(names) == 1 else tuple(f"ref{chr(65 + k)}" for k in range(len(names)))


def write_scores(
    folder: Path, task: WmtTask, metric: str, systems: Sequence[str], segments: Array, whole: Array
) -> list[Path]:
    """Write segment scores (system, segment) and system scores; returns the paths."""
    if np.isnan(segments).any():
        k, at = np.argwhere(np.isnan(segments))[0]
        raise InvalidInput(f"{metric} has no score for segment {at + 1} of {systems[k]}")
    names = [task.system(name) for name in systems]
    every = [
        {**_common_cells(task, metric, name), "segment": str(at), "score": _number(score)}
        for name, row in zip(names, segments.tolist(), strict=True)
        for at, score in enumerate(row, 1)
    ]
    scored = zip(names, whole.tolist(), strict=True)
    total = [
        {**_common_cells(task, metric, name), "score": _number(score)} for name, score in scored
    ]
    written = []
    for level, records in zip(_LEVELS, (every, total), strict=True):
        columns = [
            x for x in COLUMNS[task.form] if level == "seg" or x not in ("segment", "document")
        ]
        path = task.path(folder, metric, level)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_lines(path, ("\t".join(record[x] for x in columns) for record in records))
        written.append(path)
    return written


@dataclass(frozen=True)
class Submission:
    """A metric's scores from a file: by language pair and system, then by segment number."""

    metric: str
    scores: dict[tuple[str, str], dict[int, float]]


def read_scores(path: Path) -> Submission:
    """Read a .seg.score file of any form; segments are counted from 1."""
    metric, level = _metric_and_level(path)
    if level != "seg":
        raise InvalidInput(f"{path} has scores of whole systems; give the .seg.score file")
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for number, record in _records(path):
        pair = record.get("pair") or path.parent.name
        by_segment = scores.setdefault((pair, record["system"]), {})
        segment = record.get("segment", str(len(by_segment) + 1))
        where = f"line {number} of {path}"
        if not segment.isdecimal() or int(segment) in by_segment:
            raise InvalidInput(f"{where}: segment {segment!r} is no number, or repeated")
        try:
            by_segment[int(segment)] = float(record["score"])
        except ValueError:
            raise InvalidInput(f"{where}: {record['score']!r} is not a score") from None
        metric = record.get("metric", metric)
    if not scores:
        raise InvalidInput(f"{path} has no scores")
    return Submission(metric, scores)


def is_score_file(name: str) -> bool:
    """Whether the name of a file ends as those of score files do."""
    return name.removesuffix(".gz").endswith(".score")


def _records(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    by_width = {len(columns): columns for columns in COLUMNS.values()}
    for number, line in enumerate(lines(path), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        columns = by_width.get(len(cells))
        if columns is None:
            raise InvalidInput(f"line {number} of {path} has {len(cells)} cells; no form has")
        if number == 1 and not _is_number(cells[columns.index("score")]):
            continue  # a heading
        yield number, dict(zip(columns, (cell.strip() for cell in cells), strict=True))


def _metric_and_level(path: Path) -> tuple[str, str]:
    name, _, level = path.name.removesuffix(".gz").removesuffix(".score").rpartition(".")
    if level not in _LEVELS:
        raise InvalidInput(f"{path} does not end in .seg.score")
    return name, level


def _common_cells(task: WmtTask, metric: str, system: str) -> dict[str, str]:
    known = {"metric": metric, "pair": task.pair, "set": task.test_set, "system": system}
    return {**_CONSTANT_CELLS, **known, "reference": ".".join(task.references)}


def _write_lines(path: Path, rows: Iterable[str]) -> None:
    """Write a file whole or not at all; equal scores give equal bytes, also if gzipped."""
    content = "".join(f"{row}\n" for row in rows).encode()
    if path.suffix == ".gz":
        stream = io.BytesIO()
        with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as zipped:
            zipped.write(content)
        content = stream.getvalue()
    write_whole(path, content)


def _number(score: float) -> str:
    return repr(score)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
