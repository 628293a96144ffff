"""What a score is made of: the units of both texts, what moved where, and what each unit adds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from freight.pictures import Pictured, plain
from freight.results import Column
from freight.types import Array, Problem

_TIE = 1e-12
_LEAST = 0.2  # of what a unit moves, for the other end to be called a counterpart
_NOTHING = 0.05  # of a unit's mass, for it to be matched to nothing


@dataclass(frozen=True, eq=False)
class Side:
    """One text as the metric saw it.

    `spans` are characters of the text, or (-1, -1) for a unit that is not in it; `shares` is what
    each unit adds to the score; `matched` runs from 0 for a unit without a counterpart to 1 for one
    that found itself; `excess` is the mass without a counterpart: what a hypothesis added, what it
    omitted of a reference. Of a unit that stands for the same words in several places `spans` has
    the first, and `again` its number and the characters of each other one.
    """

    text: str
    names: tuple[str, ...]
    spans: Array  # (unit, 2)
    weights: Array
    shares: Array
    matched: Array
    excess: Array
    again: Array = field(default_factory=lambda: np.zeros((0, 3), np.int64))  # (place, 3)

    @property
    def places(self) -> Array:
        """Wherever a unit stands in the text: its number, and where it starts and ends."""
        first = np.column_stack((np.arange(len(self.spans)), self.spans)).astype(np.int64)
        return np.concatenate((first[self.spans[:, 0] >= 0], self.again))

    @property
    def lost(self) -> Array:
        """The units of the text (by number) half of whose mass, or more, has no counterpart."""
        heavy = (self.weights > 0) & (2.0 * self.excess >= self.weights)
        return np.flatnonzero(heavy & (self.spans[:, 0] >= 0))

    def quoted(self, units: Array) -> tuple[str, ...]:
        """What these units say, as in the text: those with only space between them in one."""
        outside = [self.names[k] for k in units if self.spans[k, 0] < 0]
        runs: list[tuple[int, int]] = []
        for start, end in sorted(self.spans[k].tolist() for k in units if self.spans[k, 0] >= 0):
            if runs and not self.text[runs[-1][1] : start].strip():
                runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
            else:
                runs.append((start, end))
        return (*outside, *(self.text[start:end] for start, end in runs))


@dataclass(frozen=True, eq=False)
class Plan:
    """One matching of the two sides: the transport, or precision's, or recall's."""

    name: str
    problem: Problem
    flow: Array  # (hyp unit, ref unit)


def own_plan(plans: tuple[Plan, ...], side: str) -> Plan:
    """The first plan that does not let a side ("hyp" or "ref") go; if all do, the first."""
    return next((plan for plan in plans if getattr(plan.problem, side) > 0), plans[0])


@dataclass(frozen=True, eq=False)
class Matching:
    """Where the mass of each unit of a side went in a plan: to the nearest, elsewhere, nowhere.

    Mass that goes elsewhere is noise, mass that stays makes a matching incomplete.
    """

    nearest: Array
    elsewhere: Array
    unmoved: Array

    @property
    def noisy(self) -> float:
        """The share of all the mass that went elsewhere."""
        return self._share(self.elsewhere)

    @property
    def incomplete(self) -> float:
        """The share of all the mass that stayed."""
        return self._share(self.unmoved)

    def _share(self, part: Array) -> float:
        total = self.nearest.sum() + self.elsewhere.sum() + self.unmoved.sum()
        return float(part.sum() / total) if total > 0 else 0.0


@dataclass(frozen=True, eq=False)
class View:
    """Both texts cut into units of one kind, and what moved between them.

    `weight` is the view's part in the score; `terms` are what the cost adds up from, where that is
    more than one thing.
    """

    name: str
    weight: float
    hyp: Side
    ref: Side
    cost: Array  # (hyp unit, ref unit)
    terms: dict[str, Array]
    plans: tuple[Plan, ...]

    def matching(self, side: str, plan: Plan, k: int = 1) -> Matching:
        """Where the mass of a side went: to each unit's k nearest ones, elsewhere, nowhere.

        Units as near as the last of them count as well.
        """
        flow, cost = (x if side == "hyp" else x.T for x in (plan.flow, self.cost))
        last = np.sort(cost, axis=1)[:, min(k, cost.shape[1]) - 1]
        near = (flow * (cost <= last[:, None] + _TIE)).sum(axis=1)
        moved = flow.sum(axis=1)
        weights: Array = getattr(self, side).weights
        return Matching(near, np.maximum(moved - near, 0.0), np.maximum(weights - moved, 0.0))

    def counterparts(self, side: str, unit: int) -> tuple[str, ...]:
        """What a unit was matched to, in the plan in which its side has a say.

        That is where a fifth of what it moves, or more, ended, or else most of it. What stays on
        itself although the other text does not have it found no counterpart there.
        """
        flow = own_plan(self.plans, side).flow
        own, other = (self.hyp, self.ref) if side == "hyp" else (self.ref, self.hyp)
        same = np.array([name == own.names[unit] for name in other.names])
        moved = (flow if side == "hyp" else flow.T)[unit] * ~(same & (other.spans[:, 0] < 0))
        if moved.sum() <= _NOTHING * own.weights[unit]:
            return ()
        return other.quoted(np.flatnonzero(moved >= min(_LEAST * moved.sum(), moved.max())))

    def to_dict(self) -> dict[str, Any]:
        """In the words of JSON, with where the mass of either side went in each plan."""
        found: dict[str, Any] = plain(self)
        for shown, plan in zip(found["plans"], self.plans, strict=True):
            shown["matching"] = {s: self._matching_dict(s, plan) for s in ("hyp", "ref")}
        return found

    def _matching_dict(self, side: str, plan: Plan) -> dict[str, Any]:
        found = self.matching(side, plan)
        return {**plain(found), "noisy": found.noisy, "incomplete": found.incomplete}


@dataclass(frozen=True, eq=False)
class Explanation(Pictured):
    """Why a text scored as it did: `base` and the shares of all units add up to the score.

    `scores` are what scoring gives; the views are of the reference that won, `winner`, and
    `reference_scores` has the primary column for every one of them. Where the score is their mean,
    shares are what the winner adds to that mean, and the others are in the base.
    """

    metric: str
    column: Column
    scores: dict[str, float]
    base: float
    views: tuple[View, ...]
    references: tuple[str, ...]
    winner: int
    reference_scores: tuple[float, ...]
    flags: tuple[str, ...]
    signature: str

    @property
    def score(self) -> float:
        """The column that is explained."""
        return self.scores[self.column.name]

    @property
    def additions(self) -> tuple[str, ...]:
        """What the hypothesis says that has no counterpart in the reference."""
        return self.views[0].hyp.quoted(self.views[0].hyp.lost) if self.views else ()

    @property
    def omissions(self) -> tuple[str, ...]:
        """What the reference says that has no counterpart in the hypothesis."""
        return self.views[0].ref.quoted(self.views[0].ref.lost) if self.views else ()

    def to_dict(self) -> dict[str, Any]:
        """In the words of JSON: what is no finite number is null, a held side's price too."""
        found: dict[str, Any] = plain(self)
        found["views"] = [view.to_dict() for view in self.views]
        return {**found, "additions": [*self.additions], "omissions": [*self.omissions]}
