"""One judgement set by one criterion: a statistic on a level, its interval and significance test.

A study picks a level and a statistic once, and then makes one comparison per set and criterion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.judge.correlation import Correlation, text_level
from freight.judge.error import ERRORS, POWERS, bootstrap_errors, paired_test, rescale
from freight.judge.levels import Rated, Statistic, estimate
from freight.judge.pairwise import Accuracy, Preferences, SoftAccuracy
from freight.judge.significance import (
    Interval,
    bootstrap_interval,
    permutation_p_values,
    soft_accuracy_p_values,
    williams_p_values,
)
from freight.transport.types import Array

_ROWS = ("segment", "text", "system")
LEVELS_OF = {
    "pearson": _ROWS,
    "spearman": _ROWS,
    "kendall": _ROWS,
    "accuracy": ("text", "segment", "system"),
    "soft-accuracy": ("system",),
    "tau": ("darr",),
    "mse": ("segment",),
    "mae": ("segment",),
}
"""The levels on which a statistic is defined, its default level first."""
LEVELS = (*_ROWS, "darr")
PERMUTATIONS = 1000
"""Sign flips behind the confidences of soft accuracy, at least."""


class StatisticOptions(NamedTuple):
    """Number of resamples, their seed, and the scale of the human scores (for errors only)."""

    resamples: int = 1000
    seed: int = 0
    scale: tuple[float, float] | None = None


class LevelComparison(Protocol):
    """One statistic of metrics against the human scores of one set and criterion."""

    @property
    def rows(self) -> int:
        """How many rows, or pairs of rows, are compared."""

    @property
    def skipped(self) -> int:
        """How many segments are skipped, because all their outputs have the same human score."""

    @property
    def method(self) -> str:
        """One sentence on how intervals and p-values are computed."""

    @property
    def chance(self) -> float:
        """What a metric gets that knows nothing of the texts."""

    def value(self, scores: Array) -> float:
        """The statistic of one metric (row,)."""

    def interval(self, scores: Array) -> Interval:
        """The statistic of one metric (row,), with its confidence interval."""

    def p_values(self, scores: Array) -> Array:
        """One-sided tests of metrics (metric, row): does the row agree better than the column?"""


def choose_statistic(
    sets: Sequence[Judgements], level: str | None, statistic: str | None
) -> tuple[str, str]:
    """The level and the statistic of a study; what is not given follows from the data."""
    if statistic in ("pce", "spa"):
        raise InvalidInput(
            f"there is no statistic {statistic!r}; soft-accuracy is soft pairwise accuracy, SPA,"
            " which is 1 - PCE"
        )
    for name, given, known in (("level", level, LEVELS), ("statistic", statistic, LEVELS_OF)):
        if given is not None and given not in known:
            raise InvalidInput(f"there is no {name} {given!r}; there is {', '.join(known)}")
    if level is None and statistic not in (None, "pearson", "spearman", "kendall"):
        level = LEVELS_OF[str(statistic)][0]
    level = level or _default_level(sets)
    statistic = statistic or ("tau" if level == "darr" else "pearson")
    if level not in LEVELS_OF[statistic]:
        here = ", ".join(name for name, levels in LEVELS_OF.items() if level in levels)
        raise InvalidInput(f"there is no {statistic} on level {level}; on it there is {here}")
    return level, statistic


def _default_level(sets: Sequence[Judgements]) -> str:
    """Segment where rows are rated, else darr for preferences and system for rated systems."""
    levels = {}
    for judged in sets:
        preferred = judged.preferences is not None and not judged.human
        whole = "darr" if preferred else "system"
        levels["segment" if judged.human else whole] = judged.name
    if len(levels) > 1:
        (one, first), (other, second) = list(levels.items())[:2]
        raise InvalidInput(
            f"{first} asks for level {one}, {second} for {other}; judge them separately, or give"
            " a level"
        )
    return next(iter(levels))


def criteria(judged: Judgements, level: str, statistic: str) -> tuple[str, ...]:
    """The criteria with human scores on this level; preferences have one criterion, named ''."""
    if level == "darr":
        if judged.preferences is None or not len(judged.preferences):
            raise InvalidInput(f"{judged.name} has no preferences; level darr needs them")
        return ("",)
    names = list(judged.human)
    if level == "system":
        whole = () if statistic == "soft-accuracy" else judged.system_human
        names = list(dict.fromkeys([*whole, *judged.human]))
        if len(judged.system_names) < 2:
            raise InvalidInput(f"{judged.name} has one system; level system compares several")
    if not names:
        other = "darr" if judged.preferences is not None else "system"
        raise InvalidInput(f"{judged.name} has no ratings for level {level}; use level {other}")
    if level == "text" and len(np.unique(judged.segments)) == len(judged):
        raise InvalidInput(f"{judged.name} has one text per segment; level text compares several")
    return tuple(names)


def ratings(judged: Judgements, level: str, criterion: str) -> Array:
    """One human score per row: that of the row, or of its system where whole systems were rated."""
    if level == "system" and criterion in judged.system_human:
        return judged.system_human[criterion][judged.systems]
    return judged.human[criterion]


def comparison_of(
    judged: Judgements,
    usable: Array,
    level: str,
    statistic: str,
    criterion: str,
    options: StatisticOptions,
) -> LevelComparison | None:
    """The comparison over the `usable` rows, which all metrics could score.

    None where no pair is left, or all human scores are equal.
    """
    origin = judged.segments, judged.systems
    if level == "darr" and judged.preferences is not None:
        pairs = judged.preferences[usable[judged.preferences].all(axis=1)]
        if not len(pairs):
            return None
        preferences = Preferences.of(pairs, len(judged), *origin)
        return ResampledComparison(preferences, level, options, len(pairs))
    human = np.where(usable, ratings(judged, level, criterion), np.nan)
    if len(np.unique(human[~np.isnan(human)])) < 2:
        return None
    if statistic in POWERS:
        low, high = options.scale or (float(np.nanmin(human)), float(np.nanmax(human)))
        return ErrorComparison(statistic, rescale(human, low, high), (low, high), options)
    if statistic == "soft-accuracy":
        resamples, seed, _ = options
        soft = SoftAccuracy.of(human, *origin, max(resamples, PERMUTATIONS), seed)
        return SoftAccuracyComparison(soft, options)
    if statistic == "accuracy":
        return ResampledComparison(Accuracy(Rated.of(level, human, *origin)), level, options)
    return ResampledComparison(Correlation.of(level, statistic, human, *origin), level, options)


@dataclass(frozen=True, eq=False)
class ResampledComparison:
    """A statistic with a bootstrap interval, and a paired permutation test or Williams' test.

    On system level, systems are resampled and permuted; on the other levels, inputs are.
    """

    statistic: Statistic
    level: str
    options: StatisticOptions
    pairs: int | None = None

    @property
    def rows(self) -> int:
        """The number of rows with a human score, or of preference pairs."""
        return len(self.statistic.sample.rows) if self.pairs is None else self.pairs

    @property
    def skipped(self) -> int:
        """On text level, the segments whose outputs all have the same human score."""
        if self.level != "text" or not isinstance(self.statistic, Correlation):
            return 0
        rated, at = self.statistic.rated, self.statistic.sample
        return text_level(rated.human, rated.human, at.segments, self.statistic.how).skipped

    @property
    def method(self) -> str:
        """Names what is resampled, and the test."""
        resamples = f"{self.options.resamples:,}"
        interval = f"95 % percentile bootstrap intervals from {resamples} resamples of {self._over}"
        if self._williams:
            return f"{interval}; one-sided p-values from Williams' test"
        test = f"paired permutation tests with {resamples} permutations of {self._over}"
        return f"{interval}; one-sided p-values from {test}"

    @property
    def chance(self) -> float:
        """0 for correlations and tau; for accuracy it depends on how often people tie."""
        return self.statistic.chance if isinstance(self.statistic, Accuracy) else 0.0

    def value(self, scores: Array) -> float:
        """The statistic of the original sample."""
        return estimate(self.statistic, scores)

    def interval(self, scores: Array) -> Interval:
        """A percentile bootstrap interval."""
        resamples, seed, _ = self.options
        return bootstrap_interval(self.statistic, scores, self._over, resamples, seed=seed)

    def p_values(self, scores: Array) -> Array:
        """By Williams' test for Pearson over rows, else by paired permutation tests."""
        if self._williams and isinstance(self.statistic, Correlation):
            rows = self.statistic.sample.rows
            return williams_p_values(scores[:, rows], self.statistic.rated.human)
        resamples, seed, _ = self.options
        return permutation_p_values(self.statistic, scores, self._over, resamples, seed)

    @property
    def _williams(self) -> bool:
        pearson = isinstance(self.statistic, Correlation) and self.statistic.how == "pearson"
        return pearson and self.level == "segment" and self.rows > 3

    @property
    def _over(self) -> str:
        one_input = self.statistic.sample.once.segments.size < 2
        return "systems" if one_input or self.level == "system" else "inputs"


@dataclass(frozen=True, eq=False)
class ErrorComparison:
    """MSE or MAE of a metric against human scores, both on a scale from 0 to 1."""

    kind: str
    human: Array
    scale: tuple[float, float]
    options: StatisticOptions
    skipped: int = 0

    @property
    def rows(self) -> int:
        """The number of rows with a human score."""
        return int((~np.isnan(self.human)).sum())

    @property
    def method(self) -> str:
        """Names the scale, what is resampled, and the test."""
        low, high = self.scale
        resamples = f"{self.options.resamples:,}"
        return (
            f"human scores are rescaled from [{low:g}, {high:g}] to [0, 1]; 95 % percentile"
            f" bootstrap intervals from {resamples} resamples of rows; one-sided p-values from"
            f" paired permutation tests with {resamples} sign flips of the differences"
        )

    @property
    def chance(self) -> float:
        """The error of the best constant: the mean human score, or for mae the median."""
        human = self.human[~np.isnan(self.human)]
        best = human.mean() if self.kind == "mse" else np.median(human)
        return self.value(np.full(len(self.human), best))

    def value(self, scores: Array) -> float:
        """The mean error."""
        return ERRORS[self.kind](scores, self.human)

    def interval(self, scores: Array) -> Interval:
        """A percentile bootstrap interval; rows are resampled."""
        resamples, seed, _ = self.options
        return bootstrap_errors(scores, self.human, resamples, seed=seed)[self.kind]

    def p_values(self, scores: Array) -> Array:
        """One-sided from the two-sided p: half of it for the smaller error, 1 minus half else."""
        p_values = np.full((len(scores), len(scores)), np.nan)
        resamples, seed, _ = self.options
        for i, j in zip(*np.triu_indices(len(scores), 1), strict=True):
            test = paired_test(scores[i], scores[j], self.human, self.kind, resamples, seed)
            half = test.permutation_p / 2
            p_values[i, j] = half if test.difference < 0 else 1 - half
            p_values[j, i] = 1 - p_values[i, j]
        return p_values


@dataclass(frozen=True, eq=False)
class SoftAccuracyComparison:
    """Soft pairwise accuracy, with intervals and tests over systems."""

    statistic: SoftAccuracy
    options: StatisticOptions
    skipped: int = 0

    @property
    def rows(self) -> int:
        """The number of rows with a human score."""
        return len(self.statistic.sample.rows)

    @property
    def method(self) -> str:
        """Names what is resampled, and the test."""
        resamples = f"{self.options.resamples:,}"
        return (
            f"95 % percentile bootstrap intervals from {resamples} resamples of systems; one-sided"
            f" p-values from paired permutation tests with {resamples} permutations of systems;"
            f" confidences of people and metrics from {self.statistic.permutations:,} sign flips"
        )

    @property
    def chance(self) -> float:
        """One half where people are sure of every pair of systems, more where they are not."""
        return self.statistic.chance

    def value(self, scores: Array) -> float:
        """The statistic of the original sample."""
        return estimate(self.statistic, scores)

    def interval(self, scores: Array) -> Interval:
        """A percentile bootstrap interval; systems are resampled."""
        resamples, seed, _ = self.options
        return bootstrap_interval(self.statistic, scores, "systems", resamples, seed=seed)

    def p_values(self, scores: Array) -> Array:
        """By paired permutation tests that exchange whole systems."""
        resamples, seed, _ = self.options
        return soft_accuracy_p_values(self.statistic, scores, resamples, seed)
