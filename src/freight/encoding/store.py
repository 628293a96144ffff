"""Entries on disk, by text: a folder that processes share, and that is never in the way.

A damaged file is thrown away, a folder that cannot be written goes unused, and a warning says so:
whoever asks can do without.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_SH, flock
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TypeVar

from freight.encoding.shelf import CROWDED, DAMAGED, FAILED, Look, Shelf, Text, open_shelf

T = TypeVar("T")

# A process must not open the file twice at a time, nor fork while it is open.
_LOCK = RLock()
os.register_at_fork(
    before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
)


@dataclass(frozen=True)
class CacheInfo:
    """What lies in a cache: texts, `used` bytes of entries, in a file of `disk` bytes.

    `limit` is the largest that it was used with.
    """

    folder: str
    texts: int = 0
    used: int = 0
    disk: int = 0
    limit: int = 0


@dataclass(frozen=True)
class Store:
    """A folder, and the bytes that it may take; 0 for the most that it was ever allowed.

    The file is open only while it is used, so that nothing of it outlives a call.
    """

    folder: Path
    limit: int = 0

    def read(self, work: Callable[[Look], T]) -> T | None:
        """What `work` makes of the entries, of which it must keep no view."""
        return self._use(lambda shelf: shelf.read(work))

    def write(self, texts: Iterable[Text]) -> None:
        """Keep these, if need be in place of the oldest."""
        self._use(lambda shelf: shelf.write(texts, self.limit), create=True)

    def info(self) -> CacheInfo:
        """What there is; nothing is created."""

        def look(shelf: Shelf) -> CacheInfo:
            disk = self._data.stat().st_size
            return CacheInfo(str(self.folder), shelf.texts, shelf.used, disk, shelf.bound)

        return self._use(look) or CacheInfo(str(self.folder))

    def discard(self) -> int:
        """Throw the file away, and say how many bytes it had; waits for who is using it.

        Deleting the entries alone would leave it as large as it was.
        """
        home = self._data.parent
        if not home.is_dir():
            return 0
        with _LOCK, _guarded(self.folder, LOCK_EX):
            freed = sum(path.stat().st_size for path in home.glob("*"))
            shutil.rmtree(home)
        return freed

    @property
    def _data(self) -> Path:
        return self.folder / "v1" / "data.mdb"

    def _use(self, action: Callable[[Shelf], T], create: bool = False) -> T | None:
        with _LOCK:
            try:
                if not create and not self._data.is_file():
                    return None
                self.folder.mkdir(parents=True, exist_ok=True)
                with _guarded(self.folder, LOCK_SH), open_shelf(self._data, self.limit) as shelf:
                    return action(shelf)
            except DAMAGED as error:
                with suppress(OSError):
                    self.discard()
                warnings.warn(f"{self._data} was damaged ({error}) and is begun anew", stacklevel=4)
            except CROWDED:
                pass
            except FAILED as error:
                _warn_once(f"nothing can be stored in {self.folder} ({error})")
        return None


@contextmanager
def _guarded(folder: Path, how: int) -> Iterator[None]:
    """A file is used together with other processes, but thrown away alone."""
    with (folder / "guard").open("a") as guard:
        flock(guard, how)
        yield


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, stacklevel=5)
