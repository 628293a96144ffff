"""Word vectors: a unit for every word, the same vector wherever it stands."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import torch

from freight.core.types import Cloud, Encoder, Kind, Progress, Spans, UnitSpans
from freight.encoders.loading import EMBEDDED
from freight.encoders.transformer import Transformer
from freight.encoders.word_vectors import Vectors, open_vectors
from freight.encoders.words import Words, lowered, named, tokeniser
from freight.errors import InvalidInput
from freight.transport.types import Array

KEPT = 2**18
"""Words of which vectors are held at once."""


@dataclass(frozen=True)
class Static:
    """Words of a text, looked up in a file of vectors, or distilled from an encoder.

    `name` is static:FILE, distilled (from the embedded encoder) or distilled:ENCODER. Words are
    lower-cased unless told not to.
    `lang` says how texts become words, one sentence after the other where `sentences` is set (so
    that a full stop inside a text is a word of its own too). A word without a vector takes that of
    the word `unknown`, where one is named; otherwise its vector is zero and its unit is marked.
    """

    name: str
    lang: str | None = None
    lower: bool = True
    unknown: str | None = None
    sentences: bool = False

    @property
    def depth(self) -> int:
        """There is one layer, 0."""
        return 0

    @cached_property
    def identity(self) -> str:
        """The file's hash or the encoder's identity, and how texts become words."""
        case = "lower" if self.lower else "cased"
        unknown = f"/unknown={self.unknown}" if self.unknown else ""
        lang = f"{named(self.lang)}{' by sentence' if self.sentences else ''}"
        return f"{self._origin}/{lang}/{case}{unknown}"

    def __getstate__(self) -> dict[str, Any]:
        """What pickles is the specification; vectors are read again where they are needed."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """A unit for every word of every text."""
        if any(layer != 0 for layer in layers):
            raise InvalidInput(f"{self.name} has one layer, 0; there is no layer {max(layers)}")
        split = tokeniser(self.lang, self.sentences)
        found = [split(text) for text in texts]
        words = [word for text in found for word in text.texts]
        rows = self._store.rows(words)
        sizes = np.array([len(text.texts) for text in found], np.int64)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        vectors = self._store.vectors[rows][:, None][:, : len(layers)]
        return Cloud(
            texts=tuple(texts),
            layers=torch.as_tensor(vectors),
            offsets=offsets,
            ids=self._store.ids[rows],
            places=UnitSpans(lambda: _spans(found)),
            kind=self._store.kinds[rows],
            windowed=np.zeros(len(texts), bool),
            halved=np.zeros(len(texts), bool),
        )

    @property
    def _origin(self) -> str:
        if self._teacher is not None:
            return f"{self.name}({self._teacher.identity},layer {LAYER})"
        with self._path.open("rb") as stream:
            return f"{self.name}@sha256-{hashlib.file_digest(stream, 'sha256').hexdigest()[:12]}"

    @cached_property
    def _teacher(self) -> Transformer | None:
        kind, _, inner = self.name.partition(":")
        return Transformer(inner or EMBEDDED) if kind == DISTILLED else None

    @property
    def _path(self) -> Path:
        return Path(self.name.removeprefix("static:")).expanduser()

    @cached_property
    def _store(self) -> _Store:
        source = Distilled(self._teacher) if self._teacher else open_vectors(self._path)
        return _Store(source, self.unknown, self.lower, self.lang)


class _Store:
    """The words seen so far, each with a row: its vector, a number of its own, what kind it is.

    A word is kept as it was written, so that only a new one is lower-cased. Once there are more
    than `KEPT` it starts afresh, or whoever sends words without end would fill the memory.
    """

    def __init__(
        self, source: Vectors, unknown: str | None, lower: bool, lang: str | None = None
    ) -> None:
        self._source, self._lower, self._lang = source, lower, lang
        self._forget()
        self._instead: Array | None = None
        if unknown is not None:
            known, vectors = source.look_up([unknown])
            if not known[0]:
                raise InvalidInput(f"the vectors have no word {unknown!r} to stand for others")
            self._instead = vectors[0]

    def rows(self, words: Sequence[str]) -> Array:
        """The row of each word; words that are new are looked up all at once."""
        distinct = dict.fromkeys(words)
        new = [word for word in distinct if word not in self._rows]
        if new and len(self._rows) + len(new) > KEPT:
            self._forget()
            new = list(distinct)
        if new:
            self._add(new)
        return np.fromiter(map(self._rows.__getitem__, words), np.int64, len(words))

    def _forget(self) -> None:
        self._rows = dict[str, int]()
        self.vectors = np.empty((0, self._source.dim), np.float32)
        self.ids = np.empty(0, np.int64)
        self.kinds = np.empty(0, np.uint8)

    def _add(self, written: list[str]) -> None:
        new = [lowered(word, self._lang) for word in written] if self._lower else list(written)
        known, vectors = self._source.look_up(new)
        self._compose(new, known, vectors)
        missing = Kind.UNKNOWN if self._instead is not None else Kind.UNKNOWN | Kind.ABSENT
        if self._instead is not None:
            vectors[~known] = self._instead
        marks = np.array([not any(map(str.isalnum, word)) for word in new])
        kinds = np.where(known, 0, int(missing)) | np.where(marks, int(Kind.PUNCTUATION), 0)
        first = len(self.ids)
        self._rows.update(zip(written, range(first, first + len(new)), strict=True))
        self.vectors = np.concatenate((self.vectors, vectors))
        self.ids = np.concatenate((self.ids, [_number(word) for word in new]))
        self.kinds = np.concatenate((self.kinds, kinds.astype(np.uint8)))

    def _compose(self, words: list[str], known: Array, vectors: Array) -> None:
        """Words that are unknown with their marks apart, looked up with letter and mark as one."""
        composed = {k: normalize("NFC", words[k]) for k in np.flatnonzero(~known).tolist()}
        again = [k for k, word in composed.items() if word != words[k]]
        if not again:
            return
        known[again], vectors[again] = self._source.look_up([composed[k] for k in again])
        for k in again:
            words[k] = composed[k]


def _number(word: str) -> int:
    digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2


def _spans(found: list[Words]) -> Spans:
    start = np.array([at for text in found for at in text.start], np.int64)
    end = np.array([at for text in found for at in text.end], np.int64)
    return Spans(start, end, np.zeros(len(start), bool))


DISTILLED = "distilled"
LAYER = 0


class Distilled:
    """The mean of a word's sub-words in the embedding layer, the word standing alone."""

    def __init__(self, inner: Encoder) -> None:
        self._inner = inner
        self.dim = int(inner.encode([""], [LAYER]).layers.shape[2])

    def look_up(self, words: Sequence[str]) -> tuple[Array, Array]:
        """Every word has a vector, unless the encoder knows no part of it."""
        cloud = self._inner.encode(words, [LAYER])
        part = cloud.only(~cloud.having(Kind.SPECIAL | Kind.UNKNOWN))
        count = np.diff(part.offsets)
        sums = np.zeros((len(words), self.dim))
        np.add.at(sums, part.owner, part.layers[:, 0].double().cpu().numpy())
        return count > 0, (sums / np.maximum(count, 1)[:, None]).astype(np.float32)
