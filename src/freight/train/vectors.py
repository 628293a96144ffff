"""Trained word vectors: their neighbours, and files of them that say how they were made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from freight.errors import InvalidInput, MissingPart
from freight.types import Array

_LETTERS = 2**28  # in an .npz, where each takes four bytes


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A vector for each word, the most frequent first, and how they came about."""

    words: tuple[str, ...]
    vectors: Array
    provenance: dict[str, Any]

    def nearest(self, word: str, count: int = 5) -> list[tuple[str, float]]:
        """The words of the highest cosine with this one."""
        if word not in self.words:
            raise InvalidInput(f"{word!r} has no vector")
        row = self.words.index(word)
        lengths = np.linalg.norm(self.vectors, axis=1)
        cosines = self.vectors @ self.vectors[row] / np.maximum(lengths * lengths[row], 1e-30)
        cosines[row] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(count, len(self.words) - 1)]
        return [(self.words[at], float(cosines[at])) for at in best]

    def save(self, path: str | Path) -> None:
        """Write what `static:FILE` reads, by the ending, whole or not at all.

        The provenance lies beside it in FILE.json; in an .npz it is inside.
        """
        path = Path(path)
        check_ending(path)
        part = path.with_name(f"{path.name}.part")
        about = json.dumps(self.provenance, indent=1, ensure_ascii=False) + "\n"
        try:
            ENDINGS[path.suffix](part, self, about)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        if path.suffix != ".npz":
            part.write_text(about, encoding="utf-8")
            part.replace(path.with_name(f"{path.name}.json"))


def provenance(method: str, options: dict[str, Any], corpus: dict[str, Any]) -> dict[str, Any]:
    """What made the vectors; no date, so that the same input gives the same file."""
    from freight import __version__

    packages = "numpy", "gensim" if method == "word2vec" else "scipy"
    versions = {"freight": __version__, **{name: version(name) for name in packages}}
    return {"method": method, "options": options, "corpus": corpus, "versions": versions}


def check_ending(path: Path) -> None:
    """Before any work: a file that cannot be written is no surprise at the end of it."""
    if path.suffix not in ENDINGS:
        raise InvalidInput(f"{path} ends in none of {' '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")
    if path.suffix == ".kv":
        gensim_models()


def gensim_models() -> Any:
    """gensim's models, where it is installed."""
    try:
        from gensim import models
    except ImportError:
        raise MissingPart.extra("gensim", "train") from None
    return models


def _keyed(path: Path, found: WordVectors, about: str) -> None:
    keyed = gensim_models().KeyedVectors(found.vectors.shape[1])
    keyed.add_vectors(list(found.words), found.vectors)
    keyed.lifecycle_events = None  # they would put the date into the file
    keyed.save(str(path), separately=[])  # one file, so that its hash names all of it


def _arrays(path: Path, found: WordVectors, about: str) -> None:
    longest = max(found.words, key=len)
    if len(longest) * len(found.words) > _LETTERS:
        raise InvalidInput(
            f"{longest[:20]}... has {len(longest):,} letters, and an .npz gives every word as much"
            " room; write a .bin, or raise --min-count"
        )
    with path.open("wb") as stream:
        np.savez(stream, words=np.array(found.words), vectors=found.vectors, provenance=about)


def _binary(path: Path, found: WordVectors, about: str) -> None:
    with path.open("wb") as stream:
        stream.write(b"%d %d\n" % found.vectors.shape)
        for word, vector in zip(found.words, found.vectors, strict=True):
            stream.write(word.encode() + b" " + vector.tobytes() + b"\n")


def _text(path: Path, found: WordVectors, about: str) -> None:
    form = " ".join(["%.9g"] * found.vectors.shape[1])  # nine digits name a float32
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(f"{len(found.words)} {found.vectors.shape[1]}\n")
        for word, vector in zip(found.words, found.vectors, strict=True):
            stream.write(f"{word} {form % tuple(vector)}\n")


ENDINGS: dict[str, Callable[[Path, WordVectors, str], None]] = {
    ".kv": _keyed,
    ".npz": _arrays,
    ".bin": _binary,
    ".vec": _text,
    ".txt": _text,
}
