"""Encoded texts: vectors of all units, packed end to end, and what is known of each unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch

from freight.transport.devices import send_to_device
from freight.transport.types import Array


class Kind(IntFlag):
    """What a unit is besides a word or a part of one."""

    SPECIAL = 1
    CONTINUATION = 2
    PUNCTUATION = 4
    UNKNOWN = 8
    ABSENT = 16
    """Without a vector of its own: the vector is zero."""


class Spans(NamedTuple):
    """Characters of each unit's text, and whether it goes on with the word of the unit before."""

    start: Array
    end: Array
    continued: Array


class UnitSpans:
    """Where units are in their texts; found out when somebody asks, since few metrics do."""

    def __init__(self, find: Callable[[], Spans]) -> None:
        self._find = find

    @cached_property
    def spans(self) -> Spans:
        """Of every unit."""
        return self._find()

    def at(self, units: Array) -> UnitSpans:
        """Of these units, or of those that have a flag."""
        return UnitSpans(lambda: Spans(*(x[units] for x in self.spans)))

    def merged(self, first: Array, last: Array) -> UnitSpans:
        """Of runs of units, none of which goes on with a word."""
        none = np.zeros(len(first), bool)
        return UnitSpans(lambda: Spans(self.spans.start[first], self.spans.end[last], none))


@dataclass(frozen=True, eq=False)
class Cloud:
    """Texts as vectors, end to end: text k has the units offsets[k] to offsets[k + 1].

    `kind` holds `Kind` flags, continuations aside, which `places` knows; `windowed` marks texts
    longer than the encoder's window, and `halved` those encoded in a smaller batch because memory
    ran out.
    """

    texts: tuple[str, ...]
    layers: torch.Tensor  # (unit, layer, dim)
    offsets: Array
    ids: Array
    places: UnitSpans
    kind: Array
    windowed: Array
    halved: Array
    merged_from: Array | None = None  # (unit,), where units hold several

    @property
    def count(self) -> Array:
        """How many units of the encoder's each unit holds."""
        return np.ones(len(self.ids), np.int64) if self.merged_from is None else self.merged_from

    @property
    def notes(self) -> list[tuple[str, ...]]:
        """What is worth knowing of each text: unknown units, windows, a lack of memory."""
        content = ~self.having(Kind.SPECIAL)
        unknown = content & self.having(Kind.UNKNOWN)
        owner, count = self.owner, len(self.texts)
        units, missing = (np.bincount(owner[w], minlength=count) for w in (content, unknown))
        found: list[tuple[str, ...]] = [()] * count
        for text in np.flatnonzero((missing > 0) | self.windowed | self.halved):
            share = [f"unknown units {missing[text] / units[text]:.0%}"] if missing[text] else []
            windowed = ["windowed"] if self.windowed[text] else []
            found[text] = (*share, *windowed, *(["halved batch"] if self.halved[text] else []))
        return found

    @property
    def owner(self) -> Array:
        """The text that each unit belongs to."""
        return np.repeat(np.arange(len(self.texts)), np.diff(self.offsets))

    @property
    def start(self) -> Array:
        """Where in its text each unit starts."""
        return self.places.spans.start

    @property
    def end(self) -> Array:
        """Where it ends."""
        return self.places.spans.end

    @property
    def kinds(self) -> Array:
        """The kind of each unit, continuations included."""
        return self.kind | np.where(self.places.spans.continued, np.uint8(Kind.CONTINUATION), 0)

    def having(self, kind: Kind) -> Array:
        """Which units are of this kind."""
        known = self.kinds if kind & Kind.CONTINUATION else self.kind
        return (known & kind) != 0

    def at(self, places: Sequence[int]) -> Cloud:
        """The same units with these of the layers that were encoded, by their place."""
        if list(places) == list(range(self.layers.shape[1])):
            return self
        return replace(self, layers=self.layers[:, list(places)])

    def only(self, kept: Array) -> Cloud:
        """These units alone (a flag for each); every text stays, if only as an empty one."""
        if kept.all():
            return self
        counts = np.bincount(self.owner[kept], minlength=len(self.texts))
        where = send_to_device(np.flatnonzero(kept), self.layers.device)
        return replace(
            self,
            layers=self.layers[where],
            offsets=np.concatenate(([0], np.cumsum(counts))),
            merged_from=None if self.merged_from is None else self.merged_from[kept],
            ids=self.ids[kept],
            places=self.places.at(kept),
            kind=self.kind[kept],
        )

    def merged(self, group: Array) -> Cloud:
        """Neighbours of one group become one unit: their mean vector, and the span of them all.

        It is unknown if any of them was, and punctuation if all of them were.
        """
        if not len(group):
            return self
        first = np.flatnonzero(np.diff(group, prepend=-1))
        member = np.cumsum(np.diff(group, prepend=-1) != 0) - 1
        count = np.diff(first, append=len(group))
        lengths = torch.as_tensor(count, device=self.layers.device)
        every = np.bitwise_and.reduceat(self.kind, first)
        some = np.bitwise_or.reduceat(self.kind, first)
        last = first + count - 1
        return replace(
            self,
            layers=torch.segment_reduce(self.layers, "mean", lengths=lengths),
            offsets=np.searchsorted(first, self.offsets),
            ids=_numbers(self.ids, member, first),
            places=self.places.merged(first, last),
            kind=every | (some & Kind.UNKNOWN),
            merged_from=np.add.reduceat(self.count, first),
        )


def _numbers(ids: Array, member: Array, first: Array) -> Array:
    """A number for each group of ids that only the same ids in the same order have."""
    mixed = mixed_ids(ids, np.arange(len(ids)) - first[member])
    sums = np.add.reduceat(mixed, first)
    alone = np.diff(first, append=len(ids)) == 1
    return np.where(alone, ids[first], sums >> np.uint64(2)).astype(np.int64)


def mixed_ids(ids: Array, place: Array) -> Array:
    """Ids scrambled by their place in a group: their sum, wrapping around, numbers the group."""
    key = np.random.default_rng(0).integers(1, 2**63, size=int(place.max(initial=0)) + 1)
    mixed = (ids.astype(np.uint64) + np.uint64(1)) * (key.astype(np.uint64) | np.uint64(1))[place]
    return mixed ^ (mixed >> np.uint64(29))


Progress = Callable[[float], None]
"""Told, now and then, which share of the work was done since the last time."""


class Encoder(Protocol):
    """Turns texts into clouds: the extension point for encoders of your own.

    An encoder is a light, hashable specification whose weights are loaded on first use. It may also
    have the optional abilities `NamedEncoder`, `PreparingEncoder` and `DeviceEncoder`.
    """

    @property
    def depth(self) -> int:
        """How many layers there are besides the embedding layer."""
        ...

    @property
    def identity(self) -> str:
        """What a signature says of it: name, revision or file hash, precision, device."""
        ...

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """Vectors of these hidden states, 0 being the embeddings, for every unit of every text.

        Without layers the units are found and no vector is computed.
        """
        ...


@runtime_checkable
class NamedEncoder(Protocol):
    """Optional ability of an encoder: a name by which `freight.encoder` finds it again."""

    @property
    def name(self) -> str:
        """As given to `freight.encoder`."""
        ...


@runtime_checkable
class PreparingEncoder(Protocol):
    """Optional ability of an encoder: work on texts that needs no GPU, such as tokenizing."""

    def prepare(self, texts: Sequence[str]) -> Any:
        """Whatever `encode` then takes in place of these texts."""
        ...


@runtime_checkable
class DeviceEncoder(Protocol):
    """Optional ability of an encoder: vectors on another device than the CPU."""

    @property
    def torch_device(self) -> torch.device:
        """Where the vectors of its clouds are; known without loading the weights."""
        ...


def device_of(encoder: Encoder) -> torch.device:
    """Where the vectors of an encoder's clouds are."""
    return encoder.torch_device if isinstance(encoder, DeviceEncoder) else torch.device("cpu")


def name_of(encoder: Encoder) -> str:
    """The name of an encoder, empty where it has none."""
    return encoder.name if isinstance(encoder, NamedEncoder) else ""
