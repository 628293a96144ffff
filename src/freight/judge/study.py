"""Studies of metrics against people: what is asked, and what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.judge.comparisons import Chance, LevelComparison, comparison, criteria, ratings, settle
from freight.judge.correlation import correlation_matrix
from freight.judge.error import POWERS, scaled
from freight.judge.scores import Entrant, ScoreCache, entrants, score_set
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.core.scoring import Scorer
    from freight.core.types import Progress
from collections import Counter, defaultdict

if TYPE_CHECKING:
    from freight.core.scoring import Scorer
    from freight.judge.comparisons import LevelComparison
    from freight.judge.scores import Entrant, ScoredSet


@dataclass(frozen=True, eq=False)
class Agreement:
    """How well one metric agrees with people on one set, by one criterion.

    `human` is empty for preferences; `low` and `high` are a 95 % bootstrap interval. `rows` were
    compared, or pairs of them for preferences; `skipped` segments had nothing to say.
    """

    metric: str
    set: str
    human: str
    value: float
    low: float
    high: float
    rows: int
    skipped: int


@dataclass(frozen=True, eq=False)
class Study:
    """Several metrics on several sets: scores that are higher for better, and what they are worth.

    `scores` are by metric and set, a number a row; `significance` by set and criterion: the
    one-sided p that the metric of the row beats that of the column. `between_humans` has the
    criteria of a set in the order of its agreements. A note that starts with "!" is a warning.
    """

    level: str
    statistic: str
    metrics: tuple[str, ...]
    sets: tuple[Judgements, ...]
    humans: tuple[str, ...]
    scores: dict[tuple[str, str], Array]
    agreements: tuple[Agreement, ...]
    significance: dict[tuple[str, str], Array]
    between_metrics: dict[str, Array]
    between_humans: dict[str, Array]
    signatures: tuple[str, ...]
    notes: tuple[str, ...]


def judge(
    scorers: Sequence[Scorer] | Mapping[str, Scorer],
    sets: Judgements | Sequence[Judgements],
    level: str | None = None,
    statistic: str | None = None,
    humans: Sequence[str] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    scale: tuple[float, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    cache: ScoreCache | None = None,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Study:
    """Score sets by several metrics, and say how well each agrees with people.

    Sets are judged by language pair. `level` is segment, text, system or darr, by default what the
    sets have; `statistic` pearson, spearman, kendall, accuracy, soft-accuracy, tau, mse or mae.
    `humans` names criteria, by default all; `columns` those of a metric, by default its primary
    one; a mapping of scorers gives them names of your own. `scale` is that of the human scores, by
    default their range, and is used for errors alone. A `cache` remembers scores on disk.
    `progress` is told of rows as they are scored.
    """
    given = [sets] if isinstance(sets, Judgements) else list(sets)
    if not given:
        raise InvalidInput("there is no judgement set; give at least one")
    several = _distinct([part for one in given for part in one.with_criteria(humans).split()])
    level, statistic = settle(several, level, statistic)
    found = _SetAgreements(
        level, statistic, entrants(scorers, columns), Chance(resamples, seed, scale)
    )
    asked = [criteria(judged, level, statistic) for judged in several]
    if statistic in POWERS:
        _check_scales(found.entrants, several, scale)
    found.notes.of_sets(given)
    for judged, names in zip(several, asked, strict=True):
        found.add(judged, names, cache, progress)
    return found.study(several, notes)


def _distinct(sets: Sequence[Judgements]) -> list[Judgements]:
    """Sets with names of their own: those that are there already are numbered."""
    named: dict[str, Judgements] = {}
    for judged in sets:
        tries = (judged.name if k == 1 else f"{judged.name} ({k})" for k in count(1))
        name = next(name for name in tries if name not in named)
        named[name] = replace(judged, name=name)
    return list(named.values())


def _check_scales(
    entered: Sequence[Entrant], sets: Sequence[Judgements], scale: tuple[float, float] | None
) -> None:
    """Errors need a metric and people on scales that are known; refused before any work."""
    for entrant in entered:
        entrant.scaled(np.zeros(1))
    for judged in sets:
        for values in judged.human.values():
            if scale is not None and not np.isnan(values).all():
                scaled(values, *scale)


class _SetAgreements:
    """A study in the making."""

    def __init__(self, level: str, statistic: str, entered: list[Entrant], chance: Chance) -> None:
        self.level, self.statistic, self.entrants, self.chance = level, statistic, entered, chance
        self.notes = Notes()
        self._scores: dict[tuple[str, str], Array] = {}
        self._agreements: list[Agreement] = []
        self._significance: dict[tuple[str, str], Array] = {}
        self._between_metrics: dict[str, Array] = {}
        self._between_humans: dict[str, Array] = {}

    def add(
        self,
        judged: Judgements,
        names: Sequence[str],
        cache: ScoreCache | None,
        progress: Progress | None,
    ) -> None:
        """Score a set, and compare with what people said by each criterion."""
        scores = self._scored(judged, cache, progress)
        usable = self.notes.usable(judged, self.entrants, scores)
        used = []
        for name in names:
            chance = self.chance
            asked = comparison(judged, usable, self.level, self.statistic, name, chance)
            if asked is None:
                self.notes.silent(judged, name)
                continue
            used.append(name)
            self._agreements += self._agreed(judged, name, asked, scores)
            matrix = asked.beats(self._measured(scores)) if len(scores) > 1 else None
            if matrix is not None:
                self._significance[judged.name, name] = matrix
        self._between_metrics[judged.name] = correlation_matrix(scores)
        if len(used) > 1:
            people = [np.where(usable, ratings(judged, self.level, x), np.nan) for x in used]
            self._between_humans[judged.name] = correlation_matrix(np.array(people))

    def study(self, sets: Sequence[Judgements], notes: Sequence[str]) -> Study:
        """All of it."""
        if not self._agreements:
            raise InvalidInput(f"there is nothing to agree with: {self.notes.all()[-1]}")
        humans = dict.fromkeys(a.human for a in self._agreements if a.human)
        return Study(
            self.level,
            self.statistic,
            tuple(entrant.name for entrant in self.entrants),
            tuple(sets),
            tuple(humans),
            self._scores,
            tuple(self._agreements),
            self._significance,
            self._between_metrics,
            self._between_humans,
            tuple(dict.fromkeys(entrant.scorer.signature for entrant in self.entrants)),
            (*notes, *self.notes.all()),
        )

    def _scored(
        self, judged: Judgements, cache: ScoreCache | None, progress: Progress | None
    ) -> Array:
        """Scores (metric, row), higher for better."""
        scorers = list({id(entrant.scorer): entrant.scorer for entrant in self.entrants}.values())
        found = score_set(scorers, judged, cache, progress)
        by_scorer = dict(zip(map(id, scorers), found.scores, strict=True))
        for entrant in self.entrants:
            raw = by_scorer[id(entrant.scorer)].columns[entrant.column.name]
            self._scores[entrant.name, judged.name] = entrant.oriented(raw)
        self.notes.of_scores(judged, scorers, found, self.level)
        return np.array([self._scores[entrant.name, judged.name] for entrant in self.entrants])

    def _measured(self, scores: Array) -> Array:
        """Scores as the statistic takes them: from 0 to 1 for errors, where the scale matters."""
        if self.statistic not in POWERS:
            return scores
        both = zip(self.entrants, scores, strict=True)
        return np.array([entrant.scaled(row) for entrant, row in both])

    def _agreed(
        self, judged: Judgements, name: str, asked: LevelComparison, scores: Array
    ) -> Iterator[Agreement]:
        self.notes.of_comparison(judged, name, asked)
        rows, skipped = asked.rows, asked.skipped
        for entrant, row in zip(self.entrants, self._measured(scores), strict=True):
            value, _, low, high, undefined = asked.interval(row)
            self.notes.undefined(judged, entrant.name, undefined, self.chance.resamples)
            yield Agreement(entrant.name, judged.name, name, value, low, high, rows, skipped)


class Notes:
    """Gathered set by set; what several sets have in common is said once."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._compared: dict[str, str] = {}
        self._tests: dict[str, None] = {}
        self._flags: Counter[tuple[str, str]] = Counter()
        self._remembered: defaultdict[str, int] = defaultdict(int)
        self._rows = self._sets = 0

    def all(self) -> tuple[str, ...]:
        """Counts first, then what was odd, then how it was found."""
        compared = [f"compared: {', '.join(self._compared.values())}"] if self._compared else []
        flags = [
            f"{name}: {count:,} of {self._rows:,} texts: {flag}"
            for (name, flag), count in self._flags.items()
        ]
        return (*compared, *self._said, *flags, *self._tests, *self._from_cache())

    def of_sets(self, sets: Sequence[Judgements]) -> None:
        """What was found while loading."""
        for judged in sets:
            for note in judged.notes:
                self._say(f"{judged.name}: {note}")

    def of_scores(
        self, judged: Judgements, scorers: Sequence[Scorer], scored: ScoredSet, level: str
    ) -> None:
        """Flags, what was learnt, what came from the cache."""
        self._rows += len(judged)
        self._sets += 1
        for scorer, scores, known in zip(scorers, *scored[:2], strict=True):
            for flag, times in scores.flags.items():
                self._flags[scorer.name, flag] += times
            if scorer.needs_fitting:
                self._say(f"{scorer.name} learnt IDF from the references of each set")
            if level == "system" and not scores.means:
                self._say(f"{scorer.name}: a system's score is the mean of its texts' scores here")
            self._remembered[scorer.name] += known
        if scored.trouble:
            self._say(scored.trouble)

    def usable(self, judged: Judgements, entrants: Sequence[Entrant], scores: Array) -> Array:
        """The rows that all metrics could score; the others are left out for all alike."""
        lacking = np.isnan(scores)
        for entrant, row in zip(entrants, lacking, strict=True):
            if row.all():
                raise InvalidInput(f"{entrant.name} could score no text of {judged.name}")
            if row.any():
                what = f"{row.sum():,} rows that {entrant.name} could not score"
                self._say(f"{judged.name}: {what} are left out for all metrics")
        return np.logical_not(np.any(lacking, axis=0))

    def of_comparison(self, judged: Judgements, criterion: str, asked: LevelComparison) -> None:
        """What is compared, what was skipped, and how intervals and p-values are found."""
        noun = "rows" if criterion else "pairs"
        self._compared.setdefault(judged.name, f"{judged.name} {asked.rows:,} {noun}")
        where = f"{judged.name}, {criterion}" if criterion else judged.name
        if asked.skipped:
            self._say(f"{where}: {asked.skipped:,} segments skipped, as people rated all alike")
        self._tests[asked.test] = None

    def undefined(self, judged: Judgements, metric: str, count: int, resamples: int) -> None:
        """Resamples in which the statistic says nothing."""
        if count:
            said = f"{count:,} of {resamples:,} bootstrap samples of {metric}"
            self._say(f"{judged.name}: {said} are undefined and left out of its interval")

    def silent(self, judged: Judgements, criterion: str) -> None:
        """A criterion that tells nothing apart."""
        what = f"by {criterion} people told no two rows apart" if criterion else "no pair is left"
        self._say(f"{judged.name}: {what}; left out")

    def _say(self, note: str) -> None:
        self._said[note] = None

    def _from_cache(self) -> list[str]:
        known = {name: count for name, count in self._remembered.items() if count}
        if not known:
            return []
        names = (
            name if count == self._sets else f"{name} ({count} of {self._sets} sets)"
            for name, count in known.items()
        )
        return [f"scores from the cache: {', '.join(names)}"]
