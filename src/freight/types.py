"""The nouns: a problem is data, a solved batch derives its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from freight import totals
from freight.errors import InvalidInput
from freight.kernels import one_at_a_time

Array: TypeAlias = npt.NDArray[Any]
Numbers: TypeAlias = Array | torch.Tensor


@dataclass(frozen=True)
class Problem:
    """How firmly each side is held, and how much blur: what there is to know besides the data.

    A penalty of infinity holds its side, 0 lets it go, anything between is the price of leaving
    mass unmoved or moving too much. `epsilon` above 0 is entropic, 0 is exact.
    """

    hyp: float = math.inf
    ref: float = math.inf
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        for name in ("hyp", "ref", "epsilon"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or math.isnan(value) or value < 0:
                raise InvalidInput(f"{name}={value!r} is not a number from 0 up")
            object.__setattr__(self, name, float(value))
        if math.isinf(self.epsilon):
            raise InvalidInput("epsilon=inf blurs everything into one; give a finite number")
        if self.hyp == 0 and self.ref == 0:
            raise InvalidInput(
                "with hyp=0 and ref=0 nothing needs to move; hold or price at least one side"
            )


@dataclass(frozen=True, eq=False)
class Plans:
    """A solved batch, or one solved problem: who sends how much to whom, and how exact that is.

    `gap` bounds how far the plan is from optimal; `converged` says whether that was the tolerance
    asked for. Arrays are the caller's kind; for one problem the numbers are plain.
    """

    problem: Problem
    cost: Any
    hyp_weights: Any
    ref_weights: Any
    hyp_sizes: Array
    ref_sizes: Array
    flow: Any
    gap: Any
    converged: Any

    @property
    def transport(self) -> Any:
        """What moving the mass costs: <C,P>."""
        return self._totals[0]

    @property
    def objective(self) -> Any:
        """Transport plus the price of what the two sides leave unmoved or move too much."""
        return self._totals[1]

    @property
    def regularised(self) -> Any:
        """Objective plus the entropy term; its gradient with respect to the cost is the flow."""
        return self._totals[2]

    @cached_property
    def _totals(self) -> tuple[Any, Any, Any]:
        terms = self.problem.hyp, self.problem.ref, self.problem.epsilon
        data = [self.cost, self.flow, self.hyp_weights, self.ref_weights]
        if isinstance(self.cost, torch.Tensor):
            return totals.tensor_totals(data[0], data[1], data[2], data[3], *terms)
        one = self.cost.ndim == 2
        data = [x[None] for x in data] if one else data
        out = np.empty((len(data[0]), 3))
        with one_at_a_time():
            sizes = self.hyp_sizes, self.ref_sizes
            totals.totals(data[0], data[1], data[2], data[3], *sizes, *terms, out)
        transport, objective, regularised = (float(x[0]) if one else x for x in out.T)
        return transport, objective, regularised


@dataclass(frozen=True, eq=False)
class Barycenters:
    """A free-support barycentre a text: its points, and the mean squared distance to its layers."""

    points: Any
    objective: Any
    converged: Any
