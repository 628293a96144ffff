"""Lines of text files, plain or gzipped, decoded one by one so that a bad one can be named."""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

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
