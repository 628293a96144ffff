"""The data of an explanation: the units of both texts, their costs, the plans, the attribution.

An `Explanation` has one `View` per kind of unit. A view has two sides (`Side`), the cost matrix
between their units, and one `Plan` per transport problem that was solved. The contributions of all
units and the base add up to the score.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from freight.core.flags import Flag, FlagKind
from freight.core.result import Column, cite
from freight.data.output import check_path, write_whole
from freight.encoders.words import places_in, unicode_words
from freight.errors import MissingPart
from freight.transport.types import Array, Problem

if TYPE_CHECKING:
    from freight.explain.spans import ErrorSpan, SpanKind

ENDINGS = (".html", ".json", ".png", ".svg", ".pdf")
_TIE = 1e-12
_COUNTERPART = 0.2  # of the mass that a unit moves: from here on the other end is a counterpart
_DIGITS = 6  # of the numbers of a matrix in JSON; vectors behind them have seven
_NOTHING = 0.05  # of a unit's mass: what moves less than this has no counterpart


class Drawable(ABC):
    """What can be shown as a page or as heat maps, with the extra `report` installed."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The data as JSON types."""

    def html(self) -> str:
        """A page in one file."""
        from freight.report.explanation import page

        drawable: Any = self
        return page(drawable)

    def plot(self, path: str | Path | None = None) -> Any:
        """Heat maps as a matplotlib figure, also written to a path (.png .svg .pdf) if given."""
        from freight.report.heatmaps import plot

        drawable: Any = self
        return plot(drawable, path)

    def save(self, path: str | Path) -> None:
        """Write a file of the type that the path ends in: .html .json .png .svg .pdf."""
        from freight.report.pages import write_page

        path = Path(path)
        check_output(path)
        if path.suffix == ".json":
            write_whole(path, json.dumps(self.to_dict(), allow_nan=False).encode("ascii") + b"\n")
        elif path.suffix == ".html":
            write_page(self.html(), path)
        else:
            self.plot(path)

    def _repr_html_(self) -> str | None:
        from freight.report.explanation import fragment, fragment_style

        drawable: Any = self
        try:
            return f"<style>{fragment_style()}</style>{fragment(drawable)}"
        except MissingPart:  # a notebook then shows the repr
            return None


def check_output(path: Path) -> None:
    """Refuse a path that an explanation cannot be written to, before any work is done."""
    from freight.report.pages import check_page

    check_path(path, ENDINGS)
    if path.suffix == ".html":
        check_page(path)


class TextWord(NamedTuple):
    """A word of a text: its characters, and the units that they belong to."""

    start: int
    end: int
    units: tuple[int, ...]

    def overlaps(self, spans: Sequence[ErrorSpan]) -> bool:
        """Whether a character of it is in one of some spans of its text."""
        return any(span.start < self.end and self.start < span.end for span in spans)


@dataclass(frozen=True, eq=False)
class Side:
    """One text as the metric sees it: one entry per unit in each field.

    `spans` are the unit's characters, (-1, -1) for a unit that is not in the text.
    `contributions` are what each unit adds to the score. `match_quality` runs from 0 for a unit
    without a counterpart to 1 for one that is matched to itself. `unmatched_mass` is the mass
    without a counterpart: an addition in a hypothesis, an omission in a reference. `nearest_cost`
    is the cost to the nearest unit of the other side, 1 between unrelated units. Where a unit
    stands for several occurrences of the same words, `spans` has the first one, and `repeats` has
    (unit, start, end) for each further one.
    """

    text: str
    names: tuple[str, ...]
    spans: Array  # (unit, 2)
    weights: Array
    contributions: Array
    match_quality: Array
    unmatched_mass: Array
    repeats: Array = field(default_factory=lambda: np.zeros((0, 3), np.int64))  # (occurrence, 3)
    nearest_cost: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if len(self.nearest_cost) < len(self.weights):  # made by hand
            object.__setattr__(self, "nearest_cost", 1.0 - np.nan_to_num(self.match_quality))

    def in_text(self, text: str) -> Side:
        """The same side of the text as it was given, which was composed (NFC) to be scored."""
        if text == self.text:
            return self
        places = np.array([*places_in(text), (len(text), len(text))])
        spans, repeats = self.spans.copy(), self.repeats.copy()
        for moved in (spans, repeats[:, 1:]):
            inside = moved[:, 0] >= 0
            start, end = moved[inside].T
            ends = np.where(end > start, places[end - 1, 1], places[start, 0])
            moved[inside] = np.column_stack((places[start, 0], ends))
        names = tuple(
            text[start:end] if start >= 0 else name
            for name, (start, end) in zip(self.names, spans.tolist(), strict=True)
        )
        return replace(self, text=text, names=names, spans=spans, repeats=repeats)

    @cached_property
    def words(self) -> list[TextWord]:
        """The words and marks of the text, each with the units that cover a part of it.

        Units that are larger than words, such as sentences, are taken for words.
        """
        places = self.occurrences[np.argsort(self.occurrences[:, 1], kind="stable")]
        cut = unicode_words(self.text)
        spans = list(zip(cut.start, cut.end, strict=True))
        if len(places) and 2 * len(places) < len(spans):
            spans = [(start, end) for _, start, end in places.tolist()]
        words, first = [], 0
        for start, end in spans:
            while first < len(places) and places[first, 2] <= start:
                first += 1
            units = []
            for unit, a, b in places[first:].tolist():
                if a >= end:
                    break
                units += [unit] if b > start else []
            words.append(TextWord(start, end, tuple(units)))
        return words

    @cached_property
    def word_quality(self) -> Array:
        """The match quality of each word, the mean over its units by their mass."""
        return np.array([self._mean_quality(word.units) for word in self.words], float)

    def _mean_quality(self, units: tuple[int, ...]) -> float:
        if not units:
            return 1.0
        index = list(units)
        weights = self.weights[index]
        weights = weights if weights.sum() > 0 else np.ones(len(index))
        return float(np.average(np.nan_to_num(self.match_quality[index]), weights=weights))

    @property
    def unmatched_words(self) -> list[TextWord]:
        """The words at least half of whose mass is unmatched; marks are none."""
        return [
            word
            for word in self.words
            if any(map(str.isalnum, self.text[word.start : word.end]))
            and (mass := self.weights[list(word.units)].sum()) > 0
            and 2.0 * self.unmatched_mass[list(word.units)].sum() >= mass
        ]

    @property
    def occurrences(self) -> Array:
        """The unit, start and end of every occurrence of a unit in the text."""
        first = np.column_stack((np.arange(len(self.spans)), self.spans)).astype(np.int64)
        return np.concatenate((first[self.spans[:, 0] >= 0], self.repeats))

    def quote(self, units: Array) -> tuple[str, ...]:
        """The words of these units as in the text, neighbours joined into one phrase."""
        outside = [self.names[k] for k in units if self.spans[k, 0] < 0]
        inside = {k for k in units.tolist() if self.spans[k, 0] >= 0}
        own = [word for word in self.words if inside & {*word.units}]
        covered = {unit for word in own for unit in word.units}
        rest = [
            TextWord(int(self.spans[k, 0]), int(self.spans[k, 1]), (k,)) for k in inside - covered
        ]
        return (*outside, *self.quote_words([*own, *rest]))

    def quote_words(self, words: Sequence[TextWord]) -> tuple[str, ...]:
        """These words as in the text, neighbours joined into one phrase."""
        runs: list[tuple[int, int]] = []
        for start, end, _ in sorted(words):
            if runs and not self.text[runs[-1][1] : start].strip():
                runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
            else:
                runs.append((start, end))
        return tuple(self.text[start:end] for start, end in runs)


@dataclass(frozen=True, eq=False)
class Plan:
    """One coupling of the two sides: transport, precision, recall or lazy."""

    name: str
    problem: Problem
    flow: Array  # (hyp unit, ref unit)


def plan_for_side(plans: tuple[Plan, ...], side: str) -> Plan:
    """The first plan that constrains the marginal of a side ("hyp" or "ref"), else the first."""
    return next((plan for plan in plans if getattr(plan.problem, side) > 0), plans[0])


@dataclass(frozen=True, eq=False)
class Matching:
    """The mass of each unit of a side under a plan: moved to the nearest, elsewhere, unmatched.

    Mass that moves elsewhere makes a matching noisy, unmatched mass makes it incomplete.
    """

    nearest: Array
    elsewhere: Array
    unmatched: Array

    @property
    def noisy(self) -> float:
        """The share of the side's mass that moves elsewhere than to the nearest unit."""
        return self._share(self.elsewhere)

    @property
    def incomplete(self) -> float:
        """The share of the side's mass that is unmatched."""
        return self._share(self.unmatched)

    def _share(self, part: Array) -> float:
        total = self.nearest.sum() + self.elsewhere.sum() + self.unmatched.sum()
        return float(part.sum() / total) if total > 0 else 0.0


@dataclass(frozen=True, eq=False)
class View:
    """Both texts in units of one kind, the cost between them, and the plans.

    `weight` is the weight of the view in the score; `terms` are the terms of the cost where it is
    a sum of several.
    """

    name: str
    weight: float
    hyp: Side
    ref: Side
    cost: Array  # (hyp unit, ref unit)
    terms: dict[str, Array]
    plans: tuple[Plan, ...]

    def in_texts(self, hyp: str, ref: str) -> View:
        """The same view of texts that code letters and marks differently."""
        return replace(self, hyp=self.hyp.in_text(hyp), ref=self.ref.in_text(ref))

    def matching(self, side: str, plan: Plan, k: int = 1) -> Matching:
        """The mass of a side by where it moves: to each unit's k nearest units, elsewhere, nowhere.

        Units as near as the k-th one count as nearest too.
        """
        flow, cost = (x if side == "hyp" else x.T for x in (plan.flow, self.cost))
        last = np.sort(cost, axis=1)[:, min(k, cost.shape[1]) - 1]
        near = (flow * (cost <= last[:, None] + _TIE)).sum(axis=1)
        moved = flow.sum(axis=1)
        weights: Array = getattr(self, side).weights
        return Matching(near, np.maximum(moved - near, 0.0), np.maximum(weights - moved, 0.0))

    def counterparts(self, side: str, *units: int) -> tuple[str, ...]:
        """The words of the other text that units of a side are matched to, by that side's plan.

        These are the units that get a fifth or more of the moved mass, or else the one that gets
        most. Mass that is matched to the same unit, where the other text does not have it, is not
        counted.
        """
        flow = plan_for_side(self.plans, side).flow
        own, other = (self.hyp, self.ref) if side == "hyp" else (self.ref, self.hyp)
        outside = other.spans[:, 0] < 0
        moved = np.zeros(len(other.names))
        for unit in units:
            same = np.array([name == own.names[unit] for name in other.names])
            moved += (flow if side == "hyp" else flow.T)[unit] * ~(same & outside)
        if moved.sum() <= _NOTHING * own.weights[list(units)].sum():
            return ()
        return other.quote(np.flatnonzero(moved >= min(_COUNTERPART * moved.sum(), moved.max())))

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON types, with the matching of either side under each plan.

        Costs and flow have six digits.
        """
        data: dict[str, Any] = to_json(self)
        for plan_data, plan in zip(data["plans"], self.plans, strict=True):
            plan_data["matching"] = {
                side: self._matching_dict(side, plan) for side in ("hyp", "ref")
            }
        return data

    def _matching_dict(self, side: str, plan: Plan) -> dict[str, Any]:
        matching = self.matching(side, plan)
        return {**to_json(matching), "noisy": matching.noisy, "incomplete": matching.incomplete}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Drawable):
    """A score attributed to units: `base` and the contributions of all units add up to it.

    `scores` are those of `score`. The views are those of the best reference, `winner`, and
    `reference_scores` has the explained column for every reference. Where the score is the mean
    over references, contributions are to that mean, and the other references are in the base.
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
    hyp: str = ""

    def __repr__(self) -> str:
        texts = (f"{side.text[:40]!r}" for view in self.views[:1] for side in (view.hyp, view.ref))
        named = f"{self.metric} {self.column.name}={self.score:.4g}"
        return f"Explanation({', '.join([named, *texts])})"

    @property
    def score(self) -> float:
        """The score in the explained column."""
        return self.scores[self.column.name]

    @property
    def additions(self) -> tuple[str, ...]:
        """Phrases of the hypothesis whose mass is unmatched by the plan."""
        side = self.views[0].hyp if self.views else None
        return () if side is None else side.quote_words(side.unmatched_words)

    @property
    def omissions(self) -> tuple[str, ...]:
        """Phrases of the reference whose mass is unmatched by the plan."""
        side = self.views[0].ref if self.views else None
        return () if side is None else side.quote_words(side.unmatched_words)

    @cached_property
    def spans(self) -> tuple[ErrorSpan, ...]:
        """What is wrong or added in the hypothesis, and what of the reference is missing."""
        from freight.explain.spans import error_spans

        return error_spans(self)

    @property
    def worst_words(self) -> tuple[str, ...]:
        """The three words of the hypothesis that are matched worst, of those in its errors."""
        if not self.views:
            return ()
        side, errors = self.views[0].hyp, [span for span in self.spans if span.side == "hyp"]
        order = np.argsort(side.word_quality, kind="stable").tolist()
        bad = (word for word in map(side.words.__getitem__, order) if word.overlaps(errors))
        texts = (side.text[word.start : word.end] for word in bad)
        return tuple(dict.fromkeys(text for text in texts if any(map(str.isalnum, text))))[:3]

    def phrases(self, kind: SpanKind) -> tuple[str, ...]:
        """What the spans of a kind say, each once: wrong, added or missing."""
        return tuple(dict.fromkeys(span.text for span in self.spans if span.kind == kind))

    @property
    def meaning(self) -> str:
        """A sentence that places the score on its scale; empty where there is none."""
        from freight.core.scale import find_scale

        scale = find_scale(self.signature, self.column.name)
        is_one = len(self.references) == 1 and bool(self.views)  # the best of several is higher
        is_read = not any(flag.startswith(FlagKind.UNREAD_LANGUAGE) for flag in self.flags)
        fits = is_one and is_read and math.isfinite(self.score)
        return scale.describe(self.score) if scale and fits else ""

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON types; a number that is not finite is null, as a hard marginal is."""
        data: dict[str, Any] = to_json(replace(self, views=()))
        data["views"] = [view.to_dict() for view in self.views]
        named = {"additions": [*self.additions], "omissions": [*self.omissions]}
        placed = {"meaning": self.meaning, "citation": cite(self.signature)}
        return {**data, **named, **placed, "spans": to_json(list(self.spans))}


def to_json(value: Any) -> Any:
    """The same value in JSON types; a number that is not finite becomes null."""
    if is_dataclass(value):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Flag):
        return value.record
    if isinstance(value, np.ndarray):
        return _array_to_json(value)
    if isinstance(value, Mapping):
        return {name: to_json(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _array_to_json(array: Array) -> Any:
    """Numbers of an array; those of a matrix in few digits, since there are very many of them."""
    if array.dtype.kind != "f":
        return array.tolist()
    known = np.isfinite(array)
    if array.ndim == 2:
        array = np.where(known, array, 0.0).astype(np.float64)
        magnitude = np.floor(np.log10(np.abs(array), where=array != 0, out=np.zeros_like(array)))
        scale = 10.0 ** np.clip(_DIGITS - 1 - magnitude, 0, 22)  # powers of ten that are exact
        array = np.round(array * scale) / scale
    if known.all():
        return array.tolist()
    values = array.astype(object)
    values[~known] = None
    return values.tolist()
