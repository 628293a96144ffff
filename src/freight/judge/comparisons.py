"""What a study asks of a set: a statistic on a level, with its interval and its test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.judge.correlation import Correlation, text_level
from freight.judge.error import POWERS, bootstrap_errors, paired_test, scaled
from freight.judge.levels import Rated, Statistic
from freight.judge.pairwise import Accuracy, Preferences, soft_pairwise_accuracy
from freight.judge.significance import Interval, bootstrap, permutation_matrix, williams_matrix
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
"""The levels on which a statistic is defined, its own first."""
LEVELS = (*_ROWS, "darr")


class Chance(NamedTuple):
    """How often to resample, from which seed, and the scale of the human scores for errors."""

    resamples: int = 1000
    seed: int = 0
    scale: tuple[float, float] | None = None


class LevelComparison(Protocol):
    """One set by one criterion: `rows` are compared, `skipped` segments have nothing to say."""

    @property
    def rows(self) -> int:
        """How many rows, or pairs of them, are compared."""

    @property
    def skipped(self) -> int:
        """How many segments say nothing, as people gave all their texts one score."""

    @property
    def test(self) -> str:
        """How intervals and p-values are found."""

    def interval(self, scores: Array) -> Interval:
        """The statistic of one metric (row,)."""

    def beats(self, scores: Array) -> Array | None:
        """For metrics (metric, row) the p that the row beats the column by chance."""


def settle(sets: Sequence[Judgements], level: str | None, statistic: str | None) -> tuple[str, str]:
    """The level and the statistic of a study, where they are not given those of the data."""
    for name, given, there in (("level", level, LEVELS), ("statistic", statistic, LEVELS_OF)):
        if given is not None and given not in there:
            raise InvalidInput(f"there is no {name} {given!r}; there is {', '.join(there)}")
    if level is None and statistic not in (None, "pearson", "spearman", "kendall"):
        level = LEVELS_OF[str(statistic)][0]
    level = level or _level(sets)
    statistic = statistic or ("tau" if level == "darr" else "pearson")
    if level not in LEVELS_OF[statistic]:
        here = ", ".join(name for name, levels in LEVELS_OF.items() if level in levels)
        raise InvalidInput(f"there is no {statistic} on level {level}; on it there is {here}")
    return level, statistic


def _level(sets: Sequence[Judgements]) -> str:
    """Segments where there are ratings, preferences or systems where there is nothing else."""
    found = {}
    for judged in sets:
        preferred = judged.preferences is not None and not judged.human
        whole = "darr" if preferred else "system"
        found["segment" if judged.human else whole] = judged.name
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise InvalidInput(
            f"{first} asks for level {one}, {second} for {other}; judge them apart, or say a level"
        )
    return next(iter(found))


def criteria(judged: Judgements, level: str, statistic: str) -> tuple[str, ...]:
    """What people rated by on this level; preferences have one criterion without a name."""
    if level == "darr":
        if judged.preferences is None or not len(judged.preferences):
            raise InvalidInput(f"{judged.name} has no preferences; level darr needs them")
        return ("",)
    there = list(judged.human)
    if level == "system":
        whole = () if statistic == "soft-accuracy" else judged.system_human
        there = list(dict.fromkeys([*whole, *judged.human]))
        if len(judged.system_names) < 2:
            raise InvalidInput(f"{judged.name} has one system; level system compares several")
    if not there:
        other = "darr" if judged.preferences is not None else "system"
        raise InvalidInput(f"{judged.name} has no ratings for level {level}; level {other} will do")
    if level == "text" and len(np.unique(judged.segments)) == len(judged):
        raise InvalidInput(f"{judged.name} has one text a segment; level text compares several")
    return tuple(there)


def ratings(judged: Judgements, level: str, criterion: str) -> Array:
    """What people said, a number a row: of the row, or of its system where that was judged."""
    if level == "system" and criterion in judged.system_human:
        return judged.system_human[criterion][judged.systems]
    return judged.human[criterion]


def comparison(
    judged: Judgements,
    usable: Array,
    level: str,
    statistic: str,
    criterion: str,
    chance: Chance,
) -> LevelComparison | None:
    """What is to be compared over the rows that all metrics could score; nothing if too few are."""
    places = judged.segments, judged.systems
    if level == "darr" and judged.preferences is not None:
        pairs = judged.preferences[usable[judged.preferences].all(axis=1)]
        if not len(pairs):
            return None
        return Resampled(Preferences.of(pairs, len(judged), *places), level, chance, len(pairs))
    human = np.where(usable, ratings(judged, level, criterion), np.nan)
    if len(np.unique(human[~np.isnan(human)])) < 2:
        return None
    if statistic in POWERS:
        low, high = chance.scale or (float(np.nanmin(human)), float(np.nanmax(human)))
        return Errors(statistic, scaled(human, low, high), (low, high), chance)
    if statistic == "soft-accuracy":
        return Soft(judged, human, chance)
    if statistic == "accuracy":
        return Resampled(Accuracy(Rated.of(level, human, *places)), level, chance)
    return Resampled(Correlation.of(level, statistic, human, *places), level, chance)


@dataclass(frozen=True, eq=False)
class Resampled:
    """A statistic with a bootstrap interval and paired permutations, or Williams' test.

    What is drawn and swapped is what is compared: systems between systems, inputs elsewhere.
    """

    statistic: Statistic
    level: str
    chance: Chance
    pairs: int | None = None

    @property
    def rows(self) -> int:
        """The rows that count, or the pairs."""
        return len(self.statistic.sample.rows) if self.pairs is None else self.pairs

    @property
    def skipped(self) -> int:
        """On text level, the segments in which people made no difference."""
        if self.level != "text" or not isinstance(self.statistic, Correlation):
            return 0
        rated, at = self.statistic.rated, self.statistic.sample
        return text_level(rated.human, rated.human, at.segments, self.statistic.how).skipped

    @property
    def test(self) -> str:
        """Which of the two, and what is drawn."""
        drawn = f"{self.chance.resamples:,} bootstrap samples of {self._over}"
        if self._williams:
            return f"intervals from {drawn}; p-values from Williams' test"
        return f"intervals from {drawn}, p-values from as many paired permutations of them"

    def interval(self, scores: Array) -> Interval:
        """From bootstrap samples."""
        resamples, seed, _ = self.chance
        return bootstrap(self.statistic, scores, self._over, resamples, seed=seed)

    def beats(self, scores: Array) -> Array:
        """By Williams' test where it applies, else by permutation."""
        if self._williams and isinstance(self.statistic, Correlation):
            rows = self.statistic.sample.rows
            return williams_matrix(scores[:, rows], self.statistic.rated.human)
        resamples, seed, _ = self.chance
        return permutation_matrix(self.statistic, scores, self._over, resamples, seed)

    @property
    def _williams(self) -> bool:
        pearson = isinstance(self.statistic, Correlation) and self.statistic.how == "pearson"
        return pearson and self.level == "segment" and self.rows > 3

    @property
    def _over(self) -> str:
        alone = self.statistic.sample.once.segments.size < 2
        return "systems" if alone or self.level == "system" else "inputs"


@dataclass(frozen=True, eq=False)
class Errors:
    """How far a metric is from people once both run from 0 to 1."""

    kind: str
    human: Array
    scale: tuple[float, float]
    chance: Chance
    skipped: int = 0

    @property
    def rows(self) -> int:
        """The rows that people rated."""
        return int((~np.isnan(self.human)).sum())

    @property
    def test(self) -> str:
        """Rows are drawn, and the signs of differences flipped."""
        low, high = self.scale
        drawn = f"{self.chance.resamples:,} bootstrap samples of rows"
        return (
            f"people's scale from {low:g} to {high:g} is taken to 0 to 1; intervals from {drawn}, "
            "p-values from as many flips of the differences' signs"
        )

    def interval(self, scores: Array) -> Interval:
        """From bootstrap samples of the rows."""
        return bootstrap_errors(scores, self.human, self.chance.resamples, seed=self.chance.seed)[
            self.kind
        ]

    def beats(self, scores: Array) -> Array:
        """Half of the two-sided p for who has the smaller error, the rest of 1 for the other."""
        found = np.full((len(scores), len(scores)), np.nan)
        for i, j in zip(*np.triu_indices(len(scores), 1), strict=True):
            result = paired_test(
                scores[i], scores[j], self.human, self.kind, self.chance.resamples, self.chance.seed
            )
            half = result.permutation_p / 2
            found[i, j] = half if result.difference < 0 else 1 - half
            found[j, i] = 1 - found[i, j]
        return found


@dataclass(frozen=True, eq=False)
class Soft:
    """Soft pairwise accuracy, itself a mean of permutation tests: without interval or test."""

    judged: Judgements
    human: Array
    chance: Chance
    skipped: int = 0

    @property
    def rows(self) -> int:
        """The rows that people rated."""
        return int((~np.isnan(self.human)).sum())

    @property
    def test(self) -> str:
        """There is none."""
        return "soft accuracy has neither intervals nor p-values"

    def interval(self, scores: Array) -> Interval:
        """The value alone."""
        places = self.judged.segments, self.judged.systems
        resamples, seed, _ = self.chance
        value = soft_pairwise_accuracy(scores, self.human, *places, resamples, seed)
        return Interval(value, np.nan, np.nan, np.nan, 0)

    def beats(self, scores: Array) -> None:
        """Nothing is known."""
