"""A metric is data: one function per step from texts to scores, and a signature read off them.

`Metric` is one such composition; `Blend` reads several metrics that share an encoding as one. Their
`score` and `explain` enter the pipeline, which imports this module, when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from freight.core.costs import Cost, side_by_side
from freight.core.flags import NO_FLAGS
from freight.core.idf import FittableWeighting, Frequencies
from freight.core.readouts import Reading, Readout
from freight.core.result import Column, Result, check_references, choices_of, result_of, signed
from freight.core.scorers import Refs
from freight.core.types import Chunk, Cloud, Encoder, Measures, Pairs, PairScores, Progress, is_ours
from freight.core.weightings import Weighting
from freight.errors import InvalidInput, call_part, written_at
from freight.transport.types import Array, Plans, Problem

if TYPE_CHECKING:
    from freight.explain.explanation import Explanation
    from freight.explain.spans import ErrorSpan

_PART = 4096


class Composition(NamedTuple):
    """A column as a sum: a constant, and a column of each part with its factor."""

    base: float
    parts: tuple[tuple[str, float], ...]


def call_step(what: str, part: Callable[..., Any], *arguments: Any, returns: type) -> Any:
    """What a part makes of these; one from outside the package is checked."""
    if is_ours(part):
        return part(*arguments)
    return call_part(what, part, *arguments, returns=returns)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What to encode with, and which units, masses, pairing, cost, problems and read-out to use.

    Every step is a plain function, or an object with a `__call__`; see `freight.core` for those
    there are. `ref_weighting` weighs the references where each side has document frequencies of
    its own. A hypothesis that is surely in another language than its reference is scored as if
    unrelated (every cosine 0), unless the metric is `cross_lingual`.
    """

    name: str
    encoder: Encoder
    layers: tuple[int, ...]
    units: Callable[[Cloud], Cloud]
    weighting: Weighting
    ref_weighting: Weighting | None = None
    cost: Cost
    problems: tuple[Problem, ...]
    readout: Readout
    columns: tuple[Column, ...]
    references: str = "best"
    pairing: Callable[[Measures, Measures, Array], Iterator[Pairs]] = side_by_side
    cross_lingual: bool = field(default=False, metadata={"said if set": True})

    def __post_init__(self) -> None:
        check_references(self.references)

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """Score each hypothesis against its reference, or its references."""
        from freight.core.pipeline import score_together

        return score_together([self], hyps, refs)[0]

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Explanation:
        """Why a hypothesis scores as it does against its reference, or the best of several.

        The scores are those of `score`, to the bit; the primary column is explained unless another
        is named. IDF has to be fitted before: one pair says nothing of how rare a word is.
        """
        from freight.explain.explainer import explain

        return explain(self, hyp, ref, column)

    def spans(self, hyp: str, ref: str | Sequence[str]) -> tuple[ErrorSpan, ...]:
        """Characters of the hypothesis that are wrong or added, and of the reference missing."""
        return self.explain(hyp, ref).spans

    def composition(self, column: str) -> Composition:
        """What a column is made of: itself."""
        return Composition(0.0, ((column, 1.0),))

    @property
    def parts(self) -> tuple[Metric, ...]:
        """What goes through the pipeline: the metric itself."""
        return (self,)

    def encode(self, texts: Any, layers: Sequence[int], progress: Progress | None = None) -> Cloud:
        """The vectors of texts, or of what the encoder has made of them already, checked."""
        what = f"the method encode of {type(self.encoder).__name__}"
        encode = self.encoder.encode
        encoded: Cloud = call_step(what, encode, texts, layers, progress, returns=Cloud)
        return encoded

    def select_units(self, cloud: Cloud) -> Cloud:
        """The units that the metric moves, checked."""
        what = f"the units of {self.name}"
        selected: Cloud = call_step(what, self.units, cloud, returns=Cloud)
        return selected

    def measure(self, weighting: Weighting, units: Cloud) -> Measures:
        """The measures by one of the metric's weightings, checked."""
        what = f"the weighting of {self.name}"
        weighed: Measures = call_step(what, weighting, units, returns=Measures)
        if is_ours(weighting) or (np.isfinite(weighed.weights) & (weighed.weights >= 0.0)).all():
            return weighed
        place = written_at(weighting)
        raise InvalidInput(f"{place}{what} has masses that are negative, nan or infinite")

    def compute_cost(self, pairs: Pairs) -> Tensor:
        """The costs of a batch, checked."""
        what = f"the cost of {self.name}"
        with torch.inference_mode():
            cost: Tensor = call_step(what, self.cost, pairs, returns=Tensor)
        if tuple(cost.shape) != pairs.shape:
            raise InvalidInput(
                f"{written_at(self.cost)}{what} has shape {tuple(cost.shape)}; it has to be"
                f" {pairs.shape}: pair, hyp unit, ref unit"
            )
        return cost

    def read_plans(self, plans: Sequence[Plans], pairs: Pairs) -> Reading:
        """The columns of a batch, checked."""
        what = f"the readout of {self.name}"
        reading: Reading = call_step(what, self.readout, plans, pairs, returns=Reading)
        names = [column.name for column in self.columns]
        if reading.columns.keys() != {*names}:
            raise InvalidInput(
                f"{written_at(self.readout)}{what} gives {', '.join(reading.columns)}; the metric"
                f" has the columns {', '.join(names)}"
            )
        return reading

    def read(self, chunk: Chunk, scored: Sequence[PairScores]) -> Result:
        """The result of a chunk out of the scores of its pairs."""
        return result_of(self, scored[0], chunk.segments)

    def score_measures(self, hyp: Sequence[Any], ref: Sequence[Any]) -> Result:
        """Score vectors of your own: a side is a list of points (n, dim), or (points, masses).

        Masses are normalized, uniform where none are given; units, layers and IDF play no part.
        """
        if len(hyp) != len(ref):
            raise InvalidInput(f"there are {len(hyp)} hypotheses but {len(ref)} references")
        from freight.core.pipeline import score_measures

        both = measures_of_points([*hyp, *ref])
        index = np.arange(2 * len(hyp)).reshape(2, -1).T
        scored = score_measures(self, both, both, index)
        result = result_of(self, scored, np.arange(len(hyp)))
        return replace(result, signature=f"{result.signature}|measures:brought")

    @property
    def needs_fitting(self) -> bool:
        """Whether the masses depend on document frequencies that are not there yet."""
        weightings = [w for w in (self.weighting, self.ref_weighting) if w is not None]
        fittable = [w for w in weightings if isinstance(w, FittableWeighting)]
        return any(w.idf is not None and w.idf.table is None for w in fittable)

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Metric:
        """A copy with document frequencies of these texts, repeats counted.

        One table from the references serves both sides, unless each side has its own: then the
        hypotheses are needed too. `source` says in the signature where the table comes from.
        """
        if isinstance(refs, str) or isinstance(hyps, str):
            raise InvalidInput("fit takes lists of texts, not one text")
        if self.ref_weighting is None:
            return replace(self, weighting=self._fitted(self.weighting, refs, source))
        if hyps is None:
            raise InvalidInput("idf='own' fits a table per side; give fit the hypotheses too")
        return replace(
            self,
            weighting=self._fitted(self.weighting, hyps, source),
            ref_weighting=self._fitted(self.ref_weighting, refs, source),
        )

    def _fitted(self, weighting: Weighting, texts: Iterable[str], source: str) -> Weighting:
        if not isinstance(weighting, FittableWeighting):
            return weighting
        from freight.core.pipeline import compose

        composed = map(compose, texts)
        clouds = (self.units(self.encoder.encode(part, ())) for part in _parts(composed))
        return weighting.fitted(Frequencies.of(clouds, source))

    @property
    def signature(self) -> str:
        """Every choice, one line, read off the fields."""
        _, *choices = choices_of(self).items()
        return signed(self.name, dict(choices))


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while part := list(islice(stream, _PART)):
        yield part


def measures_of_points(sides: Sequence[Any]) -> Measures:
    """Measures from the caller's own points (n, dim), or tuples of points and masses."""
    import torch

    points, weights = [], []
    for k, side in enumerate(sides):
        given, mass = side if isinstance(side, tuple) else (side, None)
        cloud = torch.as_tensor(given)
        if cloud.ndim != 2 or not bool(torch.isfinite(cloud).all()):
            raise InvalidInput(f"measure {k} is not an array (n, dim) of finite numbers")
        masses = np.ones(len(cloud)) if mass is None else np.asarray(mass, np.float64)
        if masses.shape != (len(cloud),) or not np.isfinite(masses).all() or (masses < 0).any():
            raise InvalidInput(
                f"measure {k} has {len(cloud)} points; give as many masses, none < 0"
            )
        if len(cloud) and masses.sum() == 0:
            raise InvalidInput(f"the masses of measure {k} are all 0")
        points.append(cloud)
        weights.append(masses / masses.sum() if len(masses) else masses)
    if len({cloud.shape[1] for cloud in points}) > 1:
        raise InvalidInput("the points of all measures need the same dimension")
    sizes = np.array([len(cloud) for cloud in points])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    every = torch.cat(points)
    every = every if every.dtype == torch.float64 else every.float()
    ids, unknown = np.arange(len(every)), np.zeros(len(points))
    mass = np.concatenate(weights)
    flags, extent = ((),) * len(points), np.stack((ids, ids), axis=1)
    return Measures(every, mass, offsets, ids, unknown, sizes == 0, flags, extent)


class Mixture(Protocol):
    """How parts become columns, and the means of columns system scores."""

    def __call__(self, parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
        """The blend's columns out of those of its parts."""
        ...

    def total(self, means: dict[str, float]) -> dict[str, float]:
        """System scores out of the means of the columns."""
        ...

    def factors(self, column: str) -> tuple[float, tuple[float, ...]]:
        """The constant of a column, and the factor of each part's primary column in it."""
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
        from freight.core.pipeline import score_together

        return score_together([self], hyps, refs)[0]

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Explanation:
        """Why a hypothesis scores as it does, one view per part; see `Metric.explain`."""
        from freight.explain.explainer import explain

        return explain(self, hyp, ref, column)

    def spans(self, hyp: str, ref: str | Sequence[str]) -> tuple[ErrorSpan, ...]:
        """Characters of the hypothesis that are wrong or added, and of the reference missing."""
        return self.explain(hyp, ref).spans

    def composition(self, column: str) -> Composition:
        """What a column is made of."""
        base, factors = self.mixture.factors(column)
        names = [part.columns[0].name for part in self.parts]
        return Composition(base, tuple(zip(names, factors, strict=True)))

    def read(self, chunk: Chunk, scored: Sequence[PairScores]) -> Result:
        """The result of a chunk out of the scores of the parts."""
        columns = self.mixture([part.columns for part in scored])
        flags = [
            NO_FLAGS.union(*raised) for raised in zip(*(part.flags for part in scored), strict=True)
        ]
        result = result_of(self, PairScores(columns, flags), chunk.segments)
        values = np.stack([result[column.name] for column in self.columns], axis=1)
        known = np.isfinite(values).all(axis=1)
        tallies = np.column_stack((np.where(known[:, None], values, 0.0), known))
        return replace(result, tallies=tallies, total=self.system_of)

    def system_of(self, tally: Array) -> dict[str, float]:
        """System scores out of the sums of the columns and the number of segments (column + 1)."""
        means = tally[:-1] / tally[-1] if tally[-1] else np.full(len(self.columns), np.nan)
        names = [column.name for column in self.columns]
        return self.mixture.total(dict(zip(names, means.tolist(), strict=True)))

    @property
    def needs_fitting(self) -> bool:
        """Whether a part needs it."""
        return any(part.needs_fitting for part in self.parts)

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Blend:
        """A copy whose parts are fitted on these texts."""
        texts, others = _again(refs), None if hyps is None else _again(hyps)
        return replace(self, parts=tuple(part.fit(texts, others, source) for part in self.parts))

    @property
    def signature(self) -> str:
        """Every choice, one line, read off the fields."""
        return signed(self.name, {f.name: getattr(self, f.name) for f in fields(self)[1:]})


def _again(texts: Iterable[str]) -> Iterable[str]:
    """What can be read once for each part."""
    return list(texts) if isinstance(texts, Iterator) else texts
