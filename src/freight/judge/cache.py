"""Scores remembered on disk: a metric that has scored a set once need not do so again.

A file holds the scores of one metric for one set of texts, whatever people said of them. Its name
follows from the metric's signature and from the texts, so that nothing is ever out of date.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from freight.errors import FreightError
from freight.folders import user_cache
from freight.types import Array

_FORM = "1"
_DAMAGED = (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error)


class Scores(NamedTuple):
    """A metric's scores by column, a number a row, and how many rows have which flag.

    `means` says whether the metric's own system scores are the means of these.
    """

    columns: dict[str, Array]
    flags: dict[str, int]
    means: bool


@dataclass(frozen=True)
class ScoreCache:
    """A folder to remember scores in, by default `freight/scores` in the user's cache."""

    folder: Path = field(default_factory=lambda: user_cache("scores"))

    def read(self, key: str, rows: int) -> Scores | None:
        """What is remembered, or nothing; a damaged file is nothing."""
        try:
            with (
                self._path(key).open("rb") as stream,
                np.load(stream, allow_pickle=False) as found,
            ):
                names, counts = found["flags"].tolist(), found["counts"].tolist()
                columns = {name: found[f"column {name}"] for name in found["columns"].tolist()}
                means = bool(found["means"])
        except _DAMAGED:
            return None
        whole = columns and all(values.shape == (rows,) for values in columns.values())
        return Scores(columns, dict(zip(names, counts, strict=True)), means) if whole else None

    def write(self, key: str, scores: Scores) -> None:
        """Remember, whole or not at all, undisturbed by who reads or writes the same meanwhile."""
        part = self.folder / f"{uuid4().hex}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as stream:
                np.savez_compressed(stream, **_arrays(scores))
            part.replace(self._path(key))
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise FreightError(f"scores cannot be kept in {self.folder}: {error}") from error

    @property
    def files(self) -> list[Path]:
        """What is remembered, and what a run that was killed has left."""
        return sorted(p for p in self.folder.glob("*") if p.suffix in (".npz", ".part"))

    def clear(self) -> int:
        """Forget everything, and say how many bytes that freed."""
        freed = 0
        for path in self.files:
            freed += path.stat().st_size
            path.unlink(missing_ok=True)
        return freed

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


def score_key(signature: str, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> str:
    """A name for a metric's scores of these texts: their order and repeats count, for IDF."""
    digest = hashlib.sha256(f"{_FORM}\n{signature}".encode("utf-8", "surrogatepass"))
    for hyp, several in zip(hyps, refs, strict=True):
        for text in (hyp, *several):
            content = text.encode("utf-8", "surrogatepass")
            digest.update(f"{len(content)} ".encode() + content)
        digest.update(b"|")
    return digest.hexdigest()


def _arrays(scores: Scores) -> dict[str, Any]:
    columns = {f"column {name}": values for name, values in scores.columns.items()}
    return {
        "columns": np.array(list(scores.columns)),
        "flags": np.array(list(scores.flags), dtype=np.str_),
        "counts": np.array(list(scores.flags.values()), dtype=np.int64),
        "means": np.array(scores.means),
        **columns,
    }
