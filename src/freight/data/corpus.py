"""What is to be scored: hypotheses with their references, out of files, as often as need be."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from freight.data.lines import lines
from freight.data.rows import Row, is_table, rows
from freight.errors import InvalidInput

STDIN = "-"
HYP, REF, REFS = "hyp", "ref", "refs"


class Corpus:
    """Segments (hyp, refs) out of one table, or out of a file of hypotheses and some of references.

    All files are read through once at the beginning, so that a fault in the last line is no
    surprise after hours of work, and again at each iteration; nothing is kept in memory. Standard
    input is spooled to a file. Use it as a context, which removes that file.
    """

    def __init__(
        self,
        hyp: str,
        refs: Sequence[str] = (),
        encoding: str = "utf-8",
        hyp_column: str | None = None,
        ref_columns: Sequence[str] = (),
    ) -> None:
        if [hyp, *refs].count(STDIN) > 1:
            raise InvalidInput("standard input can be read once; give - for one file only")
        self._stack = ExitStack()
        self._shown: dict[str, str] = {}
        self._encoding, self._hyp_column = encoding, hyp_column
        self._ref_columns = list(ref_columns)
        self._files = [self._file(name) for name in (hyp, *refs)]
        if len(self._files) == 1 and not is_table(self._files[0]):
            raise InvalidInput(
                f"{hyp} has no references; give a file of them, or a table with the columns"
                f" {HYP} and {REF}"
            )
        self._counts = [sum(1 for _ in self._texts(place)) for place in range(len(self._files))]
        for path, count in zip(self._files, self._counts, strict=True):
            if not count:
                raise InvalidInput(f"{self._name(path)} is empty")
            if count != self._counts[0]:
                first = self._name(self._files[0])
                raise InvalidInput(
                    f"{first} has {self._counts[0]} segments but {self._name(path)} has {count}"
                )

    def __len__(self) -> int:
        return self._counts[0]

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        """Each hypothesis with its references."""
        return self.since(0)

    def since(self, start: int) -> Iterator[tuple[str, list[str]]]:
        """The segments but for so many at the start, which are passed over quickly."""
        sides = [self._texts(place, start) for place in range(len(self._files))]
        for hyp, *refs in zip(*sides, strict=True):
            if refs:
                yield hyp[0], [text for several in refs for text in several]
            else:
                yield hyp[0], hyp[1:]

    @property
    def files(self) -> list[tuple[str, Path]]:
        """What is read: how it is called, and where it lies."""
        return [(self._name(path), path) for path in self._files]

    @property
    def reading(self) -> dict[str, Any]:
        """How it is read."""
        columns = {"hyp_column": self._hyp_column, "ref_columns": self._ref_columns}
        return {"encoding": self._encoding, **columns}

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

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
            if place == 0:
                found += _cell(row, self._hyp_name(row), path, number)
                if len(found) != 1:
                    raise InvalidInput(f"row {number} of {path} has {len(found)} hypotheses")
            if place > 0 or len(self._files) == 1:
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
