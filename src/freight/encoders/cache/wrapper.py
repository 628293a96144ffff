"""Encoding with something that keeps clouds: what it has is taken from it, the rest is encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from freight.core.types import Cloud, Encoder, Progress, device_of, name_of
from freight.encoders.cache.entries import Known, entries, picked, recall

if TYPE_CHECKING:
    from freight.encoders.cache.store import Look, Text


class Keeper(Protocol):
    """A place to keep texts in: on disk, or in memory."""

    def read(self, work: Callable[[Look], Known]) -> Known | None:
        """What `work` makes of what there is; nothing where nothing can be read."""

    def write(self, texts: Iterable[Text]) -> None:
        """Keep these."""


@dataclass(frozen=True)
class Wrapped:
    """An encoder with something around it that keeps its clouds, and goes by its name."""

    inner: Encoder

    @property
    def name(self) -> str:
        """The encoder's own, where it has one."""
        return name_of(self.inner)

    @property
    def torch_device(self) -> torch.device:
        """Where the encoder's clouds lie."""
        return device_of(self.inner)

    @property
    def depth(self) -> int:
        """How many layers there are besides the embedding layer."""
        return self.inner.depth

    @property
    def identity(self) -> str:
        """The encoder's own, since remembering changes no bit."""
        return self.inner.identity


def encode_through(
    keeper: Keeper,
    encoder: Encoder,
    keys_of: Callable[[Sequence[str]], list[bytes]],
    texts: Sequence[str],
    layers: Sequence[int],
    progress: Progress | None = None,
) -> Cloud:
    """What the encoder gives, who is asked once for all texts and layers that are not kept."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return encoder.encode(texts, layers, progress)
    keys = keys_of(distinct)
    remember = partial(recall, texts=distinct, keys=keys, wanted=layers)
    known = keeper.read(remember) or remember(lambda *_: None)
    share = len(known.lacking) / len(distinct)
    if progress:
        progress(1 - share)
    if share:
        scaled = (lambda part: progress(part * share)) if progress else None
        fresh = encoder.encode([distinct[k] for k in known.lacking], known.missed, scaled)
        keeper.write(entries([keys[k] for k in known.lacking], fresh, known.missed))
        cloud = known.joined(fresh)
    else:
        cloud = known.cloud(device_of(encoder))
    if len(distinct) == len(texts):
        return cloud
    place = {text: k for k, text in enumerate(distinct)}
    return picked(cloud, np.array([place[text] for text in texts]))
