"""What it costs to move a unit of mass between two units, for padded batches of pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from freight.pairings import Pairs

Cost = Callable[[Pairs], Tensor]


def terms(cost: Cost, pairs: Pairs) -> dict[str, Tensor]:
    """What a cost adds up from, by name; nothing where it is one thing."""
    several: Callable[[Pairs], dict[str, Tensor]] | None = getattr(cost, "terms", None)
    return several(pairs) if several else {}


def cosine(pairs: Pairs) -> Tensor:
    """1 - cosine similarity; a zero vector is as far as an orthogonal one."""
    return 1.0 - _similarity(pairs)


def clipped_cosine(pairs: Pairs) -> Tensor:
    """The same, nothing being farther than an orthogonal vector."""
    return 1.0 - _similarity(pairs).clamp(min=0.0)


@dataclass(frozen=True)
class LogCosine:
    """Minus the logarithm of cosine similarity, which counts as `floor` where it is less."""

    floor: float

    def __call__(self, pairs: Pairs) -> Tensor:
        """0 for the same direction, -log(floor) at most."""
        return -_similarity(pairs).clamp(self.floor, 1.0).log()


def squared_euclidean(pairs: Pairs) -> Tensor:
    """The squared distance between the points."""
    hyp, ref = _points(pairs)
    squares = hyp.square().sum(-1)[..., None] + ref.square().sum(-1)[..., None, :]
    return (squares - 2.0 * hyp @ ref.mT).clamp(min=0.0)


def euclidean(pairs: Pairs) -> Tensor:
    """The distance between the points; in double precision, or equal ones would be apart."""
    hyp, ref = _points(pairs)
    return squared_euclidean(pairs._replace(points=(hyp.double(), ref.double()))).sqrt()


def order(pairs: Pairs) -> Tensor:
    """How far apart two units stand in their texts: STD's Algorithm 1.

    Where the unit of the hypothesis is not in it, or that of the reference is not, the places of
    the two the other way round count, and where those are missing too, nothing.
    """
    if pairs.places is None:
        raise TypeError("this pairing keeps no places")
    hyp, ref = pairs.places
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
        mixed = (weight * cost(pairs)[: len(pairs.which)] for weight, cost in self.parts)
        return [part.double() for part in mixed]


@dataclass(frozen=True)
class Neighbours:
    """A cost in which the units before and behind count too, each by this weight.

    Moving a unit is dearer where what stands beside it would not move along.
    """

    cost: Cost
    weight: float

    def __call__(self, pairs: Pairs) -> Tensor:
        """The weighted mean over the places where both sides have a neighbour."""
        cost = self.cost(pairs)[: len(pairs.which)]
        if self.weight == 0.0:
            return cost
        total, count = self._summed(pairs, cost)
        return total / count

    def terms(self, pairs: Pairs) -> dict[str, Tensor]:
        """What the units themselves put into the mean, and what those beside them do."""
        cost = self.cost(pairs)[: len(pairs.which)]
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
    sides = zip((pairs.hyp_sizes, pairs.ref_sizes), cost.shape[1:], strict=True)
    hyp, ref = (
        torch.arange(width, device=cost.device) < torch.as_tensor(n, device=cost.device)[:, None]
        for n, width in sides
    )
    return (hyp[:, :, None] & ref[:, None, :]).to(cost.dtype)


def _similarity(pairs: Pairs) -> Tensor:
    if pairs.cosines is not None:
        return torch.as_tensor(pairs.cosines)
    hyp, ref = _points(pairs)
    return normalize(hyp, dim=-1) @ normalize(ref, dim=-1).mT


def _points(pairs: Pairs) -> tuple[Tensor, Tensor]:
    if pairs.points is None:
        raise TypeError("this pairing keeps no points")
    return pairs.points
