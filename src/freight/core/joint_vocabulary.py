"""STD's pairing: both measures live on the joint vocabulary, the units of both texts.

Mass that both texts put on the same unit may be cancelled before transport.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import torch

from freight import kernels
from freight.core.costs import buckets, check_cells
from freight.core.types import Measures, Pairs, Positions
from freight.errors import InvalidInput
from freight.transport.types import Array

_NOTHING = 1e-14
STEP = 8


@dataclass(frozen=True, eq=False)
class JointPairs(Pairs):
    """Pairs on the units of both texts, their cosines (pair, unit, unit) computed beforehand.

    `ids` (pair, unit) says which units each side has, since they are not those of its text in
    order.
    """

    cosines: Array
    ids: tuple[Array, Array]
    unit_positions: tuple[Positions, Positions]
    moved_shares: Array

    @property
    def moved(self) -> Array:
        """The share of the mass that is transported, after what both share is cancelled."""
        return self.moved_shares

    @property
    def positions(self) -> tuple[Positions, Positions]:
        """The positions of each side's units in both texts."""
        return self.unit_positions

    def similarity(self) -> torch.Tensor:
        """The cosines."""
        return torch.as_tensor(self.cosines)

    def orthogonal(self) -> Self:
        """The same pairs, all cosines 0."""
        return replace(self, cosines=np.zeros_like(self.cosines))

    def without_vectors(self) -> Pairs:
        """The same pairs without cosines; read-outs still need the share that moves."""
        return replace(self, cosines=np.empty((len(self.which), 0, 0)))


@dataclass(frozen=True)
class Joint:
    """Two measures on the set of all units of a pair.

    `mass` is "nsim", a softmax over the units of the pair (exp(1) for a unit that the text has,
    exp(cosine to the text's centroid) for one that only the other text has), or "own" (the masses
    that the weighting gave, 0 elsewhere). `shared` is "stays" (mass that both texts put on the same
    unit is cancelled at no cost, and only the rest is transported) or "moved" (all mass is
    transported). `centroid` is the mean over the "list" of a text's units, repeats included, or
    over their "set". A side has the units on which it has mass.
    """

    mass: str = "nsim"
    shared: str = "stays"
    centroid: str = "list"

    @property
    def in_full(self) -> Joint:
        """The same without cancelling."""
        return replace(self, shared="moved")

    def __call__(self, hyp: Measures, ref: Measures, index: Array) -> Iterator[Pairs]:
        """Gather the pairs of an index (pair, 2) batch by batch, in fixed shapes."""
        units = _entered(hyp, ref, index)
        both = hyp.points if hyp is ref else torch.cat((hyp.points, ref.points))
        ids, literal = _ids(hyp, ref), _literal(hyp, ref)
        points = np.ascontiguousarray(both.cpu().numpy())
        lengths = kernels.lengths(points)
        masses = self._masses(units, points, lengths, hyp, ref, index)
        moved = np.ones(len(index))
        if self.shared == "stays":
            masses, moved = _remainders(units, masses)
        sides = [_PairSide.of(units, mass) for mass in masses]
        for width, _, which in buckets(np.maximum(sides[0].sizes, sides[1].sizes), STEP):
            check_cells(width, width)
            (one, a, here), (two, b, there) = (side.gather(units, which, width) for side in sides)
            sizes = sides[0].sizes[which], sides[1].sizes[which]
            cosines = kernels.cosines(points, lengths, one, two, *sizes)
            if literal is not None:
                both_literal = literal[one][:, :, None] & literal[two][:, None, :]
                same = ids[one][:, :, None] == ids[two][:, None, :]
                cosines = np.where(both_literal, same, cosines)
            yield JointPairs(
                which,
                a,
                b,
                *sizes,
                hyp.unknown[index[which, 0]],
                cosines=cosines,
                ids=(ids[one], ids[two]),
                unit_positions=(Positions(*here), Positions(*there)),
                moved_shares=moved[which],
            )

    def _masses(
        self,
        units: _PairUnits,
        points: Array,
        lengths: Array,
        hyp: Measures,
        ref: Measures,
        index: Array,
    ) -> tuple[Array, Array]:
        if self.mass == "own":
            return units.own
        mine = self._centroids(hyp)
        centroids = mine, mine if hyp is ref else self._centroids(ref)
        masses = [
            kernels.nsim(
                points, lengths, centroids[side], index[:, side], units.offsets, units.sizes,
                units.unit, units.place[side],
            )
            for side in (0, 1)
        ]  # fmt: skip
        return masses[0], masses[1]

    def _centroids(self, side: Measures) -> Array:
        """The mean of each text's units, of unit length."""
        points, offsets = np.ascontiguousarray(side.points.cpu().numpy()), side.offsets
        if self.centroid == "set":
            owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
            _, first = np.unique(np.stack((owner, side.ids)), axis=1, return_index=True)
            first.sort()
            points, offsets = points[first], np.searchsorted(first, offsets)
        return kernels.unit_means(points, offsets)


class _PairUnits(NamedTuple):
    """The distinct units of each pair, packed: where each lies, and its place in either text."""

    offsets: Array
    sizes: Array
    unit: Array
    place: tuple[Array, Array]
    own: tuple[Array, Array]


class _PairSide(NamedTuple):
    """The units of one side that have mass, packed."""

    first: Array
    sizes: Array
    which: Array
    mass: Array

    @classmethod
    def of(cls, units: _PairUnits, mass: Array) -> _PairSide:
        which = np.flatnonzero(mass > 0)
        pair = np.searchsorted(units.offsets, which, "right") - 1
        sizes = np.bincount(pair, minlength=len(units.sizes))
        return cls(np.cumsum(sizes) - sizes, sizes, which, mass[which])

    def gather(
        self, units: _PairUnits, pairs: Array, width: int
    ) -> tuple[Array, Array, tuple[Array, Array]]:
        """Units, masses and places in either text, all (pair, width)."""
        inside = np.arange(width) < self.sizes[pairs, None]
        place = self.first[pairs, None] + np.where(inside, np.arange(width), 0)
        where = self.which[place]
        mass = np.where(inside, self.mass[place], 0.0)
        return units.unit[where], mass, (units.place[0][where], units.place[1][where])


def _entered(hyp: Measures, ref: Measures, index: Array) -> _PairUnits:
    if not len(hyp.ids):
        raise InvalidInput("this metric compares words, and needs texts")
    room = np.diff(hyp.offsets)[index[:, 0]] + np.diff(ref.offsets)[index[:, 1]]
    offsets = np.cumsum(room) - room
    total = int(room.sum())
    sizes, unit = np.zeros(len(index), np.int64), np.zeros(total, np.int64)
    place = np.full(total, np.nan), np.full(total, np.nan)
    own = np.zeros(total), np.zeros(total)
    ids = _ids(hyp, ref)
    for side, measures in enumerate((hyp, ref)):
        before = len(hyp.ids) if side and hyp is not ref else 0
        kernels.enter_units(
            ids, measures.offsets, measures.weights, index[:, side], before,
            offsets, sizes, unit, place[side], own[side],
        )  # fmt: skip
    return _PairUnits(offsets, sizes, unit, place, own)


def _ids(hyp: Measures, ref: Measures) -> Array:
    return hyp.ids if hyp is ref else np.concatenate((hyp.ids, ref.ids))


def _literal(hyp: Measures, ref: Measures) -> Array | None:
    """Which units are compared by their ids; None where a side has none of them."""
    if hyp.literal is None or ref.literal is None:
        return None
    return hyp.literal if hyp is ref else np.concatenate((hyp.literal, ref.literal))


def _remainders(
    units: _PairUnits, masses: tuple[Array, Array]
) -> tuple[tuple[Array, Array], Array]:
    """What each side has to move, scaled to 1, and which share of the mass that is."""
    common = np.minimum(*masses)
    rests = masses[0] - common, masses[1] - common
    pair = np.repeat(np.arange(len(units.sizes)), np.diff(units.offsets, append=len(common)))
    sums = [np.bincount(pair, rest, len(units.sizes)) for rest in rests]
    still = np.minimum(*sums) < _NOTHING
    scaled = [
        rest / np.where(still, 1.0, total)[pair] for rest, total in zip(rests, sums, strict=True)
    ]
    first = np.zeros(len(common))
    first[units.offsets] = 1.0  # where nothing is left, one unit is matched to itself
    chosen = [np.where(still[pair], first, rest) for rest in scaled]
    return (chosen[0], chosen[1]), np.where(still, 0.0, sums[0])
