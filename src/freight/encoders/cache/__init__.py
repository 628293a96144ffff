"""Encoders with a cache of vectors: a text that was encoded before is read instead.

`MemoryCached` keeps vectors in the memory of this process, `freight.encoders.cache.disk.DiskCached`
in a file that processes share. What is read has the bits that the encoder gave, so scores do not
depend on the cache.

An entry of a cache is what an encoder gave for one text and one layer: the units and their vectors.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from freight.core.types import (
    Cloud,
    Encoder,
    Kind,
    Progress,
    Spans,
    UnitSpans,
    device_of,
    name_of,
)
from freight.encoders.batching import ranges
from freight.errors import source_digest
from freight.transport.types import Array

Lookup = Callable[[bytes], bytes | memoryview | None]
"""The entry of a key, if there is one; a view is valid only while the store is being read."""

Entry = tuple[bytes, bytes]
"""A key and its content."""


class EntryStore(Protocol):
    """Where entries are kept."""

    def read(self, work: Callable[[Lookup], Cloud | None]) -> Cloud | None:
        """What `work` makes of the entries; nothing if they cannot be read."""

    def write(self, entries: Iterable[Entry]) -> None:
        """Keep these entries, as far as there is room."""


@dataclass(frozen=True)
class CachedEncoder(ABC):
    """An encoder behind a cache; it has the name and the identity of the encoder."""

    inner: Encoder

    @property
    def name(self) -> str:
        """The name of the encoder, empty where it has none."""
        return name_of(self.inner)

    @property
    def depth(self) -> int:
        """How many layers there are besides the embedding layer."""
        return self.inner.depth

    @property
    def identity(self) -> str:
        """That of the encoder, and a digest of its file if not ours; a cache changes no bit."""
        identity, digest = self.inner.identity, source_digest(self.inner)
        return f"{identity}@{digest[:12]}" if digest else identity

    @property
    def torch_device(self) -> torch.device:
        """Where the vectors of the encoder's clouds are."""
        return device_of(self.inner)

    @property
    @abstractmethod
    def _store(self) -> EntryStore: ...

    @abstractmethod
    def _keys(self, texts: Sequence[str]) -> list[bytes]: ...

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """What the encoder gives; it encodes only texts of which some layer is not in the cache.

        Without layers no vector is computed, and the cache is not used.
        """
        distinct = list(dict.fromkeys(texts))
        if not distinct or not layers:
            return self.inner.encode(texts, layers, progress)
        keys = dict(zip(distinct, self._keys(distinct), strict=True))
        store, device = self._store, self.torch_device
        known = store.read(lambda lookup: _read_cloud(lookup, keys, layers, device))
        cached = set(known.texts) if known else set()
        missing = [text for text in distinct if text not in cached]
        share = len(missing) / len(distinct)
        if progress:
            progress(1 - share)
        clouds = [known] if known else []
        if missing:
            scaled = (lambda part: progress(part * share)) if progress else None
            fresh = self.inner.encode(missing, layers, scaled)
            store.write(_entries(fresh, [keys[text] for text in missing], layers))
            clouds.append(fresh)
        return _in_order(_concatenate(clouds), texts)


class MemoryStore:
    """Entries in memory, at most `limit` bytes; the oldest are removed first."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._contents: dict[bytes, bytes] = {}
        self._lock = Lock()

    def read(self, work: Callable[[Lookup], Cloud | None]) -> Cloud | None:
        """What `work` makes of the entries."""
        return work(self._contents.get)

    def write(self, entries: Iterable[Entry]) -> None:
        """Keep these entries."""
        with self._lock:
            for key, content in entries:
                self._size += len(content) - len(self._contents.pop(key, b""))
                self._contents[key] = content
                while self._size > self._limit and len(self._contents) > 1:
                    self._size -= len(self._contents.pop(next(iter(self._contents))))


MEMORY_LIMIT = 4 * 2**30


@dataclass(frozen=True)
class MemoryCached(CachedEncoder):
    """An encoder with a cache in memory of at most `limit` bytes; a pickled copy starts empty."""

    limit: int = field(default=MEMORY_LIMIT, compare=False)
    _memory: MemoryStore = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_memory", MemoryStore(self.limit))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner, self.limit)

    @property
    def _store(self) -> EntryStore:
        return self._memory

    def _keys(self, texts: Sequence[str]) -> list[bytes]:
        return [text.encode("utf-8", "surrogatepass") for text in texts]


_HEADER = struct.Struct("<IIQ")  # units, dimensions, whether the text was windowed
_FIELDS = ("ids", "start", "end", "kinds")


class _TextLayer(NamedTuple):
    """The content of an entry."""

    units: Array  # (field, unit)
    vectors: Array  # (unit, dim)
    windowed: bool


def _entry_key(text_key: bytes, layer: int) -> bytes:
    return text_key + int(layer).to_bytes(4, "big", signed=True)


def _entries(cloud: Cloud, keys: Sequence[bytes], layers: Sequence[int]) -> Iterator[Entry]:
    """The entries of a cloud, without texts whose bits a halved batch may have changed."""
    vectors = cloud.layers.detach().float().cpu().numpy()
    units = np.stack([getattr(cloud, name).astype(np.int64) for name in _FIELDS])
    for k in np.flatnonzero(~cloud.halved).tolist():
        part = slice(cloud.offsets[k], cloud.offsets[k + 1])
        header = _HEADER.pack(part.stop - part.start, vectors.shape[2], bool(cloud.windowed[k]))
        start = header + units[:, part].tobytes()
        for place, layer in enumerate(layers):
            yield _entry_key(keys[k], layer), start + vectors[part, place].tobytes()


def _read_entry(content: bytes | memoryview) -> _TextLayer:
    size, dim, windowed = _HEADER.unpack_from(content)
    count, start = len(_FIELDS) * size, _HEADER.size
    units = np.frombuffer(content, np.int64, count, start).reshape(len(_FIELDS), size)
    vectors = np.frombuffer(content, np.float32, size * dim, start + units.nbytes)
    return _TextLayer(units, vectors.reshape(size, dim), bool(windowed))


def _read_text(lookup: Lookup, key: bytes, layers: Sequence[int]) -> list[_TextLayer]:
    """The entries of a text, one per layer; none if a layer is missing."""
    entries = []
    for layer in layers:
        content = lookup(_entry_key(key, layer))
        if content is None:
            return []
        entries.append(_read_entry(content))
    return entries


def _read_cloud(
    lookup: Lookup, keys: dict[str, bytes], layers: Sequence[int], device: torch.device
) -> Cloud | None:
    """The cloud of those texts of which all layers are there."""
    texts = {text: _read_text(lookup, key, layers) for text, key in keys.items()}
    texts = {text: entries for text, entries in texts.items() if entries}
    if not texts:
        return None
    first = [entries[0] for entries in texts.values()]
    offsets = np.concatenate(([0], np.cumsum([len(entry.vectors) for entry in first])))
    vectors = np.empty((offsets[-1], len(layers), first[0].vectors.shape[1]), np.float32)
    for k, entries in enumerate(texts.values()):
        for place, entry in enumerate(entries):
            vectors[offsets[k] : offsets[k + 1], place] = entry.vectors
    ids, start, end, kinds = np.concatenate([entry.units for entry in first], axis=1)
    spans = Spans(start, end, (kinds & Kind.CONTINUATION) != 0)
    return Cloud(
        texts=tuple(texts),
        layers=torch.from_numpy(vectors).to(device),
        offsets=offsets,
        ids=ids,
        places=UnitSpans(lambda: spans),
        kind=(kinds & ~Kind.CONTINUATION).astype(np.uint8),
        windowed=np.array([entry.windowed for entry in first]),
        halved=np.zeros(len(texts), bool),
    )


def _concatenate(clouds: Sequence[Cloud]) -> Cloud:
    if len(clouds) == 1:
        return clouds[0]
    sizes = np.concatenate([np.diff(cloud.offsets) for cloud in clouds])

    def spans() -> Spans:
        return Spans(*map(np.concatenate, zip(*(x.places.spans for x in clouds), strict=True)))

    return Cloud(
        texts=tuple(text for cloud in clouds for text in cloud.texts),
        layers=torch.cat([cloud.layers for cloud in clouds]),
        offsets=np.concatenate(([0], np.cumsum(sizes))),
        ids=np.concatenate([cloud.ids for cloud in clouds]),
        places=UnitSpans(spans),
        kind=np.concatenate([cloud.kind for cloud in clouds]),
        windowed=np.concatenate([cloud.windowed for cloud in clouds]),
        halved=np.concatenate([cloud.halved for cloud in clouds]),
    )


def _in_order(cloud: Cloud, texts: Sequence[str]) -> Cloud:
    """The texts of a cloud in this order; a text may occur more than once."""
    if cloud.texts == tuple(texts):
        return cloud
    place = {text: k for k, text in enumerate(cloud.texts)}
    chosen = np.array([place[text] for text in texts])
    sizes = np.diff(cloud.offsets)[chosen]
    units = ranges(cloud.offsets[chosen], sizes)
    return replace(
        cloud,
        texts=tuple(texts),
        layers=cloud.layers[torch.as_tensor(units, device=cloud.layers.device)],
        offsets=np.concatenate(([0], np.cumsum(sizes))),
        ids=cloud.ids[units],
        places=cloud.places.at(units),
        kind=cloud.kind[units],
        windowed=cloud.windowed[chosen],
        halved=cloud.halved[chosen],
    )
