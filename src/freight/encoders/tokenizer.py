"""Texts as tokens with their places: what a fast tokenizer of `transformers` knows of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import torch

from freight.core.types import Cloud, Kind, Spans, UnitSpans
from freight.encoders.batching import Frame, ranges
from freight.encoders.tokenizer_process import Helper, Numbers, cleaned, token_ids
from freight.errors import MissingPart
from freight.transport.types import Array


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of all texts, special ones included, packed end to end."""

    texts: tuple[str, ...]
    offsets: Array
    ids: Array
    kind: Array
    places: UnitSpans

    def cloud(self, layers: torch.Tensor, windowed: Array, halved: Array) -> Cloud:
        """These units with their vectors."""
        units = self.ids, self.places, self.kind
        return Cloud(self.texts, layers, self.offsets, *units, windowed, halved)


class Tokeniser:
    """A tokenizer whose limits and padding are ours to decide."""

    def __init__(self, tokenizer: Any) -> None:
        if not tokenizer.is_fast:
            raise MissingPart(
                f"{type(tokenizer).__name__} has no fast version, which places of tokens need;"
                " install the package that its conversion asks for, or use another model"
            )
        self._tokenizer = tokenizer

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Tokenise; white space around a text is no part of it, and half a character is unknown."""
        return self._tokens(texts, token_ids(self._whole(), texts))

    def beside(self, texts: Sequence[str]) -> Tokens:
        """The same, found by a process of its own where there is much to do."""
        return self._tokens(texts, self._helper(texts))

    @cached_property
    def _helper(self) -> Helper:
        return Helper(self._whole)

    def _tokens(self, texts: Sequence[str], numbers: Numbers) -> Tokens:
        counts, found = numbers
        offsets = np.concatenate(([0], np.cumsum(counts + self.frame.size)))
        inner = self._inner(offsets)
        ids = np.zeros(int(offsets[-1]), np.int64)
        kind = np.full(len(ids), Kind.SPECIAL, np.uint8)
        for place, token in enumerate(self.frame.opening):
            ids[offsets[:-1] + place] = token
        for place, token in enumerate(self.frame.closing, -len(self.frame.closing)):
            ids[offsets[1:] + place] = token
        ids[inner] = found
        kind[inner] = self._kinds[found]
        places = UnitSpans(lambda: self._spans(texts, offsets))
        return Tokens(tuple(texts), offsets, ids, kind, places)

    def _whole(self) -> Any:
        """The tokenizer itself, cutting and padding nothing, whatever its file says of limits."""
        fast = self._tokenizer.backend_tokenizer
        if fast.truncation is not None:
            fast.no_truncation()
        if fast.padding is not None:
            fast.no_padding()
        return fast

    def _inner(self, offsets: Array) -> Array:
        """The units that are no special tokens."""
        opening = len(self.frame.opening)
        return ranges(offsets[:-1] + opening, np.diff(offsets) - self.frame.size)

    def _spans(self, texts: Sequence[str], offsets: Array) -> Spans:
        """Tokenises once more, since most of the time nobody asks."""
        encodings = self._whole().encode_batch(cleaned(texts), add_special_tokens=False)
        inner, total = self._inner(offsets), int(offsets[-1])
        lengths, leads = _margins(texts)
        start, end = np.zeros((2, total), np.int64)
        for place in range(-len(self.frame.closing), 0):
            start[offsets[1:] + place] = end[offsets[1:] + place] = lengths
        owner = np.repeat(leads, np.diff(offsets) - self.frame.size)
        bounds, words = _flat(encodings, len(inner))
        start[inner], end[inner] = bounds.T + owner
        word = np.full(total, -1)
        word[inner] = words
        # Special tokens stand between texts, so a text never goes on with the one before.
        continued = (word >= 0) & (np.diff(word, prepend=-2) == 0)
        if not self.frame.size:
            continued[offsets[:-1][np.diff(offsets) > 0]] = False
        return Spans(start, end, continued)

    @cached_property
    def frame(self) -> Frame:
        """What the tokenizer puts around a text."""
        found = self._tokenizer("a", return_special_tokens_mask=True, verbose=False)
        ids, mask = found["input_ids"], found["special_tokens_mask"]
        opening = mask.index(0) if 0 in mask else 0
        closing = mask[::-1].index(0) if 0 in mask else 0
        return Frame(tuple(ids[:opening]), tuple(ids[len(ids) - closing :]))

    @cached_property
    def padding(self) -> int:
        """An id to fill up with; what it is does not matter."""
        return int(self._tokenizer.pad_token_id or 0)

    @cached_property
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
            kinds[unknown] = Kind.UNKNOWN
        return kinds


def _margins(texts: Sequence[str]) -> tuple[Array, Array]:
    """The length of each text, and how much white space it starts with."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    leads = (len(text) - len(text.lstrip()) for text in texts)
    return lengths, np.fromiter(leads, np.int64, len(texts))


def _flat(encodings: list[Any], total: int) -> tuple[Array, Array]:
    """Bounds (token, 2) and words of all encodings end to end; no word is -1."""
    pairs = chain.from_iterable(e.offsets for e in encodings)
    bounds = np.fromiter(chain.from_iterable(pairs), np.int64, 2 * total).reshape(-1, 2)
    found = (-1 if word is None else word for e in encodings for word in e.word_ids)
    return bounds, np.fromiter(found, np.int64, total)
