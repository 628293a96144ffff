"""What a score is made of: the units of both texts, what moved where, and what each unit adds."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from freight.core.result import Column
from freight.errors import InvalidInput, MissingPart
from freight.transport.types import Array, Problem

ENDINGS = (".html", ".json", ".png", ".svg", ".pdf")


class Pictured(ABC):
    """What can be drawn, as a page or as heat maps, where the extra `report` is installed."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """In the words of JSON."""

    def html(self) -> str:
        """A page that is one file."""
        from freight.report.explanation import page

        shown: Any = self
        return page(shown)

    def plot(self, path: str | Path | None = None) -> Any:
        """Heat maps, a figure of matplotlib; written to a path (.png .svg .pdf) where given."""
        from freight.report.heatmaps import plot

        shown: Any = self
        return plot(shown, path)

    def save(self, path: str | Path) -> None:
        """Write it as what the path ends in: .html .json .png .svg .pdf."""
        place = Path(path)
        check_place(place)
        if place.suffix == ".json":
            part = place.with_name(place.name + ".part")
            part.write_text(json.dumps(self.to_dict(), allow_nan=False) + "\n", "ascii")
            part.replace(place)
        elif place.suffix == ".html":
            from freight.report.html import write_page

            write_page(self.html(), place)
        else:
            self.plot(place)

    def _repr_html_(self) -> str | None:
        from freight.report.explanation import fragment, fragment_style

        shown: Any = self
        try:
            return f"<style>{fragment_style()}</style>{fragment(shown)}"
        except MissingPart:  # a notebook has another way to show it
            return None


def check_place(path: Path) -> None:
    """Before any work: a place that cannot be written is no surprise at the end of it."""
    if path.suffix not in ENDINGS:
        raise InvalidInput(f"{path} ends in none of {' '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")
    if path.suffix == ".html":
        from freight.report.html import check_page

        check_page(path)


def plain(value: Any) -> Any:
    """The same in the words of JSON; what is no finite number is null."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
