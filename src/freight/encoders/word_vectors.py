"""Files of word vectors: mapped into memory, scanned once for their words, read on demand.

The scanning of word2vec's formats is compiled, since such files have millions of words.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import shutil
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np
from platformdirs import user_cache_path

from freight import kernels
from freight.errors import InvalidInput, MissingPart
from freight.transport.types import Array

_FASTTEXT = 793712314  # the number that a fastText model begins with


class VectorSource(Protocol):
    """Vectors of words, from whatever source."""

    dim: int

    def look_up(self, words: Sequence[str]) -> tuple[Array, Array]:
        """Which of these words have a vector (word,), and their vectors (word, dim)."""
        ...


def open_vectors(path: Path) -> VectorSource:
    """The vectors in a file: word2vec .bin .vec .txt, fastText .bin, gensim .kv, .npz; or gzip."""
    if not path.is_file():
        raise InvalidInput(f"there is no file of vectors {path}")
    plain = _unpacked(path) if path.suffix == ".gz" else path
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if kind not in FORMATS:
        raise InvalidInput(f"{path} ends in none of {' '.join(FORMATS)} (or .gz of them)")
    try:
        return FORMATS[kind](plain)
    except _MALFORMED as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path} is not a file of vectors: {error}") from None


_MALFORMED = (
    ValueError, TypeError, KeyError, EOFError, OSError, OverflowError, MemoryError, BadZipFile,
)  # fmt: skip


class _Word2VecFile:
    """Word2vec's formats: words are looked up by hash, vectors are read when they are needed."""

    def __init__(self, path: Path, binary: bool) -> None:
        self._path = path
        self._bytes = np.asarray(np.memmap(path, np.uint8, "r"))
        self._binary = binary
        count, self.dim, start = _header(self._bytes, binary)
        self._begins, self._lengths, self._values = kernels.scan_words(
            self._bytes, start, count if binary else None, self.dim
        )
        if not binary:
            self._check_lines(start)
        if not len(self._begins) or len(self._begins) < count:
            raise InvalidInput(f"{path} is cut short: {len(self._begins)} of {count} words")
        hashes = kernels.hash_words(self._bytes, self._begins, self._lengths)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def _check_lines(self, start: int) -> None:
        """Refuse a file of text with a line that is not a word and its numbers."""
        known = len(self._values)
        tail = self._bytes[int(self._values[-1]) if known else start :].tobytes()
        rest = tail.partition(b"\n")[2] if known else tail
        if rest.strip():
            line = rest.strip().split(b"\n")[0][:40].decode(errors="replace")
            raise InvalidInput(
                f"{self._path} has no {self.dim} numbers in its line {line!r}; it is damaged"
            )

    def look_up(self, words: Sequence[str]) -> tuple[Array, Array]:
        encoded = [word.encode() for word in words]
        joined = np.frombuffer(b"".join(encoded) or b" ", np.uint8)
        lengths = np.array([len(word) for word in encoded], np.int64)
        begins = np.cumsum(lengths) - lengths
        rows = kernels.find_words(
            joined, begins, lengths, self._hashes, self._order,
            self._bytes, self._begins, self._lengths,
        )  # fmt: skip
        known = rows >= 0
        vectors = np.zeros((len(words), self.dim), np.float32)
        vectors[known] = self._read_vectors(rows[known])
        return known, vectors

    def _read_vectors(self, rows: Array) -> Array:
        if self._binary:
            where = self._values[rows][:, None] + np.arange(4 * self.dim)
            return self._bytes[where].view(np.float32)
        vectors = np.empty((len(rows), self.dim), np.float32)
        for place, row in enumerate(rows):
            begin = int(self._values[row])
            stop = int(self._begins[row + 1]) if row + 1 < len(self._begins) else len(self._bytes)
            values = self._bytes[begin:stop].tobytes().split()[: self.dim]
            try:
                vectors[place] = values
            except ValueError:
                word = self._bytes[self._begins[row] :][: self._lengths[row]].tobytes().decode()
                raise InvalidInput(
                    f"{self._path} has no {self.dim} numbers for {word!r}; it is damaged"
                ) from None
        return vectors


class _LoadedVectors:
    """Vectors that are in memory, or mapped."""

    def __init__(self, places: dict[str, int], vectors: Array) -> None:
        self._places, self._vectors, self.dim = places, vectors, int(vectors.shape[1])

    def look_up(self, words: Sequence[str]) -> tuple[Array, Array]:
        rows = np.array([self._places.get(word, -1) for word in words], np.int64)
        vectors = np.zeros((len(words), self.dim), np.float32)
        vectors[rows >= 0] = self._vectors[rows[rows >= 0]]
        return rows >= 0, vectors


class _SubwordVectors:
    """gensim's fastText vectors, which compose a vector for an unknown word from its n-grams."""

    def __init__(self, keyed: Any) -> None:
        self._keyed, self.dim = keyed, int(keyed.vector_size)

    def look_up(self, words: Sequence[str]) -> tuple[Array, Array]:
        known, vectors = np.zeros(len(words), bool), np.zeros((len(words), self.dim), np.float32)
        for place, word in enumerate(words):
            try:
                vectors[place] = self._keyed.get_vector(word)
            except KeyError:  # no n-gram of it is known
                continue
            known[place] = True
        return known, vectors


def _open_binary(path: Path) -> VectorSource:
    with path.open("rb") as stream:
        if int.from_bytes(stream.read(4), "little") == _FASTTEXT:
            return _SubwordVectors(_gensim("fasttext").load_facebook_vectors(str(path)))
    return _Word2VecFile(path, binary=True)


def _open_text(path: Path) -> VectorSource:
    return _Word2VecFile(path, binary=False)


class _Stored:
    """An object of gensim's as it is in a file: attributes, and no code of its own."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


class _DataUnpickler(pickle.Unpickler):
    """Reads arrays and gensim's word vectors, and refuses whatever else a pickle may name.

    A pickle calls what it names, so that reading one as it stands can run any program.
    """

    def find_class(self, module: str, name: str) -> Any:
        kind = _RENAMED.get(module, module), name
        if kind not in _PICKLED:
            raise ValueError(
                f"it names {module}.{name}, which may run code; if you trust whoever made it, load"
                " it with gensim, and save its vectors by save_word2vec_format"
            )
        return _PICKLED[kind]


def _text_bytes(text: str, _: str) -> bytes:
    """How old pickles store bytes."""
    return text.encode("latin-1")


_PICKLED: dict[tuple[str, str], Any] = {
    ("gensim.models.keyedvectors", "KeyedVectors"): _Stored,
    ("gensim.models.keyedvectors", "Word2VecKeyedVectors"): _Stored,
    ("gensim.models.keyedvectors", "FastTextKeyedVectors"): _Stored,
    ("gensim.models.keyedvectors", "Vocab"): _Stored,
    ("gensim.models.keyedvectors", "CompatVocab"): _Stored,
    ("gensim.models.fasttext", "FastTextKeyedVectors"): _Stored,
    ("numpy._core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],
    ("numpy._core.multiarray", "scalar"): np.float32(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("_codecs", "encode"): _text_bytes,
}
_RENAMED = {"numpy.core.multiarray": "numpy._core.multiarray", "__builtin__": "builtins"}
_SEPARATE = "__numpys", "__scipys", "__recursive_saveloads", "__ignoreds"
"""Attributes that gensim stores in files of their own: arrays, matrices, objects, and none."""


def _open_gensim(path: Path) -> VectorSource:
    """gensim's word vectors, read without running anything that the file may say."""
    stored = vars(_unpickled(path))
    arrays, *others, _ = (stored.pop(name, ()) for name in _SEPARATE)
    if any(others):
        raise ValueError(f"it has parts that are no arrays: {others}")
    for name in arrays:
        stored[name] = np.load(f"{path}.{name}.npy", mmap_mode="r", allow_pickle=False)
    if "key_to_index" not in stored:  # before gensim 4
        stored["key_to_index"] = {word: k for k, word in enumerate(stored.pop("index2word"))}
    places = stored["key_to_index"]
    vectors = stored["vectors_vocab" if "vectors_ngrams" in stored else "vectors"]
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise ValueError("its vectors are no matrix of numbers")
    if not isinstance(places, dict) or {*places.values()} != {*range(len(vectors))}:
        raise ValueError(f"its words are not those of its {len(vectors)} vectors")
    if "vectors_ngrams" not in stored:
        return _LoadedVectors(places, vectors)
    kind = _gensim("fasttext").FastTextKeyedVectors
    keyed = kind.__new__(kind)
    vars(keyed).update(stored)
    keyed.recalc_char_ngram_buckets()
    keyed.adjust_vectors()
    return _SubwordVectors(keyed)


def _unpickled(path: Path) -> _Stored:
    with path.open("rb") as stream:
        try:
            stored = _DataUnpickler(stream, encoding="latin-1").load()
        except (pickle.UnpicklingError, AttributeError, ImportError, IndexError, TypeError) as odd:
            raise ValueError(f"it is no pickle of word vectors ({odd})") from None
    if not isinstance(stored, _Stored):
        raise ValueError(f"it is a pickle of {type(stored).__name__}, not of word vectors")
    return stored


def _open_npz(path: Path) -> VectorSource:
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        words, vectors = arrays["words"], arrays["vectors"]
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or len(words) != len(vectors):
        raise InvalidInput(f"{path} has {len(words)} words but vectors of shape {vectors.shape}")
    return _LoadedVectors({str(word): row for row, word in enumerate(words)}, vectors)


FORMATS: dict[str, Callable[[Path], VectorSource]] = {
    ".bin": _open_binary,
    ".vec": _open_text,
    ".txt": _open_text,
    ".kv": _open_gensim,
    ".npz": _open_npz,
}


def _gensim(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"gensim.models.{module}")
    except ImportError:
        raise MissingPart.extra("gensim", "train") from None


def _header(data: Array, binary: bool) -> tuple[int, int, int]:
    """The number of words (-1 if unknown) and of dimensions, and where the words start."""
    newline = np.flatnonzero(data[: 2**16] == ord("\n"))
    if not len(newline):
        raise ValueError("it has no first line")
    line = bytes(data[: newline[0]]).split()
    if len(line) == 2:
        count, dim = int(line[0]), int(line[1])
        if not (0 < count <= data.size and 0 < dim <= data.size):
            raise ValueError(f"its first line says {count} words of {dim} dimensions")
        return count, dim, int(newline[0]) + 1
    if binary or len(line) < 3:
        raise ValueError("its first line is not the number of words and of dimensions")
    return -1, len(line) - 1, 0  # GloVe's files have no such line


def _unpacked(path: Path) -> Path:
    """A plain copy of a compressed file in the user's cache, under the digest of its content."""
    folder = user_cache_path("freight", appauthor=False) / "unpacked"
    ending = Path(path.stem).suffix
    part = folder / f"{uuid4().hex}.part"
    try:
        with path.open("rb") as stream:
            plain = folder / f"{hashlib.file_digest(stream, 'sha256').hexdigest()}{ending}"
        if plain.is_file():
            return plain
        folder.mkdir(parents=True, exist_ok=True)
        with _DigestingReader(path) as packed, part.open("xb") as unpacked:
            shutil.copyfileobj(gzip.GzipFile(fileobj=packed), unpacked)
        # Not the name from above: the file may have changed since.
        return part.replace(folder / f"{packed.digest.hexdigest()}{ending}")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidInput(f"{path} is not a whole gzip file ({error})") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be unpacked into {folder}: {error}") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


class _DigestingReader(io.FileIO):
    """A file that is read from its start to its end, and the digest of what was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.digest = hashlib.sha256()

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size)
        self.digest.update(data)
        return data
