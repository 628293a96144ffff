"""A cache in memory changes no bit, and stays within its limit."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from freight.core.types import Cloud, Progress
from freight.encoders.cache import MemoryCached
from freight.encoders.hashed import Hashed


@dataclass(frozen=True)
class Counting(Hashed):
    """An encoder that records its calls: the number of texts, and the layers."""

    asked: list[tuple[int, tuple[int, ...]]] = field(default_factory=list, compare=False)

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        self.asked.append((len(texts), tuple(layers)))
        return super().encode(texts, layers, progress)


def test_it_is_the_encoder_to_everyone_else() -> None:
    encoder = Counting(depth=6)
    cached = MemoryCached(encoder)
    assert cached.identity.startswith(f"{encoder.identity}@")  # and a digest of this file
    assert (cached.depth, cached.name) == (6, "")
    assert cached.torch_device == torch.device("cpu")
    assert cached == MemoryCached(Counting(depth=6)) != MemoryCached(Counting(depth=5))
    assert hash(cached) == hash(MemoryCached(Counting(depth=6)))
    assert pickle.loads(pickle.dumps(cached)) == cached


def test_only_texts_that_lack_a_layer_are_encoded() -> None:
    encoder = Counting(depth=6)
    cached = MemoryCached(encoder)
    texts = ["coal and salt", "", "a train", "coal and salt"]
    for layers in ((1,), (1, 4), (4,), (4, 1)):
        cloud, expected = cached.encode(texts, layers), Hashed(depth=6).encode(texts, layers)
        assert cloud.texts == expected.texts
        np.testing.assert_array_equal(cloud.layers.numpy(), expected.layers.numpy())
        for name in ("ids", "offsets", "start", "end", "kinds"):
            np.testing.assert_array_equal(getattr(cloud, name), getattr(expected, name))
    assert encoder.asked == [(3, (1,)), (3, (1, 4))]


def test_the_oldest_entries_make_room() -> None:
    encoder = Counting()
    cached = MemoryCached(encoder, limit=2000)
    cached.encode(["one two", "three four five six seven eight"], [1])
    cached.encode(["three four five six seven eight"], [1])
    assert len(encoder.asked) == 1
    cached.encode(["one two"], [1])
    assert encoder.asked[-1] == (1, (1,))


def test_a_pickled_copy_starts_empty() -> None:
    cached = MemoryCached(Counting())
    cached.encode(["one two"], [1])
    copy = pickle.loads(pickle.dumps(cached))
    copy.inner.asked.clear()
    copy.encode(["one two"], [1])
    assert copy.inner.asked == [(1, (1,))]
