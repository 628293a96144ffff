"""From a cloud to measures: one vector a unit, and mass on it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn.functional import normalize

from freight.clouds import Cloud, Encoder, Kind
from freight.errors import InvalidInput
from freight.solvers import barycenter
from freight.types import Array


@dataclass(frozen=True, eq=False)
class Measures:
    """Mass on points, packed end to end, one measure a text; `notes` are flags by text."""

    points: torch.Tensor  # (unit, dim)
    weights: Array
    offsets: Array
    empty: Array
    notes: tuple[tuple[str, ...], ...]


class Weighting(Protocol):
    """Turns a cloud into measures."""

    def __call__(self, cloud: Cloud) -> Measures:
        """The measures of a cloud."""
        ...


@dataclass(frozen=True)
class Uniform:
    """The same mass on every unit; special tokens weigh nothing unless they are counted."""

    special: bool = False

    def __call__(self, cloud: Cloud) -> Measures:
        """One layer's vectors, or the mean of several, under equal masses."""
        return measures(cloud, np.ones(len(cloud.ids)), self.special)


@dataclass(frozen=True)
class Frequencies:
    """In how many of `documents` texts each id occurs; ids not listed in none."""

    documents: int
    ids: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, documents: Sequence[Array]) -> Frequencies:
        """Count the texts, repeats of a text included, that have each id."""
        every = np.concatenate([np.unique(ids) for ids in documents]) if documents else np.empty(0)
        ids, counts = np.unique(every.astype(np.int64), return_counts=True)
        return cls(len(documents), tuple(ids.tolist()), tuple(counts.tolist()))

    @cached_property
    def identity(self) -> str:
        """The number of texts, and a hash of what was counted."""
        digest = hashlib.sha256(repr((self.ids, self.counts)).encode()).hexdigest()
        return f"{self.documents} texts, sha256-{digest[:12]}"

    def __call__(self, ids: Array) -> Array:
        """The document frequency of each of these ids."""
        known, counts = self._arrays
        place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        return np.where(known[place] == ids, counts[place], 0)

    @cached_property
    def _arrays(self) -> tuple[Array, Array]:
        return np.array(self.ids or (-1,)), np.array(self.counts or (0,))


@dataclass(frozen=True)
class Idf:
    """Mass by how rare a unit is: log((N + 1) / (df + 1)), or YiSi's log(1 + (N + 1) / (df + 1)).

    Where all units of a text are in every document the mass is uniform, and the text is flagged.
    """

    table: Frequencies | None = None
    one_added: bool = False
    special: bool = False

    def __call__(self, cloud: Cloud) -> Measures:
        """One layer's vectors, or the mean of several, under IDF masses."""
        if self.table is None:
            raise InvalidInput("IDF has not been learnt; call fit with the reference texts first")
        ratio = (self.table.documents + 1) / (self.table(cloud.ids) + 1)
        mass = np.log(1.0 + ratio) if self.one_added else np.log(ratio)
        return measures(cloud, mass, self.special)


@dataclass(frozen=True)
class Barycenter:
    """A text's layers, scaled to unit length, as their free-support Wasserstein barycentre."""

    mass: Uniform | Idf

    def __call__(self, cloud: Cloud) -> Measures:
        """As many points as the text has units, of equal mass."""
        layers = normalize(cloud.layers, dim=-1).cpu().numpy()
        weighed = self.mass(cloud)
        sizes = np.diff(cloud.offsets)
        points = np.zeros((len(cloud.ids), layers.shape[2]))
        notes = list(weighed.notes)
        for size in np.unique(sizes[sizes > 0]):
            texts = np.flatnonzero(sizes == size)
            units = cloud.offsets[texts][:, None] + np.arange(size)
            found = barycenter(layers[units].swapaxes(1, 2), weighed.weights[units], strict=False)
            points[units] = found.points
            for text in texts[~found.converged]:
                notes[text] = (*notes[text], "barycentre not converged")
        weights = 1.0 / np.maximum(sizes, 1)[cloud.owner]
        device = cloud.layers.device
        return replace(
            weighed,
            points=torch.as_tensor(points, device=device),
            weights=weights,
            notes=tuple(notes),
        )


def brought(sides: Sequence[Any]) -> Measures:
    """Measures out of points (n, dim), or pairs of points and masses, that a caller brings."""
    points, weights = [], []
    for k, side in enumerate(sides):
        given, mass = side if isinstance(side, tuple) else (side, None)
        cloud = torch.as_tensor(given)
        if cloud.ndim != 2 or not bool(torch.isfinite(cloud).all()):
            raise InvalidInput(f"measure {k} is not an array (n, dim) of finite numbers")
        masses = np.ones(len(cloud)) if mass is None else np.asarray(mass, np.float64)
        if masses.shape != (len(cloud),) or not np.isfinite(masses).all() or (masses < 0).any():
            raise InvalidInput(
                f"measure {k} has {len(cloud)} points; give as many masses, none < 0"
            )
        if len(cloud) and masses.sum() == 0:
            raise InvalidInput(f"the masses of measure {k} are all 0")
        points.append(cloud)
        weights.append(masses / masses.sum() if len(masses) else masses)
    if len({cloud.shape[1] for cloud in points}) > 1:
        raise InvalidInput("the points of all measures need the same dimension")
    sizes = np.array([len(cloud) for cloud in points])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    joined = torch.cat(points)
    joined = joined if joined.dtype == torch.float64 else joined.float()
    return Measures(joined, np.concatenate(weights), offsets, sizes == 0, ((),) * len(points))


def fitted(weighting: Any, encoder: Encoder, texts: Sequence[str]) -> Any:
    """The same weighting, knowing how frequent the units of these texts are."""
    if isinstance(weighting, Idf):
        return replace(weighting, table=Frequencies.of(encoder.documents(list(texts))))
    if isinstance(weighting, Barycenter):
        return replace(weighting, mass=fitted(weighting.mass, encoder, texts))
    return weighting


def measures(cloud: Cloud, mass: Array, special: bool) -> Measures:
    """Normalise the masses of each text; a text without content is empty, whatever it weighs."""
    content = ~cloud.having(Kind.SPECIAL)
    owner, count = cloud.owner, len(cloud.texts)
    mass = mass if special else np.where(content, mass, 0.0)
    empty = np.bincount(owner[content], minlength=count) == 0
    flat = (np.bincount(owner, mass, count) <= 0) & ~empty
    mass = np.where(flat[owner], content, mass)
    totals = np.bincount(owner, mass, count)
    weights = mass / np.where(totals > 0, totals, 1.0)[owner]
    notes = tuple(
        (*_notes(cloud, text), "IDF empty") if flat[text] else _notes(cloud, text)
        for text in range(count)
    )
    return Measures(cloud.layers.mean(dim=1), weights, cloud.offsets, empty, notes)


def _notes(cloud: Cloud, text: int) -> tuple[str, ...]:
    units = cloud.kind[cloud.offsets[text] : cloud.offsets[text + 1]]
    content = units[(units & Kind.SPECIAL) == 0]
    unknown = int(np.count_nonzero(content & Kind.UNKNOWN))
    notes = []
    if unknown:
        notes.append(f"unknown units {unknown / content.size:.0%}")
    if cloud.windowed[text]:
        notes.append("windowed")
    if cloud.halved[text]:
        notes.append("halved batch")
    return tuple(notes)
