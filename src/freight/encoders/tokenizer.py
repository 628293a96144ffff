"""Texts as tokens with their character spans, by a fast tokenizer of `transformers`."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch

from freight.core.types import Cloud, Kind, Spans, UnitSpans
from freight.encoders.batching import SpecialTokens, ranges
from freight.encoders.loading import loaded_once
from freight.encoders.tokenizer_process import (
    TokenIds,
    TokenizerProcesses,
    clean_texts,
    token_ids,
)
from freight.encoders.words import text_id
from freight.errors import MissingPart
from freight.transport.types import Array


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of all texts, special ones included, packed end to end.

    `ids` are those of the vocabulary; `unit_ids` number unknown tokens by their characters.
    """

    texts: tuple[str, ...]
    offsets: Array
    ids: Array
    unit_ids: Array
    kind: Array
    places: UnitSpans

    def cloud(self, layers: torch.Tensor, windowed: Array, halved: Array) -> Cloud:
        """The cloud of these tokens with the vectors (unit, layer, dim)."""
        return Cloud(
            texts=self.texts,
            layers=layers,
            offsets=self.offsets,
            ids=self.unit_ids,
            places=self.places,
            kind=self.kind,
            windowed=windowed,
            halved=halved,
        )


class Tokenizer:
    """A fast tokenizer of `transformers`, without its own truncation and padding."""

    def __init__(self, tokenizer: Any) -> None:
        if not tokenizer.is_fast:
            raise MissingPart(
                f"{type(tokenizer).__name__} has no fast version, which character spans need;"
                " install the package that its conversion asks for, or use another model"
            )
        self._tokenizer, self._backend = tokenizer, tokenizer.backend_tokenizer
        # Now, since it must not change while a thread works with it.
        self._backend.no_truncation()
        self._backend.no_padding()

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """The tokens of texts, special ones included."""
        return self._tokens(texts, token_ids(self._backend, texts))

    def tokenize_in_processes(self, texts: Sequence[str]) -> Tokens:
        """The same tokens, computed by processes of their own where there are many texts."""
        return self._tokens(texts, self.processes(texts))

    @loaded_once
    def processes(self) -> TokenizerProcesses:
        """The processes for many texts; they are not started before it is worth it."""
        return TokenizerProcesses(self._backend)

    def _tokens(self, texts: Sequence[str], numbers: TokenIds) -> Tokens:
        counts, inner_ids = numbers
        offsets = np.concatenate(([0], np.cumsum(counts + self.special.total)))
        inner = self._inner(offsets)
        ids = np.zeros(int(offsets[-1]), np.int64)
        kind = np.full(len(ids), Kind.SPECIAL, np.uint8)
        for place, token in enumerate(self.special.opening):
            ids[offsets[:-1] + place] = token
        for place, token in enumerate(self.special.closing, -len(self.special.closing)):
            ids[offsets[1:] + place] = token
        ids[inner] = inner_ids
        kind[inner] = self._kinds[inner_ids]
        unknown = np.flatnonzero(kind & Kind.UNKNOWN)
        unit_ids = self._number(ids, unknown, texts, offsets) if len(unknown) else ids
        places = UnitSpans(lambda: self._spans(texts, offsets))
        return Tokens(tuple(texts), offsets, ids, unit_ids, kind, places)

    def _number(self, ids: Array, unknown: Array, texts: Sequence[str], offsets: Array) -> Array:
        """The ids, unknown tokens numbered by their characters; only their texts need spans."""
        owner = np.searchsorted(offsets, unknown, "right") - 1
        chosen, place = np.unique(owner, return_inverse=True)
        begins = np.concatenate(([0], np.cumsum(np.diff(offsets)[chosen])))
        spans = self._spans([texts[k] for k in chosen], begins)
        units = begins[place] + unknown - offsets[owner]
        bounds = zip(owner.tolist(), spans.start[units], spans.end[units], strict=True)
        numbered = ids.copy()
        numbered[unknown] = [text_id(texts[k][start:end]) for k, start, end in bounds]
        return numbered

    def _inner(self, offsets: Array) -> Array:
        """The units that are not special tokens."""
        opening = len(self.special.opening)
        return ranges(offsets[:-1] + opening, np.diff(offsets) - self.special.total)

    def _spans(self, texts: Sequence[str], offsets: Array) -> Spans:
        """Tokenize once more: spans are expensive, and most metrics do not need them."""
        encodings = self._backend.encode_batch(clean_texts(texts), add_special_tokens=False)
        inner, total = self._inner(offsets), int(offsets[-1])
        lengths, leads = _margins(texts)
        start, end = np.zeros((2, total), np.int64)
        for place in range(-len(self.special.closing), 0):
            start[offsets[1:] + place] = end[offsets[1:] + place] = lengths
        owner = np.repeat(leads, np.diff(offsets) - self.special.total)
        bounds, words = _flat(encodings, len(inner))
        start[inner], end[inner] = bounds.T + owner
        word = np.full(total, -1)
        word[inner] = words
        # Special tokens between two texts keep a word from continuing in the next text.
        continued = (word >= 0) & (np.diff(word, prepend=-2) == 0)
        if not self.special.total:
            continued[offsets[:-1][np.diff(offsets) > 0]] = False
        return Spans(start, end, continued)

    @loaded_once
    def special(self) -> SpecialTokens:
        """The special tokens that the tokenizer puts around a text."""
        example = self._tokenizer("a", return_special_tokens_mask=True, verbose=False)
        ids, mask = example["input_ids"], example["special_tokens_mask"]
        opening = mask.index(0) if 0 in mask else 0
        closing = mask[::-1].index(0) if 0 in mask else 0
        return SpecialTokens(tuple(ids[:opening]), tuple(ids[len(ids) - closing :]))

    @loaded_once
    def padding(self) -> int:
        """The id of padding tokens; any id will do, since no vector depends on it."""
        return int(self._tokenizer.pad_token_id or 0)

    @loaded_once
    def _kinds(self) -> Array:
        """The kind of every token of the vocabulary, by id."""
        vocabulary = self._tokenizer.get_vocab()
        kinds = np.zeros(max(vocabulary.values()) + 1, np.int64)
        for token, index in vocabulary.items():
            piece = token.removeprefix("##").lstrip("Ġ▁")
            if piece and all(unicodedata.category(c)[0] in "PS" for c in piece):
                kinds[index] |= Kind.PUNCTUATION
        unknown = self._tokenizer.unk_token_id
        if unknown is not None:
            kinds[unknown] = Kind.UNKNOWN | Kind.LITERAL
        return kinds


def _margins(texts: Sequence[str]) -> tuple[Array, Array]:
    """The length of each text, and the white space that it starts with."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    leads = (len(text) - len(text.lstrip()) for text in texts)
    return lengths, np.fromiter(leads, np.int64, len(texts))


def _flat(encodings: list[Any], total: int) -> tuple[Array, Array]:
    """Character bounds (token, 2) and word numbers of all encodings end to end; -1 is no word."""
    pairs = chain.from_iterable(e.offsets for e in encodings)
    bounds = np.fromiter(chain.from_iterable(pairs), np.int64, 2 * total).reshape(-1, 2)
    words = (-1 if word is None else word for e in encodings for word in e.word_ids)
    return bounds, np.fromiter(words, np.int64, total)
