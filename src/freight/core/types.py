"""Encoded texts: vectors of all units, packed end to end, and what is known of each unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntFlag
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from freight.core.flags import Flag, FlagKind, Flags
from freight.errors import FILE_PREFIX, InvalidInput
from freight.transport.types import Array, send_to_device

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Kind(IntFlag):
    """What a unit is besides a word or a part of one."""

    SPECIAL = 1
    CONTINUATION = 2
    PUNCTUATION = 4
    UNKNOWN = 8
    ABSENT = 16  # without a vector of its own: the vector is zero
    LITERAL = 32
    """Compared with others of this kind by spelling (its id), not by vector: equal or orthogonal.
    The vector of an unknown token says nothing of it."""
    TYPOGRAPHIC = 64
    """Punctuation that is not all of ASCII, as ellipses and most quotation marks are not."""
    BLANK = 128  # white space alone, as a token of SentencePiece


class Spans(NamedTuple):
    """Characters of each unit's text, and whether it goes on with the word of the unit before."""

    start: Array
    end: Array
    continued: Array


class UnitSpans:
    """Where units are in their texts; computed on first use, since few metrics need it."""

    def __init__(self, find: Callable[[], Spans], continued: Array | None = None) -> None:
        self._find, self._continued = find, continued

    @cached_property
    def spans(self) -> Spans:
        """The spans of every unit."""
        return self._find()

    @property
    def continued(self) -> Array:
        """Whether each unit goes on with a word, for which a tokenizer may need no spans."""
        return self.spans.continued if self._continued is None else self._continued

    def at(self, units: Array) -> UnitSpans:
        """The same of these units: numbers, or a boolean for each unit."""
        known = None if self._continued is None else self._continued[units]
        return UnitSpans(lambda: Spans(*(x[units] for x in self.spans)), known)

    def merged(self, first: Array, last: Array) -> UnitSpans:
        """The same of runs of units, none of which goes on with a word."""
        none = np.zeros(len(first), bool)
        return UnitSpans(lambda: Spans(self.spans.start[first], self.spans.end[last], none), none)


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
    def flags(self) -> list[tuple[Flag, ...]]:
        """The flags of each text: unknown units, windows, a lack of memory."""
        content = ~self.having(Kind.SPECIAL)
        unknown = content & self.having(Kind.UNKNOWN)
        owner, count = self.owner, len(self.texts)
        units, missing = (np.bincount(owner[w], minlength=count) for w in (content, unknown))
        flags: list[tuple[Flag, ...]] = [()] * count
        for text in np.flatnonzero((missing > 0) | self.windowed | self.halved):
            share = float(missing[text] / max(units[text], 1))
            known = (Flag(FlagKind.UNKNOWN_UNITS, share),) if share else ()
            windowed = (Flag(FlagKind.WINDOWED),) if self.windowed[text] else ()
            halved = (Flag(FlagKind.HALVED_BATCH),) if self.halved[text] else ()
            flags[text] = (*known, *windowed, *halved)
        return flags

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
        return self.kind | np.where(self.places.continued, np.uint8(Kind.CONTINUATION), 0)

    @property
    def known(self) -> Array:
        """Which units stand for their part of the text: by a vector of their own, or literally."""
        literal = self.having(Kind.LITERAL)
        return ~self.having(Kind.SPECIAL) & (literal | ~self.having(Kind.UNKNOWN))

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
        """The cloud with these units only (a boolean for each); a text may become empty."""
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

        It is unknown, or punctuation, if all of them were.
        """
        if not len(group):
            return self
        first = np.flatnonzero(np.diff(group, prepend=-1))
        member = np.cumsum(np.diff(group, prepend=-1) != 0) - 1
        count = np.diff(first, append=len(group))
        import torch

        lengths = torch.as_tensor(count, device=self.layers.device)
        spelled = self.spelled(count[member] > 1)
        return replace(
            self,
            layers=torch.segment_reduce(spelled.layers, "mean", lengths=lengths),
            offsets=np.searchsorted(first, self.offsets),
            ids=_numbers(self.ids, member, first),
            places=self.places.merged(first, first + count - 1),
            kind=np.bitwise_and.reduceat(spelled.kind, first),
            merged_from=np.add.reduceat(self.count, first),
        )

    def spelled(self, which: Array | None = None) -> Cloud:
        """Vectors that can be averaged: those of unknown literal units are drawn by their ids.

        Each keeps its length and gets a direction that depends on its characters alone, so that
        means and n-grams of different ones differ: directions are orthogonal but for 1/sqrt(dim).
        """
        drawn = self.having(Kind.LITERAL) & self.having(Kind.UNKNOWN)
        drawn &= which is None or which
        if not drawn.any():
            return self
        where = np.flatnonzero(drawn)
        seeds, dim = self.ids[where].astype(np.uint64), self.layers.shape[2]
        directions = np.stack([np.random.default_rng(int(k)).normal(size=dim) for k in seeds])
        unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        units, there = send_to_device(where, self.layers.device), self.layers
        lengths, layers = there[units].norm(dim=-1, keepdim=True), there.clone()
        layers[units] = lengths * send_to_device(unit, there.device)[:, None].to(there.dtype)
        kind = np.where(drawn, self.kind & ~np.uint8(Kind.LITERAL | Kind.UNKNOWN), self.kind)
        return replace(self, layers=layers, kind=kind)


def _numbers(ids: Array, member: Array, first: Array) -> Array:
    """A number for each group of ids that only the same ids in the same order have."""
    mixed = mixed_ids(ids, np.arange(len(ids)) - first[member])
    sums = np.add.reduceat(mixed, first)
    alone = np.diff(first, append=len(ids)) == 1
    return np.where(alone, ids[first], sums >> np.uint64(2)).astype(np.int64)


def mixed_ids(ids: Array, place: Array) -> Array:
    """A hash of each id and its place in a group; the sum modulo 2**64 is the group's id."""
    key = np.random.default_rng(0).integers(1, 2**63, size=int(place.max(initial=0)) + 1)
    mixed = (ids.astype(np.uint64) + np.uint64(1)) * (key.astype(np.uint64) | np.uint64(1))[place]
    return mixed ^ (mixed >> np.uint64(29))


@dataclass(frozen=True, eq=False)
class Measures:
    """Mass on points, packed end to end, one measure per text.

    `ids` says which units are the same, `unknown` which share of a text has no vector (1 where
    nothing of it can be compared), `empty` which texts are empty, and `extent` the first and the
    last unit of the cloud that each unit covers. `flags` are the flags of each text, and `literal`
    the units that are compared by their ids, None where there are none.
    """

    points: Tensor  # (unit, dim)
    weights: Array
    offsets: Array
    ids: Array
    unknown: Array
    empty: Array
    flags: tuple[tuple[Flag, ...], ...]
    extent: Array  # (unit, 2)
    literal: Array | None = None  # (unit,)

    @property
    def owner(self) -> Array:
        """The text that each unit belongs to."""
        return np.repeat(np.arange(len(self.empty)), np.diff(self.offsets))


@dataclass(frozen=True, eq=False, kw_only=True)
class NestedMeasures(Measures):
    """Measures whose units are measures themselves, as sentences are measures of words."""

    parts: Measures


class Positions(NamedTuple):
    """Where the units of a side stand in hyp and in ref, from 0 to 1 (pair, unit); nan: absent."""

    in_hyp: Array
    in_ref: Array


@dataclass(frozen=True, eq=False)
class Pairs:
    """A padded batch of pairs of measures: masses, true sizes, and which pairs of the index it has.

    `unknown` is the share of the hypothesis that has no vector. What a cost compares is added by
    the pairing that made the batch: see `similarity`, `squared_distances` and `positions`.
    """

    which: Array
    hyp_weights: Array
    ref_weights: Array
    hyp_sizes: Array
    ref_sizes: Array
    unknown: Array

    @property
    def masses(self) -> tuple[Array, Array]:
        """The masses of hyp and of ref."""
        return self.hyp_weights, self.ref_weights

    @property
    def sizes(self) -> tuple[Array, Array]:
        """The number of units of hyp and of ref."""
        return self.hyp_sizes, self.ref_sizes

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the cost matrices: pair, hyp unit, ref unit."""
        return len(self.which), self.hyp_weights.shape[1], self.ref_weights.shape[1]

    @property
    def present(self) -> Array:
        """Whether both units exist (pair, unit, unit); the rest is padding."""
        hyp = np.arange(self.hyp_weights.shape[1]) < self.hyp_sizes[:, None]
        ref = np.arange(self.ref_weights.shape[1]) < self.ref_sizes[:, None]
        both: Array = hyp[:, :, None] & ref[:, None, :]
        return both

    @property
    def moved(self) -> Array:
        """The share of each pair's mass that is transported; a pairing may cancel the rest."""
        return np.ones(len(self.which))

    @property
    def positions(self) -> tuple[Positions, Positions]:
        """The positions of hyp and ref units; here a side has its own text's units in order."""
        hyp, ref = (
            np.arange(1, mass.shape[1] + 1) / size[:, None]
            for mass, size in zip(self.masses, self.sizes, strict=True)
        )
        return Positions(hyp, np.full_like(hyp, np.nan)), Positions(np.full_like(ref, np.nan), ref)

    def similarity(self) -> Tensor:
        """Cosine similarity (pair, unit, unit)."""
        raise InvalidInput("this pairing keeps no vectors for such a cost; take another cost")

    def squared_distances(self, dtype: torch.dtype | None = None) -> Tensor:
        """Squared Euclidean distance (pair, unit, unit), in this precision."""
        raise InvalidInput("this pairing keeps no vectors for such a cost; take another cost")

    def orthogonal(self) -> Self:
        """The same pairs, every unit of hyp orthogonal to every unit of ref."""
        raise InvalidInput("this pairing keeps no vectors for such a cost; take another cost")

    def rows(self, which: slice) -> Self:
        """Some of the pairs as a batch of their own."""
        return replace(self, **{f.name: _rows(getattr(self, f.name), which) for f in fields(self)})

    def without_vectors(self) -> Pairs:
        """The same pairs without what only a cost needs."""
        return Pairs(self.which, *self.masses, *self.sizes, self.unknown)


def _rows(field: Any, which: slice) -> Any:
    """Rows of an array or a tensor, or of each in a tuple; measures stay whole."""
    if isinstance(field, tuple):
        parts = [_rows(part, which) for part in field]
        return type(field)(*parts) if hasattr(field, "_fields") else tuple(parts)
    whole = field is None or isinstance(field, Measures)
    return field if whole else field[which]


Segment = tuple[str, Sequence[str]]
"""A hypothesis and its references."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive segments: their distinct texts, per pair its texts (pair, 2) and its segment."""

    texts: list[str]
    index: Array
    segments: Array

    def __iter__(self) -> Iterator[Segment]:
        """Each hypothesis with its references."""
        starts = np.flatnonzero(np.diff(self.segments, prepend=-1))
        for pairs in np.split(self.index, starts[1:]):
            yield self.texts[pairs[0, 0]], [self.texts[ref] for ref in pairs[:, 1]]


class PairScores(NamedTuple):
    """Scores by column, and flags, of every pair."""

    columns: dict[str, Array]
    flags: list[Flags]


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
        """For signatures: name, file hash, precision, and behind `/on:` what moves no score."""
        ...

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """Vectors of these hidden states, 0 the embeddings, for every unit; without layers none."""
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
    if isinstance(encoder, DeviceEncoder):
        return encoder.torch_device
    import torch

    return torch.device("cpu")


def name_of(encoder: Encoder) -> str:
    """The name of an encoder, empty where it has none."""
    return encoder.name if isinstance(encoder, NamedEncoder) else ""


def is_ours(part: Any) -> bool:
    """Whether a function, or the class of an object, is written in this package."""
    module = str(getattr(getattr(part, "func", part), "__module__", "builtins"))
    return module.startswith(("freight.", "builtins")) and not module.startswith(FILE_PREFIX)
