"""A metric is data: one function an arrow from texts to scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any

import numpy as np

from freight.clouds import Cloud, Encoder
from freight.costs import Cost
from freight.errors import InvalidInput
from freight.explaining import Composition, explain
from freight.explanations import Explanation
from freight.frequencies import Frequencies
from freight.pairings import Pairs, side_by_side
from freight.pipeline import Chunk, Scored, score_measures
from freight.readouts import Readout
from freight.results import Column, Result
from freight.scoring import check_references, result_of, score_together
from freight.signatures import signed
from freight.types import Array, Problem
from freight.weightings import Measures, Weighting, brought

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
