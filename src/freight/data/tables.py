"""Writing tables: JSON lines, CSV, TSV or Parquet, by the ending of the name.

A table is written piece by piece beside its place, and appears there whole or not at all.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol

from freight.errors import InvalidInput

Columns = Mapping[str, Sequence[Any]]


def check_ending(path: Path) -> None:
    """Refuse, before any work, a path that cannot be written."""
    if path.suffix not in FORMATS:
        raise InvalidInput(f"{path} ends in none of {' '.join(FORMATS)}; a folder ends in /")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")


def encode_table(ending: str, notes: Mapping[str, str], columns: Columns) -> bytes:
    """The bytes of a file with the whole table; equal tables give equal bytes."""
    stream = io.BytesIO()
    writer = FORMATS[ending](stream, dict(notes))
    writer.write(columns)
    writer.close()
    return stream.getvalue()


class TableWriter:
    """Writes a table piece by piece to a .part file, which is renamed at the end."""

    def __init__(self, path: Path, notes: Mapping[str, str]) -> None:
        check_ending(path)
        self._path, self._part = path, path.with_name(path.name + ".part")
        self._stream = self._part.open("wb")
        self._format: _Format = FORMATS[path.suffix](self._stream, dict(notes))

    def write(self, columns: Columns) -> None:
        """Add rows, given as columns of equal length."""
        self._format.write(columns)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with self._stream:
            self._format.close()
        if error is None:
            self._part.replace(self._path)
        else:
            self._part.unlink(missing_ok=True)


class _Format(Protocol):
    def __init__(self, stream: BinaryIO, notes: dict[str, str]) -> None: ...

    def write(self, columns: Columns) -> None: ...

    def close(self) -> None: ...


class _JsonLinesWriter:
    def __init__(self, stream: BinaryIO, notes: dict[str, str]) -> None:
        self._stream = stream

    def write(self, columns: Columns) -> None:
        for row in _rows(columns):
            record = {
                name: None if value != value else value
                for name, value in zip(columns, row, strict=True)
            }
            line = json.dumps(record, ensure_ascii=False) + "\n"
            self._stream.write(line.encode("utf-8"))

    def close(self) -> None:
        """All rows are written already."""


class _CsvWriter:
    def __init__(self, stream: BinaryIO, notes: dict[str, str]) -> None:
        self._stream = stream
        self._has_heading = False

    def write(self, columns: Columns) -> None:
        rows: list[Sequence[Any]] = [[_cell(x) for x in row] for row in _rows(columns)]
        self._write_rows(rows if self._has_heading else [list(columns), *rows])
        self._has_heading = True

    def close(self) -> None:
        """All rows are written already."""

    def _write_rows(self, rows: list[Sequence[Any]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows)
        self._stream.write(text.getvalue().encode("utf-8"))


class _TsvWriter(_CsvWriter):
    """Nothing is quoted or escaped, as it is read."""

    def _write_rows(self, rows: list[Sequence[Any]]) -> None:
        for row in rows:
            cells = ["" if x is None else str(x) for x in row]
            bad = next((cell for cell in cells if re.search(r"[\t\r\n]", cell)), None)
            if bad is not None:
                raise InvalidInput(
                    f"{bad[:40]!r} has a tab or a line break in it, which TSV cannot hold; write"
                    " .csv or .jsonl"
                )
            self._stream.write(("\t".join(cells) + "\n").encode("utf-8"))


class _ParquetWriter:
    def __init__(self, stream: BinaryIO, notes: dict[str, str]) -> None:
        self._stream, self._notes = stream, notes
        self._writer: Any = None

    def write(self, columns: Columns) -> None:
        import pyarrow
        from pyarrow import parquet

        strings = pyarrow.list_(pyarrow.string())
        arrays = {
            name: pyarrow.array(x, strings if x and isinstance(x[0], list) else None)
            for name, x in columns.items()
        }
        table = pyarrow.table(arrays).replace_schema_metadata(self._notes)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._stream, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


FORMATS: dict[str, type[_Format]] = {
    ".jsonl": _JsonLinesWriter,
    ".csv": _CsvWriter,
    ".tsv": _TsvWriter,
    ".parquet": _ParquetWriter,
}


def _rows(columns: Columns) -> Iterator[tuple[Any, ...]]:
    return zip(*columns.values(), strict=True)


def _cell(value: Any) -> Any:
    return "; ".join(value) if isinstance(value, list) else value
