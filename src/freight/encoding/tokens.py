"""Texts as tokens with their places: what a fast tokenizer of `transformers` knows of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from freight.clouds import Cloud, Kind
from freight.encoding.windows import Frame
from freight.errors import MissingPart
from freight.types import Array


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of each text without special ones, and the packed description of all units."""

    texts: tuple[str, ...]
    inner: list[list[int]]
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
        """Tokenise; white space around a text is no part of it."""
        stripped = [text.strip() for text in texts]
        options = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
        encodings = self._tokenizer(stripped, **options).encodings if stripped else []
        inner = [encoding.ids for encoding in encodings]
        opening, closing = len(self.frame.opening), len(self.frame.closing)
        sizes = np.array([len(ids) + opening + closing for ids in inner], np.int64)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.zeros((5, int(offsets[-1])), np.int64)  # ids, start, end, word, kind
        rows[3], rows[4] = -1, int(Kind.SPECIAL)
        for text, encoding in enumerate(encodings):
            lead = len(texts[text]) - len(texts[text].lstrip())
            first, last = int(offsets[text]), int(offsets[text + 1])
            rows[0, first : first + opening] = self.frame.opening
            rows[0, last - closing : last] = self.frame.closing
            rows[1:3, last - closing : last] = len(texts[text])
            if encoding.ids:
                block = rows[:, first + opening : last - closing]
                block[0], block[1:3] = encoding.ids, np.array(encoding.offsets).T + lead
                words = np.array([-1 if w is None else w for w in encoding.word_ids])
                block[3], block[4] = words, self._kinds[block[0]]
                block[4, 1:] |= np.where(words[1:] == words[:-1], int(Kind.CONTINUATION), 0)
        ids, start, end, word, kind = rows
        places = ids, start, end, word, kind.astype(np.uint8)
        return Tokens(tuple(texts), inner, offsets, *places)

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
