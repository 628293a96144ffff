"""Correlation with people: over all rows, within each segment, or between system means.

Levels as in BaryScore (Colombo et al., EMNLP 2021), equations 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from freight.errors import InvalidInput
from freight.judge import weighted_correlation
from freight.judge.levels import Draws, LevelSample, Points, Rated, estimate
from freight.transport.types import Array

_KERNELS = {
    "pearson": weighted_correlation.pearson,
    "spearman": weighted_correlation.spearman,
    "kendall": weighted_correlation.kendall,
}


class TextLevel(NamedTuple):
    """A mean over segments, of how many, and how many had nothing to say: one human score."""

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
        """With these people; where they judged systems as wholes, repeat that in every row."""
        if how not in _KERNELS:
            raise InvalidInput(f"how={how!r}; there is {', '.join(_KERNELS)}")
        return cls(how, Rated.of(level, human, segments, systems))

    @property
    def sample(self) -> LevelSample:
        """The rows that people gave a score."""
        return self.rated.sample

    def __call__(self, scores: Array, draws: Draws) -> Array:
        """One number a resample, nan where it is not defined."""
        points = self.rated.points(scores, draws)
        found = _KERNELS[self.how](points.metric, points.human, points.weights, points.starts)
        return found[:, 0] if self.rated.level != "text" else _mean(found, points)


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
    """Over the systems of each segment, then the mean (equation 5).

    A segment with one human score for all is skipped and counted; where only the metric is
    constant its correlation counts as 0.
    """
    statistic = Correlation.of("text", how, human, segments)
    scores, once = statistic.sample.scores(metric), statistic.sample.once
    telling = _telling(statistic.rated.points(scores, once))
    value = float(statistic(scores, once)[0])
    return TextLevel(value, int(telling.sum()), int((~telling).sum()))


def system_level(metric: Array, human: Array, systems: Array, how: str = "pearson") -> float:
    """Between the means of the systems (equation 4)."""
    return estimate(Correlation.of("system", how, human, systems=systems), metric)


def correlation_matrix(columns: Array, how: str = "pearson") -> Array:
    """Of each column (column, row) with each, over the rows where both have a number."""
    columns = np.asarray(columns, np.float64)
    found = np.eye(len(columns))
    for i, j in zip(*np.tril_indices(len(columns), -1), strict=True):
        both = np.where(np.isnan(columns[i]), np.nan, columns[j])
        found[i, j] = found[j, i] = correlate(columns[i], both, how)
    return found


def _telling(points: Points) -> Array:
    """The groups in which people made a difference."""
    return ~weighted_correlation.constant(points.human, points.weights, points.starts)


def _mean(found: Array, points: Points) -> Array:
    weights = points.group_weights * _telling(points)
    total = (np.nan_to_num(found, nan=0.0) * weights).sum(axis=1)
    count = np.broadcast_to(weights.sum(axis=1), total.shape)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
