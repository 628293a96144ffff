"""A metric is data: one function an arrow from texts to scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from freight.clouds import Cloud, Encoder
from freight.errors import InvalidInput
from freight.pipeline import Chosen, Scored, reduce_references, score_measures, score_pairs
from freight.results import Column, Result
from freight.types import Array, Plans, Problem
from freight.weightings import Idf, Weighting, brought, fitted

REFERENCES = ("best", "each", "mean")


@dataclass(frozen=True)
class Metric:
    """The composition: what to encode with, which units, which mass, what cost, which problems."""

    name: str
    encoder: Encoder
    layers: tuple[int, ...]
    units: Callable[[Cloud], Cloud]
    weighting: Weighting
    cost: Callable[[Tensor, Tensor], Tensor]
    problems: tuple[Problem, ...]
    readout: Callable[[Sequence[Plans]], dict[str, Array]]
    columns: tuple[Column, ...]
    references: str = "best"
    ref_weighting: Weighting | None = None

    def __post_init__(self) -> None:
        if self.references not in REFERENCES:
            raise InvalidInput(f"references={self.references!r}; there is {', '.join(REFERENCES)}")

    def score(self, hyps: Sequence[str], refs: Sequence[str] | Sequence[Sequence[str]]) -> Result:
        """Score each hypothesis against its reference, or its references."""
        return score_together([self], hyps, refs)[0]

    def score_measures(self, hyp: Sequence[Any], ref: Sequence[Any]) -> Result:
        """Score vectors of your own: a side is a list of points (n, dim), or (points, masses).

        Masses are normalised, uniform where none are given; units, layers and IDF play no part.
        """
        if len(hyp) != len(ref):
            raise InvalidInput(f"there are {len(hyp)} hypotheses but {len(ref)} references")
        both = brought([*hyp, *ref])
        index = np.arange(2 * len(hyp)).reshape(2, -1).T
        scores, flags = score_measures(self, both, both, index)
        return self._result((scores, flags), np.arange(len(hyp)), "|measures:brought")

    def _result(self, scored: Scored, segments: Array, remark: str = "") -> Result:
        scores, flags = scored
        chosen: Chosen = reduce_references(self.columns, scores, segments, self.references)
        kept: list[set[str]] = [set() for _ in range(int(segments[-1]) + 1)]
        for segment, found in zip(segments, flags, strict=True):
            kept[segment].update(found)
        shown = tuple(tuple(sorted(found)) for found in kept)
        signature = self.signature + remark
        return Result(self.name, self.columns, chosen.scores, chosen.winners, shown, signature)

    @property
    def needs_fitting(self) -> bool:
        """Whether the masses come from frequencies that have not been learnt yet."""
        return any(isinstance(w, Idf) and w.table is None for w in self._masses)

    @property
    def _masses(self) -> list[Any]:
        both = [w for w in (self.weighting, self.ref_weighting) if w is not None]
        return [getattr(w, "mass", w) for w in both]

    def fit(self, refs: Sequence[str], hyps: Sequence[str] | None = None) -> Metric:
        """A copy that has learnt IDF from these texts, repeats counted.

        One table from the references serves both sides, unless each side has its own: then the
        hypotheses are needed too.
        """
        own = self.ref_weighting is not None
        if own and hyps is None:
            raise InvalidInput("idf='own' learns a table a side; give fit the hypotheses too")
        if isinstance(refs, str) or isinstance(hyps, str):
            raise InvalidInput("fit learns from lists of texts, not from one text")
        mine = fitted(self.weighting, self.encoder, hyps if own and hyps is not None else refs)
        other = fitted(self.ref_weighting, self.encoder, refs) if self.ref_weighting else None
        return replace(self, weighting=mine, ref_weighting=other)

    @property
    def signature(self) -> str:
        """Every choice, one line, read off the fields."""
        from freight import __version__

        parts = [f"{f.name}:{describe(getattr(self, f.name))}" for f in fields(self)[1:]]
        return "|".join([self.name, *parts, f"version:{__version__}"])


def score_together(
    metrics: Sequence[Metric],
    hyps: Sequence[str],
    refs: Sequence[str] | Sequence[Sequence[str]],
) -> list[Result]:
    """Score by several metrics in one pass; those that share an encoder share one encoding."""
    segments, texts, index = pair_up(hyps, refs)
    given = [texts[k] for k in index[:, 1]]
    ready = [metric.fit(given, hyps) if metric.needs_fitting else metric for metric in metrics]
    remarks = ["|idf:given texts" if metric.needs_fitting else "" for metric in metrics]
    scored = score_pairs(ready, texts, index)
    return [
        metric._result(found, segments, remark)
        for metric, found, remark in zip(ready, scored, remarks, strict=True)
    ]


def describe(value: Any) -> str:
    """A value as a signature shows it: functions by name, data by its fields."""
    if hasattr(value, "identity"):
        return str(value.identity)
    if isinstance(value, tuple):
        return ",".join(describe(item) for item in value)
    if isinstance(value, Column):
        return value.name
    if isinstance(value, partial):
        return f"{describe(value.func)}({value.keywords})"
    if is_dataclass(value) and not isinstance(value, type):
        inner = ",".join(f"{f.name}={describe(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    return getattr(value, "__name__", str(value))


def pair_up(
    hyps: Sequence[str], refs: Sequence[str] | Sequence[Sequence[str]]
) -> tuple[Array, list[str], Array]:
    """Segments (pair,), distinct texts, and their index (pair, 2); what is no text is named."""
    for name, given in (("hyps", hyps), ("refs", refs)):
        if isinstance(given, (str, bytes)):
            raise InvalidInput(f"{name} is one text; give a list of texts, [{name[:3]}]")
    if len(hyps) != len(refs):
        raise InvalidInput(f"there are {len(hyps)} hypotheses but {len(refs)} references")
    if not len(hyps):
        raise InvalidInput("there is nothing to score: hyps and refs are empty")
    place: dict[str, int] = {}
    segments, index = [], []
    for k, (hyp, given) in enumerate(zip(hyps, refs, strict=True)):
        _check(hyp, f"hyps[{k}]")
        several: Any = given
        if isinstance(given, str) or not isinstance(given, Sequence):
            several = [given]
        if not len(several):
            raise InvalidInput(f"refs[{k}] is an empty list; give at least one reference")
        for r, ref in enumerate(several):
            _check(ref, f"refs[{k}][{r}]" if several is given else f"refs[{k}]")
            segments.append(k)
            pair: tuple[str, str] = hyp, ref
            index.append([place.setdefault(text, len(place)) for text in pair])
    return np.array(segments), list(place), np.array(index)


def _check(text: Any, where: str) -> None:
    if not isinstance(text, str):
        raise InvalidInput(f"{where} is {text!r}, not a text; an empty text is ''")
