"""Text files: one segment a line, plain or gzipped, or standard input."""

import gzip
import sys
from pathlib import Path
from typing import BinaryIO

from freight.errors import InvalidInput

STDIN = "-"


def read_lines(path: str, encoding: str = "utf-8") -> list[str]:
    """The segments of a file; only a newline ends one, and the last may lack it."""
    with _open(path) as stream:
        data = stream.read()
    if not data:
        raise InvalidInput(f"{path} is empty")
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [_decode(line.rstrip(b"\r"), path, k, encoding) for k, line in enumerate(lines, 1)]


def _open(path: str) -> BinaryIO:
    if path == STDIN:
        return sys.stdin.buffer
    if not Path(path).is_file():
        raise InvalidInput(f"there is no file {path}")
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")  # type: ignore[return-value]


def _decode(line: bytes, path: str, number: int, encoding: str) -> str:
    try:
        return line.decode(encoding)
    except LookupError:
        raise InvalidInput(f"there is no encoding {encoding!r}; try utf-8 or cp1252") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"line {number} of {path} is not {encoding} (byte 0x{line[error.start]:02x});"
            " re-encode it, or pass --encoding cp1252"
        ) from None
