"""Static word vectors: one unit per word, with the same vector in every context."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import torch

from freight.core.types import Cloud, Encoder, Kind, Progress, Spans, UnitSpans
from freight.encoders import DISTILLED, EMBEDDED, loaded_once
from freight.encoders.tokenizer import mark_kind, replace_surrogates
from freight.encoders.transformer import Transformer
from freight.encoders.word_vectors import VectorSource, open_vectors
from freight.encoders.words import Words, describe_tokenizer, lowercase, word_tokenizer
from freight.errors import InvalidInput
from freight.transport.types import Array

AUTO = "auto"
_UNKNOWN_WORD = "unk"
_LAYER = 0


@dataclass(frozen=True)
class Static:
    """Words of a text, looked up in a file of vectors, or distilled from an encoder.

    `name` is static:FILE, distilled (from the embedded encoder) or distilled:ENCODER. Words are
    lower-cased if `lower` is set. `lang` chooses how texts become words, sentence by sentence if
    `sentences` is set (so that a full stop inside a text is a word of its own too). A word without
    a vector becomes the word `unknown`, if given ("auto" is `unk`, where the vectors have it);
    otherwise its vector is zero and its unit is marked. At most `max_words` words are kept in
    memory.
    """

    name: str
    lang: str | None = None
    lower: bool = True
    unknown: str | None = None
    sentences: bool = False
    max_words: int = field(default=2**18, compare=False)

    @property
    def depth(self) -> int:
        """Zero: there is one layer."""
        return 0

    @loaded_once
    def identity(self) -> str:
        """The file's hash or the encoder's identity, and how texts become words."""
        case = "lower" if self.lower else "cased"
        word = self._vocabulary.unknown if self.unknown == AUTO else self.unknown
        unknown = f"/unknown={word}" if word else ""
        lang = f"{describe_tokenizer(self.lang)}{' by sentence' if self.sentences else ''}"
        return f"{self._origin}/{lang}/{case}{unknown}"

    def __getstate__(self) -> dict[str, Any]:
        """What pickles is the specification; vectors are read again where they are needed."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """One unit for every word of every text."""
        if any(layer != 0 for layer in layers):
            raise InvalidInput(f"{self.name} has one layer, 0; there is no layer {max(layers)}")
        tokenize = word_tokenizer(self.lang, self.sentences)
        tokenized = [tokenize(replace_surrogates(text)) for text in texts]
        words = self._vocabulary.look_up([word for text in tokenized for word in text.texts])
        sizes = np.array([len(text.texts) for text in tokenized], np.int64)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        return Cloud(
            texts=tuple(texts),
            layers=torch.as_tensor(words.vectors[:, None][:, : len(layers)]),
            offsets=offsets,
            ids=words.ids,
            places=UnitSpans(lambda: _spans(tokenized)),
            kind=words.kinds,
            windowed=np.zeros(len(texts), bool),
            halved=np.zeros(len(texts), bool),
        )

    @property
    def _origin(self) -> str:
        if self._teacher is not None:
            return f"{self.name}({self._teacher.identity},layer {_LAYER})"
        with self._path.open("rb") as stream:
            return f"static@sha256-{hashlib.file_digest(stream, 'sha256').hexdigest()[:12]}"

    @loaded_once
    def _teacher(self) -> Transformer | None:
        kind, _, inner = self.name.partition(":")
        return Transformer(inner or EMBEDDED) if kind == DISTILLED else None

    @property
    def _path(self) -> Path:
        return Path(self.name.removeprefix("static:")).expanduser()

    @loaded_once
    def _vocabulary(self) -> _Vocabulary:
        source = DistilledVectors(self._teacher) if self._teacher else open_vectors(self._path)
        return _Vocabulary(source, self.unknown, self.lower, self.lang, self.max_words)


class _WordRows(NamedTuple):
    """Words, one per row."""

    vectors: Array  # (word, dim)
    ids: Array
    kinds: Array

    def at(self, rows: Array) -> _WordRows:
        """These rows, which may repeat."""
        return _WordRows(self.vectors[rows], self.ids[rows], self.kinds[rows])


class _Vocabulary:
    """The words seen so far, each with a row: its vector, its id and its kind.

    Keys are words as written, so that only new ones are lower-cased. It is cleared when it would
    exceed `max_words`, so that endless new words do not fill the memory. Threads take turns, and
    words that cannot be added leave it as it was.
    """

    def __init__(
        self,
        source: VectorSource,
        unknown: str | None,
        lower: bool,
        lang: str | None,
        max_words: int,
    ) -> None:
        self._source, self._lower, self._lang = source, lower, lang
        self._max_words = max_words
        self._lock = Lock()
        self._clear()
        self._unknown_vector: Array | None = None
        self.unknown = _UNKNOWN_WORD if unknown == AUTO else unknown
        if self.unknown is not None:
            known, vectors = source.look_up([self.unknown])
            if known[0]:
                self._unknown_vector = vectors[0]
            elif unknown == AUTO:
                self.unknown = None
            else:
                raise InvalidInput(f"the vectors have no word {unknown!r} to use for unknown words")

    def look_up(self, words: Sequence[str]) -> _WordRows:
        """A row for each of these words; new ones are looked up together."""
        with self._lock:
            distinct = dict.fromkeys(words)
            new = [word for word in distinct if word not in self._place]
            if new and len(self._place) + len(new) > self._max_words:
                self._clear()
                new = list(distinct)
            if new:
                self._add(new)
            rows = np.fromiter(map(self._place.__getitem__, words), np.int64, len(words))
            return self._rows.at(rows)

    def _clear(self) -> None:
        self._place = dict[str, int]()
        none = np.empty((0, self._source.dim), np.float32)
        self._rows = _WordRows(none, np.empty(0, np.int64), np.empty(0, np.uint8))

    def _add(self, written: list[str]) -> None:
        new = [lowercase(word, self._lang) for word in written] if self._lower else list(written)
        known, vectors = self._source.look_up(new)
        self._compose(new, known, vectors)
        missing = Kind.UNKNOWN if self._unknown_vector is not None else Kind.UNKNOWN | Kind.ABSENT
        if self._unknown_vector is not None:
            vectors[~known] = self._unknown_vector
        marks = [0 if any(map(str.isalnum, word)) else int(mark_kind(word)) for word in new]
        kinds = np.where(known, 0, int(missing)) | np.array(marks, np.int64)
        named = zip(new, known, strict=True)
        stands = [word if has else self.unknown or word for word, has in named]
        ids = np.array([_word_id(word) for word in stands], np.int64)
        added = _WordRows(vectors, ids, kinds.astype(np.uint8))
        first = len(self._rows.ids)
        rows = _WordRows(*map(np.concatenate, zip(self._rows, added, strict=True)))
        # Nothing can fail from here on.
        self._rows = rows
        self._place.update(zip(written, range(first, first + len(new)), strict=True))

    def _compose(self, words: list[str], known: Array, vectors: Array) -> None:
        """Look up unknown words again in NFC: letter and combining mark as one character."""
        composed = {k: normalize("NFC", words[k]) for k in np.flatnonzero(~known).tolist()}
        again = [k for k, word in composed.items() if word != words[k]]
        if not again:
            return
        known[again], vectors[again] = self._source.look_up([composed[k] for k in again])
        for k in again:
            words[k] = composed[k]


def _word_id(word: str) -> int:
    digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2


def _spans(tokenized: list[Words]) -> Spans:
    start = np.array([at for text in tokenized for at in text.start], np.int64)
    end = np.array([at for text in tokenized for at in text.end], np.int64)
    return Spans(start, end, np.zeros(len(start), bool))


class DistilledVectors:
    """Word vectors from an encoder: the mean of a word's sub-words in the embedding layer."""

    def __init__(self, inner: Encoder) -> None:
        self._inner = inner
        self.dim = int(inner.encode([""], [_LAYER]).layers.shape[2])

    def look_up(self, words: Sequence[str]) -> tuple[Array, Array]:
        """Every word has a vector, unless all its sub-words are unknown to the encoder."""
        cloud = self._inner.encode(words, [_LAYER])
        part = cloud.only(~cloud.having(Kind.SPECIAL | Kind.UNKNOWN))
        count = np.diff(part.offsets)
        sums = np.zeros((len(words), self.dim))
        np.add.at(sums, part.owner, part.layers[:, 0].double().cpu().numpy())
        return count > 0, (sums / np.maximum(count, 1)[:, None]).astype(np.float32)
