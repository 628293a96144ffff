"""Small records with a seal, so that a damaged or foreign one is found out."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from errno import EINVAL, ENOTSUP
from fcntl import LOCK_EX, LOCK_NB, flock
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from freight.core.scoring import Scorer
from freight.data import Corpus
from freight.errors import FreightError

SEAL = "seal"


def digest(content: Any) -> str:
    """The SHA-256 of plain data, however its keys are ordered."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sealed(content: Mapping[str, Any], owner: str = "", indent: int | None = None) -> bytes:
    """A record as JSON; `owner` has to be known to open it again."""
    marked = {**content, SEAL: digest([owner, content])}
    return json.dumps(marked, indent=indent, ensure_ascii=False).encode() + b"\n"


def opened(record: bytes | None, owner: str = "") -> dict[str, Any] | None:
    """What was sealed; nothing where that is not what is there."""
    try:
        content = json.loads(record or b"")
        seal = content.pop(SEAL)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return content if seal == digest([owner, content]) else None


MANIFEST = "manifest.json"
_DECIDING = ("version", "input", "metrics", "shard", "format")


class Surroundings(NamedTuple):
    """What scores depend on where they are made: signatures, the device and the libraries."""

    signatures: list[str]
    device: str
    libraries: dict[str, str]

    @classmethod
    def here(cls, metrics: Sequence[Scorer]) -> Surroundings:
        """Those of this process."""
        known = {name: version(name) for name in ("numpy", "pyarrow", "torch")}
        return cls([metric.signature for metric in metrics], _device(), known)


@dataclass(frozen=True)
class Manifest:
    """A run, as it is written beside its shards.

    `learnt` is the digest of the frequencies that were learnt from the input, where any were;
    `libraries` and `device` tell where other bits may come from.
    """

    version: str
    input: dict[str, Any]
    segments: int
    metrics: list[dict[str, Any]]
    shard: int
    format: str
    libraries: dict[str, str]
    device: str
    learnt: str | None = None
    complete: bool = False

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        metrics: Sequence[Scorer],
        columns: Sequence[Sequence[str]],
        shard: int,
        ending: str,
        there: Surroundings,
    ) -> Manifest:
        """The manifest of a run that is about to begin; reads the input for its digests."""
        from freight import __version__

        files = [_file(shown, path) for shown, path in corpus.files]
        described = [
            {"name": one.name, "columns": list(names), "signature": signature}
            for one, names, signature in zip(metrics, columns, there.signatures, strict=True)
        ]
        return cls(
            version=__version__,
            input={"files": files, **corpus.reading},
            segments=len(corpus),
            metrics=described,
            shard=shard,
            format=ending.removeprefix("."),
            libraries=there.libraries,
            device=there.device,
        )

    @classmethod
    def read(cls, content: bytes | None) -> Manifest | None:
        """The manifest in a file; nothing where that is damaged or of another making."""
        found = opened(content)
        try:
            return None if found is None else cls(**found)
        except TypeError:
            return None

    def written(self) -> bytes:
        """As a file."""
        return sealed(vars(self), indent=1)

    @property
    def identity(self) -> str:
        """A digest of all that decides on the scores and where they stand."""
        return digest([_nameless(getattr(self, name)) for name in _DECIDING])

    def finished(self) -> Manifest:
        """The same, all shards being there."""
        return replace(self, complete=True)

    def difference(self, before: Manifest) -> str | None:
        """How this run differs from the one that was begun before, if it does."""
        return next(_differences(before, self), None)


def _differences(old: Manifest, new: Manifest) -> Iterator[str]:
    if old.version != new.version:
        yield f"by freight {old.version}, and this is {new.version}"
    yield from _other_files(old.input["files"], new.input["files"])
    for name in ("encoding", "hyp_column", "ref_columns", "systems"):
        if old.input[name] != new.input[name]:
            yield f"with {name.replace('_', ' ')} {old.input[name]}, not {new.input[name]}"
    yield from _other_metrics(old.metrics, new.metrics)
    if old.shard != new.shard:
        yield f"with {old.shard} segments a shard, not {new.shard}"
    if old.format != new.format:
        yield f"as {old.format}, not {new.format}"


def _other_files(old: list[Any], new: list[Any]) -> Iterator[str]:
    if len(old) != len(new):
        yield f"with {len(old)} input files, not {len(new)}"
    for before, now in zip(old, new, strict=False):
        if before["sha256"] != now["sha256"]:
            same = before["name"] == now["name"]
            what = "has changed since" if same else f"is not what {before['name']} was"
            yield f"on other input: {now['name']} {what}"
        elif before["ending"] != now["ending"]:
            yield f"on {before['name']}, and {now['name']} would be read in another way"


def _other_metrics(old: list[Any], new: list[Any]) -> Iterator[str]:
    begun, asked = ([one["name"] for one in several] for several in (old, new))
    if begun != asked:
        yield f"with the metrics {', '.join(begun)}, not {', '.join(asked)}"
    for before, now in zip(old, new, strict=False):
        parts = (one["signature"].split("|") for one in (before, now))
        for was, is_now in zip_longest(*parts, fillvalue="nothing"):
            if was != is_now:
                yield f"with {before['name']} having {was}, not {is_now}"
        if before["columns"] != now["columns"]:
            was, is_now = (", ".join(one["columns"]) for one in (before, now))
            yield f"with the columns {was} of {before['name']}, not {is_now}"


def _file(shown: str, path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    ending = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    return {"name": shown, "ending": ending, "bytes": path.stat().st_size, "sha256": found}


def _nameless(value: Any) -> Any:
    """Without the names of files, which may move."""
    if not isinstance(value, dict):
        return value
    files = [{**file, "name": None} for file in value["files"]]
    return {**value, "files": files}


def _device() -> str:
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"CPU {torch.backends.cpu.get_cpu_capability()}"


LOCK, PART = ".lock", ".part"


class RunFolder:
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
