"""From a cloud to measures: one vector a unit, and mass on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import normalize

from freight import joins
from freight.clouds import Cloud, Kind
from freight.errors import InvalidInput
from freight.frequencies import Frequencies, Idf
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


@dataclass(frozen=True)
class Mass:
    """Equal mass on every unit of a text, or mass by rarity, by the vector's length, or by both.

    Special tokens weigh nothing unless they are counted. Where all units of a text are in every
    document its mass is uniform, and the text is flagged. `join` makes one vector of the layers.
    """

    idf: Idf | None = None
    norm: bool = False
    special: bool = False
    join: Callable[[torch.Tensor], torch.Tensor] = joins.mean

    def __call__(self, cloud: Cloud) -> Measures:
        """The measures of a cloud."""
        points = self.join(cloud.layers)
        mass = np.ones(len(cloud.ids)) if self.idf is None else self.idf(cloud.ids)
        if self.norm:
            mass = mass * points.double().norm(dim=-1).cpu().numpy()
        content = ~cloud.having(Kind.SPECIAL)
        mass = mass if self.special else np.where(content, mass, 0.0)
        owner, count = cloud.owner, len(cloud.texts)
        empty = np.bincount(owner[content], minlength=count) == 0
        flat = (np.bincount(owner, mass, count) <= 0) & ~empty
        mass = np.where(flat[owner], content, mass)
        totals = np.bincount(owner, mass, count)
        weights = mass / np.where(totals > 0, totals, 1.0)[owner]
        notes = tuple(
            (*found, "IDF empty") if flat[text] else found
            for text, found in enumerate(_notes(cloud))
        )
        return Measures(points, weights, cloud.offsets, empty, notes)

    def fitted(self, table: Frequencies) -> Mass:
        """The same, knowing how frequent units are."""
        return self if self.idf is None else replace(self, idf=replace(self.idf, table=table))


@dataclass(frozen=True)
class Barycenter:
    """A text's layers, scaled to unit length, as their free-support Wasserstein barycentre.

    There are many local optima under unequal masses, so where the search starts is named: at each
    unit's mean over the layers, which depends neither on the order of tokens nor on a solver.
    """

    mass: Mass
    start: Literal["unit-wise mean"] = "unit-wise mean"

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

    @property
    def idf(self) -> Idf | None:
        """What its masses are learnt by."""
        return self.mass.idf

    def fitted(self, table: Frequencies) -> Barycenter:
        """The same, knowing how frequent units are."""
        return replace(self, mass=self.mass.fitted(table))


Weighting = Mass | Barycenter


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


def _notes(cloud: Cloud) -> list[tuple[str, ...]]:
    """What is worth knowing of each text: unknown units, windows, a lack of memory."""
    count = len(cloud.texts)
    owner, content = cloud.owner, ~cloud.having(Kind.SPECIAL)
    units = np.bincount(owner[content], minlength=count)
    unknown = np.bincount(owner[content & cloud.having(Kind.UNKNOWN)], minlength=count)
    notes = []
    for text in range(count):
        found = []
        if unknown[text]:
            found.append(f"unknown units {unknown[text] / units[text]:.0%}")
        if cloud.windowed[text]:
            found.append("windowed")
        if cloud.halved[text]:
            found.append("halved batch")
        notes.append(tuple(found))
    return notes
