"""Vectors from a hash of each word: for tests and docs, without any download."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from freight.core.types import Cloud, Kind, Progress, Spans, UnitSpans
from freight.errors import InvalidInput
from freight.transport.types import Array


@dataclass(frozen=True)
class Hashed:
    """Words, lower-cased, as random vectors that depend on the word alone, or one-hot ones.

    Layers differ from each other by a fixed amount of noise. A one-hot vector has `dim` places, in
    which two different words of a test will rarely meet if there are enough of them.
    """

    dim: int = 64
    depth: int = 4
    one_hot: bool = False

    def __post_init__(self) -> None:
        if self.dim < 1 or self.depth < 0:
            raise InvalidInput("dim is at least 1, depth at least 0")

    @property
    def identity(self) -> str:
        """The shape of it."""
        return f"{'one-hot' if self.one_hot else 'hashed'}-{self.dim}x{self.depth}"

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """A unit for every word and every punctuation mark; no special tokens."""
        for layer in layers:
            if not 0 <= layer <= self.depth:
                raise InvalidInput(f"layer {layer} is out of range; there are 0..{self.depth}")
        found = [list(re.finditer(r"\w+|[^\w\s]", text)) for text in texts]
        matches = [match for text in found for match in text]
        sizes = [len(text) for text in found]
        marks = np.array([not m[0][0].isalnum() for m in matches], bool)
        vectors = [self._vectors(m[0].lower(), layers) for m in matches]
        none = np.zeros((0, len(layers), self.dim), np.float32)
        bounds = np.array([m.span() for m in matches], np.int64).reshape(-1, 2)
        spans = Spans(bounds[:, 0], bounds[:, 1], np.zeros(len(matches), bool))
        return Cloud(
            texts=tuple(texts),
            layers=torch.as_tensor(np.stack(vectors) if vectors else none),
            offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            ids=np.array([_number(m[0].lower()) >> 33 for m in matches], np.int64),
            places=UnitSpans(lambda: spans),
            kind=np.where(marks, int(Kind.PUNCTUATION), 0).astype(np.uint8),
            windowed=np.zeros(len(texts), bool),
            halved=np.zeros(len(texts), bool),
        )

    def _vectors(self, word: str, layers: Sequence[int]) -> Array:
        if self.one_hot:
            return np.tile(np.eye(1, self.dim, _number(word) % self.dim), (len(layers), 1)).astype(
                np.float32
            )
        rng = np.random.default_rng(_number(word))
        base, noise = rng.normal(size=self.dim), rng.normal(size=(self.depth + 1, self.dim))
        return (base + 0.3 * noise[list(layers)]).astype(np.float32)


def _number(word: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
    )
