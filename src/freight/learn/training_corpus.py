"""A corpus as numbers: read once, a number for each word, texts packed end to end on disk."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import zipfile
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import count
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from freight.core.types import Progress
from freight.data.files import decode_lines, lines
from freight.encoders.words import word_tokenizer
from freight.errors import InvalidInput
from freight.learn.java import method_names
from freight.transport.types import Array

CHUNK = 2**20
"""How many words are worked on at once."""


@dataclass(frozen=True, eq=False)
class Packed:
    """The words of a corpus, the most frequent first, and where in it they stand.

    `ids` is mapped from a file that has no name any more: memory follows the vocabulary, not the
    corpus. A word that was too rare is -1 there.
    """

    words: tuple[str, ...]
    counts: Array
    ids: Array
    offsets: Array
    origin: dict[str, Any]

    @property
    def tokens(self) -> int:
        """How many words stand in the corpus, those left out not counted."""
        return int(self.counts.sum())

    @property
    def texts(self) -> int:
        """How many texts the corpus has."""
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
    take: str = "lines",
    lang: str | None = None,
    glob: str | None = None,
    min_count: int = 1,
    lower: bool = True,
    encoding: str = "utf-8",
    progress: Progress | None = None,
) -> Packed:
    """The texts of files, folders, zip archives and standard input (-).

    `take` says what a text is: one of `lines`, `files`, `java-names`, `java-files`.
    """
    if take not in TAKES:
        raise InvalidInput(f"take={take!r}; there is {', '.join(TAKES)}")
    chosen = TAKES[take]
    lang, glob = lang or chosen.lang, glob or chosen.glob
    files = []
    with _Packing(lang, lower, progress) as packing:
        for source in find_sources(paths, glob):
            texts, tokens = packing.texts, packing.tokens
            for document in source.documents(encoding):
                packing.add(chosen.texts(document))
            files.append(
                {
                    "name": source.name,
                    "sha256": source.sha256,
                    "texts": packing.texts - texts,
                    "tokens": packing.tokens - tokens,
                }
            )
        origin = {"take": take, "glob": glob, "encoding": encoding, "files": files}
        return packing.packed(min_count, origin)


def pack_texts(
    texts: Iterable[str], lang: str = "en", min_count: int = 1, lower: bool = True
) -> Packed:
    """The same of texts that are in hand."""
    with _Packing(lang, lower, None) as packing:
        packing.add(texts)
        return packing.packed(min_count, {"files": []})


class _Packing:
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

    def __enter__(self) -> _Packing:
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

    def packed(self, min_count: int, origin: dict[str, Any]) -> Packed:
        """What was added, with the words numbered anew by how frequent they are."""
        if not self.tokens:
            raise InvalidInput("the corpus has no words; is it empty, or --glob or --take wrong?")
        self._ids.flush()
        ids = np.memmap(self._ids, np.int32, "r+")
        words, counts = _by_frequency(ids, list(self._numbers), min_count)
        if not words:
            raise InvalidInput(f"no word stands in the corpus {min_count} times; lower --min-count")
        offsets = np.concatenate(([0], np.cumsum(self._lengths)))
        about = {
            **origin, "lang": self._lang, "lower": self._lower, "min_count": min_count,
            "texts": self.texts, "tokens": self.tokens,
        }  # fmt: skip
        return Packed(words, counts, ids, offsets, about)


def _by_frequency(ids: Array, written: list[str], least: int) -> tuple[tuple[str, ...], Array]:
    """Number the words anew in place, the most frequent first, those of one count by alphabet."""
    counts = np.zeros(len(written), np.int64)
    for chunk in _cut(ids):
        counts += np.bincount(chunk, minlength=len(written))
    often = np.flatnonzero(counts >= least).tolist()
    order = sorted(often, key=lambda word: (-counts[word], written[word]))
    ranks = np.full(len(written), -1, np.int32)
    ranks[order] = np.arange(len(order))
    for chunk in _cut(ids):
        chunk[:] = ranks[chunk]
    return tuple(written[word] for word in order), counts[order]


def _cut(ids: Array) -> Iterator[Array]:
    return (ids[at : at + CHUNK] for at in range(0, len(ids), CHUNK))


STDIN = "-"


@dataclass(frozen=True)
class Take:
    """What is a text: a line, a file or a name; how it becomes words, and in which files it is."""

    texts: Callable[[Iterable[str]], Iterable[str]]
    lang: str = "en"
    glob: str = "*"


@dataclass(frozen=True)
class CorpusSource:
    """A file to read, under the name that the user gave it."""

    name: str
    path: Path
    members: str | None = None  # which files of an archive
    spool: IO[bytes] | None = field(default=None, repr=False)

    @property
    def sha256(self) -> str:
        """Of the file as it lies on the disk."""
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
    """The files that are meant: themselves, those in a folder or in an archive by `glob`."""
    if list(paths).count(STDIN) > 1:
        raise InvalidInput("standard input can be read once; give - once only")
    found = []
    for name in paths:
        path = Path(name).expanduser()
        if name == STDIN:
            found.append(_spooled())
        elif path.is_dir():
            inside = sorted(one for one in path.rglob(glob) if one.is_file())
            if not inside:
                raise InvalidInput(f"the folder {name} holds no file {glob}; say --glob '*.txt'")
            found += [CorpusSource(one.as_posix(), one) for one in inside]
        elif not path.is_file():
            raise InvalidInput(f"there is no file or folder {name}")
        else:
            found.append(CorpusSource(name, path, glob if path.suffix == ".zip" else None))
    return found


def _spooled() -> CorpusSource:
    """Standard input, in a file that vanishes with what is returned."""
    spool: Any = tempfile.NamedTemporaryFile()  # noqa: SIM115
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.flush()
    return CorpusSource("standard input", Path(spool.name), spool=spool)


def _lines(document: Iterable[str]) -> Iterable[str]:
    return document


def _whole(document: Iterable[str]) -> Iterable[str]:
    return ["".join(document)]


def _java_names(document: Iterable[str]) -> Iterable[str]:
    return method_names("".join(document))


TAKES = {
    "lines": Take(_lines),
    "files": Take(_whole),
    "java-names": Take(_java_names, "code", "*.java"),
    "java-files": Take(_whole, "code", "*.java"),
}
