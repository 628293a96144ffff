"""Writing tables: JSON lines, CSV, TSV or Parquet, by the ending of the name.

A table is written piece by piece, and appears whole or not at all. On request a text that a
spreadsheet would take for a formula is escaped in CSV and TSV.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol

from freight.data.output import check_path, open_output
from freight.errors import InvalidInput

Columns = Mapping[str, Sequence[Any]]


def check_ending(path: Path) -> None:
    """Refuse, before any work, a path that cannot be written."""
    if path.suffix not in FORMATS:
        raise InvalidInput(f"{path} ends in none of {' '.join(FORMATS)}; a folder ends in /")
    check_path(path)


def encode_table(
    ending: str, notes: Mapping[str, str], columns: Columns, escape: bool = False
) -> bytes:
    """The bytes of a file with the whole table; equal tables give equal bytes."""
    stream = io.BytesIO()
    writer = FORMATS[ending](stream, dict(notes), escape)
    writer.write(columns)
    writer.close()
    return stream.getvalue()


class TableWriter:
    """Writes a table piece by piece; the file is there when the context ends well."""

    def __init__(self, path: Path, notes: Mapping[str, str], escape: bool = False) -> None:
        check_ending(path)
        self._path, self._notes, self._escape = path, dict(notes), escape
        self._stack = ExitStack()

    def write(self, columns: Columns) -> None:
        """Add rows, given as columns of equal length."""
        self._format.write(columns)

    def __enter__(self) -> TableWriter:
        stream = self._stack.enter_context(open_output(self._path))
        form: _Format = FORMATS[self._path.suffix](stream, self._notes, self._escape)
        self._format = self._stack.enter_context(closing(form))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, at)


class _Format(Protocol):
    def __init__(self, stream: BinaryIO, notes: dict[str, str], escape: bool) -> None: ...

    def write(self, columns: Columns) -> None: ...

    def close(self) -> None: ...


class _JsonLinesWriter:
    def __init__(self, stream: BinaryIO, notes: dict[str, str], escape: bool) -> None:
        self._stream = stream

    def write(self, columns: Columns) -> None:
        for row in _rows(columns):
            record = {
                name: None if value != value else value
                for name, value in zip(columns, row, strict=True)
            }
            line = json.dumps(record, ensure_ascii=False) + "\n"
            self._stream.write(line.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """All rows are written already."""


class _CsvWriter:
    def __init__(self, stream: BinaryIO, notes: dict[str, str], escape: bool) -> None:
        self._stream, self._escape = stream, escape
        self._has_heading = False

    def write(self, columns: Columns) -> None:
        names = list(columns)
        rows: list[Sequence[Any]] = [list(map(_cell, names, row)) for row in _rows(columns)]
        rows = rows if self._has_heading else [names, *rows]
        self._write_rows([list(map(escape_formula, row)) for row in rows] if self._escape else rows)
        self._has_heading = True

    def close(self) -> None:
        """All rows are written already."""

    def _write_rows(self, rows: list[Sequence[Any]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows)
        self._stream.write(_encode(text.getvalue()))


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
            self._stream.write(_encode("\t".join(cells) + "\n"))


class _ParquetWriter:
    def __init__(self, stream: BinaryIO, notes: dict[str, str], escape: bool) -> None:
        self._stream, self._notes = stream, notes
        self._writer: Any = None
        self._kinds: dict[str, Any] = {}

    def write(self, columns: Columns) -> None:
        import pyarrow
        from pyarrow import parquet

        arrays = {}
        for name, cells in columns.items():
            try:
                arrays[name] = pyarrow.array(list(map(_decodable, cells)), self._kinds.get(name))
            except (pyarrow.ArrowException, OverflowError):
                raise InvalidInput(
                    f"the column {name} has values of several kinds, which Parquet cannot hold;"
                    " write .jsonl"
                ) from None
            if name not in self._kinds:
                self._kinds[name] = _nullable(arrays[name].type)
                arrays[name] = arrays[name].cast(self._kinds[name])
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


def _nullable(kind: Any) -> Any:
    """The type of a column: text where nothing is known of it yet, as of empty lists."""
    import pyarrow

    if pyarrow.types.is_list(kind) and pyarrow.types.is_null(kind.value_type):
        return pyarrow.list_(pyarrow.string())
    return pyarrow.string() if pyarrow.types.is_null(kind) else kind


def _encode(text: str) -> bytes:
    """The text in UTF-8; a lone surrogate, which it cannot encode, becomes a question mark."""
    return text.encode("utf-8", "replace")


def _decodable(cell: Any) -> Any:
    return _encode(cell).decode() if isinstance(cell, str) else cell


_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def escape_formula(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula, with ' in front; anything else as it is.

    One that begins like an escaped text is escaped too, so that `unescape_formula` is exact.
    """
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def unescape_formula(cell: str) -> str:
    """The text before `escape_formula`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _rows(columns: Columns) -> Iterator[tuple[Any, ...]]:
    return zip(*columns.values(), strict=True)


def _cell(name: str, value: Any) -> Any:
    """Flags joined, and other lists and objects as JSON."""
    if name == "flags" and isinstance(value, list):
        return "; ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
