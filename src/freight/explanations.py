"""What a score is made of: the units of both texts, what moved where, and what each unit adds."""

from __future__ import annotations

from dataclasses import dataclass

from freight.results import Column
from freight.types import Array, Problem


@dataclass(frozen=True, eq=False)
class Side:
    """One text as the metric saw it.

    `spans` are characters of the text, or (-1, -1) for a unit that is not in it; `shares` is what
    each unit adds to the score; `matched` runs from 0 for a unit without a counterpart to 1 for one
    that found itself; `excess` is the mass without a counterpart: what a hypothesis added, what it
    omitted of a reference.
    """

    text: str
    names: tuple[str, ...]
    spans: Array  # (unit, 2)
    weights: Array
    shares: Array
    matched: Array
    excess: Array


@dataclass(frozen=True, eq=False)
class Plan:
    """One matching of the two sides: the transport, or precision's, or recall's."""

    name: str
    problem: Problem
    flow: Array  # (hyp unit, ref unit)


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


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a text scored as it did: `base` and the shares of all units add up to the score.

    `scores` are of the reference that won, `winner`; `reference_scores` has the primary column for
    every one of them.
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
