"""Reading files: lines of text, and rows of tables, plain or gzipped.

Everything is read piece by piece. Lines are decoded one at a time, so that an error message names
the line that is not valid. Tables are CSV, TSV, JSON lines or Parquet, by the ending of the name.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import sys
import tempfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, BinaryIO

from freight.errors import InvalidInput


def lines(path: Path, encoding: str = "utf-8", shown: str | None = None) -> Iterator[str]:
    """The lines of a file with their line ends; only a newline ends a line.

    `shown` is the name of the file in messages, by default its path.
    """
    with open_bytes(path) as stream:
        yield from decode_lines(stream, encoding, shown or str(path))


def decode_lines(stream: Iterable[bytes], encoding: str, shown: str) -> Iterator[str]:
    """The lines of a stream of bytes, without a byte order mark."""
    try:
        for number, line in enumerate(stream, 1):
            text = _decode(line, shown, number, encoding)
            yield text.removeprefix("\ufeff") if number == 1 else text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidInput(f"{shown} is not a whole gzip file ({error})") from None


def open_bytes(path: Path) -> BinaryIO:
    """The file's bytes, decompressed where its name ends in .gz."""
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    if path.suffix == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    return path.open("rb")


def _decode(line: bytes, shown: str, number: int, encoding: str) -> str:
    try:
        return line.decode(encoding)
    except LookupError:
        raise InvalidInput(f"there is no encoding {encoding!r}; try utf-8 or cp1252") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"line {number} of {shown} is not {encoding} (byte 0x{line[error.start]:02x});"
            " re-encode it, or pass --encoding cp1252"
        ) from None


Row = dict[str, Any]
_BUFFER = 2**16
"""Bytes of a Parquet column read at a time, whatever the size of its row groups."""


def is_table(path: Path) -> bool:
    """Whether the ending of the name is that of a table rather than of plain text."""
    return _ending(path) in FORMATS


def is_typed(path: Path) -> bool:
    """Whether cells may be numbers and lists; cells of CSV and TSV are always text."""
    return _ending(path) not in (".csv", ".tsv")


def rows(path: Path, encoding: str = "utf-8", start: int = 0) -> Iterator[Row]:
    """The rows of a table from row `start` on, as {column: cell}."""
    ending = _ending(path)
    if ending == PARQUET:
        return _parquet_rows(path, start)
    return islice(parse_rows(lines(path, encoding), ending, str(path)), start, None)


def parse_rows(stream: Iterable[str], ending: str, shown: str) -> Iterator[Row]:
    """The rows of a text table given as lines; `shown` is its name in messages."""
    return _TEXT_FORMATS[ending](stream, shown)


def _ending(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _csv_rows(stream: Iterable[str], shown: str) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)  # a cell may hold a whole document
    reader = csv.reader(stream)
    try:
        yield from _name_cells(shown, ((reader.line_num, cells or [""]) for cells in reader))
    except csv.Error:
        raise InvalidInput(
            f"line {reader.line_num} of {shown} has a carriage return in it; quote its cell"
        ) from None


def _tsv_rows(stream: Iterable[str], shown: str) -> Iterator[Row]:
    """Cells are the text between tabs; nothing is quoted or escaped."""
    stripped = (line.removesuffix("\n").removesuffix("\r") for line in stream)
    cells = ((number, line.split("\t")) for number, line in enumerate(stripped, 1))
    return _name_cells(shown, cells)


def _name_cells(shown: str, numbered: Iterator[tuple[int, list[str]]]) -> Iterator[Row]:
    names: list[str] | None = None
    for number, cells in numbered:
        if names is None:
            names = cells
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise InvalidInput(f"{shown} has two columns named {twice[0]!r}")
        elif len(cells) != len(names):
            raise InvalidInput(
                f"line {number} of {shown} has {len(cells)} cells, the heading {len(names)}"
            )
        else:
            yield dict(zip(names, cells, strict=True))


def _json_rows(stream: Iterable[str], shown: str) -> Iterator[Row]:
    for number, line in enumerate(stream, 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"line {number} of {shown} is not JSON ({error.msg})") from None
        if not isinstance(row, dict):
            raise InvalidInput(f"line {number} of {shown} is not an object, {{...}}")
        yield row


def _parquet_rows(path: Path, start: int) -> Iterator[Row]:
    """Row groups before the start are skipped without reading them."""
    import pyarrow
    from pyarrow import parquet

    with tempfile.TemporaryFile() as plain, open_bytes(path) as stream:
        file = stream
        if path.suffix == ".gz":
            shutil.copyfileobj(stream, plain)
            file = plain
        try:
            table = parquet.ParquetFile(file, buffer_size=_BUFFER)
            sizes = [table.metadata.row_group(k).num_rows for k in range(table.num_row_groups)]
            before = [0, *accumulate(sizes)]
            first = max(bisect_right(before, start, hi=len(sizes)) - 1, 0)
            skipped = start - before[first]
            for batch in table.iter_batches(1024, row_groups=list(range(first, len(sizes)))):
                yield from batch.slice(skipped).to_pylist()
                skipped = max(skipped - len(batch), 0)
        except pyarrow.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
            raise InvalidInput(f"{path} is not a whole Parquet file ({reason})") from None


PARQUET = ".parquet"
_TEXT_FORMATS: dict[str, Callable[[Iterable[str], str], Iterator[Row]]] = {
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
}
FORMATS = (*_TEXT_FORMATS, PARQUET)
