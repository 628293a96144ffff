"""A corpus read once into numbers: one number per word, texts packed end to end on disk.

`read_corpus` reads files, folders, zip archives and standard input; `pack_texts` takes texts from
memory. The option `take` says what one text is: a line, a whole file, or what a function of the
user's own extracts from a file.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import count
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from freight.core.types import Progress
from freight.data.files import STDIN, decode_lines, is_stream, lines, spool
from freight.encoders.words import word_tokenizer
from freight.errors import InvalidInput
from freight.metrics.extensions import blame, load_file
from freight.transport.types import Array

CHUNK = 2**20
"""How many words are worked on at once."""

Extract = Callable[[str], Iterable[str]]
"""The texts in the content of one file."""


@dataclass(frozen=True, eq=False)
class PackedCorpus:
    """The words of a corpus, the most frequent first, and their positions in it.

    `ids` is mapped from a temporary file, so memory grows with the vocabulary and not with the
    corpus. A word below the minimum count is -1 there.
    """

    words: tuple[str, ...]
    counts: Array
    ids: Array
    offsets: Array
    origin: dict[str, Any]

    @property
    def tokens(self) -> int:
        """The number of words in the corpus, without those below the minimum count."""
        return int(self.counts.sum())

    @property
    def texts(self) -> int:
        """The number of texts in the corpus."""
        return len(self.offsets) - 1

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[Array, Array]]:
        """Words and the number of the text that each is in, whole texts at a time."""
        first = 0
        while first < self.texts:
            begin = self.offsets[first]
            last = int(np.searchsorted(self.offsets, begin + size, "right")) - 1
            last = max(last, first + 1)
            ids = np.asarray(self.ids[begin : self.offsets[last]])
            texts = np.repeat(np.arange(first, last), np.diff(self.offsets[first : last + 1]))
            yield ids[ids >= 0], texts[ids >= 0]
            first = last


def read_corpus(
    paths: Sequence[str],
    take: str | Extract = "lines",
    lang: str = "en",
    glob: str = "*",
    min_count: int = 1,
    lower: bool = True,
    encoding: str = "utf-8",
    progress: Progress | None = None,
) -> PackedCorpus:
    """The texts of files, folders, zip archives and standard input (-).

    `take` says what one text is: `lines`, `files`, or a function of a file's content that returns
    its texts, also named as `FILE.py:FUNCTION`.
    """
    extract = _extractor(take)
    files = []
    with _CorpusPacker(lang, lower, progress) as packer:
        for source in find_sources(paths, glob):
            texts, tokens = packer.texts, packer.tokens
            for document in source.documents(encoding):
                packer.add(extract(document))
            with source.spool or nullcontext():
                sha256 = source.sha256
            files.append(
                {
                    "name": source.name,
                    "sha256": sha256,
                    "texts": packer.texts - texts,
                    "tokens": packer.tokens - tokens,
                }
            )
        name = take if isinstance(take, str) else f"{take.__module__}:{take.__name__}"
        origin = {"take": name, "glob": glob, "encoding": encoding, "files": files}
        return packer.pack(min_count, origin)


def pack_texts(
    texts: Iterable[str], lang: str = "en", min_count: int = 1, lower: bool = True
) -> PackedCorpus:
    """The corpus of texts that are in memory already."""
    with _CorpusPacker(lang, lower, None) as packer:
        packer.add(texts)
        return packer.pack(min_count, {"files": []})


class _CorpusPacker:
    """Numbers words in the order in which they turn up, and writes the numbers to a file."""

    def __init__(self, lang: str, lower: bool, progress: Progress | None) -> None:
        self._lang, self._lower, self._progress = lang, lower, progress
        self._split = word_tokenizer(lang)
        fresh: Callable[[], int] = count().__next__
        self._numbers: defaultdict[str, int] = defaultdict(fresh)
        self._ids: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._lengths = array("q")
        self.tokens = 0

    @property
    def texts(self) -> int:
        return len(self._lengths)

    def __enter__(self) -> _CorpusPacker:
        return self

    def __exit__(self, *_: object) -> None:
        self._ids.close()

    def add(self, texts: Iterable[str]) -> None:
        for text in texts:
            words = self._split(text).texts
            written = map(str.lower, words) if self._lower else words
            array("i", map(self._numbers.__getitem__, written)).tofile(self._ids)
            self._lengths.append(len(words))
            self.tokens += len(words)
            if self._progress:
                self._progress(1)

    def pack(self, min_count: int, origin: dict[str, Any]) -> PackedCorpus:
        """What was added, with the words renumbered by their frequency."""
        if not self.tokens:
            raise InvalidInput("the corpus has no words; is it empty, or --glob or --take wrong?")
        self._ids.flush()
        ids = np.memmap(self._ids, np.int32, "r+")
        words, counts = _sort_by_frequency(ids, list(self._numbers), min_count)
        if not words:
            raise InvalidInput(f"no word is in the corpus {min_count} times; lower --min-count")
        offsets = np.concatenate(([0], np.cumsum(self._lengths)))
        about = {
            **origin, "lang": self._lang, "lower": self._lower, "min_count": min_count,
            "texts": self.texts, "tokens": self.tokens,
        }  # fmt: skip
        return PackedCorpus(words, counts, ids, offsets, about)


def _sort_by_frequency(
    ids: Array, written: list[str], min_count: int
) -> tuple[tuple[str, ...], Array]:
    """Renumber the words in place, the most frequent first, words of one count by alphabet."""
    counts = np.zeros(len(written), np.int64)
    for chunk in _cut(ids):
        counts += np.bincount(chunk, minlength=len(written))
    frequent = np.flatnonzero(counts >= min_count).tolist()
    order = sorted(frequent, key=lambda word: (-counts[word], written[word]))
    ranks = np.full(len(written), -1, np.int32)
    ranks[order] = np.arange(len(order))
    for chunk in _cut(ids):
        chunk[:] = ranks[chunk]
    return tuple(written[word] for word in order), counts[order]


def _cut(ids: Array) -> Iterator[Array]:
    return (ids[at : at + CHUNK] for at in range(0, len(ids), CHUNK))


@dataclass(frozen=True)
class CorpusSource:
    """A file to read, under the name that the user gave it."""

    name: str
    path: Path
    members: str | None = None  # which files of an archive
    spool: IO[bytes] | None = field(default=None, repr=False)

    @property
    def sha256(self) -> str:
        """Of the file as it is on disk."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def documents(self, encoding: str) -> Iterator[Iterable[str]]:
        """The lines of the file, or of each file of an archive."""
        if self.members is None:
            yield lines(self.path, encoding, self.name)
            return
        try:
            with zipfile.ZipFile(self.path) as archive:
                for name in sorted(archive.namelist()):
                    if fnmatch(PurePosixPath(name).name, self.members) and name[-1] != "/":
                        with archive.open(name) as stream:
                            yield decode_lines(stream, encoding, f"{self.name}/{name}")
        except zipfile.BadZipFile as error:
            raise InvalidInput(f"{self.name} is not a whole zip file ({error})") from None


def find_sources(paths: Sequence[str], glob: str) -> list[CorpusSource]:
    """The files that are named, and those of a folder or an archive that match `glob`."""
    if list(paths).count(STDIN) > 1:
        raise InvalidInput("standard input can be read once; give - once only")
    sources = []
    for name in paths:
        path = Path(name).expanduser()
        if name == STDIN or is_stream(path):
            copy = spool(name)
            shown = "standard input" if name == STDIN else name
            sources.append(CorpusSource(shown, Path(copy.name), spool=copy))
        elif path.is_dir():
            inside = sorted(one for one in path.rglob(glob) if one.is_file())
            if not inside:
                raise InvalidInput(f"the folder {name} holds no file {glob}; say --glob '*.txt'")
            sources += [CorpusSource(one.as_posix(), one) for one in inside]
        elif not path.is_file():
            raise InvalidInput(f"there is no file or folder {name}")
        else:
            sources.append(CorpusSource(name, path, glob if path.suffix == ".zip" else None))
    return sources


def _extractor(take: str | Extract) -> Callable[[Iterable[str]], Iterable[str]]:
    """A function from the lines of a file to its texts."""
    if isinstance(take, str) and take in _BUILT_IN:
        return _BUILT_IN[take]
    extract = _load_function(take) if isinstance(take, str) else take
    return lambda document: extract("".join(document))


_BUILT_IN: dict[str, Callable[[Iterable[str]], Iterable[str]]] = {
    "lines": lambda document: document,
    "files": lambda document: ["".join(document)],
}


def _load_function(name: str) -> Extract:
    """The function that FILE.py:FUNCTION names."""
    path, colon, function = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise InvalidInput(f"take={name!r}; there is {', '.join(_BUILT_IN)}, or FILE.py:FUNCTION")
    extract = getattr(load_file(path), function, None)
    if not callable(extract):
        raise InvalidInput(f"{path} has no function {function!r} to take texts with")

    def extract_or_blame(content: str) -> list[str]:
        try:
            return list(extract(content))
        except Exception as error:
            raise InvalidInput(blame(error) or f"{name}: {error!r}") from error

    return extract_or_blame
