"""WMT's judgements as they were distributed: parallel lines, and tables that point at texts.

DAseg-wmt-newstest2016/                  wmt18-metrics-task-package/
  DAseg.newstest2016.human.cs-en           manual-evaluation/RR-seglevel.csv
  DAseg.newstest2016.mt-system.cs-en       .../newstest2018.SYSTEM.cs-en
  DAseg.newstest2016.reference.cs-en       .../newstest2018-csen-ref.en
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from freight.data.judgements.outputs import Output, assemble, rating
from freight.data.judgements.sets import Judgements
from freight.data.lines import lines
from freight.data.rows import is_typed
from freight.errors import InvalidInput

HUMAN, HYP, REF = "human", "mt-system", "reference"
ROLES = {"human": HUMAN, "mt-system": HYP, "system": HYP, "reference": REF, "ref": REF}
_PAIR = re.compile(r"[a-z]{2,3}-[a-z]{2,3}")
_CELLS = re.compile(r"[,\s]+")


def read_parallel(folder: Path, encoding: str = "utf-8") -> Judgements:
    """A folder of files whose lines belong together: ratings, outputs and references.

    A name is made of parts between dots: one says what the file holds (human, mt-system or system,
    reference or ref), one may be a language pair, and what else there is must be the same.
    """
    groups: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in sorted(folder.iterdir()):
        parts = path.name.removesuffix(".gz").split(".")
        role = next((part for part in parts if part in ROLES), None)
        if role is not None:
            rest = ".".join(part for part in parts if part != role)
            groups[rest][ROLES[role]] = path
    if not groups:
        raise InvalidInput(
            f"{folder} has no files of judgements, as DAseg.newstest2016.human.cs-en is one"
        )
    outputs = (
        o for name, files in groups.items() for o in _parallel(folder, name, files, encoding)
    )
    return assemble(folder, outputs)


def is_wmt_table(path: Path, encoding: str = "utf-8") -> bool:
    """Whether the heading is that of WMT's tables, of segments or of systems."""
    if is_typed(path):
        return False
    heading = set(_cells(next(lines(path, encoding), "")))
    return {"LP", "SID"} <= heading or {"LP", "SYSTEM", "HUMAN"} <= heading


def read_wmt_table(path: Path, texts: Path | None = None, encoding: str = "utf-8") -> Judgements:
    """Ratings or preferences by language pair, segment and system; texts are found by name.

    Cells are parted by spaces or commas. WMT18's heading lacks the name of its second column, DATA.
    Where several systems made the same text (A+B) it counts for the first.
    """
    if texts is None:
        texts = path.parent.parent if path.parent.name == "manual-evaluation" else path.parent
    folder, rows = _Texts(texts, encoding), list(wmt_rows(path, encoding))
    if not rows:
        raise InvalidInput(f"{path} has no rows")
    columns = set(rows[0][1])
    if {"DATA", "BETTER", "WORSE"} <= columns:
        sides = ((number, row, row[side]) for number, row in rows for side in ("BETTER", "WORSE"))
        outputs = (folder.output(path, number, row, who) for number, row, who in sides)
        return assemble(path, outputs, in_pairs=True)
    if {"DATA", "SYSTEM", "HUMAN"} <= columns:
        return assemble(path, (_rated(folder, path, number, row) for number, row in rows))
    has = " ".join(rows[0][1])
    raise InvalidInput(f"{path} has {has}; it needs LP DATA SID with BETTER WORSE or SYSTEM HUMAN")


def wmt_rows(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of one of WMT's tables, numbered from 1."""
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


def _parallel(folder: Path, name: str, files: dict[str, Path], encoding: str) -> Iterator[Output]:
    for role in (HUMAN, HYP, REF):
        if role not in files:
            raise InvalidInput(f"{folder} has no {role} file beside {next(iter(files.values()))}")
    texts = {role: _lines(files[role], encoding) for role in (HUMAN, HYP, REF)}
    for role, found in texts.items():
        if len(found) != len(texts[HYP]):
            raise InvalidInput(
                f"{files[HYP]} has {len(texts[HYP])} lines but {files[role]} has {len(found)}"
            )
    pair = next((part for part in name.split(".") if _PAIR.fullmatch(part)), "")
    for number, (value, hyp, ref) in enumerate(zip(*texts.values(), strict=True), 1):
        read = rating(value.strip(), f"line {number} of {files[HUMAN]}", textual=True)
        yield Output(number, pair, f"{name} {number}", "", hyp, (ref,), {HUMAN: read})


def _rated(folder: _Texts, path: Path, number: int, row: dict[str, str]) -> Output:
    output = folder.output(path, number, row, row["SYSTEM"])
    read = rating(row["HUMAN"], f"row {number} of {path}: HUMAN", textual=True)
    return output._replace(ratings={HUMAN: read})


class _Texts:
    """All files below a folder by their names, and the lines of those that were asked for."""

    def __init__(self, folder: Path, encoding: str) -> None:
        self._folder, self._encoding = folder, encoding
        self._read: dict[Path, list[str]] = {}

    def output(self, path: Path, number: int, row: dict[str, str], system: str) -> Output:
        """The text that a row of the table is about."""
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
        found = sorted(Path(at) / name for at, _, names in os.walk(self._folder) for name in names)
        return {path.name.removesuffix(".gz"): path for path in reversed(found)}


def _cells(line: str) -> list[str]:
    return _CELLS.split(line.strip())


def _lines(path: Path, encoding: str) -> list[str]:
    return [line.removesuffix("\n").removesuffix("\r") for line in lines(path, encoding)]
