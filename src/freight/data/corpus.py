"""A corpus to score: hypotheses with their references, from files that can be read again.

`RowOrigins` says which system and which input each row belongs to, where systems are named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freight.data.files import (
    HYP,
    REF,
    REFS,
    STDIN,
    Row,
    is_stream,
    is_table,
    is_typed,
    lines,
    name_texts,
    rows,
    spool,
)
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.transport.types import Array


SEGMENT, SYSTEM, ID = "segment", "system", "id"


class Corpus:
    """Segments (hyp, refs) from one table, or from a file of hypotheses and files of references.

    Further files of hypotheses are other systems with the same references; their rows alternate
    with those of the first, segment by segment. In a table, the column `system` names the systems.
    `places` has the system and input of each row, or is None where no system is named. With `keep`
    the names of rows include their texts, and all columns of a table.

    All files are checked when they are opened, so that an error in the last line shows before hours
    of work, and read again at each iteration; no text is kept in memory. Standard input or a pipe
    is copied to a temporary file, which leaving the context removes. `shown` has other names of
    files for messages.
    """

    def __init__(
        self,
        hyp: str,
        refs: Sequence[str] = (),
        encoding: str = "utf-8",
        hyp_column: str | None = None,
        ref_columns: Sequence[str] = (),
        others: Sequence[str] = (),
        keep: bool = False,
        shown: Mapping[str, str] | None = None,
    ) -> None:
        if [hyp, *others, *refs].count(STDIN) > 1:
            raise InvalidInput("standard input can be read once; give - for one file only")
        if others and not refs:
            raise InvalidInput(f"{others[0]} has no references; give a file of them after {hyp}")
        self._stack = ExitStack()
        self._shown = dict(shown or {})
        self._encoding, self._hyp_column = encoding, hyp_column
        self._ref_columns, self._keep = list(ref_columns), keep
        self._files = [self._file(name) for name in (hyp, *others, *refs)]
        self._hyps = 1 + len(others)
        if len(self._files) == 1 and not is_table(self._files[0]):
            raise InvalidInput(
                f"{self._name(self._files[0])} has no references; give a file of them, or a table"
                " with the columns"
                f" {HYP} and {REF}"
            )
        self._count = self._check_files()
        self.places = self._origins([hyp, *others])
        self._kept_columns = self._columns_to_keep() if len(self._files) == 1 else []

    def __len__(self) -> int:
        return self._count * self._hyps

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        """Each hypothesis with its references."""
        return self.since(0)

    def since(self, start: int) -> Iterator[tuple[str, list[str]]]:
        """The same from row `start` on."""
        first, skipped = divmod(start, self._hyps)
        pairs = ((hyp, refs) for hyps, refs in self._segments(first) for hyp in hyps)
        return islice(pairs, skipped, None)

    def references(self) -> Iterator[str]:
        """Every reference text, once for all systems."""
        return (ref for _, refs in self._segments() for ref in refs)

    def row_names(self, start: int = 0) -> Iterator[Row]:
        """What identifies each row from `start` on: its segment, and its system if any is named.

        Also its id, where a single table has that column, and all of the row that is to be kept.
        """
        kept: Iterable[Row] = repeat({}, len(self) - start)
        if self._kept_columns:
            table = rows(self._files[0], self._encoding, start, self._name(self._files[0]))
            kept = ({name: row.get(name) for name in self._kept_columns} for row in table)
        elif self._keep:
            kept = (_text_columns(hyp, refs) for hyp, refs in self.since(start))
        for k, row in enumerate(kept, start):
            name: Row = {SEGMENT: k + 1} if self.places is None else self.places.names_of(k)
            yield {**name, **row}

    @property
    def files(self) -> list[tuple[str, Path]]:
        """The files that are read: their names in messages, and their paths."""
        return [(self._name(path), path) for path in self._files]

    @property
    def reading(self) -> dict[str, Any]:
        """The options with which the files are read."""
        columns = {"hyp_column": self._hyp_column, "ref_columns": self._ref_columns}
        kept = {"keep": True} if self._keep else {}
        return {"encoding": self._encoding, **columns, **kept, "systems": self._hyps}

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

    def _check_files(self) -> int:
        """Read all files once; returns the number of segments, the same in each."""
        counts = [sum(1 for _ in self._texts(place)) for place in range(len(self._files))]
        for path, count in zip(self._files, counts, strict=True):
            if not count:
                raise InvalidInput(f"{self._name(path)} is empty")
            if count != counts[0]:
                first = self._name(self._files[0])
                raise InvalidInput(
                    f"{first} has {counts[0]} segment{'s' * (counts[0] != 1)}"
                    f" but {self._name(path)} has {count}"
                )
        return counts[0]

    def _columns_to_keep(self) -> list[str]:
        """Those of a single table that its scores are written beside; rows may lack some."""
        table = rows(self._files[0], self._encoding)
        several = table if is_typed(self._files[0]) else islice(table, 1)
        names = dict.fromkeys(name for row in several for name in row)
        return [name for name in names if self._keep or name == ID]

    def _origins(self, hyps: list[str]) -> RowOrigins | None:
        if len(hyps) > 1:
            return RowOrigins.of_files(hyps, self._count)
        if len(self._files) > 1:
            return None
        table = rows(self._files[0], self._encoding)
        if SYSTEM not in next(table):
            return None
        origins = RowOrigins.of_rows(rows(self._files[0], self._encoding))
        return None if origins.names == (UNNAMED,) else origins

    def _file(self, name: str) -> Path:
        if name != STDIN and not is_stream(Path(name)):
            return Path(name)
        copy = self._stack.enter_context(spool(name))
        self._shown[copy.name] = "standard input" if name == STDIN else name
        return Path(copy.name)

    def _name(self, path: Path) -> str:
        return self._shown.get(str(path), str(path))

    def _texts(self, place: int, start: int = 0) -> Iterator[list[str]]:
        """The texts of each segment in one of the files, from segment `start` on."""
        path, shown = self._files[place], self._name(self._files[place])
        if not is_table(path):
            for line in islice(lines(path, self._encoding, shown), start, None):
                yield [line.removesuffix("\n").removesuffix("\r")]
            return
        has_hyps, has_refs = place < self._hyps, place >= self._hyps or len(self._files) == 1
        searched = [HYP] * (has_hyps and not self._hyp_column)
        searched += [REFS] * (has_refs and not self._ref_columns)
        for number, row in enumerate(rows(path, self._encoding, start, shown), start + 1):
            texts: list[str] = []
            named = name_texts(row, shown, searched)
            if has_hyps:
                texts += _cell_texts(named, self._hyp_name(named), shown, number)
                if len(texts) != 1:
                    raise InvalidInput(f"row {number} of {shown} has {len(texts)} hypotheses")
            if has_refs:
                for name in self._ref_columns or [REFS if REFS in named else REF]:
                    texts += _cell_texts(named, name, shown, number)
                if place == 0 and len(texts) == 1:
                    raise InvalidInput(f"row {number} of {shown} has no reference")
            yield texts

    def _hyp_name(self, row: Row) -> str:
        if self._hyp_column is None and len(self._files) > 1 and len(row) == 1:
            return next(iter(row))
        return self._hyp_column or HYP


def _cell_texts(row: Row, name: str, shown: str, number: int) -> list[str]:
    """The text in a cell, or the texts in its list."""
    if name not in row:
        has = ", ".join(row)
        raise InvalidInput(
            f"row {number} of {shown} has no column {name!r}; it has {has}; say which to take with"
            " --hyp-column and --ref-column"
        )
    value: Any = row[name]
    several = value if isinstance(value, list) else [value]
    for text in several:
        if not isinstance(text, str):
            raise InvalidInput(f"row {number} of {shown}: {name} is {text!r}, not a text")
    return several


def _text_columns(hyp: str, refs: list[str]) -> Row:
    return {HYP: hyp, REF: refs[0]} if len(refs) == 1 else {HYP: hyp, REFS: refs}


UNNAMED = "unnamed"
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class RowOrigins:
    """The names of the systems, and the system and input of each row, numbered from 0."""

    names: tuple[str, ...]
    systems: Array
    segments: Array

    @classmethod
    def of_files(cls, files: Sequence[str], count: int) -> RowOrigins:
        """Files of `count` hypotheses each, whose rows alternate."""
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
        """From the rows of a table with the column `system`.

        Rows of two systems have the same input where `segment` (and `lang_pair`) are equal; without
        these columns, the k-th rows of all systems have the same input.
        """
        names: dict[str, int] = {}
        inputs: dict[Hashable, int] = {}
        counts: Counter[Hashable] = Counter()
        origins: list[tuple[int, int]] = []
        for row in rows:
            name = _UNPRINTABLE.sub("\ufffd", str(row.get("system") or UNNAMED))
            system = names.setdefault(name, len(names))
            segment = str(row.get("lang_pair")), str(row.get("segment"))
            counts[system, segment] += 1
            key = segment, counts[system, segment]
            origins.append((system, inputs.setdefault(key, len(inputs))))
        systems, segments = np.array(origins).T
        return cls(tuple(names), systems, segments)

    def check_complete(self) -> None:
        """Every system has to have every segment."""
        inputs = int(self.segments.max()) + 1
        for k, name in enumerate(self.names):
            count = len(np.unique(self.segments[self.systems == k]))
            if count != inputs:
                raise InvalidInput(
                    f"{name} has {count} of {inputs} segments; the task wants them all"
                )

    def names_of(self, row: int) -> Row:
        """The number of a row's segment, from 1, and the name of its system."""
        return {SEGMENT: int(self.segments[row]) + 1, SYSTEM: self.names[self.systems[row]]}

    def __len__(self) -> int:
        return len(self.systems)

    @property
    def extent(self) -> str:
        """How many systems have how many segments each, for people to read."""
        counts = np.bincount(self.systems, minlength=len(self.names))
        low, high = f"{counts.min():,}", f"{counts.max():,}"
        segments = high if low == high else f"{low} to {high}"
        one = "" if len(counts) == 1 else "s"
        return f"{len(counts)} system{one} × {segments} segments"

    def rows_of(self, system: int) -> Array:
        """The rows of a system, sorted by input."""
        rows = np.flatnonzero(self.systems == system)
        return rows[np.argsort(self.segments[rows], kind="stable")]
