"""Clouds as entries of a store, and entries as clouds: one for a text's units, one for each layer.

Whether a text was windowed is known only where it was encoded, so that it is kept with the vectors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from freight.core.types import Cloud, Kind, Spans, UnitSpans
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.encoders.cache.store import Look, Text


_HEAD = struct.Struct("<IIB3x")  # units, dimensions, whether the text was windowed
_UNITS = b"units"
FIELDS = ("ids", "start", "end", "kinds")
"""What is kept of every unit, in this order."""


@dataclass(frozen=True, eq=False)
class Known:
    """What a store has of some texts: the units of some, and of those the vectors of some layers.

    The units that are known are packed end to end; where vectors are not held, there is anything.
    """

    texts: Sequence[str]
    wanted: Sequence[int]
    offsets: Array
    rows: Array  # (field, unit)
    vectors: Array  # (unit, layer, dim)
    found: Array  # (text,): the units are known
    held: Array  # (text, layer): the vectors are known
    windowed: Array

    @cached_property
    def lacking(self) -> Array:
        """The texts that have to be encoded."""
        return np.flatnonzero(~(self.found & self.held.all(axis=1)))

    @cached_property
    def missed(self) -> list[int]:
        """The layers that some text lacks."""
        places = np.flatnonzero(~self.held.all(axis=0)).tolist()
        return list(dict.fromkeys(self.wanted[place] for place in places))

    def cloud(self, device: torch.device) -> Cloud:
        """The texts, where none is lacking."""
        vectors = torch.from_numpy(self.vectors).to(device)
        halved = np.zeros(len(self.texts), bool)
        return _cloud(self.texts, vectors, self.offsets, self.rows, self.windowed, halved)

    def joined(self, fresh: Cloud) -> Cloud:
        """The texts, with the missed layers of the lacking ones from this cloud."""
        if len(self.lacking) == len(self.texts) and self.missed == list(self.wanted):
            return fresh
        sizes = np.diff(self.offsets)
        sizes[self.lacking] = np.diff(fresh.offsets)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        whole = np.setdiff1d(np.arange(len(self.texts)), self.lacking)
        rows = np.empty((len(FIELDS), offsets[-1]), np.int64)
        rows[:, _units(offsets, whole)] = self.rows[:, _units(self.offsets, whole)]
        rows[:, _units(offsets, self.lacking)] = [getattr(fresh, name) for name in FIELDS]
        windowed, halved = self.windowed.copy(), np.zeros(len(self.texts), bool)
        windowed[self.lacking], halved[self.lacking] = fresh.windowed, fresh.halved
        vectors = self._joined_vectors(fresh, offsets)
        return _cloud(self.texts, vectors, offsets, rows, windowed, halved)

    def _joined_vectors(self, fresh: Cloud, offsets: Array) -> torch.Tensor:
        shape = int(offsets[-1]), len(self.wanted), fresh.layers.shape[2]
        vectors = torch.empty(shape, device=fresh.layers.device)
        for place, layer in enumerate(self.wanted):
            old = np.flatnonzero(self.held[:, place])
            new = np.flatnonzero(~self.held[self.lacking, place])
            if len(old):
                stored = torch.from_numpy(self.vectors[_units(self.offsets, old), place])
                vectors[_units(offsets, old), place] = stored.to(vectors.device)
            if len(new):
                taken = fresh.layers[_units(fresh.offsets, new), self.missed.index(layer)]
                vectors[_units(offsets, self.lacking[new]), place] = taken
        return vectors


class _StoredUnits(NamedTuple):
    """A text's units: the dimension of their vectors, and their fields."""

    dim: int
    rows: Array


def recall(look: Look, texts: Sequence[str], keys: Sequence[bytes], wanted: Sequence[int]) -> Known:
    """Look for the units of each text, and for its vectors of the wanted layers."""
    units = {k: entry for k, key in enumerate(keys) if (entry := _read_units(look(key, _UNITS)))}
    sizes = [units[k].rows.shape[1] if k in units else 0 for k in range(len(keys))]
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    dim = max((entry.dim for entry in units.values()), default=0)
    rows = np.empty((len(FIELDS), offsets[-1]), np.int64)
    vectors = np.empty((offsets[-1], len(wanted), dim), np.float32)
    found, windowed = np.zeros((2, len(keys)), bool)
    held = np.zeros((len(keys), len(wanted)), bool)
    for k, entry in units.items():
        part = slice(offsets[k], offsets[k + 1])
        found[k], rows[:, part] = True, entry.rows
        for place, layer in enumerate(wanted):
            content = look(keys[k], _name(layer))
            if content is not None and _HEAD.unpack_from(content)[:2] == (sizes[k], dim):
                flat = np.frombuffer(content, np.float32, offset=_HEAD.size)
                vectors[part, place] = flat.reshape(sizes[k], dim)
                held[k, place], windowed[k] = True, _HEAD.unpack_from(content)[2]
    return Known(texts, wanted, offsets, rows, vectors, found, held, windowed)


def entries(keys: Sequence[bytes], cloud: Cloud, layers: Sequence[int]) -> Iterator[Text]:
    """What to store of each text; nothing where a halved batch may have changed its bits."""
    vectors = cloud.layers.detach().float().cpu().numpy()
    rows = np.stack([getattr(cloud, name).astype(np.int64) for name in FIELDS])
    for k in np.flatnonzero(~cloud.halved).tolist():
        part = slice(cloud.offsets[k], cloud.offsets[k + 1])
        size, dim = part.stop - part.start, vectors.shape[2]
        head = _HEAD.pack(size, dim, int(cloud.windowed[k]))
        yield (
            keys[k],
            {
                _UNITS: _HEAD.pack(size, dim, False) + rows[:, part].tobytes(),
                **{
                    _name(x): head + vectors[part, place].tobytes()
                    for place, x in enumerate(layers)
                },
            },
        )


def picked(cloud: Cloud, which: Array) -> Cloud:
    """These texts of a cloud, in this order; one may be wanted twice."""
    units = _units(cloud.offsets, which)
    return replace(
        cloud,
        texts=tuple(cloud.texts[k] for k in which),
        layers=cloud.layers[torch.as_tensor(units, device=cloud.layers.device)],
        offsets=np.concatenate(([0], np.cumsum(np.diff(cloud.offsets)[which]))),
        windowed=cloud.windowed[which],
        halved=cloud.halved[which],
        ids=cloud.ids[units],
        places=cloud.places.at(units),
        kind=cloud.kind[units],
    )


def _name(layer: int) -> bytes:
    return b"layer" + int(layer).to_bytes(4, "big", signed=True)


def _read_units(content: memoryview | None) -> _StoredUnits | None:
    if content is None:
        return None
    size, dim, _ = _HEAD.unpack_from(content)
    rows = np.frombuffer(content, np.int64, offset=_HEAD.size).reshape(len(FIELDS), size)
    return _StoredUnits(dim, rows.copy())


def _cloud(
    texts: Sequence[str],
    vectors: torch.Tensor,
    offsets: Array,
    rows: Array,
    windowed: Array,
    halved: Array,
) -> Cloud:
    ids, start, end, kinds = rows
    continued = (kinds & Kind.CONTINUATION) != 0
    kind = (kinds & ~Kind.CONTINUATION).astype(np.uint8)
    places = UnitSpans(lambda: Spans(start, end, continued))
    return Cloud(tuple(texts), vectors, offsets, ids, places, kind, windowed, halved)


def _units(offsets: Array, which: Array) -> Array:
    """The units of these texts, in their order."""
    sizes = np.diff(offsets)[which]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(offsets[:-1][which], sizes) + within
