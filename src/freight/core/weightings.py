"""Weightings: from the units of a cloud to measures, a vector and a mass for each unit.

Layer pooling comes first: how a unit's vectors in several layers (unit, layer, dim) become one. The
standardised pooling also removes the mean and scale of each dimension, as measured on sentences
that come with the library. The weightings below take a pooling, and add the masses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from safetensors import safe_open
from torch.nn.functional import normalize

from freight.core.flags import Flag, FlagKind
from freight.core.idf import Frequencies, Idf
from freight.core.types import Cloud, Encoder, Kind, Measures, NestedMeasures, device_of
from freight.core.units import sentence_of, tokens
from freight.encoders import languages_of
from freight.encoders.adapters import weights_of, without_adapter
from freight.transport.barycenters import packed_barycenters
from freight.transport.devices import has_kernels, vectors_on_device
from freight.transport.types import Array, send_to_device

_SHORTEST = 1e-12
"""What `normalize` divides shorter vectors by."""


def mean(layers: torch.Tensor) -> torch.Tensor:
    """The mean over the layers; a single layer is unchanged."""
    return layers[:, 0] if layers.shape[1] == 1 else layers.mean(dim=1)


def unit_mean(layers: torch.Tensor) -> torch.Tensor:
    """The mean of the layers scaled to unit length, so that no layer outweighs another."""
    return mean(normalize(layers, dim=-1))


def power_means(layers: torch.Tensor) -> torch.Tensor:
    """Minimum, mean and maximum over the layers scaled to unit length, concatenated."""
    scaled = normalize(layers, dim=-1)
    return torch.cat((scaled.amin(dim=1), scaled.mean(dim=1), scaled.amax(dim=1)), dim=-1)


def end_to_end(layers: torch.Tensor) -> torch.Tensor:
    """The layers, scaled to equal length and concatenated: cosines are the mean of the layers'.

    The length is proportional to the mean of the layers' lengths.
    """
    lengths = layers.norm(dim=-1, keepdim=True).mean(dim=1, keepdim=True)
    return (normalize(pointing(layers), dim=-1) * lengths).flatten(1)


def pointing(vectors: torch.Tensor) -> torch.Tensor:
    """The same vectors; those too short to have a direction are 0, and get no gradient."""
    return vectors.where(vectors.detach().norm(dim=-1, keepdim=True) > _SHORTEST, 0.0)


SENTENCES = Path(__file__).with_name("sentences.txt")
_LEAST = 1e-4
_DIRECTIONS = 8
"""Principal directions removed from a multilingual encoder's vectors; see docs/languages.md."""


@dataclass(frozen=True)
class Standardised:
    """The layers, standardised by dimension (mean 0, deviation 1), equally long, concatenated.

    The cosine of two such vectors is the mean of the layers' cosines, the length of one is
    proportional to the mean of the layers' lengths. Mean and standard deviation (the spread) of
    every dimension are measured on the bundled sentences, so that they belong to the encoder and a
    score depends only on its two texts. The sentences have many names in them: subtracting the mean
    of such texts tells other words apart best. With an adapter, mean and spread are those of the
    untrained encoder, with which it was fitted. Those of the encoders in packages come with the
    library, in single precision, for any device; others are computed. From a multilingual encoder's
    vectors the principal directions of each layer are removed too: all its vectors have them,
    whatever they mean.
    """

    encoder: Encoder
    layers: tuple[int, ...]

    @property
    def identity(self) -> str:
        """What it is computed from; the encoder and the layers are named elsewhere."""
        removed = f" without {self._removed} directions" if self._removed else ""
        return f"standardised on {len(sentences())} sentences{removed}"

    @property
    def _removed(self) -> int:
        languages = languages_of(self.encoder)
        return _DIRECTIONS if languages is not None and len(languages) > 1 else 0

    def __getstate__(self) -> dict[str, Any]:
        """Only the specification is pickled; the statistics are computed again where needed."""
        return {"encoder": self.encoder, "layers": self.layers}

    def __call__(self, layers: torch.Tensor) -> torch.Tensor:
        """One vector (unit, layer * dim) out of (unit, layer, dim)."""
        mean, spread, directions = (part.to(layers.device) for part in self._moments)
        precise = layers if layers.dtype == torch.float64 else layers.float()
        if has_kernels(precise) and not self._removed:
            return vectors_on_device().standardise(precise, mean, spread)
        scaled = (precise - mean) / spread
        if self._removed:
            shares = torch.einsum("uld,lkd->ulk", scaled, directions.to(scaled.dtype))
            scaled = scaled - torch.einsum("ulk,lkd->uld", shares, directions.to(scaled.dtype))
        return end_to_end(scaled)

    @cached_property
    def _moments(self) -> Moments:
        return self._shipped() or self.measure()

    def _shipped(self) -> Moments | None:
        """Those that come with the library, where they are of these weights and sentences."""
        weights = weights_of(self.encoder)
        with safe_open(MOMENTS, framework="pt") as stored:
            names = [f"{weights}/{part}" for part in Moments._fields]
            if stored.metadata() != moments_origin() or not {*names} <= {*stored.keys()}:
                return None
            kept, device = list(self.layers), device_of(self.encoder)
            shipped = Moments(*(stored.get_tensor(name)[kept].to(device) for name in names))
        if shipped.directions.shape[1] < self._removed:
            return None
        return shipped._replace(directions=shipped.directions[:, : self._removed])

    def measure(self) -> Moments:
        """The moments of the encoder's vectors of the sentences."""
        untrained = without_adapter(self.encoder)
        points = tokens(untrained.encode(sentences(), self.layers)).layers.double()
        spread = points.std(dim=0, correction=0)
        floor = _LEAST * spread.mean(dim=-1, keepdim=True).clamp(min=torch.finfo(spread.dtype).tiny)
        mean, spread = points.mean(dim=0), torch.maximum(spread, floor)
        directions = spread.new_zeros((len(spread), 0, spread.shape[1]))
        if self._removed:
            scaled = ((points - mean) / spread).transpose(0, 1)
            _, vectors = torch.linalg.eigh(scaled.mT @ scaled)  # the largest last
            directions = vectors[:, :, -self._removed :].mT.contiguous()
        return Moments(mean.float(), spread.float(), directions.float())


class Moments(NamedTuple):
    """What is taken off each layer (layer, dim), what divides it, and directions to remove."""

    mean: torch.Tensor
    spread: torch.Tensor
    directions: torch.Tensor  # (layer, direction, dim)


MOMENTS = Path(__file__).with_name("moments.safetensors")
"""Those of all layers of the encoders in packages; `make moments` writes it."""


def moments_origin() -> dict[str, str]:
    """What moments depend on besides the encoder, as the metadata of their file say it."""
    parts = "\n".join((*sentences(), f"{_LEAST} {_DIRECTIONS}"))
    return {"sha256": hashlib.sha256(parts.encode()).hexdigest()}


def sentences() -> list[str]:
    """English sentences that came with the library."""
    return SENTENCES.read_text("utf-8").splitlines()


def _uniform(cloud: Cloud, points: torch.Tensor) -> Array:
    return np.ones(len(cloud.ids))


def _norm(cloud: Cloud, points: torch.Tensor) -> Array:
    return points.double().norm(dim=-1).cpu().numpy()


def _count(cloud: Cloud, points: torch.Tensor) -> Array:
    return cloud.count.astype(np.float64)


MassFunction = Callable[[Cloud, torch.Tensor], Array]
"""From units and their points to a mass for each."""

MASSES: dict[str, MassFunction] = {"uniform": _uniform, "norm": _norm, "count": _count}


@dataclass(frozen=True)
class Mass:
    """Mass on every unit of a text: equal, by the vector's length, or by how many units it holds.

    Rarity multiplies it where `idf` is given. Special tokens weigh nothing unless they are counted.
    Where all units of a text are in every document its mass is uniform, and the text is flagged.
    `pooling` makes one vector of the layers.
    """

    idf: Idf | None = None
    by: str | MassFunction = "uniform"
    special: bool = False
    pooling: Callable[[torch.Tensor], torch.Tensor] = mean

    def __call__(self, cloud: Cloud) -> Measures:
        """The measures of a cloud."""
        points = self.pooling(cloud.layers)
        weigh = MASSES[self.by] if isinstance(self.by, str) else self.by
        mass = weigh(cloud, points)
        if self.idf is not None:
            mass = mass * self.idf(cloud.ids)
        content = ~cloud.having(Kind.SPECIAL)
        mass = mass if self.special else np.where(content, mass, 0.0)
        owner, count = cloud.owner, len(cloud.texts)
        empty = np.bincount(owner[content], minlength=count) == 0
        flat = (np.bincount(owner, mass, count) <= 0) & ~empty
        mass = np.where(flat[owner], content, mass)
        flags = tuple((Flag(FlagKind.IDF_EMPTY),) if without else () for without in flat)
        return replace(measures(cloud, mass, points), flags=flags)

    def fitted(self, table: Frequencies) -> Mass:
        """The same, knowing how frequent units are."""
        return self if self.idf is None else replace(self, idf=replace(self.idf, table=table))


@dataclass(frozen=True)
class _OfMass:
    """What a weighting that begins with the masses of units knows of their rarity."""

    mass: Mass

    @property
    def idf(self) -> Idf | None:
        """How rarity becomes mass."""
        return self.mass.idf

    def fitted(self, table: Frequencies) -> Self:
        """The same, knowing how frequent units are."""
        return replace(self, mass=self.mass.fitted(table))


@dataclass(frozen=True)
class Barycenter(_OfMass):
    """A text's layers, scaled to unit length, as their free-support Wasserstein barycenter.

    There are many local optima under unequal masses, so where the search starts is named: at each
    unit's mean over the layers, which depends neither on the order of tokens nor on a solver.
    """

    start: Literal["unit-wise mean"] = "unit-wise mean"
    plural: ClassVar[str] = "barycenter"

    def __call__(self, cloud: Cloud) -> Measures:
        """As many points as the text has units, of equal mass."""
        weighed = self.mass(cloud)
        layers, sizes = normalize(cloud.layers, dim=-1), np.diff(cloud.offsets)
        points, settled = packed_barycenters(layers, cloud.offsets, weighed.weights)
        flag = Flag(FlagKind.BARYCENTER_NOT_CONVERGED)
        flags = tuple(
            before if converged else (*before, flag)
            for before, converged in zip(weighed.flags, settled, strict=True)
        )
        weights = 1.0 / np.maximum(sizes, 1)[cloud.owner]
        return replace(weighed, points=points, weights=weights, flags=flags)


@dataclass(frozen=True)
class Windows(_OfMass):
    """Runs of n units: their mean vector, weighed by mass, and the sum of their masses.

    A text of fewer units is one run.
    """

    n: int
    plural: ClassVar[str] = "runs of words"

    def __call__(self, cloud: Cloud) -> Measures:
        """All runs of each text, at a stride of one."""
        single = self.mass(cloud.spelled())
        sizes = np.diff(single.offsets)
        counts = np.where(sizes > 0, np.maximum(sizes - self.n + 1, 1), 0)
        offsets = np.concatenate(([0], np.cumsum(counts)))
        owner = np.repeat(np.arange(len(counts)), counts)
        first = np.arange(offsets[-1]) - offsets[owner] + single.offsets[owner]
        member = first[:, None] + np.arange(self.n)
        inside = member < single.offsets[owner + 1][:, None]
        member = np.where(inside, member, first[:, None])
        mass = np.where(inside, single.weights[member], 0.0)
        total = mass.sum(axis=1)
        even = inside / inside.sum(axis=1, keepdims=True)
        shares = np.where(total[:, None] > 0, mass / np.where(total > 0, total, 1.0)[:, None], even)
        device, kind = single.points.device, single.points.dtype
        mixed = torch.as_tensor(shares, device=device, dtype=kind)[:, :, None]
        points = (single.points[torch.as_tensor(member, device=device)] * mixed).sum(dim=1)
        sums = np.bincount(owner, total, len(counts))
        weights = total / np.where(sums > 0, sums, 1.0)[owner]
        return replace(
            single,
            points=points,
            weights=weights,
            offsets=offsets,
            ids=single.ids[first],
            extent=np.stack((first, first + inside.sum(axis=1) - 1), axis=1),
            literal=None,
        )


@dataclass(frozen=True)
class Sentences(_OfMass):
    """Sentences, as heavy as all that stands in them, each a measure of its own units.

    A sentence's point is the weighed mean of its units.
    """

    plural: ClassVar[str] = "sentences"

    def __call__(self, cloud: Cloud) -> Measures:
        """The sentences of each text in a row; they end at a full stop and white space."""
        single = self.mass(cloud)
        member = sentence_of(cloud) - 1
        first = np.flatnonzero(np.diff(member, prepend=-1))
        bounds = np.append(first, len(member))
        total = np.bincount(member, single.weights, len(first))
        parts = _within(single, member, bounds, total)
        shares = torch.as_tensor(parts.weights, device=single.points.device)[:, None]
        points = single.points.new_zeros((len(first), single.points.shape[1]))
        weighed = (single.points * shares).to(points.dtype)
        return NestedMeasures(
            points=points.index_add(0, send_to_device(member, points.device), weighed),
            weights=total,
            offsets=np.searchsorted(first, single.offsets),
            ids=single.ids[first],
            unknown=single.unknown,
            empty=single.empty,
            flags=single.flags,
            extent=np.stack((first, bounds[1:] - 1), axis=1),
            parts=parts,
        )


def _within(single: Measures, member: Array, bounds: Array, total: Array) -> Measures:
    """A measure for every group of units; those of a group that weighs nothing weigh the same."""
    even = 1.0 / np.diff(bounds)[member]
    own = single.weights / np.where(total > 0, total, 1.0)[member]
    none = np.zeros(len(total))
    return replace(
        single,
        weights=np.where(total[member] > 0, own, even),
        offsets=bounds,
        unknown=none,
        empty=none > 0,
        flags=((),) * len(total),
    )


Weighting = Callable[[Cloud], Measures]
"""From the units of a cloud to measures: any function of this kind."""


def measures(cloud: Cloud, mass: Array, points: torch.Tensor | None = None) -> Measures:
    """Measures with this mass on every unit, scaled to 1 in each text: what a weighting returns.

    The points are the mean over the layers unless others are given.
    """
    owner, count = cloud.owner, len(cloud.texts)
    empty = np.fromiter((not text.strip() for text in cloud.texts), bool, count)
    lost = (np.bincount(owner[cloud.known], minlength=count) == 0) & ~empty
    totals = np.bincount(owner, mass, count)
    weights = mass / np.where(totals > 0, totals, 1.0)[owner]
    absent = np.bincount(owner, cloud.having(Kind.ABSENT), count)
    unknown = np.where(lost, 1.0, absent / np.maximum(np.diff(cloud.offsets), 1))
    units = np.arange(len(cloud.ids))
    literal = cloud.having(Kind.LITERAL)
    return Measures(
        mean(cloud.layers) if points is None else points,
        weights,
        cloud.offsets,
        cloud.ids,
        unknown,
        empty,
        ((),) * count,
        np.stack((units, units), axis=1),
        literal if literal.any() else None,
    )
