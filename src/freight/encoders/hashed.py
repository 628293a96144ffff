"""Vectors from a hash of each word: for tests and documentation, without any model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from freight.core.types import Cloud, Kind, Progress, Spans, UnitSpans
from freight.encoders.tokenizer import mark_kind, replace_surrogates
from freight.errors import InvalidInput
from freight.transport.types import Array


@dataclass(frozen=True)
class Hashed:
    """Lower-cased words as random vectors that depend on the word alone, or as one-hot vectors.

    Layers differ from each other by a fixed amount of noise. One-hot words are literal units: equal
    or orthogonal by their characters. The place of the one is a hash modulo `dim`, so only in means
    and n-grams of words can two of them collide.
    """

    dim: int = 64
    depth: int = 4
    one_hot: bool = False

    def __post_init__(self) -> None:
        if self.dim < 1 or self.depth < 0:
            raise InvalidInput(
                f"dim={self.dim}, depth={self.depth}; dim is at least 1, depth at least 0"
            )

    @property
    def identity(self) -> str:
        """Kind, dimensions and depth."""
        return f"{'one-hot' if self.one_hot else 'hashed'}-{self.dim}x{self.depth}"

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """One unit for every word and every punctuation mark; there are no special tokens."""
        for layer in layers:
            if not 0 <= layer <= self.depth:
                raise InvalidInput(f"layer {layer} is out of range; there are 0..{self.depth}")
        by_text = [list(re.finditer(r"\w+|[^\w\s]", replace_surrogates(text))) for text in texts]
        matches = [match for words in by_text for match in words]
        sizes = [len(words) for words in by_text]
        marks = np.array([0 if m[0][0].isalnum() else mark_kind(m[0]) for m in matches], np.uint8)
        literal = int(Kind.LITERAL) if self.one_hot else 0
        vectors = [self._vectors(m[0].lower(), layers) for m in matches]
        none = np.zeros((0, len(layers), self.dim), np.float32)
        bounds = np.array([m.span() for m in matches], np.int64).reshape(-1, 2)
        spans = Spans(bounds[:, 0], bounds[:, 1], np.zeros(len(matches), bool))
        return Cloud(
            texts=tuple(texts),
            layers=torch.as_tensor(np.stack(vectors) if vectors else none),
            offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            ids=np.array([_hash(m[0].lower()) >> 2 for m in matches], np.int64),
            places=UnitSpans(lambda: spans),
            kind=(marks | literal).astype(np.uint8),
            windowed=np.zeros(len(texts), bool),
            halved=np.zeros(len(texts), bool),
        )

    def _vectors(self, word: str, layers: Sequence[int]) -> Array:
        if self.one_hot:
            return np.tile(np.eye(1, self.dim, _hash(word) % self.dim), (len(layers), 1)).astype(
                np.float32
            )
        rng = np.random.default_rng(_hash(word))
        base, noise = rng.normal(size=self.dim), rng.normal(size=(self.depth + 1, self.dim))
        return (base + 0.3 * noise[list(layers)]).astype(np.float32)


def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
