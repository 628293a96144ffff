"""Any encoder, remembering on disk: what was encoded once, on any run, is read instead.

The bits that are read are those that the encoder gave, so that nobody can tell a cold cache from a
warm one by the scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

import torch

from freight.core.types import Cloud, Encoder, Progress, device_of
from freight.encoders.cache.entries import FIELDS
from freight.encoders.cache.store import CacheInfo, Store
from freight.encoders.cache.wrapper import Wrapped, encode_through
from freight.errors import FreightError, InvalidInput
from freight.folders import user_cache

__all__ = ["LIMIT", "CacheInfo", "Cached", "cache_info", "clear_cache"]

LIMIT = 20 * 2**30
_LEAST = 2**20


@dataclass(frozen=True)
class Cached(Wrapped):
    """An encoder, a folder to remember in, and the bytes that may lie there.

    The folder is `freight/vectors` in the user's cache unless given. Once it is full, the texts
    that came first make room.
    """

    folder: str | None = None
    limit: int = LIMIT

    def __post_init__(self) -> None:
        if self.limit < _LEAST:
            raise InvalidInput(f"limit={self.limit} is too little to remember in; {_LEAST} will do")

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """What the encoder gives, who is asked once for all texts and layers that are not known."""
        store = Store(_place(self.folder), self.limit)
        return encode_through(
            store, self.inner, partial(_digests, self.inner), texts, layers, progress
        )


def cache_info(folder: str | None = None) -> CacheInfo:
    """How full a cache is; it may be in use."""
    found = Store(_place(folder)).info()
    return replace(found, limit=found.limit or LIMIT)


def clear_cache(folder: str | None = None) -> int:
    """Forget everything, and say how many bytes of disk that freed; who uses the cache goes on."""
    place = _place(folder)
    try:
        return Store(place).discard()
    except OSError as error:
        raise FreightError(f"the cache in {place} could not be cleared: {error}") from error


def _place(folder: str | None) -> Path:
    if folder is not None:
        return Path(folder).expanduser().absolute()
    return user_cache("vectors")


def _digests(encoder: Encoder, texts: Sequence[str]) -> list[bytes]:
    """A key for each text: of the encoder, of what its bits depend on besides, and of the text."""
    parts = encoder.identity, _chip(device_of(encoder)), *_libraries(), *FIELDS
    start = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).digest()
    return [
        hashlib.sha256(start + text.encode("utf-8", "surrogatepass")).digest() for text in texts
    ]


def _chip(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return str(torch.backends.cpu.get_cpu_capability())


@cache
def _libraries() -> tuple[str, ...]:
    return tuple(version(name) for name in ("torch", "transformers", "tokenizers"))
