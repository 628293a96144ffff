"""A metric is data: one function an arrow from texts to scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Protocol

import numpy as np

from freight.core.costs import Cost
from freight.core.idf import Frequencies
from freight.core.pairings import Pairs, side_by_side
from freight.core.pipeline import UNFLAGGED, Chunk, Scored, score_measures
from freight.core.readouts import Readout
from freight.core.result import Column, Result
from freight.core.scoring import Refs, check_references, result_of, score_together
from freight.core.types import Cloud, Encoder
from freight.core.weightings import Measures, Weighting, brought
from freight.errors import InvalidInput
from freight.explain.explainer import Composition, explain
from freight.explain.explanation import Explanation
from freight.transport.types import Array, Problem

_PART = 4096


@dataclass(frozen=True)
class Metric:
    """The composition: what to encode with, which units, which mass, what cost, which problems."""

    name: str
    encoder: Encoder
    layers: tuple[int, ...]
    units: Callable[[Cloud], Cloud]
    weighting: Weighting
    ref_weighting: Weighting | None  # where each side has a table of its own
    cost: Cost
    problems: tuple[Problem, ...]
    readout: Readout
    columns: tuple[Column, ...]
    references: str = "best"
    pairing: Callable[[Measures, Measures, Array], Iterator[Pairs]] = side_by_side

    def __post_init__(self) -> None:
        check_references(self.references)

    def score(self, hyps: Sequence[str], refs: Sequence[str] | Sequence[Sequence[str]]) -> Result:
        """Score each hypothesis against its reference, or its references."""
        return score_together([self], hyps, refs)[0]

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Explanation:
        """Why a hypothesis scores as it does against its reference, or the best of several.

        The scores are those of `score`, to the bit; the primary column is explained unless another
        is named. IDF has to be fitted: one pair teaches none.
        """
        return explain(self, hyp, ref, column)

    def composition(self, column: str) -> Composition:
        """What a column is made of: itself."""
        return Composition(0.0, ((column, 1.0),))

    @property
    def parts(self) -> tuple[Metric, ...]:
        """What goes through the pipeline: the metric itself."""
        return (self,)

    def read(self, chunk: Chunk, scored: Sequence[Scored]) -> Result:
        """The result of a chunk out of the scores of its pairs."""
        return result_of(self, scored[0], chunk.segments)

    def score_measures(self, hyp: Sequence[Any], ref: Sequence[Any]) -> Result:
        """Score vectors of your own: a side is a list of points (n, dim), or (points, masses).

        Masses are normalised, uniform where none are given; units, layers and IDF play no part.
        """
        if len(hyp) != len(ref):
            raise InvalidInput(f"there are {len(hyp)} hypotheses but {len(ref)} references")
        both = brought([*hyp, *ref])
        index = np.arange(2 * len(hyp)).reshape(2, -1).T
        scores, flags = score_measures(self, both, both, index)
        result = result_of(self, (scores, flags), np.arange(len(hyp)))
        return replace(result, signature=f"{result.signature}|measures:brought")

    @property
    def needs_fitting(self) -> bool:
        """Whether the masses come from frequencies that have not been learnt yet."""
        both = (self.weighting, self.ref_weighting)
        return any(w and w.idf and w.idf.table is None for w in both)

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Metric:
        """A copy that has learnt IDF from these texts, repeats counted; `source` is signed.

        One table from the references serves both sides, unless each side has its own: then the
        hypotheses are needed too.
        """
        if isinstance(refs, str) or isinstance(hyps, str):
            raise InvalidInput("fit learns from lists of texts, not from one text")
        if self.ref_weighting is None:
            return replace(self, weighting=self.weighting.fitted(self._learn(refs, source)))
        if hyps is None:
            raise InvalidInput("idf='own' learns a table a side; give fit the hypotheses too")
        return replace(
            self,
            weighting=self.weighting.fitted(self._learn(hyps, source)),
            ref_weighting=self.ref_weighting.fitted(self._learn(refs, source)),
        )

    def _learn(self, texts: Iterable[str], source: str) -> Frequencies:
        parts = _parts(texts)
        return Frequencies.of((self.units(self.encoder.encode(p, ())) for p in parts), source)

    @property
    def signature(self) -> str:
        """Every choice, one line, read off the fields."""
        return signed(self.name, {f.name: getattr(self, f.name) for f in fields(self)[1:]})


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while part := list(islice(stream, _PART)):
        yield part


class Mixture(Protocol):
    """How parts become columns, and the means of columns system scores."""

    def __call__(self, parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
        """The blend's columns out of those of its parts."""
        ...

    def total(self, means: dict[str, float]) -> dict[str, float]:
        """System scores out of the means of the columns."""
        ...

    def factors(self, column: str) -> tuple[float, tuple[float, ...]]:
        """What a column starts from, and how often it counts the primary one of each part."""
        ...


@dataclass(frozen=True)
class Blend:
    """Parts scored side by side; the winning reference and the flags are those of the blend."""

    name: str
    parts: tuple[Metric, ...]
    mixture: Mixture
    columns: tuple[Column, ...]
    references: str = "best"

    def __post_init__(self) -> None:
        check_references(self.references)

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """Score each hypothesis against its reference, or its references."""
        return score_together([self], hyps, refs)[0]

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Explanation:
        """Why a hypothesis scores as it does, a view a part; see `Metric.explain`."""
        return explain(self, hyp, ref, column)

    def composition(self, column: str) -> Composition:
        """What a column is made of."""
        base, factors = self.mixture.factors(column)
        names = [part.columns[0].name for part in self.parts]
        return Composition(base, tuple(zip(names, factors, strict=True)))

    def read(self, chunk: Chunk, scored: Sequence[Scored]) -> Result:
        """The result of a chunk out of the scores of the parts."""
        columns = self.mixture([scores for scores, _ in scored])
        flags = [UNFLAGGED.union(*found) for found in zip(*(f for _, f in scored), strict=True)]
        result = result_of(self, (columns, flags), chunk.segments)
        values = np.stack([result[column.name] for column in self.columns], axis=1)
        known = np.isfinite(values).all(axis=1)
        tallies = np.column_stack((np.where(known[:, None], values, 0.0), known))
        return replace(result, tallies=tallies, total=_Total(self.columns, self.mixture.total))

    @property
    def needs_fitting(self) -> bool:
        """Whether a part needs it."""
        return any(part.needs_fitting for part in self.parts)

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Blend:
        """A copy whose parts have learnt IDF from these texts."""
        texts, others = _again(refs), None if hyps is None else _again(hyps)
        return replace(self, parts=tuple(part.fit(texts, others, source) for part in self.parts))

    @property
    def signature(self) -> str:
        """Every choice, one line, read off the fields."""
        return signed(self.name, {f.name: getattr(self, f.name) for f in fields(self)[1:]})


def _again(texts: Iterable[str]) -> Iterable[str]:
    """What can be read once for each part."""
    return list(texts) if isinstance(texts, Iterator) else texts


@dataclass(frozen=True)
class _Total:
    columns: tuple[Column, ...]
    total: Callable[[dict[str, float]], dict[str, float]]

    def __call__(self, tally: Array) -> dict[str, float]:
        means = tally[:-1] / tally[-1] if tally[-1] else np.full(len(self.columns), np.nan)
        names = [column.name for column in self.columns]
        return self.total(dict(zip(names, means.tolist(), strict=True)))


def signed(name: str, choices: Mapping[str, Any]) -> str:
    """A signature: the name, each choice, and the version."""
    from freight import __version__

    parts = [f"{choice}:{describe(value)}" for choice, value in choices.items()]
    return "|".join([name, *parts, f"version:{__version__}"])


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
