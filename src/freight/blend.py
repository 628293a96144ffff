"""Several metrics that share one encoding, read as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np

from freight.explaining import Composition, explain
from freight.explanations import Explanation
from freight.metric import Metric
from freight.pipeline import UNFLAGGED, Chunk, Scored
from freight.results import Column, Result
from freight.scoring import Refs, check_references, result_of, score_together
from freight.signatures import signed
from freight.types import Array


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
