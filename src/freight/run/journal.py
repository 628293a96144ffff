"""What a run keeps in its folder: sealed records, the manifest, and files that are written durably.

A record is JSON with a digest of itself (its seal), so that a damaged record, or one of another
run, is recognised. The manifest describes the run: its input, its metrics and its settings. A
`RunFolder` writes files so that they survive a crash or a power cut, whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from errno import EINVAL, ENOTSUP
from fcntl import LOCK_EX, LOCK_NB, flock
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from freight.core.scorers import PipelineScorer
from freight.data import Corpus
from freight.data.output import PART, one_line_errors, write_whole
from freight.errors import FreightError, InvalidInput

_SEAL = "seal"


def seal_record(content: Mapping[str, Any], owner: str = "", indent: int | None = None) -> bytes:
    """The content as JSON with its seal; it can be opened with the same `owner` only."""
    sealed = {**content, _SEAL: _digest([owner, content])}
    return json.dumps(sealed, indent=indent, ensure_ascii=False).encode() + b"\n"


def open_record(record: bytes | None, owner: str = "") -> dict[str, Any] | None:
    """The content of a sealed record; None where it is missing, damaged or of another owner."""
    try:
        content = json.loads(record or b"")
        seal = content.pop(_SEAL)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return content if seal == _digest([owner, content]) else None


def _digest(content: Any) -> str:
    """The SHA-256 of plain data, independent of the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Environment(NamedTuple):
    """What scores depend on in the process that computes them."""

    signatures: list[str]
    device: str
    libraries: dict[str, str]

    @classmethod
    def of_this_process(cls, metrics: Sequence[PipelineScorer]) -> Environment:
        """The signatures of the metrics, the device and the versions of libraries here."""
        versions = {name: version(name) for name in ("numpy", "pyarrow", "torch")}
        return cls([metric.signature for metric in metrics], _device_name(), versions)


def _device_name() -> str:
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"CPU {torch.backends.cpu.get_cpu_capability()}"


MANIFEST = "manifest.json"
_IDENTITY = ("version", "input", "metrics", "shard", "format", "escape")
"""The fields that decide on the scores and on the rows of each shard."""


@dataclass(frozen=True)
class Manifest:
    """The description of a run that is written beside its shards.

    `fitted` is the digest of the frequencies that were fitted on the input, where any were.
    `libraries` and `device` do not identify the run: with others the last digits may differ.
    """

    version: str
    input: dict[str, Any]
    segments: int
    metrics: list[dict[str, Any]]
    shard: int
    format: str
    escape: bool
    libraries: dict[str, str]
    device: str
    fitted: str | None = None
    complete: bool = False

    @classmethod
    def describe(
        cls,
        corpus: Corpus,
        metrics: Sequence[tuple[str, Sequence[str]]],
        shard: int,
        ending: str,
        escape: bool,
        environment: Environment,
    ) -> Manifest:
        """The manifest of a new run of these metrics and columns; reads the input for digests."""
        from freight import __version__

        files = [_describe_file(shown, path) for shown, path in corpus.files]
        described = [
            {"name": name, "columns": list(columns), "signature": signature}
            for (name, columns), signature in zip(metrics, environment.signatures, strict=True)
        ]
        return cls(
            version=__version__,
            input={"files": files, **corpus.reading},
            segments=len(corpus),
            metrics=described,
            shard=shard,
            format=ending.removeprefix("."),
            escape=escape,
            libraries=environment.libraries,
            device=environment.device,
        )

    @classmethod
    def from_bytes(cls, content: bytes | None) -> Manifest | None:
        """The manifest in a file; None where it is damaged or of another version's form."""
        fields = open_record(content)
        try:
            return None if fields is None else cls(**fields)
        except TypeError:
            return None

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return seal_record(vars(self), indent=1)

    @property
    def identity(self) -> str:
        """A digest of everything that decides on the scores and on the rows of each shard."""
        return _digest([_without_file_names(getattr(self, name)) for name in _IDENTITY])

    @property
    def shard_count(self) -> int:
        """The number of shards of the whole run."""
        return -(-self.segments // self.shard)

    def shard_name(self, number: int) -> str:
        """The file name of a shard."""
        return f"shard-{self._padded(number)}.{self.format}"

    def partial_name(self, number: int) -> str:
        """The file name of what is scored of a shard that is not finished."""
        return f"partial-{self._padded(number)}.jsonl"

    def _padded(self, number: int) -> str:
        return f"{number:0{max(5, len(str(self.shard_count)))}d}"

    def completed(self) -> Manifest:
        """The same manifest, marked as complete."""
        return replace(self, complete=True)

    def difference(self, before: Manifest) -> str | None:
        """The first difference to the run that was begun before, in words; None if it is equal."""
        return next(_differences(before, self), None)


def _describe_file(shown: str, path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    ending = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    return {"name": shown, "ending": ending, "bytes": path.stat().st_size, "sha256": sha256}


def _without_file_names(value: Any) -> Any:
    """The value without the names of files, which may be moved."""
    if not isinstance(value, dict):
        return value
    return {**value, "files": [{**file, "name": None} for file in value["files"]]}


def _differences(old: Manifest, new: Manifest) -> Iterator[str]:
    if old.version != new.version:
        yield f"by freight {old.version}, and this is {new.version}"
    yield from _different_files(old.input["files"], new.input["files"])
    for name in ("encoding", "hyp_column", "ref_columns", "systems"):
        if old.input[name] != new.input[name]:
            yield f"with {name.replace('_', ' ')} {old.input[name]}, not {new.input[name]}"
    yield from _different_metrics(old.metrics, new.metrics)
    if old.shard != new.shard:
        yield f"with {old.shard} segments a shard, not {new.shard}"
    if old.format != new.format:
        yield f"as {old.format}, not {new.format}"
    if old.escape != new.escape:
        yield f"with{'' if old.escape else 'out'} --escape"


def _different_files(old: list[Any], new: list[Any]) -> Iterator[str]:
    if len(old) != len(new):
        yield f"with {len(old)} input files, not {len(new)}"
    for before, now in zip(old, new, strict=False):
        if before["sha256"] != now["sha256"]:
            same = before["name"] == now["name"]
            what = "has changed since" if same else f"is not what {before['name']} was"
            yield f"on other input: {now['name']} {what}"
        elif before["ending"] != now["ending"]:
            yield f"on {before['name']}, and {now['name']} would be read in another way"


def _different_metrics(old: list[Any], new: list[Any]) -> Iterator[str]:
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


_LOCK = ".lock"
_CURE = "; once that is mended, go on with --resume"


_UNFINISHED = re.compile(rf"(.+)\.[0-9a-f]{{32}}{re.escape(PART)}")


class RunFolder:
    """A folder whose files survive a power cut once `write_file` or `append_line` has returned."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other runs out; ends with the process.

        A folder that turns out to be somebody else's is left without our lock.
        """
        path = self.path / _LOCK
        with one_line_errors(self.path, _CURE):
            self.path.mkdir(parents=True, exist_ok=True)
            is_new = not path.exists()
            lock = path.open("a")
        with lock:
            self._lock_file(lock.fileno())
            try:
                yield
            except InvalidInput:
                if is_new:
                    path.unlink(missing_ok=True)
                raise

    @property
    def names(self) -> set[str]:
        """The names of the files, without the lock."""
        if not self.path.is_dir():
            return set()
        return {path.name for path in self.path.iterdir()} - {_LOCK}

    def unfinished(self, names: Collection[str]) -> set[str]:
        """Files that a killed run has left when it was writing one of these."""
        matches = ((name, _UNFINISHED.fullmatch(name)) for name in self.names)
        return {name for name, match in matches if match and match[1] in names}

    def remove_files(self, names: Iterable[str]) -> None:
        """Remove those of these files that are there."""
        with one_line_errors(self.path, _CURE):
            for name in names:
                (self.path / name).unlink(missing_ok=True)

    def read_file(self, name: str) -> bytes | None:
        """A file's content; None where it does not exist."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def file_digest(self, name: str) -> str | None:
        """The SHA-256 of a file; None where it cannot be read."""
        try:
            with (self.path / name).open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            return None

    def write_file(self, name: str, content: bytes) -> None:
        """Write a file whole, or not at all."""
        write_whole(self.path / name, content, _CURE)
        with one_line_errors(self.path, _CURE):
            self._sync_names()

    def append_line(self, name: str, line: bytes) -> None:
        """Add a line to the end of a file."""
        path = self.path / name
        with one_line_errors(path, _CURE), path.open("ab", buffering=0) as stream:
            size = stream.tell()
            try:
                _write_and_sync(stream.fileno(), line)
            except OSError:
                with suppress(OSError):
                    os.truncate(path, size)
                raise

    def _lock_file(self, file: int) -> None:
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

    def _sync_names(self) -> None:
        """Make the names in the folder durable, where the file system supports it."""
        file = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(file)
        except OSError as error:
            if error.errno not in (EINVAL, ENOTSUP):
                raise
        finally:
            os.close(file)


def _write_and_sync(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.fsync(file)
