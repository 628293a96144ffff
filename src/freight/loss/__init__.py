"""Transport metrics as differentiable losses over padded states.

    loss = freight.loss.LazyEmd()(hyp_states, ref_states, hyp_mask, ref_mask)

Costs, problems and read-outs are those of the metrics. Solvers are not unrolled: with entropic
regularisation plans are differentiated by the implicit function theorem, without it by the envelope
theorem.
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

from freight.core import costs, readouts
from freight.core.costs import PointPairs
from freight.core.types import Pairs
from freight.core.weightings import end_to_end as concatenate_layers
from freight.core.weightings import pointing
from freight.errors import InvalidInput
from freight.loss.parts import (
    LossInput,
    PaddedSide,
    check_input,
    layer_barycenters,
    select_rows,
    solve_differentiably,
)
from freight.transport.types import Plans, Problem, to_array

__all__ = ["BaryScore", "Emd", "Freight", "LazyEmd", "Loss", "WrdScore"]


class Loss(torch.nn.Module, ABC):
    """The common part of all losses: masks, masses, plans and reduction.

    A row that is empty on one side has loss 0 and no gradient, and "mean" does not count it.
    `tolerance` is that of the solvers; None is 1e-9, or 1e-6 if they work in single precision.
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
        """The loss between states (batch, token, dim); masks are true where there is a token.

        Weights (batch, token) are masses, for instance IDF, of any sum; by default all are equal.
        """
        hyp = check_input("hyp", hyp_states, hyp_mask, hyp_weights, self.layers)
        ref = check_input("ref", ref_states, ref_mask, ref_weights, self.layers)
        _check_same_shape(hyp.states, ref.states)
        rows = (hyp.kept.any(1) & ref.kept.any(1)).nonzero()[:, 0]
        with torch.autocast(hyp_states.device.type, enabled=False):
            values = self._row_losses(hyp, ref, rows)
        return self._reduce(values, rows, len(hyp_states))

    def measure(self, side: PaddedSide) -> tuple[Tensor, Tensor]:
        """Points (row, unit, dim) and masses (row, unit) of one side."""
        return pointing(side.states[:, :, 0]), side.masses()

    @abstractmethod
    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """The loss of each row, read off its plans."""

    def extra_repr(self) -> str:
        """The settings, for `print`."""
        return f"{', '.join(map(str, self.problems))}, reduction={self.reduction!r}"

    def _row_losses(self, hyp: LossInput, ref: LossInput, rows: Tensor) -> Tensor:
        if not len(rows):
            return (hyp.states[rows] + 0.0).float().sum((1, 2, 3))
        sides = select_rows(hyp, rows), select_rows(ref, rows)
        (hyp_points, hyp_mass), (ref_points, ref_mass) = (self.measure(side) for side in sides)
        sizes = sides[0].sizes, sides[1].sizes
        masses = to_array(hyp_mass), to_array(ref_mass)
        count = len(hyp_points)
        points = hyp_points, ref_points
        pairs = PointPairs(np.arange(count), *masses, *sizes, np.zeros(count), points)
        cost = self.cost(pairs)
        plans = [
            solve_differentiably(problem, cost, hyp_mass, ref_mass, sizes, self.tolerance)
            for problem in self.problems
        ]
        return self.read(plans, pairs).to(cost.dtype)

    def _reduce(self, values: Tensor, rows: Tensor, count: int) -> Tensor:
        if self.reduction == "none":
            return values.new_zeros(count).index_copy(0, rows, values)
        return values.sum() if self.reduction == "sum" else values.sum() / max(len(rows), 1)


class LazyEmd(Loss):
    """Lazy-EMD: both marginals KL-relaxed, so that mass may stay unmatched at a penalty.

    The loss is the metric's `objective`. Do not train with `transport`, the paper's score: the more
    expensive a match, the less mass it transports, so `transport` falls again for distant words.
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
        """The transport cost; `objective` adds the penalties on unmatched mass."""
        values: Tensor = getattr(plans[0], self.readout)
        return values


class Emd(Loss):
    """Earth mover's distance, both marginals hard: `transport` with entropic regularisation.

    It exceeds the exact distance by at most epsilon log(min(n, m)); epsilon=0 is exact.
    """

    def __init__(self, epsilon: float = 0.009, reduction: str = "mean") -> None:
        super().__init__(costs.cosine, [Problem(epsilon=epsilon)], reduction)

    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """The transport cost."""
        cost: Tensor = plans[0].transport
        return cost


class WrdScore(Loss):
    """1 - f1 of WRDScore: masses are the lengths of the vectors, times the weights if any.

    Precision and recall are read off the flow, which has a gradient only if epsilon > 0.
    """

    def __init__(self, epsilon: float = 0.009, clip: bool = False, reduction: str = "mean") -> None:
        if epsilon == 0:
            raise InvalidInput("WRDScore has no gradient at epsilon=0; give a positive epsilon")
        cost = costs.clipped_cosine if clip else costs.cosine
        super().__init__(cost, [Problem(epsilon=epsilon)], reduction)

    def measure(self, side: PaddedSide) -> tuple[Tensor, Tensor]:
        """Vectors weighted by their lengths."""
        points = pointing(side.states[:, :, 0])
        return points, side.masses(side.weights * points.norm(dim=-1))

    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """One minus f1."""
        return 1.0 - torch.as_tensor(readouts.FlowAverages()(plans, pairs).columns["f1"])


class BaryScore(Loss):
    """BaryScore: the squared Wasserstein distance between the barycenters of the layers.

    States are (batch, layer, token, dim). Given the plans of its fixed point, a barycenter is a
    linear map of the layers; the plans are locally constant, and so is the map. The masses enter
    through the plans only and have no gradient.
    """

    layers = True

    def __init__(self, epsilon: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(costs.squared_euclidean, [Problem(epsilon=epsilon)], reduction)

    def measure(self, side: PaddedSide) -> tuple[Tensor, Tensor]:
        """The barycenter: as many points of equal mass as there are units."""
        if side.weights.requires_grad:
            raise InvalidInput("BaryScore has no gradient for weights; detach them")
        layers = normalize(pointing(side.states), dim=-1)
        return layer_barycenters(layers, side.masses(), side.sizes), side.masses(
            side.inside.to(layers)
        )

    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """The cost of transporting one barycenter onto the other."""
        cost: Tensor = plans[0].transport
        return cost


class Freight(Loss):
    """The metric `freight`: -log of its score, that is the distance d in exp(-d).

    States are (batch, layer, token, dim). `pooling` makes one vector of a unit's layers (unit,
    layer, dim): `freight.load("freight").weighting.pooling` standardises them as the metric does
    for its encoder; by default they are concatenated, each scaled to unit length. A cosine below
    `floor` has a capped cost, and no gradient.
    """

    layers = True

    def __init__(
        self,
        hyp: float = 1.0,
        ref: float = 1.0,
        greedy: float = 0.5,
        recall: float = 0.5,
        neighbours: float = 0.05,
        floor: float = 0.05,
        epsilon: float = 0.005,
        pooling: Callable[[Tensor], Tensor] | None = None,
        reduction: str = "mean",
    ) -> None:
        greedy_problems = Problem(math.inf, 0.0), Problem(0.0, math.inf)
        cost = costs.Neighbours(costs.LogCosine(floor), neighbours)
        super().__init__(cost, [Problem(hyp, ref, epsilon), *greedy_problems], reduction)
        self.pooling = concatenate_layers if pooling is None else pooling
        self.readout = readouts.LazyAndGreedy(greedy, recall)

    def measure(self, side: PaddedSide) -> tuple[Tensor, Tensor]:
        """The pooled layers."""
        pooled = self.pooling(side.states.flatten(0, 1))
        points = pooled.reshape(*side.inside.shape, -1)
        return pointing(points), side.masses()

    def read(self, plans: Sequence[Plans], pairs: Pairs) -> Tensor:
        """The distance d, where the score is exp(-d)."""
        distance: Tensor = self.readout.distance(plans)
        return distance


def _check_same_shape(hyp: Tensor, ref: Tensor) -> None:
    if len(hyp) != len(ref) or hyp.shape[2:] != ref.shape[2:] or hyp.device != ref.device:
        here, there = ((len(x), *x.shape[2:], str(x.device)) for x in (hyp, ref))
        raise InvalidInput(f"hyp and ref differ in rows, layers, dim or device: {here}, {there}")
