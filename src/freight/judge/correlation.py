"""Pearson, Spearman and Kendall correlation of a metric with human scores.

On segment level over all rows, on text level within each segment and averaged over segments, on
system level between system means (BaryScore, Colombo et al., EMNLP 2021, equations 4 and 5).

Every correlation is computed over weighted points: the weight of a point is the number of times
it was drawn, so that a bootstrap sample is the same points with other weights and nothing is
copied. The weighted functions below run over a batch (resample, point) of points that are sorted
by group; `starts` (group + 1,) holds the first point of each group, and the result is
(resample, group), nan where one side is constant. A side that all resamples share has one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from freight import kernels
from freight.errors import InvalidInput
from freight.judge.levels import Draws, LevelSample, Points, Rated, estimate
from freight.transport.types import Array


class TextLevel(NamedTuple):
    """A mean over `used` segments; in the `skipped` ones all human scores are equal."""

    value: float
    used: int
    skipped: int


@dataclass(frozen=True, eq=False)
class Correlation:
    """Pearson, Spearman or Kendall (tau-b) on one level: a statistic that can be resampled."""

    how: str
    rated: Rated

    @classmethod
    def of(
        cls,
        level: str,
        how: str,
        human: Array,
        segments: Array | None = None,
        systems: Array | None = None,
    ) -> Correlation:
        """With one human score per row, that of its system where whole systems were rated."""
        if how not in _WEIGHTED:
            raise InvalidInput(f"how={how!r}; there is {', '.join(_WEIGHTED)}")
        return cls(how, Rated.of(level, human, segments, systems))

    @property
    def sample(self) -> LevelSample:
        """The rows with a human score."""
        return self.rated.sample

    def __call__(self, scores: Array, draws: Draws) -> Array:
        """One correlation per resample, nan where it is undefined."""
        points = self.rated.points(scores, draws)
        by_group = _WEIGHTED[self.how](points.metric, points.human, points.weights, points.starts)
        return by_group[:, 0] if self.rated.level != "text" else _group_mean(by_group, points)


def correlate(x: Array, y: Array, how: str = "pearson") -> float:
    """Of two vectors, without the rows where y is nan; nan where one of them is constant."""
    return estimate(Correlation.of("segment", how, y), x)


pearson = partial(correlate, how="pearson")
spearman = partial(correlate, how="spearman")
kendall = partial(correlate, how="kendall")
CORRELATIONS: dict[str, Callable[[Array, Array], float]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


def segment_level(metric: Array, human: Array, how: str = "pearson") -> float:
    """Over all rows together."""
    return correlate(metric, human, how)


def text_level(metric: Array, human: Array, segments: Array, how: str = "pearson") -> TextLevel:
    """Over the systems of each segment, then the mean over segments (equation 5).

    A segment whose outputs all have the same human score is skipped and counted; where only the
    metric is constant, the segment's correlation counts as 0.
    """
    statistic = Correlation.of("text", how, human, segments)
    scores, once = statistic.sample.scores(metric), statistic.sample.once
    defined = _human_varies(statistic.rated.points(scores, once))
    value = float(statistic(scores, once)[0])
    return TextLevel(value, int(defined.sum()), int((~defined).sum()))


def system_level(metric: Array, human: Array, systems: Array, how: str = "pearson") -> float:
    """Between the means of the systems (equation 4)."""
    return estimate(Correlation.of("system", how, human, systems=systems), metric)


def correlation_matrix(columns: Array, how: str = "pearson") -> Array:
    """Of each column (column, row) with each other, over the rows where both are finite."""
    columns = np.asarray(columns, np.float64)
    matrix = np.eye(len(columns))
    for i, j in zip(*np.tril_indices(len(columns), -1), strict=True):
        both = np.where(np.isnan(columns[i]), np.nan, columns[j])
        matrix[i, j] = matrix[j, i] = correlate(columns[i], both, how)
    return matrix


def _human_varies(points: Points) -> Array:
    """The groups whose human scores are not all equal."""
    return ~is_constant(points.human, points.weights, points.starts)


def _group_mean(by_group: Array, points: Points) -> Array:
    weights = points.group_weights * _human_varies(points)
    total = (np.nan_to_num(by_group, nan=0.0) * weights).sum(axis=1)
    count = np.broadcast_to(weights.sum(axis=1), total.shape)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def weighted_pearson(x: Array, y: Array, weights: Array, starts: Array) -> Array:
    """The product-moment correlation of the values."""
    return kernels.pearsons(x, y, weights, starts)


def weighted_spearman(x: Array, y: Array, weights: Array, starts: Array) -> Array:
    """Pearson's correlation of the ranks; equal values share their mean rank."""
    ranks = weighted_ranks(x, weights, starts), weighted_ranks(y, weights, starts)
    return weighted_pearson(*ranks, weights, starts)


def weighted_kendall(x: Array, y: Array, weights: Array, starts: Array) -> Array:
    """Tau-b: concordant minus discordant pairs, over the geometric mean of the untied pairs."""
    return kernels.kendalls(x, y, weights, starts)


_WEIGHTED = {
    "pearson": weighted_pearson,
    "spearman": weighted_spearman,
    "kendall": weighted_kendall,
}


def weighted_ranks(x: Array, weights: Array, starts: Array) -> Array:
    """The rank of each point within its group, from 1, as if it were repeated weight times."""
    return kernels.ranks(x, weights, starts)


def is_constant(x: Array, weights: Array, starts: Array) -> Array:
    """Whether all points of a group with a positive weight have the same value."""
    counts = weights > 0
    low = np.minimum.reduceat(np.where(counts, x, np.inf), starts[:-1], axis=1)
    high = np.maximum.reduceat(np.where(counts, x, -np.inf), starts[:-1], axis=1)
    return ~(high > low)
