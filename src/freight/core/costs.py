"""Pairs of measures in padded batches, and costs: what moving mass between two units costs.

A pairing gathers pairs in batches of fixed shape, so that a pair's score is bitwise the same
whatever else is in the batch. A cost is a function from `Pairs` to a tensor (pair, hyp unit, ref
unit); entries in the padding are not read. A function of your own serves as well as these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from freight.core.types import Measures, NestedMeasures, Pairs
from freight.errors import InvalidInput
from freight.transport.devices import has_kernels, vectors_on_device
from freight.transport.solvers import solve
from freight.transport.types import Array, Plans, Problem, fetch_array, send_to_device

STEP = 16
CELLS = 2**16
GPU_CELLS = 2**22
"""How many entries the costs of a batch have at most (on a CPU, on a GPU)."""
GPU_UNITS = 2**16
"""How many units a side of a batch has at most on a GPU."""
WIDE = 4096
"""Where a side has more units, either side is padded to its own length, not to the longer one."""
MOST_CELLS = 2**29
"""Two texts whose cost matrix would have more entries are refused."""


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Rows of points, packed end to end: row k has `size[k]` of them, from `first[k]` on."""

    points: Tensor  # (point, dim)
    first: Array
    size: Array
    width: int

    def __getitem__(self, which: slice) -> Self:
        return replace(self, first=self.first[which], size=self.size[which])

    @property
    def on_device(self) -> tuple[Tensor, Tensor, int]:
        """The points, where each row starts and its size (2, row) there, and the width."""
        ranges = np.stack((self.first, self.size))
        return self.points, send_to_device(ranges, self.points.device), self.width

    @property
    def padded(self) -> Tensor:
        """The points (row, width, dim); what is past a size repeats the first."""
        points, ranges, width = self.on_device
        first, size = ranges[:, :, None]
        step = torch.arange(width, device=points.device)
        return points[first + torch.where(step < size, step, 0)]


@dataclass(frozen=True, eq=False)
class PointPairs(Pairs):
    """Pairs that compare points.

    The batch has a fixed number of rows, so that costs are bitwise the same whatever else is in it:
    rows past the last pair are dummies, and they are cut here, before a cost sees anything.
    """

    sides: tuple[Tensor | PackedRows, Tensor | PackedRows]  # (row, unit, dim)
    spellings: tuple[Array, Array] | None = None
    """The ids of literal units (pair, unit), -1 for others; None where a side has no such unit."""

    @property
    def padded_points(self) -> tuple[Tensor, Tensor]:
        """The points of hyp and of ref, dummy rows included."""
        hyp, ref = (side if isinstance(side, Tensor) else side.padded for side in self.sides)
        return hyp, ref

    @property
    def points(self) -> tuple[Tensor, Tensor]:
        """The points of hyp and of ref (pair, unit, dim), without dummy rows."""
        hyp, ref = self.padded_points
        return hyp[: len(self.which)], ref[: len(self.which)]

    def similarity(self) -> Tensor:
        """Cosine similarity, never outside -1 to 1; that of a zero vector is 0."""
        packed = [side[: len(self.which)] for side in self.sides if isinstance(side, PackedRows)]
        if len(packed) == 2 and packed[0].points.is_cuda and has_kernels(packed[0].points):
            cosines = vectors_on_device().cosines(*(side.on_device for side in packed))
        else:
            hyp, ref = (normalize(points, dim=-1) for points in self.padded_points)
            cosines = (hyp @ ref.mT)[: len(self.which)]
        return self._compared(cosines.clamp(-1.0, 1.0), 1.0, 0.0)

    def squared_distances(self, dtype: torch.dtype | None = None) -> Tensor:
        """Squared Euclidean distance between the points, in this precision."""
        hyp, ref = (points.to(dtype) if dtype else points for points in self.padded_points)
        squares = hyp.square().sum(-1)[..., None] + ref.square().sum(-1)[..., None, :]
        far = (squares - 2.0 * hyp @ ref.mT).clamp(min=0.0)[: len(self.which)]
        return self._compared(far, 0.0, squares[: len(self.which)])

    def orthogonal(self) -> Self:
        """The same pairs, every point of hyp orthogonal to every point of ref."""
        return replace(self, sides=_orthogonal(*self.padded_points), spellings=None)

    def _compared(self, values: Tensor, equal: float, orthogonal: float | Tensor) -> Tensor:
        """The values, but for two literal units: they are equal, or they are orthogonal."""
        if self.spellings is None:
            return values
        hyp, ref = (send_to_device(ids, values.device) for ids in self.spellings)
        literal = (hyp >= 0)[:, :, None] & (ref >= 0)[:, None, :]
        same = hyp[:, :, None] == ref[:, None, :]
        return torch.where(literal, torch.where(same, equal, orthogonal).to(values), values)


@dataclass(frozen=True, eq=False, kw_only=True)
class NestedPairs(PointPairs):
    """Pairs whose units are measures themselves: those of both sides, and which (pair, unit)."""

    hyp_parts: Measures
    ref_parts: Measures
    hyp_units: Array
    ref_units: Array

    def orthogonal(self) -> Self:
        """The same pairs, units and their parts orthogonal to those of the other side."""
        hyp, ref = _orthogonal(self.hyp_parts.points, self.ref_parts.points)
        return replace(
            super().orthogonal(),
            hyp_parts=replace(self.hyp_parts, points=hyp, literal=None),
            ref_parts=replace(self.ref_parts, points=ref, literal=None),
        )


Pairing = Callable[[Measures, Measures, Array], Iterator[Pairs]]


@runtime_checkable
class OmitsSharedMass(Protocol):
    """An optional ability of a pairing that may take out the mass which both texts share.

    Its batches have to give `ids`, so that an explanation can put that mass back.
    """

    @property
    def in_full(self) -> Pairing:
        """The same pairing with all the mass; itself where it takes none out."""
        ...


def side_by_side(
    hyp: Measures, ref: Measures, index: Array, step: int = STEP, fill: bool = True
) -> Iterator[Pairs]:
    """Gather the pairs of an index (pair, 2) batch by batch; rows past the last are dummies.

    Both sides are padded to the longer one rounded up, and every shape has its number of rows; a
    pair with a very long side is alone in its batch, and padded to the lengths of its own sides.
    Without `fill` there are no dummies, and the last bits of a cost depend on the batch.
    """
    sizes = np.diff(hyp.offsets)[index[:, 0]], np.diff(ref.offsets)[index[:, 1]]
    limits = (GPU_CELLS, GPU_UNITS) if hyp.points.is_cuda else (CELLS, CELLS)
    for width, rows, which in buckets(np.maximum(*sizes), step, *limits):
        widths = [width, width]
        if width > WIDE:
            widths = [int(_rounded_up(size[which[0]], STEP)) for size in sizes]
        check_cells(*widths)
        sides = [
            _gather(measures, index[which, side], widths[side], rows if fill else len(which))
            for side, measures in enumerate((hyp, ref))
        ]
        rows_of, weights, counts = zip(*sides, strict=True)
        chosen = (hyp, index[which, 0], widths[0]), (ref, index[which, 1], widths[1])
        pairs = PointPairs(
            which=which,
            hyp_weights=weights[0],
            ref_weights=weights[1],
            hyp_sizes=counts[0],
            ref_sizes=counts[1],
            unknown=hyp.unknown[index[which, 0]],
            sides=(rows_of[0], rows_of[1]),
            spellings=_spellings(chosen),
        )
        if isinstance(hyp, NestedMeasures) and isinstance(ref, NestedMeasures):
            yield NestedPairs(
                **vars(pairs),
                hyp_parts=hyp.parts,
                ref_parts=ref.parts,
                hyp_units=_units(*chosen[0]),
                ref_units=_units(*chosen[1]),
            )
        else:
            yield pairs


def buckets(
    sizes: Array, step: int = STEP, cells: int = CELLS, units: int = CELLS
) -> Iterator[tuple[int, int, Array]]:
    """Widths, the longest first, with their number of rows, and which of the sizes go together.

    A batch has at most so many cells and so many units a side, but at least one row.
    """
    widths = _rounded_up(sizes, step)
    for width in np.unique(widths)[::-1]:
        same = np.flatnonzero(widths == width)
        rows = max(1, min(cells // int(width) ** 2, units // int(width)))
        for start in range(0, len(same), rows):
            yield int(width), rows, same[start : start + rows]


def check_cells(hyp: int, ref: int) -> None:
    """Refuse two texts whose cost would not fit in memory."""
    if hyp * ref > MOST_CELLS:
        raise InvalidInput(
            f"two texts of up to {hyp:,} and {ref:,} units are too long to be matched with each"
            " other; cut them into pieces"
        )


def _rounded_up(sizes: Array, step: int) -> Array:
    return np.maximum(-(-sizes // step) * step, step)


def _gather(
    measures: Measures, texts: Array, width: int, rows: int
) -> tuple[PackedRows, Array, Array]:
    """Points of so many rows, masses and sizes of these texts."""
    ranges = np.zeros((2, rows), np.int64)
    first, size = ranges[:, : len(texts)]
    first[:], size[:] = measures.offsets[texts], np.diff(measures.offsets)[texts]
    step = np.arange(width)
    near = measures.weights.take(first[:, None] + step, mode="clip")
    masses = np.where(step < size[:, None], near, 0.0)
    return PackedRows(measures.points, ranges[0], ranges[1], width), masses, size


def _units(measures: Measures, texts: Array, width: int) -> Array:
    """Which units these texts have (text, unit); what is past a size repeats the first."""
    first, size = measures.offsets[texts, None], np.diff(measures.offsets)[texts, None]
    step = np.arange(width)
    units: Array = first + np.where(step < size, step, 0)
    return units


def _spellings(sides: Sequence[tuple[Measures, Array, int]]) -> tuple[Array, Array] | None:
    """The ids of the literal units of these texts (pair, unit); None where a side has none."""
    if any(measures.literal is None for measures, _, _ in sides):
        return None
    spelled = []
    for measures, texts, width in sides:
        units = _units(measures, texts, width)
        spelled.append(np.where(measures.literal[units], measures.ids[units], -1))  # type: ignore[index]
    return (spelled[0], spelled[1]) if all((ids >= 0).any() for ids in spelled) else None


def separated(cost: Cost, pairs: Pairs, values: Tensor, which: Array) -> Tensor:
    """The costs of a batch, those of some pairs (by number) as between unrelated units."""
    rows = send_to_device(np.flatnonzero(which[pairs.which]), values.device)
    if not len(rows):
        return values
    with torch.inference_mode():
        return values.index_copy(0, rows, cost(pairs.orthogonal())[rows].to(values))


def _orthogonal(hyp: Tensor, ref: Tensor) -> tuple[Tensor, Tensor]:
    """Points in twice the dimensions, those of one side orthogonal to those of the other."""
    return torch.cat((hyp, hyp * 0.0), -1), torch.cat((ref * 0.0, ref), -1)


Cost = Callable[[Pairs], Tensor]


@runtime_checkable
class SumOfTerms(Protocol):
    """An optional ability of a cost that is a sum: to give its terms, for explanations."""

    def terms(self, pairs: Pairs) -> dict[str, Tensor]:
        """The summands by name."""
        ...


def cost_terms(cost: Cost, pairs: Pairs) -> dict[str, Tensor]:
    """The named terms that a cost is the sum of; empty for a cost that is no `SumOfTerms`."""
    return cost.terms(pairs) if isinstance(cost, SumOfTerms) else {}


def cosine(pairs: Pairs) -> Tensor:
    """1 - cosine similarity; a zero vector counts as orthogonal to everything."""
    return 1.0 - pairs.similarity()


def clipped_cosine(pairs: Pairs) -> Tensor:
    """1 - cosine similarity, negative similarities counting as 0."""
    return 1.0 - pairs.similarity().clamp(min=0.0)


@dataclass(frozen=True)
class LogCosine:
    """Minus the logarithm of cosine similarity, which counts as `floor` where it is less."""

    floor: float

    def __call__(self, pairs: Pairs) -> Tensor:
        """0 for the same direction, -log(floor) at most."""
        return -pairs.similarity().clamp(self.floor, 1.0).log()


def squared_euclidean(pairs: Pairs) -> Tensor:
    """The squared distance between the points."""
    return pairs.squared_distances()


def euclidean(pairs: Pairs) -> Tensor:
    """The distance between the points; in double precision, or equal points would be apart."""
    return pairs.squared_distances(torch.float64).sqrt()


def order(pairs: Pairs) -> Tensor:
    """How far apart two units stand in their texts: STD's Algorithm 1.

    The distance between the hyp unit's position in the hypothesis and the ref unit's in the
    reference. Where that is 0 or one of them is missing, it is the distance with the texts
    exchanged, and where that is missing too, 0.
    """
    hyp, ref = pairs.positions
    far = np.abs(hyp[0][:, :, None] - ref[1][:, None, :])
    back = np.abs(hyp[1][:, :, None] - ref[0][:, None, :])
    far = np.where(far > 0.0, far, back)  # nan is not above 0
    far[np.isnan(far)] = 0.0
    return torch.as_tensor(far)


@dataclass(frozen=True)
class Mix:
    """A weighted sum of costs."""

    parts: tuple[tuple[float, Cost], ...]

    def __call__(self, pairs: Pairs) -> Tensor:
        """The sum."""
        return torch.stack(self._parts(pairs)).sum(dim=0)

    def terms(self, pairs: Pairs) -> dict[str, Tensor]:
        """The summands: by meaning, and by place where that counts."""
        names = ("order" if cost is order else "meaning" for _, cost in self.parts)
        return dict(zip(names, self._parts(pairs), strict=True))

    def _parts(self, pairs: Pairs) -> list[Tensor]:
        mixed = (weight * cost(pairs) for weight, cost in self.parts)
        return [part.double() for part in mixed]


def with_order(cost: Cost, weight: float) -> Cost:
    """The cost (1 - weight) * cost + weight * order: word order has this share, 0 to 1."""
    if not 0.0 <= weight <= 1.0:
        raise InvalidInput(f"order={weight!r}; give the share of word order, from 0 to 1")
    return Mix(((1.0 - weight, cost), (weight, order))) if weight else cost


@dataclass(frozen=True)
class Inner:
    """The cost of two sentences: the value of an inner transport problem between their words.

    `column` is the value that is read off the inner plan: transport or objective. Where the inner
    problem could not be solved the cost is nan.
    """

    cost: Cost
    problem: Problem
    column: Literal["transport", "objective"] = "transport"

    def __call__(self, pairs: Pairs) -> Tensor:
        """Solve a problem for every two units of a pair, all of them in batches."""
        if not isinstance(pairs, NestedPairs):
            raise InvalidInput("this metric compares sentences, and needs texts")
        where = np.nonzero(pairs.present)
        units = pairs.hyp_units[where[:2]], pairs.ref_units[where[::2]]
        index, back = np.unique(np.stack(units, axis=1), axis=0, return_inverse=True)
        values = np.full(len(index), np.nan)
        for inner in side_by_side(pairs.hyp_parts, pairs.ref_parts, index):
            plans = self._solve(inner)
            solved = plans.converged
            values[inner.which[solved]] = getattr(plans, self.column)[solved]
        cost = np.zeros(pairs.shape)
        cost[where] = values[back]
        return torch.as_tensor(cost)

    def _solve(self, inner: Pairs) -> Plans:
        cost = fetch_array(self.cost(inner).double())
        return solve(self.problem, cost, *inner.masses, *inner.sizes, strict=False)


@dataclass(frozen=True)
class Neighbours:
    """A cost in which the units before and after count too, each by this weight.

    Moving a unit costs more where its neighbours would not move along with it.
    """

    cost: Cost
    weight: float

    def __call__(self, pairs: Pairs) -> Tensor:
        """The weighted mean over the places where both sides have a neighbour."""
        cost = self.cost(pairs)
        if self.weight == 0.0:
            return cost
        total, count = self._summed(pairs, cost)
        return total / count

    def terms(self, pairs: Pairs) -> dict[str, Tensor]:
        """What the units themselves put into the mean, and what those beside them do."""
        cost = self.cost(pairs)
        total, count = self._summed(pairs, cost)
        own = cost * _inside(pairs, cost)
        return {"meaning": own / count, "neighbours": (total - own) / count} if self.weight else {}

    def _summed(self, pairs: Pairs, cost: Tensor) -> tuple[Tensor, Tensor]:
        """The costs of two units and their neighbours, and how much counted in each sum."""
        inside = _inside(pairs, cost)
        total, count = cost * inside, inside.clone()
        for part, of in ((total.clone(), total), (inside, count)):
            of[:, 1:, 1:] += self.weight * part[:, :-1, :-1]
            of[:, :-1, :-1] += self.weight * part[:, 1:, 1:]
        return total, count.clamp(min=self.weight)


def _inside(pairs: Pairs, cost: Tensor) -> Tensor:
    """1 where both units exist (pair, unit, unit), 0 in the padding."""
    if not cost.is_cuda:
        return torch.as_tensor(pairs.present).to(cost.dtype)
    sizes = send_to_device(np.stack(pairs.sizes), cost.device)
    hyp, ref = (
        torch.arange(width, device=cost.device) < size[:, None]
        for width, size in zip(cost.shape[1:], sizes, strict=True)
    )
    return (hyp[:, :, None] & ref[:, None, :]).to(cost.dtype)
