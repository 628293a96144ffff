"""Lines of text files, plain or gzipped, decoded one by one so that a bad one can be named."""

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
    """The lines of a file with their ends; only a newline ends one, and the last may lack it.

    Messages call the file `shown` where that is not its path.
    """
    with open_bytes(path) as stream:
        yield from decoded(stream, encoding, shown or str(path))


def decoded(stream: Iterable[bytes], encoding: str, shown: str) -> Iterator[str]:
    """The lines of a stream of bytes, less a byte order mark."""
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
"""Bytes of a Parquet column that are read at a time, however large its row groups are."""


def is_table(path: Path) -> bool:
    """Whether the ending is that of a table rather than of plain text."""
    return _ending(path) in FORMATS


def is_typed(path: Path) -> bool:
    """Whether cells may be numbers and lists rather than texts alone."""
    return _ending(path) not in (".csv", ".tsv")


def rows(path: Path, encoding: str = "utf-8", start: int = 0) -> Iterator[Row]:
    """The rows of a table, by name of column, but for so many at the start."""
    ending = _ending(path)
    if ending == PARQUET:
        return _parquet(path, start)
    return islice(parse_rows(lines(path, encoding), ending, str(path)), start, None)


def parse_rows(stream: Iterable[str], ending: str, shown: str) -> Iterator[Row]:
    """The rows of a table whose lines come from anywhere; messages call it `shown`."""
    return TEXTS[ending](stream, shown)


def _ending(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _comma(stream: Iterable[str], shown: str) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)  # a cell may hold a whole document
    reader = csv.reader(stream)
    try:
        yield from _named(shown, ((reader.line_num, cells or [""]) for cells in reader))
    except csv.Error:
        raise InvalidInput(
            f"line {reader.line_num} of {shown} has a carriage return in it; quote its cell"
        ) from None


def _tab(stream: Iterable[str], shown: str) -> Iterator[Row]:
    """Nothing is quoted or escaped: a cell is what stands between two tabs."""
    ended = (line.removesuffix("\n").removesuffix("\r") for line in stream)
    return _named(shown, ((number, line.split("\t")) for number, line in enumerate(ended, 1)))


def _named(shown: str, numbered: Iterator[tuple[int, list[str]]]) -> Iterator[Row]:
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


def _json_lines(stream: Iterable[str], shown: str) -> Iterator[Row]:
    for number, line in enumerate(stream, 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"line {number} of {shown} is not JSON ({error.msg})") from None
        if not isinstance(row, dict):
            raise InvalidInput(f"line {number} of {shown} is not an object, {{...}}")
        yield row


def _parquet(path: Path, start: int) -> Iterator[Row]:
    """Row groups that come before the start are not read."""
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
TEXTS: dict[str, Callable[[Iterable[str], str], Iterator[Row]]] = {
    ".csv": _comma,
    ".tsv": _tab,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}
FORMATS = (*TEXTS, PARQUET)
