"""Texts as tokens with their places: what a fast tokenizer of `transformers` knows of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import torch

from freight.clouds import Cloud, Kind
from freight.encoding.windows import Frame
from freight.errors import MissingPart
from freight.types import Array

_HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate, which is no character


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of all texts, special ones included, packed end to end."""

    texts: tuple[str, ...]
    offsets: Array
    ids: Array
    start: Array
    end: Array
    word: Array
    kind: Array

    def cloud(self, layers: torch.Tensor, windowed: Array, halved: Array) -> Cloud:
        """These units with their vectors."""
        places = self.start, self.end, self.word, self.kind
        return Cloud(self.texts, layers, self.offsets, self.ids, *places, windowed, halved)


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
        encodings = self._encoded([_HALF.sub("\ufffd", text.strip()) for text in texts])
        opening, closing = len(self.frame.opening), len(self.frame.closing)
        counts = np.fromiter((len(one) for one in encodings), np.int64, len(encodings))
        offsets = np.concatenate(([0], np.cumsum(counts + opening + closing)))
        owner = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
        inner = offsets[owner] + opening + within
        rows = np.zeros((5, int(offsets[-1])), np.int64)  # ids, start, end, word, kind
        rows[3], rows[4] = -1, int(Kind.SPECIAL)
        lengths, leads = _margins(texts)
        for place, token in enumerate(self.frame.opening):
            rows[0, offsets[:-1] + place] = token
        for place, token in enumerate(self.frame.closing):
            rows[0, offsets[1:] - closing + place] = token
            rows[1:3, offsets[1:] - closing + place] = lengths
        ids, spans, words = _flat(encodings, len(owner))
        rows[0, inner] = ids
        rows[1:3, inner] = spans.T + leads[owner]
        rows[3, inner] = words
        again = np.diff(words, prepend=-2) == 0
        again &= within > 0
        rows[4, inner] = self._kinds[ids] | np.where(again, int(Kind.CONTINUATION), 0)
        places = rows[0], rows[1], rows[2], rows[3], rows[4].astype(np.uint8)
        return Tokens(tuple(texts), offsets, *places)

    def _encoded(self, texts: list[str]) -> list[Any]:
        """Whole and unpadded, whatever the tokenizer's file says of limits."""
        fast = self._tokenizer.backend_tokenizer
        if fast.truncation is not None:
            fast.no_truncation()
        if fast.padding is not None:
            fast.no_padding()
        found: list[Any] = fast.encode_batch(texts, add_special_tokens=False)
        return found

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


def _flat(encodings: list[Any], total: int) -> tuple[Array, Array, Array]:
    """Ids, spans (token, 2) and words of all encodings end to end; no word is -1."""
    ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), np.int64, total)
    pairs = chain.from_iterable(e.offsets for e in encodings)
    spans = np.fromiter(chain.from_iterable(pairs), np.int64, 2 * total).reshape(-1, 2)
    found = (-1 if word is None else word for e in encodings for word in e.word_ids)
    return ids, spans, np.fromiter(found, np.int64, total)
