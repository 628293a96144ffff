"""Studies: how well several metrics agree with human judgements of several sets.

`judge` scores every set with every metric, computes the agreement by each criterion, tests all
pairs of metrics against each other, and collects notes on what was compared and how.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.judge.comparisons import (
    LevelComparison,
    StatisticOptions,
    choose_statistic,
    comparison_of,
    criteria,
    ratings,
)
from freight.judge.correlation import correlation_matrix
from freight.judge.error import POWERS, rescale
from freight.judge.scores import ScoreCache, ScoredSet, StudyColumn, score_set, study_columns
from freight.judge.sentinels import (
    SentinelAgreement,
    Sentinels,
    SentinelScores,
    human_ceiling,
    sentinel_agreement,
    set_sentinels,
    unrelated_references,
)
from freight.metrics import load
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.core.scorers import PipelineScorer, Scorer
    from freight.core.types import Progress


@dataclass(frozen=True, eq=False)
class Agreement:
    """The agreement of one metric with the human scores of one set, by one criterion.

    `human` is the criterion, empty for preferences. `low` and `high` bound a 95 % percentile
    bootstrap confidence interval. `rows` is the number of rows compared, or of pairs for
    preferences; `skipped` that of segments whose outputs all have the same human score.
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
    """Several metrics on several sets: their scores, agreements and significance tests.

    `scores` are by metric and set, one number per row, negated where lower is better.
    `significance` is by set and criterion a matrix of one-sided p-values, for the null hypothesis
    that two metrics agree equally well with people and the alternative that the metric of the row
    agrees better than the metric of the column. `between_metrics` and `between_humans` are Pearson
    correlations of scores and of criteria, the latter in the order of the set's agreements.
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
    warnings: tuple[str, ...] = ()
    negated: frozenset[str] = frozenset()
    """The metrics of which lower scores are better."""
    sentinels: Sentinels = field(default_factory=Sentinels)


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
    warnings: Sequence[str] = (),
    sentinels: bool = True,
) -> Study:
    """Score judgement sets with several metrics, and measure how well each agrees with people.

    A scorer is any object with `name`, `columns` and `score(hyps, refs)`; a mapping of scorers
    gives them names of your own. Every language pair is a set of its own. `level` is segment, text,
    system or darr, by default the one the data allow; `statistic` is pearson, spearman, kendall,
    accuracy, soft-accuracy, tau, mse or mae. `humans` names criteria, by default all of them;
    `columns` the columns of each metric, by default its primary one. `scale` is the range of the
    human ratings, by default the observed one, and is used by mse and mae only. A `cache` keeps
    scores on disk. `notes` come before those of the study, `warnings` are passed on. `progress` is
    called with the number of rows scored since the last call. `sentinels` adds what a metric has
    to beat, and a warning where it does not; they never count among the metrics.
    """
    given = [sets] if isinstance(sets, Judgements) else list(sets)
    if not given:
        raise InvalidInput("there is no judgement set; give at least one")
    parts = _with_distinct_names(
        [part for one in given for part in one.with_criteria(humans).split()]
    )
    level, statistic = choose_statistic(parts, level, statistic)
    options = StatisticOptions(resamples, seed, scale)
    chrf = study_columns([load("chrf")])[0] if sentinels else None
    builder = _StudyBuilder(level, statistic, study_columns(scorers, columns), options, chrf)
    names_of = [criteria(judged, level, statistic) for judged in parts]
    if statistic in POWERS:
        _check_scales(builder.columns, parts, scale)
    builder.notes.add_loading_notes(given)
    for judged, names in zip(parts, names_of, strict=True):
        builder.add_set(judged, names, cache, progress)
    study = builder.study(parts, notes)
    return replace(study, warnings=(*warnings, *study.sentinels.warnings))


def _with_distinct_names(sets: Sequence[Judgements]) -> list[Judgements]:
    """The same sets, repeated names numbered."""
    named: dict[str, Judgements] = {}
    for judged in sets:
        tries = (judged.name if k == 1 else f"{judged.name} ({k})" for k in count(1))
        name = next(name for name in tries if name not in named)
        named[name] = replace(judged, name=name)
    return list(named.values())


def _check_scales(
    columns: Sequence[StudyColumn], sets: Sequence[Judgements], scale: tuple[float, float] | None
) -> None:
    """Errors need a metric and ratings with known scales; refused before anything is scored."""
    for column in columns:
        column.rescale(np.zeros(1))
    for judged in sets:
        for values in judged.human.values():
            if scale is not None and not np.isnan(values).all():
                rescale(values, *scale)


class _StudyBuilder:
    """Collects scores, agreements and tests set by set."""

    def __init__(
        self,
        level: str,
        statistic: str,
        columns: list[StudyColumn],
        options: StatisticOptions,
        chrf: StudyColumn | None,
    ) -> None:
        self.level, self.statistic, self.columns, self.options = level, statistic, columns, options
        self.chrf = chrf
        self.notes = StudyNotes()
        self._scores: dict[tuple[str, str], Array] = {}
        self._signatures: dict[str, None] = {}
        self._agreements: list[Agreement] = []
        self._significance: dict[tuple[str, str], Array] = {}
        self._between_metrics: dict[str, Array] = {}
        self._between_humans: dict[str, Array] = {}
        self._sentinels: list[SentinelAgreement] = []
        self._chance: dict[tuple[str, str], float] = {}
        self._ceiling: dict[tuple[str, str], float] = {}

    def add_set(
        self,
        judged: Judgements,
        names: Sequence[str],
        cache: ScoreCache | None,
        progress: Progress | None,
    ) -> None:
        """Score a set, and compare the scores with human ones by each criterion."""
        scores, sentinels = self._score(judged, cache, progress)
        usable = self.notes.usable_rows(judged, self.columns, scores)
        used = []
        for name in names:
            comparison = self._compare(judged, usable, name)
            if comparison is None:
                self.notes.add_left_out(judged, name)
                continue
            used.append(name)
            self._agreements += self._agreements_by(judged, name, comparison, scores)
            if len(scores) > 1:
                p_values = comparison.p_values(self._comparable(scores))
                self._significance[judged.name, name] = p_values
            if self.chrf is not None:
                self._chance[judged.name, name] = comparison.chance
                self._add_sentinels(judged, name, usable, scores, sentinels)
        self._between_metrics[judged.name] = correlation_matrix(scores)
        if len(used) > 1:
            people = [np.where(usable, ratings(judged, self.level, x), np.nan) for x in used]
            self._between_humans[judged.name] = correlation_matrix(np.array(people))

    def study(self, sets: Sequence[Judgements], notes: Sequence[str]) -> Study:
        """The finished study."""
        if not self._agreements:
            raise InvalidInput(f"there is nothing to agree with: {self.notes.all()[-1]}")
        humans = dict.fromkeys(a.human for a in self._agreements if a.human)
        return Study(
            level=self.level,
            statistic=self.statistic,
            metrics=tuple(column.name for column in self.columns),
            sets=tuple(sets),
            humans=tuple(humans),
            scores=self._scores,
            agreements=tuple(self._agreements),
            significance=self._significance,
            between_metrics=self._between_metrics,
            between_humans=self._between_humans,
            signatures=tuple(self._signatures),
            negated=frozenset(one.name for one in self.columns if not one.column.higher),
            notes=(*notes, *self.notes.all()),
            sentinels=self._all_sentinels(),
        )

    def _compare(self, judged: Judgements, usable: Array, criterion: str) -> LevelComparison | None:
        return comparison_of(judged, usable, self.level, self.statistic, criterion, self.options)

    def _score(
        self, judged: Judgements, cache: ScoreCache | None, progress: Progress | None
    ) -> tuple[Array, list[SentinelScores]]:
        """Scores (metric, row), negated where lower is better, and those of the sentinels."""
        scorers = list({id(column.scorer): column.scorer for column in self.columns}.values())
        shuffled = unrelated_references(judged.refs, self.options.seed) if self.chrf else None
        scored = score_set(scorers, judged, cache, progress, shuffled)
        places = {id(scorer): k for k, scorer in enumerate(scorers)}
        for column in self.columns:
            raw = scored.scores[places[id(column.scorer)]].columns[column.column.name]
            self._scores[column.name, judged.name] = column.orient(raw)
        self._signatures |= dict.fromkeys(scored.signatures)
        self.notes.add_scoring_notes(judged, scorers, scored, self.level)
        scores = np.array([self._scores[column.name, judged.name] for column in self.columns])
        if self.chrf is None:
            return scores, []
        others = [
            one.orient(scored.shuffled[places[id(one.scorer)]].columns[one.column.name])
            for one in self.columns
            if scored.shuffled
        ]
        [lexical] = score_set([self.chrf.scorer], judged, cache).scores
        chrf = self.chrf, self.chrf.orient(lexical.columns[self.chrf.column.name])
        return scores, list(set_sentinels(judged, self.columns, others, chrf))

    def _add_sentinels(
        self,
        judged: Judgements,
        criterion: str,
        usable: Array,
        scores: Array,
        sentinels: Sequence[SentinelScores],
    ) -> None:
        metrics = dict(
            zip((column.name for column in self.columns), self._comparable(scores), strict=True)
        )
        for one in sentinels:
            agreement = sentinel_agreement(one, judged, criterion, usable, self._compare, metrics)
            if agreement is not None:
                self._sentinels.append(agreement)
        ceiling = human_ceiling(judged, criterion, usable, self._compare)
        if ceiling is not None:
            self._ceiling[judged.name, criterion] = ceiling

    def _all_sentinels(self) -> Sentinels:
        signature = self.chrf.scorer.signature if self.chrf else ""
        return Sentinels(tuple(self._sentinels), self._chance, self._ceiling, signature)

    def _comparable(self, scores: Array) -> Array:
        """Scores as the statistic takes them: for errors, rescaled to 0 to 1."""
        if self.statistic not in POWERS:
            return scores
        both = zip(self.columns, scores, strict=True)
        return np.array([column.rescale(row) for column, row in both])

    def _agreements_by(
        self, judged: Judgements, name: str, comparison: LevelComparison, scores: Array
    ) -> Iterator[Agreement]:
        self.notes.add_comparison(judged, name, comparison)
        rows, skipped = comparison.rows, comparison.skipped
        for column, row in zip(self.columns, self._comparable(scores), strict=True):
            value, _, low, high, undefined = comparison.interval(row)
            self.notes.add_undefined(judged, column.name, undefined, self.options.resamples)
            yield Agreement(column.name, judged.name, name, value, low, high, rows, skipped)


class StudyNotes:
    """Notes collected set by set; what several sets have in common is noted once."""

    def __init__(self) -> None:
        self._general: dict[str, None] = {}
        self._compared: dict[str, str] = {}
        self._methods: dict[str, None] = {}
        self._flags: Counter[tuple[str, str]] = Counter()
        self._cached: defaultdict[str, int] = defaultdict(int)
        self._rows = self._sets = 0

    def all(self) -> tuple[str, ...]:
        """Numbers of rows first, then particular observations, then the statistical methods."""
        compared = [f"compared: {', '.join(self._compared.values())}"] if self._compared else []
        flags = [
            f"{name}: {count:,} of {self._rows:,} texts: {flag}"
            for (name, flag), count in self._flags.items()
        ]
        return (*compared, *self._general, *flags, *self._methods, *self._cache_note())

    def add_loading_notes(self, sets: Sequence[Judgements]) -> None:
        """What was noted when the sets were read."""
        for judged in sets:
            for note in judged.notes:
                self._add(f"{judged.name}: {note}")

    def add_scoring_notes(
        self, judged: Judgements, scorers: Sequence[PipelineScorer], scored: ScoredSet, level: str
    ) -> None:
        """Flags, fitted parts, system scores that are no means, and what came from the cache."""
        self._rows += len(judged)
        self._sets += 1
        for scorer, scores, known in zip(scorers, scored.scores, scored.from_cache, strict=True):
            for flag, times in scores.flags.items():
                self._flags[scorer.name, flag] += times
            if scorer.needs_fitting:
                self._add(f"{scorer.name}: IDF is fitted on the references of each set")
            if level == "system" and not scores.means:
                self._add(f"{scorer.name}: a system's score is the mean of its segment scores here")
            self._cached[scorer.name] += known
        if scored.cache_error:
            self._add(scored.cache_error)

    def usable_rows(
        self, judged: Judgements, columns: Sequence[StudyColumn], scores: Array
    ) -> Array:
        """A mask of the rows that every metric could score; only these are compared."""
        missing = np.isnan(scores)
        for column, row in zip(columns, missing, strict=True):
            if row.all():
                raise InvalidInput(f"{column.name} could score no text of {judged.name}")
            if row.any():
                what = f"{row.sum():,} rows that {column.name} could not score"
                self._add(f"{judged.name}: {what} are left out for all metrics")
        return np.logical_not(np.any(missing, axis=0))

    def add_comparison(
        self, judged: Judgements, criterion: str, comparison: LevelComparison
    ) -> None:
        """How many rows are compared and skipped, and how intervals and p-values are computed."""
        noun = "rows" if criterion else "pairs"
        self._compared.setdefault(judged.name, f"{judged.name} {comparison.rows:,} {noun}")
        where = f"{judged.name}, {criterion}" if criterion else judged.name
        if comparison.skipped:
            self._add(f"{where}: {comparison.skipped:,} segments skipped: all ratings are equal")
        self._methods[comparison.method] = None

    def add_undefined(self, judged: Judgements, metric: str, count: int, resamples: int) -> None:
        """Resamples in which the statistic has no value."""
        if count:
            what = f"{count:,} of {resamples:,} bootstrap samples of {metric}"
            self._add(f"{judged.name}: {what} are undefined and left out of its interval")

    def add_left_out(self, judged: Judgements, criterion: str) -> None:
        """A criterion without two different ratings, or preferences without a scored pair."""
        why = f"all ratings of {criterion} are equal" if criterion else "no pair could be scored"
        self._add(f"{judged.name}: {why}; left out")

    def _add(self, note: str) -> None:
        self._general[note] = None

    def _cache_note(self) -> list[str]:
        known = {name: count for name, count in self._cached.items() if count}
        if not known:
            return []
        names = (
            name if count == self._sets else f"{name} ({count} of {self._sets} sets)"
            for name, count in known.items()
        )
        return [f"scores from the cache: {', '.join(names)}"]
