"""What is to be scored: hypotheses with their references, out of files, as often as need be."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freight.data.files import Row, is_table, lines, rows
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.transport.types import Array


STDIN = "-"
HYP, REF, REFS, SYSTEM = "hyp", "ref", "refs", "system"


class Corpus:
    """Segments (hyp, refs) out of one table, or out of a file of hypotheses and some of references.

    Further files of hypotheses are other systems for the same references, and take turns with the
    first, segment by segment; in one table systems are told apart by the column `system`. `places`
    says which system each row is of, where any is named.

    All files are read through once at the beginning, so that a fault in the last line is no
    surprise after hours of work, and again at each iteration; no text is kept in memory. Standard
    input is spooled to a file. Use it as a context, which removes that file.
    """

    def __init__(
        self,
        hyp: str,
        refs: Sequence[str] = (),
        encoding: str = "utf-8",
        hyp_column: str | None = None,
        ref_columns: Sequence[str] = (),
        others: Sequence[str] = (),
    ) -> None:
        if [hyp, *others, *refs].count(STDIN) > 1:
            raise InvalidInput("standard input can be read once; give - for one file only")
        if others and not refs:
            raise InvalidInput(f"{others[0]} has no references; give a file of them after {hyp}")
        self._stack = ExitStack()
        self._shown: dict[str, str] = {}
        self._encoding, self._hyp_column = encoding, hyp_column
        self._ref_columns = list(ref_columns)
        self._files = [self._file(name) for name in (hyp, *others, *refs)]
        self._hyps = 1 + len(others)
        if len(self._files) == 1 and not is_table(self._files[0]):
            raise InvalidInput(
                f"{hyp} has no references; give a file of them, or a table with the columns"
                f" {HYP} and {REF}"
            )
        self._count = self._checked()
        self.places = self._places([hyp, *others])

    def __len__(self) -> int:
        return self._count * self._hyps

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        """Each hypothesis with its references."""
        return self.since(0)

    def since(self, start: int) -> Iterator[tuple[str, list[str]]]:
        """The same, but for so many at the start."""
        first, passed = divmod(start, self._hyps)
        every = ((hyp, refs) for hyps, refs in self._segments(first) for hyp in hyps)
        return islice(every, passed, None)

    def references(self) -> Iterator[str]:
        """Every reference text, once however many systems it is for."""
        return (ref for _, refs in self._segments() for ref in refs)

    @property
    def files(self) -> list[tuple[str, Path]]:
        """What is read: how it is called, and where it lies."""
        return [(self._name(path), path) for path in self._files]

    @property
    def reading(self) -> dict[str, Any]:
        """How it is read."""
        columns = {"hyp_column": self._hyp_column, "ref_columns": self._ref_columns}
        return {"encoding": self._encoding, **columns, "systems": self._hyps}

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _segments(self, start: int = 0) -> Iterator[tuple[list[str], list[str]]]:
        sides = [self._texts(place, start) for place in range(len(self._files))]
        for texts in zip(*sides, strict=True):
            if len(texts) == 1:
                yield texts[0][:1], texts[0][1:]
            else:
                hyps, refs = texts[: self._hyps], texts[self._hyps :]
                yield [hyp[0] for hyp in hyps], [text for several in refs for text in several]

    def _checked(self) -> int:
        """How many segments each file has."""
        counts = [sum(1 for _ in self._texts(place)) for place in range(len(self._files))]
        for path, count in zip(self._files, counts, strict=True):
            if not count:
                raise InvalidInput(f"{self._name(path)} is empty")
            if count != counts[0]:
                first = self._name(self._files[0])
                raise InvalidInput(
                    f"{first} has {counts[0]} segments but {self._name(path)} has {count}"
                )
        return counts[0]

    def _places(self, named: list[str]) -> RowOrigins | None:
        if len(named) > 1:
            return RowOrigins.of_files(named, self._count)
        if len(self._files) > 1:
            return None
        table = rows(self._files[0], self._encoding)
        if SYSTEM not in next(table):
            return None
        found = RowOrigins.of_rows(rows(self._files[0], self._encoding))
        return None if found.names == (UNNAMED,) else found

    def _file(self, name: str) -> Path:
        if name != STDIN:
            return Path(name)
        spool = self._stack.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        self._shown[spool.name] = "standard input"
        return Path(spool.name)

    def _name(self, path: Path) -> str:
        return self._shown.get(str(path), str(path))

    def _texts(self, place: int, start: int = 0) -> Iterator[list[str]]:
        """The texts that each segment has in one of the files, but for so many at the start."""
        path = self._files[place]
        if not is_table(path):
            for line in islice(lines(path, self._encoding, self._name(path)), start, None):
                yield [line.removesuffix("\n").removesuffix("\r")]
            return
        for number, row in enumerate(rows(path, self._encoding, start), start + 1):
            found: list[str] = []
            if place < self._hyps:
                found += _cell(row, self._hyp_name(row), path, number)
                if len(found) != 1:
                    raise InvalidInput(f"row {number} of {path} has {len(found)} hypotheses")
            if place >= self._hyps or len(self._files) == 1:
                for name in self._ref_columns or [REFS if REFS in row else REF]:
                    found += _cell(row, name, path, number)
                if place == 0 and len(found) == 1:
                    raise InvalidInput(f"row {number} of {path} has no reference")
            yield found

    def _hyp_name(self, row: Row) -> str:
        if self._hyp_column is None and len(self._files) > 1 and len(row) == 1:
            return next(iter(row))
        return self._hyp_column or HYP


def _cell(row: Row, name: str, path: Path, number: int) -> list[str]:
    """The text in a cell, or the texts."""
    if name not in row:
        has = ", ".join(row)
        raise InvalidInput(
            f"row {number} of {path} has no column {name!r}; it has {has}; say which to take with"
            " --hyp-column and --ref-column"
        )
    value: Any = row[name]
    several = value if isinstance(value, list) else [value]
    for text in several:
        if not isinstance(text, str):
            raise InvalidInput(f"row {number} of {path}: {name} is {text!r}, not a text")
    return several


UNNAMED = "unnamed"
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class RowOrigins:
    """The systems by name, and per row its system and its input, both numbered from 0."""

    names: tuple[str, ...]
    systems: Array
    segments: Array

    @classmethod
    def of_files(cls, files: Sequence[str], count: int) -> RowOrigins:
        """Several files of `count` hypotheses each, taking turns."""
        names = [Path(Path(file).name.removesuffix(".gz")).stem for file in files]
        if len(set(names)) < len(names):
            names = list(files)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"{twice} is given twice; a system is compared with others")
        size = len(names)
        return cls(tuple(names), np.tile(np.arange(size), count), np.repeat(np.arange(count), size))

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> RowOrigins:
        """A table with the column `system`.

        Rows of two systems are for one input where `segment` (and `lang_pair`) are the same, or,
        where there is none, where as many rows of their own system come before them.
        """
        names: dict[str, int] = {}
        inputs: dict[Hashable, int] = {}
        seen: Counter[Hashable] = Counter()
        found: list[tuple[int, int]] = []
        for row in rows:
            name = _UNPRINTABLE.sub("\ufffd", str(row.get("system") or UNNAMED))
            system = names.setdefault(name, len(names))
            said = str(row.get("lang_pair")), str(row.get("segment"))
            seen[system, said] += 1
            key = said, seen[system, said]
            found.append((system, inputs.setdefault(key, len(inputs))))
        systems, segments = np.array(found).T
        return cls(tuple(names), systems, segments)

    def columns(self, first: int, last: int) -> dict[str, list[Any]]:
        """What tells some rows apart, as columns of a table."""
        return {
            "segment": (self.segments[first:last] + 1).tolist(),
            "system": [self.names[k] for k in self.systems[first:last]],
        }

    def __len__(self) -> int:
        return len(self.systems)

    def rows_of(self, system: int) -> Array:
        """The rows of a system, by their inputs."""
        rows = np.flatnonzero(self.systems == system)
        return rows[np.argsort(self.segments[rows], kind="stable")]
