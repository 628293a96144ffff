"""A cache of vectors on disk: an LMDB file that processes share, and that never does harm.

When the file is full or damaged it is deleted and started again. A folder that cannot be written
to is not used, and a warning says so. LMDB keeps the file consistent if a writer is killed; each
entry has a checksum, since LMDB does not notice bytes that change on disk.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_SH, flock
from functools import cache, partial
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from threading import RLock
from typing import TypeVar
from zlib import crc32

import torch
from platformdirs import user_cache_path

from freight.encoders.cache import CachedEncoder, Entry, EntryStore, Lookup
from freight.errors import FreightError, InvalidInput, MissingPart

try:
    import lmdb
except ImportError as error:
    raise MissingPart.extra("lmdb", "cache") from error

__all__ = ["CacheInfo", "DiskCached", "cache_info", "clear_cache"]

T = TypeVar("T")

_DEFAULT_LIMIT = 20 * 2**30
_MIN_LIMIT = 2**20
_VERSION = "v4"
"""The subfolder of the file; another layout of entries needs another one."""

_DIGEST_BYTES = hashlib.sha256().digest_size
_SEAL = struct.Struct("<II")  # checksum and length of an entry
_MARGIN = 2**18
_BATCH_BYTES = 2**26

_DAMAGED = (
    lmdb.InvalidError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
    lmdb.CursorFullError,
    lmdb.PageFullError,
)

# A process must not open the file twice at a time, nor fork while it is open.
_LOCK = RLock()
os.register_at_fork(
    before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
)


@dataclass(frozen=True)
class CacheInfo:
    """The size of a cache: the number of texts, `used` bytes of them in a file of `disk` bytes.

    `limit` is the one that the file was last written with.
    """

    folder: str
    texts: int = 0
    used: int = 0
    disk: int = 0
    limit: int = _DEFAULT_LIMIT


@dataclass(frozen=True)
class DiskCached(CachedEncoder):
    """An encoder with a cache on disk: a folder, and the size that the cache may have in bytes.

    The default folder is `freight/vectors` in the user's cache. A full cache is cleared.
    """

    folder: str | None = None
    limit: int = _DEFAULT_LIMIT

    def __post_init__(self) -> None:
        if self.limit < _MIN_LIMIT:
            raise InvalidInput(f"limit={self.limit} is too small for a cache; give {_MIN_LIMIT}")

    @property
    def _store(self) -> EntryStore:
        return DiskStore(_cache_folder(self.folder), self.limit)

    def _keys(self, texts: Sequence[str]) -> list[bytes]:
        """A key per text: a hash of the text and of everything that its vectors depend on."""
        parts = self.identity, _processor(self.torch_device), *_library_versions()
        start = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).digest()
        return [
            hashlib.sha256(start + text.encode("utf-8", "surrogatepass")).digest() for text in texts
        ]


def cache_info(folder: str | None = None) -> CacheInfo:
    """How full a cache on disk is; it may be in use."""
    return DiskStore(_cache_folder(folder)).info()


def clear_cache(folder: str | None = None) -> int:
    """Delete a cache on disk, and return how many bytes that freed; it may be in use."""
    path = _cache_folder(folder)
    try:
        return DiskStore(path).delete()
    except OSError as error:
        raise FreightError(f"the cache in {path} could not be cleared: {error}") from error


def _cache_folder(folder: str | None) -> Path:
    if folder is not None:
        return Path(folder).expanduser().absolute()
    return user_cache_path("freight", appauthor=False) / "vectors"


def _processor(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return str(torch.backends.cpu.get_cpu_capability())


@cache
def _library_versions() -> tuple[str, ...]:
    return tuple(version(name) for name in ("torch", "transformers", "tokenizers"))


@dataclass(frozen=True)
class DiskStore:
    """Entries in an LMDB file of at most `limit` bytes (0: the limit it was last written with).

    The file is open only during a call.
    """

    folder: Path
    limit: int = 0

    def read(self, work: Callable[[Lookup], T]) -> T | None:
        """What `work` makes of the entries, of which it must keep no view; nothing on failure."""
        return self._use(lambda env: _read_entries(env, work))

    def write(self, entries: Iterable[Entry]) -> None:
        """Keep these entries; a full file is deleted first."""
        with suppress(OSError):  # another process may clear the cache meanwhile
            if self._data.stat().st_size > self.limit:
                self._try_delete()  # it was allowed to be larger before
        for batch in _batches(entries, min(_BATCH_BYTES, self.limit // 8)):
            for _ in range(2):  # the second time into a new file
                if self._use(partial(_write_entries, batch), create=True):
                    break

    def info(self) -> CacheInfo:
        """The size of the file; nothing is created."""

        def measure(env: lmdb.Environment) -> CacheInfo:
            disk = self._data.stat().st_size
            limit = env.info()["map_size"]
            return CacheInfo(str(self.folder), _count_texts(env), _used_bytes(env), disk, limit)

        return self._use(measure) or CacheInfo(str(self.folder))

    def delete(self) -> int:
        """Delete the file when no process has it open, and return its size."""
        versions = [path for path in self.folder.glob("v*") if path.is_dir()]
        if not versions:
            return 0
        with _LOCK, _guard(self.folder, LOCK_EX):
            freed = sum(file.stat().st_size for path in versions for file in path.glob("*"))
            for path in versions:
                shutil.rmtree(path)
        return freed

    @property
    def _data(self) -> Path:
        return self.folder / _VERSION / "data.mdb"

    def _use(self, action: Callable[[lmdb.Environment], T], create: bool = False) -> T | None:
        """The result of an action on the open file; nothing where it fails or there is no file."""
        with _LOCK:
            try:
                if not create and not self._data.is_file():
                    return None
                self.folder.mkdir(parents=True, exist_ok=True)
                with _guard(self.folder, LOCK_SH), _open(self._data, self.limit) as env:
                    return action(env)
            except lmdb.MapFullError:
                self._try_delete()
            except _DAMAGED as error:
                self._try_delete()
                warnings.warn(
                    f"{self._data} was damaged ({error}) and is started anew", stacklevel=4
                )
            except lmdb.MapResizedError:  # a process with a larger limit is writing
                pass
            except (lmdb.Error, OSError) as error:
                _warn_once(f"nothing can be stored in {self.folder} ({error})")
        return None

    def _try_delete(self) -> None:
        with suppress(OSError):
            self.delete()


@contextmanager
def _guard(folder: Path, mode: int) -> Iterator[None]:
    """Processes use the file together (LOCK_SH), but only one alone deletes it (LOCK_EX)."""
    with (folder / "guard").open("a") as file:
        flock(file, mode)
        yield


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, stacklevel=5)


@contextmanager
def _open(data: Path, limit: int) -> Iterator[lmdb.Environment]:
    with lmdb.open(str(data.parent), map_size=limit, max_readers=1024) as env:
        if data.stat().st_size < _needed_bytes(env):
            _extend(env)
        env.reader_check()  # a killed reader would keep deleted pages from being used again
        yield env


def _needed_bytes(env: lmdb.Environment) -> int:
    return (env.info()["last_pgno"] + 1) * env.stat()["psize"]


def _used_bytes(env: lmdb.Environment) -> int:
    stat = env.stat()
    return stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])


def _extend(env: lmdb.Environment) -> None:
    """Fill up the file with zeros beyond its last page: reading past its end kills the process.

    A sound file may lack pages that nothing refers to. In a truncated file the zeros are recognised
    as invalid pages or by a checksum; a damaged page may point a little beyond the last one.
    """
    data = Path(env.path()) / "data.mdb"
    with env.begin(write=True):  # so that no other process writes meanwhile
        size = min(_needed_bytes(env) + _MARGIN, env.info()["map_size"])
        if data.stat().st_size < size:
            os.truncate(data, size)


def _read_entries(env: lmdb.Environment, work: Callable[[Lookup], T]) -> T:
    with env.begin(buffers=True) as txn:
        return work(partial(_sound_entry, txn))


def _sound_entry(txn: lmdb.Transaction[memoryview], key: bytes) -> memoryview | None:
    sealed = txn.get(key)
    if sealed is None or len(sealed) < _SEAL.size:
        return None
    checksum, length = _SEAL.unpack_from(sealed)
    content = sealed[_SEAL.size :]
    # The length first: that of a damaged entry may lead out of the file.
    if len(content) != length or crc32(content, crc32(key)) != checksum:
        return None
    return content


def _write_entries(batch: Sequence[Entry], env: lmdb.Environment) -> bool:
    with env.begin(write=True, buffers=True) as txn:
        for key, content in batch:
            sealed = _SEAL.pack(crc32(content, crc32(key)), len(content)) + content
            if txn.get(key) != memoryview(sealed):  # another process may have written it
                txn.put(key, sealed)
    _extend(env)
    return True


def _batches(entries: Iterable[Entry], limit: int) -> Iterator[list[Entry]]:
    """Entries for one transaction each, of at most `limit` bytes; larger ones are dropped."""
    batch: list[Entry] = []
    size = 0
    for key, content in entries:
        if batch and size + len(content) > limit:
            yield batch
            batch, size = [], 0
        if len(content) <= limit:
            batch.append((key, content))
            size += len(content)
    if batch:
        yield batch


def _count_texts(env: lmdb.Environment) -> int:
    with env.begin() as txn:
        keys = txn.cursor().iternext(values=False)
        return sum(1 for _ in groupby(keys, lambda key: key[:_DIGEST_BYTES]))
