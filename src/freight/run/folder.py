"""The folder of a run: one writer at a time, and every file in it whole or not there."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, ENOTSUP
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from freight.errors import FreightError

LOCK, PART = ".lock", ".part"


class Folder:
    """A folder that is written durably: what `write` and `append` gave back survives a power cut.

    Where the disk is full, what was being written is taken away again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out; a run that is killed lets go. Half-written files are removed."""
        with self._telling():
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("a")
        with lock:
            self._lock(lock.fileno())
            for part in self.path.glob(f"*{PART}"):
                part.unlink()
            yield

    @property
    def names(self) -> set[str]:
        """The files in it, but for the lock and what was only half written."""
        if not self.path.is_dir():
            return set()
        every = {path.name for path in self.path.iterdir()}
        return {name for name in every if name != LOCK and not name.endswith(PART)}

    def read(self, name: str) -> bytes | None:
        """A file's content; nothing where there is none."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def digest(self, name: str) -> str | None:
        """The SHA-256 of a file; nothing where it cannot be read."""
        try:
            with (self.path / name).open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file beside its place and move it there."""
        part = self.path / (name + PART)
        with self._telling():
            try:
                with part.open("wb", buffering=0) as stream:
                    _put(stream.fileno(), content)
                part.replace(self.path / name)
                self._settle()
            except OSError:
                with suppress(OSError):
                    part.unlink(missing_ok=True)
                raise

    def append(self, name: str, content: bytes) -> None:
        """Add to the end of a file."""
        path = self.path / name
        with self._telling(), path.open("ab", buffering=0) as stream:
            before = stream.tell()
            try:
                _put(stream.fileno(), content)
            except OSError:
                with suppress(OSError):
                    os.truncate(path, before)
                raise

    def _lock(self, file: int) -> None:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise FreightError(
                f"another run is writing to {self.path}; wait for it, or name another folder"
            ) from None
        except OSError as error:
            warnings.warn(
                f"{self.path} cannot be locked ({error.strerror}): start no second run there",
                stacklevel=4,
            )

    def _settle(self) -> None:
        """Make the names in the folder durable, where the file system can."""
        file = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(file)
        except OSError as error:
            if error.errno not in (EINVAL, ENOTSUP):
                raise
        finally:
            os.close(file)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FreightError(
                f"{self.path} cannot be written: {error.strerror or error}; once that is mended,"
                " go on with --resume"
            ) from None


def _put(file: int, content: bytes) -> None:
    """Everything to the disk itself."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.fsync(file)
