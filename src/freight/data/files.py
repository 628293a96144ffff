"""Reading files: lines of text, and rows of tables, plain or gzipped.

Everything is read piece by piece. Lines are decoded one at a time, so that an error message names
the line that is not valid. Tables are CSV, TSV, JSON lines or Parquet, by the ending of the name.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import shutil
import sys
import tempfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO

from freight.errors import InvalidInput


def lines(path: Path, encoding: str = "utf-8", shown: str | None = None) -> Iterator[str]:
    """The lines of a file with their line ends; only a newline ends a line.

    `shown` is the name of the file in messages, by default its path.
    """
    with open_bytes(path) as stream:
        yield from decode_lines(stream, encoding, shown or str(path))


def decode_lines(stream: Iterable[bytes], encoding: str, shown: str) -> Iterator[str]:
    """The lines of a stream of bytes, without a byte order mark.

    With the mark of UTF-16 or UTF-32 the stream is read as that, where UTF-8 is expected.
    """
    try:
        pieces = iter(stream)
        first = next(pieces, b"")
        wide = _wide_encoding(first, encoding, shown)
        if wide:
            yield from _decode_wide(chain([first], pieces), wide, shown)
            return
        for number, line in enumerate(chain([first] if first else [], pieces), 1):
            text = _decode(line, shown, number, encoding)
            yield text.removeprefix("\ufeff") if number == 1 else text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidInput(f"{shown} is not a whole gzip file ({error})") from None


def _wide_encoding(first: bytes, encoding: str, shown: str) -> str | None:
    """The encoding of a stream whose characters have two or four bytes, by its first bytes."""
    name = _encoding_name(encoding)
    if name.startswith(("utf-16", "utf-32")):
        return name
    if name != "utf-8":
        return None
    if first.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for order, start in (("le", 1), ("be", 0)):
        if len(first) > 3 and not any(first[start : len(first) // 2 * 2 : 2]):
            raise InvalidInput(
                f"{shown} looks like UTF-16 without a byte order mark; pass --encoding"
                f" utf-16-{order}, or re-encode it as UTF-8"
            )
    return None


def _decode_wide(pieces: Iterable[bytes], encoding: str, shown: str) -> Iterator[str]:
    """The lines of UTF-16 or UTF-32, in which the byte of a newline is also in other characters."""
    decoder, number, rest = codecs.getincrementaldecoder(encoding)(), 0, ""
    try:
        for piece in pieces:
            *whole, rest = (rest + decoder.decode(piece)).split("\n")
            for line in whole:
                number += 1
                yield (line.removeprefix("\ufeff") if number == 1 else line) + "\n"
        rest += decoder.decode(b"", final=True)
    except UnicodeError as error:
        reason = getattr(error, "reason", error)  # without one where the byte order mark is missing
        raise InvalidInput(
            f"line {number + 1} of {shown} is not {encoding} ({reason}); re-encode it"
        ) from None
    if rest:
        yield rest.removeprefix("\ufeff") if not number else rest


def open_bytes(path: Path) -> BinaryIO:
    """The file's bytes, decompressed where its name ends in .gz; a pipe can be read once."""
    if not path.is_file() and not is_stream(path):
        raise InvalidInput(f"there is no file {path}")
    if path.suffix == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    return path.open("rb")


def is_stream(path: Path) -> bool:
    """Whether it is a pipe or a device, which can be read once."""
    return path.exists() and not path.is_file() and not path.is_dir()


def spool(name: str) -> IO[bytes]:
    """Standard input (-) or a pipe as a temporary file, which is gone once it is closed."""
    path = Path(name)
    ending = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    copy = tempfile.NamedTemporaryFile(suffix=ending)  # noqa: SIM115
    with nullcontext(sys.stdin.buffer) if name == STDIN else path.open("rb") as source:
        shutil.copyfileobj(source, copy)
    copy.flush()
    return copy


def parse_json(text: str, where: str) -> Any:
    """The value of a text; what cannot be read is one line that begins with `where`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if "\n" in text.strip() else ""
        raise InvalidInput(f"{where} is not JSON ({error.msg}{line})") from None
    except ValueError:  # Python's protection against quadratic time
        most = f"{sys.get_int_max_str_digits():,}"
        raise InvalidInput(f"{where} has an integer of more than {most} digits") from None
    except RecursionError:
        raise InvalidInput(f"{where} is JSON that is nested too deeply to be read") from None


def _encoding_name(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise InvalidInput(f"there is no encoding {encoding!r}; try utf-8 or cp1252") from None


def _decode(line: bytes, shown: str, number: int, encoding: str) -> str:
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"line {number} of {shown} is not {encoding} (byte 0x{line[error.start]:02x});"
            " re-encode it, or pass --encoding cp1252"
        ) from None


STDIN = "-"
Row = dict[str, Any]
_BUFFER = 2**16
"""Bytes of a Parquet column read at a time, whatever the size of its row groups."""


def is_table(path: Path) -> bool:
    """Whether the ending of the name is that of a table rather than of plain text."""
    return _ending(path) in FORMATS


def is_typed(path: Path) -> bool:
    """Whether cells may be numbers and lists; cells of CSV and TSV are always text."""
    return _ending(path) not in (".csv", ".tsv")


def rows(
    path: Path, encoding: str = "utf-8", start: int = 0, shown: str | None = None
) -> Iterator[Row]:
    """The rows of a table from row `start` on, as {column: cell}; `shown` as in `lines`."""
    ending, shown = _ending(path), shown or str(path)
    if ending == PARQUET:
        return _parquet_rows(path, start, shown)
    return islice(parse_rows(lines(path, encoding, shown), ending, shown), start, None)


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
            _check_names(names, shown)
        elif len(cells) != len(names):
            raise InvalidInput(
                f"line {number} of {shown} has {len(cells)} cells, the heading {len(names)}"
            )
        else:
            yield dict(zip(names, cells, strict=True))


def _check_names(names: list[str], shown: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{shown} has two columns named {twice!r}")


def _json_rows(stream: Iterable[str], shown: str) -> Iterator[Row]:
    for number, line in enumerate(stream, 1):
        row = parse_json(line, f"line {number} of {shown}")
        if not isinstance(row, dict):
            raise InvalidInput(f"line {number} of {shown} is not an object, {{...}}")
        yield row


def _parquet_rows(path: Path, start: int, shown: str) -> Iterator[Row]:
    """Row groups before the start are skipped without reading them."""
    import pyarrow
    from pyarrow import parquet

    with tempfile.TemporaryFile() as plain, open_bytes(path) as stream:
        try:
            file = stream
            if path.suffix == ".gz" or not path.is_file():
                shutil.copyfileobj(stream, plain)
                file = plain
            table = parquet.ParquetFile(file, buffer_size=_BUFFER, page_checksum_verification=True)
            _check_names(table.schema_arrow.names, shown)
            sizes = [table.metadata.row_group(k).num_rows for k in range(table.num_row_groups)]
            before = [0, *accumulate(sizes)]
            first = max(bisect_right(before, start, hi=len(sizes)) - 1, 0)
            skipped = start - before[first]
            for batch in table.iter_batches(1024, row_groups=list(range(first, len(sizes)))):
                yield from batch.slice(skipped).to_pylist()
                skipped = max(skipped - len(batch), 0)
        except InvalidInput:
            raise
        except (pyarrow.ArrowException, OSError, EOFError, ValueError, zlib.error) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InvalidInput(f"{shown} is not a whole Parquet file ({reason})") from None


def check_parquet(path: Path, shown: str, rows: int, size: int, longest: int) -> None:
    """Refuse a file that its metadata say, or its dictionaries show, to be larger than this.

    A dictionary has a text once, however many rows repeat it.
    """
    import pyarrow
    from pyarrow import compute, parquet

    try:
        about = parquet.read_metadata(path)
        groups = [about.row_group(k) for k in range(about.num_row_groups)]
        columns = [group.column(k) for group in groups for k in range(about.num_columns)]
        values = sum(column.num_values for column in columns)
        total = max(sum(c.total_uncompressed_size for c in columns), values)
        if about.num_rows > rows or total > size:
            raise InvalidInput(
                f"{shown} has {about.num_rows:,} rows and {total:,} bytes; at most {rows:,} rows"
                f" and {size:,} bytes are read"
            )
        texts = [c.path_in_schema for c in columns if c.physical_type == "BYTE_ARRAY"]
        coded = parquet.ParquetFile(path, read_dictionary=texts)
        for batch in coded.iter_batches(_BUFFER):
            for column in map(_leaf, batch.columns):
                if pyarrow.types.is_dictionary(column.type):
                    lengths = compute.binary_length(column.dictionary)
                    if (compute.max(lengths).as_py() or 0) > longest:
                        raise InvalidInput(f"{shown} has a text of more than {longest:,} bytes")
    except InvalidInput:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidInput(f"{shown} is not a whole Parquet file ({reason})") from None


def _leaf(column: Any) -> Any:
    """The values of a column, of lists those of their items."""
    while hasattr(column, "flatten") and hasattr(column, "offsets"):
        column = column.values
    return column


HYP, REF, REFS = "hyp", "ref", "refs"
OTHER_NAMES = {
    HYP: (
        "hypothesis", "prediction", "predicted", "mt", "candidate", "output", "answer", "response",
        "completion", "actual_output",
    ),
    REFS: (
        "reference", "references", "target", "targets", "gold", "expected", "expected_output",
        "ground_truth",
    ),
}  # fmt: skip
"""What other tools call these columns; `ref` is the other name of a single reference."""


def name_texts(row: Row, shown: str, wanted: Sequence[str] = (HYP, REFS)) -> Row:
    """The row with the wanted columns called hyp, and ref or refs, whatever they are called.

    Our own names come first; of several other names for the same column none can be preferred.
    """
    for name in wanted:
        if name in row or (name == REFS and any(x == REF or x.startswith(f"{REF}.") for x in row)):
            continue
        there = [column for column in row if column.lower() in OTHER_NAMES[name]]
        if len(there) > 1:
            short = name.removesuffix("s")
            raise InvalidInput(
                f"{shown} has {' and '.join(there)}, each of which may be {short}; call the right"
                f" one {short} (or name it: freight score --{short}-column)"
            )
        if there:
            row = {name if column == there[0] else column: cell for column, cell in row.items()}
    return row


PARQUET = ".parquet"
_TEXT_FORMATS: dict[str, Callable[[Iterable[str], str], Iterator[Row]]] = {
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
}
FORMATS = (*_TEXT_FORMATS, PARQUET)
