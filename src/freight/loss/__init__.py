"""Transport metrics as losses: padded states in, a number with a gradient out.

    loss = freight.loss.LazyEmd()(hyp_states, ref_states, hyp_mask, ref_mask)

Costs, problems and read-outs are those of the metrics. Plans are not differentiated sweep by sweep:
with blur by the implicit function theorem, without it by the envelope theorem.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from freight.core import costs, pooling, readouts
from freight.core.pairings import PointPairs
from freight.core.types import Pairs
from freight.errors import InvalidInput
from freight.loss.padded import Given, PaddedSide, gathered, given
from freight.loss.plans import barycentres, planned
from freight.transport.batches import to_array
from freight.transport.types import Plans, Problem

__all__ = ["BaryScore", "Emd", "Freight", "LazyEmd", "Loss", "WrdScore"]


class Loss(torch.nn.Module, ABC):
    """What the losses share: masks, masses, plans and reduction.

    A row with nothing on either side has no loss and no gradient, and "mean" does not count it.
    `tolerance` is the solvers'; None is 1e-9, or 1e-6 where they work in single precision.
    """

    layers: ClassVar[bool] = False
    """Whether states may have several layers: (batch, layer, token, dim)."""
    tolerance: float | None = None

    def __init__(self, cost: costs.Cost, problems: Sequence[Problem], reduction: str) -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise InvalidInput(f"reduction={reduction!r}; there is mean, sum, none")
        self.cost, self.problems, self.reduction = cost, tuple(problems), reduction

    def forward(
        self,
        hyp_states: Tensor,
        ref_states: Tensor,
        hyp_mask: Tensor | None = None,
        ref_mask: Tensor | None = None,
        hyp_weights: Tensor | None = None,
        ref_weights: Tensor | None = None,
    ) -> Tensor:
        """The loss between states (batch, token, dim); masks say which tokens there are.

        Weights (batch, token), of any sum, are masses: IDF, for instance. Equal where not given.
        """
        hyp = given("hyp", hyp_states, hyp_mask, hyp_weights, self.layers)
        ref = given("ref", ref_states, ref_mask, ref_weights, self.layers)
        _check_alike(hyp.states, ref.states)
        rows = (hyp.kept.any(1) & ref.kept.any(1)).nonzero()[:, 0]
        with torch.autocast(hyp_states.device.type, enabled=False):
            found = self._values(hyp, ref, rows)
        return self._reduced(found, rows, len(hyp_states))

    def measure(self, side: PaddedSide) -> tuple[Tensor, Tensor]:
        """Points (row, unit, dim) and masses (row, unit) of a side."""
        return pooling.pointing(side.states[:, :, 0]), side.masses()

    @abstractmethod
    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """The loss of each row, off its plans."""

    def extra_repr(self) -> str:
        """What `print` shows of it."""
        return f"{', '.join(map(str, self.problems))}, reduction={self.reduction!r}"

    def _values(self, hyp: Given, ref: Given, rows: Tensor) -> Tensor:
        if not len(rows):
            return (hyp.states[rows] + 0.0).float().sum((1, 2, 3))
        sides = gathered(hyp, rows), gathered(ref, rows)
        (here, sent), (there, due) = (self.measure(side) for side in sides)
        sizes = sides[0].sizes, sides[1].sizes
        masses = to_array(sent), to_array(due)
        which, unknown = np.arange(len(here)), np.zeros(len(here))
        pairs = PointPairs(which, *masses, *sizes, unknown, (here, there))
        cost = self.cost(pairs)
        each = (planned(p, cost, sent, due, sizes, self.tolerance) for p in self.problems)
        return self.read(list(each), pairs).to(cost.dtype)

    def _reduced(self, found: Tensor, rows: Tensor, count: int) -> Tensor:
        if self.reduction == "none":
            return found.new_zeros(count).index_copy(0, rows, found)
        return found.sum() if self.reduction == "sum" else found.sum() / max(len(rows), 1)


class LazyEmd(Loss):
    """Lazy-EMD: what is dear to move may stay, at a price.

    The loss is the metric's `objective`. Its `transport`, the paper's score, is to be looked at and
    not to be trained with: what gets dearer is moved less, so that it falls again for what is far.
    """

    def __init__(
        self,
        hyp: float = 0.23,
        ref: float = 0.31,
        epsilon: float = 0.009,
        readout: str = "objective",
        reduction: str = "mean",
    ) -> None:
        super().__init__(costs.cosine, [Problem(hyp, ref, epsilon)], reduction)
        if readout not in ("objective", "transport"):
            raise InvalidInput(f"readout={readout!r}; there is objective, transport")
        self.readout = readout

    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """Transport, with the price of what stays where that is asked for."""
        found: Tensor = getattr(plans[0], self.readout)
        return found


class Emd(Loss):
    """Earth mover's distance, both sides held: the metric's `transport`, blurred.

    It is above the exact one by epsilon log(min(n, m)) at most; epsilon=0 is the exact one.
    """

    def __init__(self, epsilon: float = 0.009, reduction: str = "mean") -> None:
        super().__init__(costs.cosine, [Problem(epsilon=epsilon)], reduction)

    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """What moving everything costs."""
        found: Tensor = plans[0].transport
        return found


class WrdScore(Loss):
    """1 - f1 of WRDScore: masses are the lengths of the vectors, times the weights if any.

    Precision and recall are read off the flow, so that there is no gradient without blur.
    """

    def __init__(self, epsilon: float = 0.009, clip: bool = False, reduction: str = "mean") -> None:
        if epsilon == 0:
            raise InvalidInput("epsilon=0 leaves WRDScore without a gradient; give it some blur")
        cost = costs.clipped_cosine if clip else costs.cosine
        super().__init__(cost, [Problem(epsilon=epsilon)], reduction)

    def measure(self, side: PaddedSide) -> tuple[Tensor, Tensor]:
        """Vectors weighed by their length."""
        points = pooling.pointing(side.states[:, :, 0])
        return points, side.masses(side.weights * points.norm(dim=-1))

    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """The complement of f1."""
        return 1.0 - torch.as_tensor(readouts.FlowAverages()(plans, pairs).columns["f1"])


class BaryScore(Loss):
    """BaryScore: the squared distance between the barycentres of the layers.

    States are (batch, layer, token, dim). Given the plans that it was found with, a barycentre is a
    linear map of the layers; the plans are locally constant, and with them the map. The masses
    enter by the plans alone and have no gradient.
    """

    layers = True

    def __init__(self, epsilon: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(costs.squared_euclidean, [Problem(epsilon=epsilon)], reduction)

    def measure(self, side: PaddedSide) -> tuple[Tensor, Tensor]:
        """As many points of equal mass as there are units."""
        if side.weights.requires_grad:
            raise InvalidInput("BaryScore has no gradient for weights; detach them")
        layers = normalize(pooling.pointing(side.states), dim=-1)
        return barycentres(layers, side.masses(), side.sizes), side.masses(side.inside.to(layers))

    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """What moving one barycentre onto the other costs."""
        found: Tensor = plans[0].transport
        return found


class Freight(Loss):
    """The house metric: -log of its score, that is the distance d in exp(-d).

    States are (batch, layer, token, dim). `join` makes one vector of a unit's layers (unit, layer,
    dim): `freight.load("freight").weighting.pooling` standardises them as the metric does for its
    encoder; without one they are taken end to end, each scaled to unit length. Where a cosine is
    below `floor` its cost is capped, and pulls no more.
    """

    layers = True

    def __init__(
        self,
        hyp: float = 1.0,
        ref: float = 1.0,
        greedy: float = 0.5,
        neighbours: float = 0.05,
        floor: float = 0.05,
        epsilon: float = 0.0,
        join: Callable[[Tensor], Tensor] | None = None,
        reduction: str = "mean",
    ) -> None:
        held = Problem(math.inf, 0.0, epsilon), Problem(0.0, math.inf, epsilon)
        cost = costs.Neighbours(costs.LogCosine(floor), neighbours)
        super().__init__(cost, [Problem(hyp, ref, epsilon), *held], reduction)
        self.join = pooling.end_to_end if join is None else join
        self.readout = readouts.LazyAndGreedy(greedy)

    def measure(self, side: PaddedSide) -> tuple[Tensor, Tensor]:
        """The layers joined."""
        joined = self.join(side.states.flatten(0, 1))
        points = joined.reshape(*side.inside.shape, -1)
        return pooling.pointing(points), side.masses()

    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """The distance whose exponential is the score."""
        found: Tensor = self.readout.distance(plans)
        return found


def _check_alike(hyp: Tensor, ref: Tensor) -> None:
    if len(hyp) != len(ref) or hyp.shape[2:] != ref.shape[2:] or hyp.device != ref.device:
        here, there = ((len(x), *x.shape[2:], str(x.device)) for x in (hyp, ref))
        raise InvalidInput(f"hyp and ref differ in rows, layers, dim or device: {here}, {there}")
