"""The levels of a comparison with human scores: segment, text and system.

A row is the output of one system for one input. A bootstrap sample draws inputs, systems or both
with replacement; here it is represented by counts, how often each input and each system was drawn.
Point estimates, bootstrap samples and permutations all call the same statistics, with other counts
or with other scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from freight.errors import InvalidInput
from freight.transport.types import Array


class Draws(NamedTuple):
    """How often each input (resample, input) and each system (resample, system) was drawn."""

    segments: Array
    systems: Array


@dataclass(frozen=True, eq=False)
class LevelSample:
    """The rows that are compared, each with the number of its input and of its system, from 0."""

    rows: Array
    segments: Array
    systems: Array
    size: int

    @classmethod
    def of(
        cls, rows: Array, size: int, segments: Array | None, systems: Array | None
    ) -> LevelSample:
        """These of `size` rows; by default every row is an input of its own, all of one system."""
        inputs = np.arange(size) if segments is None else _column("segments", segments, size)
        makers = np.zeros(size, int) if systems is None else _column("systems", systems, size)
        if not len(rows):
            raise InvalidInput("no row has a human score; there is nothing to agree with")
        rows = rows[np.argsort(inputs[rows], kind="stable")]
        numbers = [np.unique(of[rows], return_inverse=True)[1] for of in (inputs, makers)]
        return cls(rows, numbers[0], numbers[1], size)

    @cached_property
    def once(self) -> Draws:
        """Every input and every system drawn once: the original sample."""
        return Draws(np.ones((1, self.segments.max() + 1)), np.ones((1, self.systems.max() + 1)))

    def scores(self, metric: Array) -> Array:
        """A metric's scores of these rows, in their order, (1, row)."""
        scores = _column("metric", metric, self.size)[self.rows].astype(np.float64)
        bad = np.sort(self.rows[~np.isfinite(scores)])
        if len(bad):
            raise InvalidInput(
                f"{len(bad)} of {len(scores)} metric scores are not finite, the first in row "
                f"{bad[0]}; leave such rows out (human score nan), or correct them"
            )
        return scores[None]


class Statistic(Protocol):
    """A measure of agreement between metric and human scores; higher is better."""

    @property
    def sample(self) -> LevelSample:
        """The rows that it is computed from."""

    def __call__(self, scores: Array, draws: Draws) -> Array:
        """One value per resample; scores are (resample or 1, row), draws (resample or 1, ·)."""


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean of the scores themselves, a statistic without human scores."""

    sample: LevelSample

    @classmethod
    def of(cls, size: int) -> Mean:
        """Of `size` rows, every row an input of its own."""
        return cls(LevelSample.of(np.arange(size), size, None, None))

    def __call__(self, scores: Array, draws: Draws) -> Array:
        """One mean per resample, weighted by how often each row was drawn."""
        at = self.sample
        weights = draws.segments.take(at.segments, axis=1) * draws.systems.take(at.systems, axis=1)
        return (weights * scores).sum(axis=1) / weights.sum(axis=1)


def estimate(statistic: Statistic, metric: Array) -> float:
    """The statistic of the original sample."""
    return float(statistic(statistic.sample.scores(metric), statistic.sample.once)[0])


class Points(NamedTuple):
    """Metric and human values to correlate, sorted by group; arrays are (resample or 1, point)."""

    metric: Array
    human: Array
    weights: Array
    starts: Array
    group_weights: Array


@dataclass(frozen=True, eq=False)
class Rated:
    """The rows with a human score, and the level on which they are compared."""

    level: str
    human: Array
    sample: LevelSample

    @classmethod
    def of(
        cls,
        level: str,
        human: Array,
        segments: Array | None = None,
        systems: Array | None = None,
    ) -> Rated:
        """All rows whose human score is not nan."""
        if level not in LEVELS:
            raise InvalidInput(f"level={level!r}; there is {', '.join(LEVELS)}")
        if (level == "text" and segments is None) or (level == "system" and systems is None):
            raise InvalidInput(f"level={level!r} needs to know each row's {NEEDS[level]}")
        human = _column("human", human, len(human)).astype(np.float64)
        rows = np.flatnonzero(~np.isnan(human))
        sample = LevelSample.of(rows, len(human), segments, systems)
        if np.isinf(human).any():
            raise InvalidInput(f"the human score of row {np.isinf(human).argmax()} is infinite")
        return cls(level, human[sample.rows], sample)

    def points(self, scores: Array, draws: Draws) -> Points:
        """The points that the level compares, with their weights."""
        return LEVELS[self.level](self, scores, draws)


def _all_rows(rated: Rated, scores: Array, draws: Draws) -> Points:
    at = rated.sample
    weights = draws.segments.take(at.segments, axis=1) * draws.systems.take(at.systems, axis=1)
    return Points(scores, rated.human[None], weights, np.array([0, len(at.rows)]), np.ones((1, 1)))


def _within_segments(rated: Rated, scores: Array, draws: Draws) -> Points:
    at = rated.sample
    starts = np.searchsorted(at.segments, np.arange(at.segments[-1] + 2))
    weights = draws.systems.take(at.systems, axis=1)
    return Points(scores, rated.human[None], weights, starts, draws.segments)


def _system_means(rated: Rated, scores: Array, draws: Draws) -> Points:
    at = rated.sample
    order = np.argsort(at.systems, kind="stable")
    starts = np.searchsorted(at.systems[order], np.arange(draws.systems.shape[1]))
    weights = draws.segments.take(at.segments[order], axis=1)
    # not a matrix product: its bits depend on how many resamples are in the block
    counts = np.add.reduceat(weights, starts, axis=1)
    divisor = np.maximum(counts, 1.0)  # a system may have no output for the drawn inputs
    metric, human = (
        np.add.reduceat(side[:, order] * weights, starts, axis=1) / divisor
        for side in (scores, rated.human[None])
    )
    present = draws.systems * (counts > 0)
    return Points(metric, human, present, np.array([0, counts.shape[1]]), np.ones((1, 1)))


LEVELS: dict[str, Callable[[Rated, Array, Draws], Points]] = {
    "segment": _all_rows,
    "text": _within_segments,
    "system": _system_means,
}
NEEDS = {"text": "segment", "system": "system"}


def _column(name: str, values: Array, size: int) -> Array:
    values = np.asarray(values)
    if values.shape != (size,):
        raise InvalidInput(f"{name} has shape {values.shape}, and there are {size} rows")
    return values
