"""The one way to write a file: whole or not at all, and never over an input.

The content goes to a new file of a unique name beside the target, which takes the target's name
once everything is on the disk. Whatever stops the writer removes that file, so that two writers of
one target never mix and a full disk leaves nothing behind. A pipe or a device is written to as it
is, since nothing can take its place.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from freight.errors import FreightError, InvalidInput

PART = ".part"
"""The ending of an unfinished file, after the target's name and 32 hexadecimal digits."""
_LONGEST_NAME = 200
"""Characters of the target's name that an unfinished file's name keeps; systems allow 255 bytes."""


def check_path(path: Path, endings: Sequence[str] = ()) -> None:
    """Refuse a path that cannot be written, before any work is done; no endings allow all."""
    if endings and path.suffix not in endings:
        raise InvalidInput(f"{path} ends in none of {' '.join(endings)}")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInput(f"{path} cannot be written: permission denied")


def check_inputs(outputs: Iterable[Path], inputs: Iterable[str | Path]) -> None:
    """Refuse to write over a file that is read, by whatever name or link, or two outputs to one."""
    read = {_identity(Path(one)): str(one) for one in inputs}
    written: list[Path] = []
    for path in outputs:
        if path.absolute() in (one.absolute() for one in written):
            raise InvalidInput(f"{path} is given twice; name two files")
        written.append(path)
        name = read.get(_identity(path)) if path.is_file() else None
        if name is not None:
            what = "an input" if name == str(path) else f"the input {name} by another name"
            raise InvalidInput(f"{path} is {what}; write to another file")


def _identity(path: Path) -> tuple[int, int] | None:
    """The file itself, whatever its name; None where there is none."""
    try:
        there = path.stat()
    except (OSError, ValueError):
        return None
    return there.st_dev, there.st_ino


@contextmanager
def open_output(path: Path, cure: str = "") -> Iterator[BinaryIO]:
    """A stream whose content is at `path` when the context ends well, and nowhere otherwise.

    A link at `path` is replaced, not followed. Where writing fails, the error is one line that ends
    with `cure`.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with _stream(path, path, os.O_WRONLY, cure) as stream:
            yield stream
        return
    part = path.with_name(f"{path.name[:_LONGEST_NAME]}.{uuid4().hex}{PART}")
    try:
        with _stream(path, part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, cure) as stream:
            with suppress(OSError):  # a file that is there keeps its permissions
                os.fchmod(stream.fileno(), stat.S_IMODE(path.stat().st_mode))
            yield stream
            stream.flush()
            with one_line_errors(path, cure):
                os.fsync(stream.fileno())
        with one_line_errors(path, cure):
            os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink()


def write_whole(path: Path, content: bytes, cure: str = "") -> None:
    """Write a file whole or not at all; see `open_output`."""
    with open_output(path, cure) as stream:
        stream.write(content)


@contextmanager
def _stream(path: Path, opened: Path, flags: int, cure: str) -> Iterator[BinaryIO]:
    """A stream to the file `opened`, which is called `path` in messages."""
    with one_line_errors(path, cure):
        raw = _OutputBytes(os.open(opened, flags | os.O_CLOEXEC, 0o666), path, cure)
    with io.BufferedWriter(raw) as stream:
        yield stream
        stream.flush()
        if raw.failure is not None:  # whoever wrote has passed over it
            raise raw.failure


class _OutputBytes(io.FileIO):
    """Bytes on their way to a file.

    After a failure no more are written, so that closing whatever wrote them does not fail again.
    """

    def __init__(self, file: int, path: Path, cure: str) -> None:
        super().__init__(file, "wb")
        self._path, self._cure, self._count = path, cure, 0
        self.failure: BaseException | None = None

    def write(self, content: Any, /) -> int:
        """Write what there is room for."""
        if self.failure is not None:
            return len(content)
        try:
            with one_line_errors(self._path, self._cure):
                written = os.write(self.fileno(), content)
        except BaseException as error:
            self.failure = error
            raise
        self._count += written
        return written

    def tell(self) -> int:
        """How much was written; a pipe cannot say."""
        return super().tell() if self.seekable() else self._count


@contextmanager
def one_line_errors(path: Path, cure: str = "") -> Iterator[None]:
    """An error of the system as one line that names the file and ends with a cure."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise FreightError(f"{path} cannot be written: {reason}{cure}") from None
