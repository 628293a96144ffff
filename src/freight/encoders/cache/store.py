"""Entries on disk, by text: a folder that processes share, and that is never in the way.

A damaged file is thrown away, a folder that cannot be written goes unused, and a warning says so:
whoever asks can do without.
"""

from __future__ import annotations

import os
import shutil
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_SH, flock
from functools import cache, partial
from pathlib import Path
from threading import RLock
from typing import TypeVar
from zlib import crc32

from freight.errors import MissingPart

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


try:
    import lmdb
except ImportError as error:
    raise MissingPart.extra("lmdb", "cache") from error


Look = Callable[[bytes, bytes], memoryview | None]
"""The entry of a text's digest and a name, where there is a sound one."""

Text = tuple[bytes, dict[bytes, bytes]]
"""A digest, and the text's entries by name."""

DAMAGED = (
    lmdb.InvalidError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
    lmdb.CursorFullError,
    lmdb.PageFullError,
)
"""What is raised where the file cannot be trusted."""

CROWDED = (lmdb.MapFullError, lmdb.MapResizedError)
"""What is raised where other processes still read what was evicted, or are allowed more."""

FAILED = (lmdb.Error, OSError)
"""What is raised where the file cannot be read or written."""

_PLACE, _ENTRY = b"d", b"e"  # how the keys of digests and of numbers begin
_NUMBER, _DIGEST = len(_ENTRY) + 8, 32
_SEAL = struct.Struct("<II")  # checksum and length
_PAGE, _MARGIN, _BATCH = 2**12, 2**18, 2**26
_FULL, _EASED = 0.9, 0.7
_TRIES = 4


@contextmanager
def open_shelf(data: Path, limit: int) -> Iterator[Shelf]:
    """Open a file, or make one; a process must not open one twice at a time."""
    size = data.stat().st_size if data.is_file() else 0
    # A file that was once allowed more needs room to be emptied in.
    room = limit if size <= limit or not limit else size + limit // 2
    with lmdb.open(str(data.parent), map_size=room, max_readers=1024) as env:
        if data.stat().st_size < _needed(env):
            _lengthen(env)
        env.reader_check()  # a killed reader would keep evicted pages from being used again
        yield Shelf(env)


@dataclass(frozen=True)
class Shelf:
    """The file, opened."""

    env: lmdb.Environment

    @property
    def used(self) -> int:
        """The bytes of all pages that are not free."""
        now = self.env.stat()
        return now["psize"] * (now["branch_pages"] + now["leaf_pages"] + now["overflow_pages"])

    @property
    def bound(self) -> int:
        """The bytes that the file may have."""
        return self.env.info()["map_size"]

    @property
    def texts(self) -> int:
        """How many there are: as the first ones are evicted first, no number between is idle."""
        with self.env.begin(buffers=True) as txn:
            cursor = txn.cursor()
            if not cursor.set_range(_ENTRY):
                return 0
            first = int.from_bytes(cursor.key()[1:_NUMBER], "big")
            return int.from_bytes(_next_number(cursor)[1:], "big") - first

    def read(self, work: Callable[[Look], T]) -> T:
        """What `work` makes of the entries, of which it must keep no view."""
        with self.env.begin(buffers=True) as txn:
            return work(partial(_look, txn))

    def write(self, texts: Iterable[Text], limit: int) -> None:
        """Keep these, if need be in place of the oldest; one too large for the limit is left."""
        for batch in _batches(texts, limit):
            self._keep(batch, limit)

    def _keep(self, batch: list[Text], limit: int) -> None:
        size = sum(map(_size, batch))
        if self.used + size > _FULL * limit:
            self._ease(_EASED * limit - size)
        for _ in range(_TRIES):
            try:
                _put(self.env, batch)
                return _lengthen(self.env)
            except lmdb.MapFullError:  # free pages may not lie together, or still be read
                self._ease(_EASED * self.used)

    def _ease(self, target: float) -> None:
        """Evict the oldest texts until what is used is no more than this."""
        step: float = _BATCH
        while (excess := self.used - target) > 0:
            step = min(step, excess)
            try:
                if not _forget(self.env, step):
                    return
            except lmdb.MapFullError:  # deleting takes room as well: less of it for less
                step /= 4
                if step < 1:
                    raise


def _needed(env: lmdb.Environment) -> int:
    return (env.info()["last_pgno"] + 1) * env.stat()["psize"]


def _lengthen(env: lmdb.Environment) -> None:
    """Fill up a file with zeros to beyond its last page: reading past its end kills the process.

    A sound file may lack a few pages that nothing refers to. In a truncated one the zeros are
    found out, as pages that are none or by their checksum; and a damaged page may point a little
    behind the last one.
    """
    data = Path(env.path()) / "data.mdb"
    with env.begin(write=True):  # so that no other process writes there now
        wanted = min(_needed(env) + _MARGIN, env.info()["map_size"])
        if data.stat().st_size < wanted:
            os.truncate(data, wanted)


def _look(txn: lmdb.Transaction[memoryview], digest: bytes, name: bytes) -> memoryview | None:
    # Lengths first: that of a damaged entry may lead out of the file.
    number = txn.get(_PLACE + digest)
    value = txn.get(bytes(number) + name) if number and len(number) == _NUMBER else None
    if value is None or len(value) < _SEAL.size:
        return None
    checksum, length = _SEAL.unpack_from(value)
    content = value[_SEAL.size :]
    if len(content) != length or crc32(content, crc32(digest + name)) != checksum:
        return None
    return content


def _batches(texts: Iterable[Text], limit: int) -> Iterator[list[Text]]:
    """Texts to be written in one transaction: little is lost, and evicting keeps pace."""
    most = min(_BATCH, limit // 8)
    batch: list[Text] = []
    size = 0
    for text in texts:
        if batch and size + _size(text) > most:
            yield batch
            batch, size = [], 0
        if _size(text) <= limit // 8:
            batch.append(text)
            size += _size(text)
    if batch:
        yield batch


def _size(text: Text) -> int:
    return sum(_pages(len(content)) for content in text[1].values())


def _pages(length: int) -> int:
    """What an entry takes on disk: long ones fill whole pages."""
    return length if length < _PAGE // 2 else -(-length // _PAGE) * _PAGE


def _put(env: lmdb.Environment, batch: list[Text]) -> None:
    with env.begin(write=True, buffers=True) as txn:
        for digest, entries in batch:
            number = bytes((txn.get(_PLACE + digest) or b"")[:_NUMBER])
            if len(number) < _NUMBER:
                number = _next_number(txn.cursor())
                txn.put(_PLACE + digest, number)
                txn.put(number, digest)
            for name, content in entries.items():
                checksum = crc32(content, crc32(digest + name))
                sealed = _SEAL.pack(checksum, len(content)) + content
                there = txn.get(number + name)
                # Another process may have been faster; a damaged entry is replaced.
                if there is None or len(there) != len(sealed) or there != sealed:
                    txn.put(number + name, sealed)


def _next_number(cursor: lmdb.Cursor[memoryview]) -> bytes:
    last = cursor.key()[1:_NUMBER] if cursor.last() and cursor.key()[:1] == _ENTRY else b""
    return _ENTRY + (int.from_bytes(last, "big") + 1).to_bytes(_NUMBER - 1, "big")


def _forget(env: lmdb.Environment, size: float) -> int:
    """Delete the oldest texts of about this many bytes, and say how many bytes they were."""
    freed = 0
    with env.begin(write=True, buffers=True) as txn:
        cursor = txn.cursor()
        while cursor.set_range(_ENTRY):
            key, value = bytes(cursor.key()), cursor.value()
            length = len(value)
            if len(key) == _NUMBER:  # the first of a text's entries is its digest
                if freed >= size:
                    break
                txn.delete(_PLACE + bytes(value[:_DIGEST]))
            if not txn.delete(key):
                break
            freed += _pages(length)
    return freed
