"""Tuning: choose a metric's settings on some judgement sets, and test them on others.

`tune` tries settings on the training sets and picks those with the best mean agreement over
language pairs. What the pick is worth is measured on test sets, or by holding out each language
pair in turn; the result is written as a preset that `load` reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from freight.core.scorers import PipelineScorer, Scorer
from freight.core.sweep_cache import SharedEncodings
from freight.core.types import name_of
from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.judge.comparisons import StatisticOptions, choose_statistic, criteria
from freight.judge.search import (
    Proposals,
    Range,
    Settings,
    Space,
    Trial,
    TrialRunner,
    TuningObjective,
    TuningSet,
    best_trial,
    check_space,
    propose_settings,
    run_search,
)
from freight.judge.study import Study, judge
from freight.metrics import LOADED, load, preset_settings, write_preset

TuningProgress = Callable[[str, float], None]
"""Called with a stage and the share of it that was done since the last call."""

JudgementSets = Judgements | Sequence[Judgements]
ENCODING, TRYING, TESTING = "encoding", "trying settings", "testing"
TUNED, DEFAULT = "tuned", "default"


class Fold(NamedTuple):
    """A held-out set, the settings picked on the other sets, and their mean agreement there."""

    set: str
    settings: Settings
    value: float


@dataclass(frozen=True, eq=False)
class TuningResult:
    """The best of the tried settings beside the default ones, and their agreement on other sets.

    `tests` and `held_out` are studies of the tuned and the default metric on sets that were not
    used to pick the settings; in the second, each set has the settings of its own fold. `fixed` are
    settings that were not searched.
    """

    metric: str
    space: Space
    fixed: Settings
    objective: TuningObjective
    search: str
    train: tuple[Judgements, ...]
    trials: tuple[Trial, ...]
    best: Trial
    default: Trial
    folds: tuple[Fold, ...]
    held_out: Study | None
    tests: Study | None
    signatures: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        """All settings of the tuned metric: the fixed ones and the best ones."""
        return {**self.fixed, **self.best.settings}

    @property
    def preset(self) -> dict[str, Any]:
        """The content of a preset file: metric, settings, and how they were found."""
        settings = {name: x for name, x in self.settings.items() if name not in LOADED}
        return {"metric": self.metric, "settings": settings, "found": self._record}

    @property
    def _record(self) -> dict[str, Any]:
        level, statistic, criterion, options = self.objective
        return {
            "statistic": statistic,
            "level": level,
            "human": criterion,
            "value": self.best.value,
            "default": self.default.value,
            "search": self.search,
            "seed": options.seed,
            "loaded": self._loaded,
            "train": [
                {"set": one.name, "rows": len(one), "sha256": set_digest(one), "value": value}
                for one, value in zip(self.train, self.best.values.values(), strict=True)
            ],
            "held_out": _agreement_records(self.held_out),
            "tests": _agreement_records(self.tests),
            "signature": self.signatures[0],
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }

    @property
    def _loaded(self) -> dict[str, str | None]:
        """What a preset leaves to whoever reads it, by name: the encoder and the adapter used."""
        chosen = {name: self.settings[name] for name in LOADED if name in self.settings}
        return {name: x if isinstance(x, str) else name_of(x) or None for name, x in chosen.items()}

    def write_preset(self, path: Path) -> None:
        """Write the settings to a file that `load(metric, preset=...)` reads."""
        write_preset(path, self.preset)


def tune(
    metric: str,
    space: Space,
    train: JudgementSets,
    tests: JudgementSets = (),
    settings: Mapping[str, Any] | None = None,
    rivals: Mapping[str, Scorer] | None = None,
    level: str | None = None,
    statistic: str | None = None,
    human: str | None = None,
    scale: tuple[float, float] | None = None,
    trials: int | None = None,
    folds: bool = False,
    rows: int | None = None,
    resamples: int = 1000,
    seed: int = 0,
    progress: TuningProgress | None = None,
) -> TuningResult:
    """Search a metric's settings on training sets, by their mean agreement over language pairs.

    The whole grid is tried, or `trials` settings that optuna's TPE sampler proposes; `settings` are
    fixed. With `folds`, each language pair of each set is also held out once, and settings are
    picked on the sets of other pairs. `rows` limits each training set to about so many rows, drawn
    as whole segments. On the tests, the tuned metric is compared with the default one and with
    `rivals`.
    """
    check_space(metric, space)
    proposals = partial(propose_settings, space, trials)
    parts = [part for one in _as_list(train) for part in _with_criterion(one, human).split()]
    drawn = [_draw_segments(part, rows, seed) for part in parts]
    options = StatisticOptions(resamples, seed, scale)
    objective = _objective(drawn, level, statistic, options)
    if len({one.name for one in drawn}) < len(drawn):
        raise InvalidInput("two training sets have the same name; rename one of the files")
    if folds and not all(fold_training_sets(drawn, one) for one in drawn):
        raise InvalidInput(f"folds hold out a language pair, and {drawn[0].name} is the only one")
    fixed = _fixed_settings(metric, space, settings or {})
    run = _TuningRun(metric, space, fixed, objective, drawn, progress)
    test_sets = _as_list(tests)
    run.warnings += _leakage_warnings(drawn, test_sets, folds)
    run.notes += [f"{one.name}: {note}" for one in drawn for note in one.notes]
    searched = run.search(proposals, len(drawn) if folds else 0)
    best = best_trial(searched.trials, objective.higher)
    return TuningResult(
        metric=metric,
        space=space,
        fixed=fixed,
        objective=objective,
        search="grid" if trials is None else "tpe",
        train=tuple(drawn),
        trials=tuple(searched.trials),
        best=best,
        default=run.default,
        folds=searched.folds,
        tests=run.test(best.settings, test_sets, rivals or {}) if test_sets else None,
        held_out=run.test_folds(searched.folds) if searched.folds else None,
        signatures=tuple(run.make(one).signature for one in (best.settings, {})),
        notes=tuple(dict.fromkeys(run.notes)),
        warnings=tuple(dict.fromkeys(run.warnings)),
    )


class _SearchResult(NamedTuple):
    trials: list[Trial]
    folds: tuple[Fold, ...]


class _TuningRun:
    """One run of `tune`: the prepared sets, the trials so far, notes and warnings."""

    def __init__(
        self,
        metric: str,
        space: Space,
        fixed: Settings,
        objective: TuningObjective,
        sets: Sequence[Judgements],
        progress: TuningProgress | None,
    ) -> None:
        self.metric, self.space, self.fixed = metric, space, fixed
        self._names = f"{TUNED} {metric}", f"{DEFAULT} {metric}"
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self._objective, self._progress = objective, progress or (lambda stage, share: None)
        self._sets = {one.name: one for one in sets}
        self._memories = SharedEncodings()
        probes = [self.make({name: x}) for name, one in space.items() for x in one.values]
        tuning_sets = [TuningSet(one, objective, probes) for one in sets]
        for one in tuning_sets:
            report = partial(self._report, ENCODING, 1 / len(tuning_sets))
            self.notes += [note for note in [one.prepare(self.make({}), report)] if note]
        self._runner = TrialRunner(self.make, tuning_sets)
        self.default = self._runner.run({}, list(self._sets))

    def make(self, settings: Settings) -> PipelineScorer:
        """The metric with these settings and the fixed ones; its encoder keeps vectors."""
        return self._memories.wrap(self._load(settings))

    def _load(self, settings: Settings) -> PipelineScorer:
        return load(self.metric, **{**self.fixed, **settings})

    def search(self, proposals: Callable[..., Proposals], folds: int) -> _SearchResult:
        """Try settings on all sets; then for each of the first `folds` sets on the others."""
        seed, higher = self._objective.options.seed, self._objective.higher
        report = partial(self._report, TRYING, 1 / (1 + folds))
        whole = run_search(proposals(seed=seed), self._runner, list(self._sets), higher, report)
        stopped, done = whole.stopped, []
        for name in list(self._sets)[:folds]:
            if stopped:
                break
            others = [one.name for one in fold_training_sets(self._sets.values(), self._sets[name])]
            picked = run_search(proposals(seed=seed), self._runner, others, higher, report)
            stopped = picked.stopped
            if not stopped:
                best = best_trial(picked.trials, higher)
                done.append(Fold(name, best.settings, best.value))
        self._add_search_notes(whole.trials, stopped, len(done), folds)
        return _SearchResult(whole.trials, tuple(done))

    def test(
        self, settings: Settings, tests: Sequence[Judgements], rivals: Mapping[str, Scorer]
    ) -> Study:
        """A study of the tuned metric, the default one and others on the test sets."""
        pair = zip(self._names, (self._load(settings), self._load({})), strict=True)
        return self._study({**dict(pair), **rivals}, tests)

    def test_folds(self, folds: Sequence[Fold]) -> Study:
        """A study of each held-out set with the settings of its fold, joined to one."""
        made = [(self.make(fold.settings), self.make({})) for fold in folds]
        studies = [
            self._study(dict(zip(self._names, pair, strict=True)), [self._sets[fold.set]])
            for fold, pair in zip(folds, made, strict=True)
        ]
        return join_studies(studies, self._names)

    def _study(self, scorers: Mapping[str, Scorer], sets: Sequence[Judgements]) -> Study:
        level, statistic, criterion, (resamples, seed, scale) = self._objective
        count = sum(map(len, sets))
        return judge(
            scorers,
            sets,
            level,
            statistic,
            [criterion] if criterion else None,
            scale=scale,
            resamples=resamples,
            seed=seed,
            progress=lambda rows: self._progress(TESTING, rows / count),
            sentinels=False,
        )

    def _report(self, stage: str, whole: float, share: float) -> None:
        self._progress(stage, whole * share)

    def _add_search_notes(
        self, trials: Sequence[Trial], stopped: bool, folds_done: int, folds: int
    ) -> None:
        best = best_trial(trials, self._objective.higher)
        if stopped:
            done = (
                f"{folds_done} of {folds} folds"
                if folds_done or folds
                else f"{len(trials):,} settings"
            )
            self.warnings.append(f"stopped after {done}; these are the best settings until then")
        failed = [trial for trial in trials if np.isnan(trial.value)]
        if failed:
            why = next(iter(self._runner.failures.values()), "a row has no score")
            self.notes.append(f"{len(failed):,} settings could not be tried: {why}")
        gain = best.value - self.default.value
        if not (gain > 0 if self._objective.higher else gain < 0):
            self.notes.append("no settings agree better with people than the default ones")
        for name, one in self.space.items():
            if isinstance(one, Range) and best.settings[name] in (one.low, one.high):
                at_end = f"{name}={best.settings[name]:g} is the end of its range"
                self.notes.append(f"{at_end}; the optimum may lie outside")


def fold_training_sets(sets: Iterable[Judgements], held_out: Judgements) -> list[Judgements]:
    """The sets on which settings for a held-out set may be picked: those of other languages."""
    pairs = set(held_out.lang_pairs)
    return [one for one in sets if one is not held_out and not pairs & set(one.lang_pairs)]


def _as_list(sets: JudgementSets) -> list[Judgements]:
    return [sets] if isinstance(sets, Judgements) else list(sets)


def _with_criterion(judged: Judgements, human: str | None) -> Judgements:
    return judged if human is None else judged.with_criteria([human])


def _fixed_settings(metric: str, space: Space, settings: Mapping[str, Any]) -> Settings:
    """The settings that are not searched; a preset is replaced by the settings it stands for."""
    preset = settings.get("preset")
    known = {} if preset is None else preset_settings(metric, str(preset))
    given = {name: value for name, value in settings.items() if name != "preset"}
    for name in space:
        if name in given:
            raise InvalidInput(f"{name} is both set and searched; leave one of the two out")
    return {name: x for name, x in {**known, **given}.items() if name not in space}


def _objective(
    sets: Sequence[Judgements],
    level: str | None,
    statistic: str | None,
    options: StatisticOptions,
) -> TuningObjective:
    level, statistic = choose_statistic(sets, level, statistic)
    several = [criteria(judged, level, statistic) for judged in sets]
    names = list(dict.fromkeys(name for some in several for name in some))
    if len(names) > 1:
        raise InvalidInput(f"there are several criteria; name one of {', '.join(names)}")
    return TuningObjective(level, statistic, names[0], options)


def _draw_segments(judged: Judgements, rows: int | None, seed: int) -> Judgements:
    """Whole segments, drawn at random until there are at least `rows` rows."""
    if rows is None or rows >= len(judged):
        return judged
    sizes = np.bincount(judged.segments)
    order = np.random.default_rng(seed).permutation(len(sizes))
    taken = order[: int(np.searchsorted(np.cumsum(sizes[order]), rows)) + 1]
    part = judged.only(np.isin(judged.segments, taken))
    drawn = f"{len(taken):,} of {len(sizes):,} segments, drawn at random (seed {seed})"
    note = f"tuned on {len(part):,} of {len(judged):,} rows: {drawn}"
    return replace(part, notes=(*part.notes, note))


def _leakage_warnings(
    train: Sequence[Judgements], tests: Sequence[Judgements], folds: bool
) -> Iterator[str]:
    held_out = [(fold_training_sets(train, one), one) for one in train if folds]
    for others, test in [*held_out, *((train, test) for test in tests)]:
        shared = count_shared_rows(others, test)
        if shared:
            what = f"{shared:,} of {len(test):,} rows of {test.name}"
            yield f"tuned and tested on the same rows: {what}"
    if not tests and not folds:
        yield (
            "the agreement is measured on the rows that the settings were picked on, which is"
            " optimistic; measure it on other rows, with a test set"
        )


def count_shared_rows(train: Sequence[Judgements], test: Judgements) -> int:
    """The number of rows of a set whose hypothesis and references are also in the others."""
    seen = {row for one in train for row in zip(one.hyps, one.refs, strict=True)}
    return sum(row in seen for row in zip(test.hyps, test.refs, strict=True))


def set_digest(judged: Judgements) -> str:
    """A hash of all texts and human scores of a set."""
    digest = hashlib.sha256(repr((judged.hyps, judged.refs)).encode("utf-8", "surrogatepass"))
    for name, values in sorted({**judged.human, **judged.system_human}.items()):
        digest.update(name.encode() + np.ascontiguousarray(values, np.float64).tobytes())
    if judged.preferences is not None:
        digest.update(np.ascontiguousarray(judged.preferences, np.int64).tobytes())
    return digest.hexdigest()


def join_studies(studies: Sequence[Study], names: tuple[str, ...]) -> Study:
    """Studies of different sets as one; their metrics, in order, are given these names."""
    first = studies[0]
    renamed = [dict(zip(study.metrics, names, strict=True)) for study in studies]
    both = list(zip(studies, renamed, strict=True))
    return replace(
        first,
        metrics=names,
        sets=tuple(one for study in studies for one in study.sets),
        scores={
            (name[metric], of): scores
            for study, name in both
            for (metric, of), scores in study.scores.items()
        },
        agreements=tuple(
            replace(one, metric=name[one.metric])
            for study, name in both
            for one in study.agreements
        ),
        significance={key: p for study in studies for key, p in study.significance.items()},
        between_metrics={key: r for study in studies for key, r in study.between_metrics.items()},
        signatures=tuple(dict.fromkeys(one for study in studies for one in study.signatures)),
        notes=tuple(dict.fromkeys(note for study in studies for note in study.notes)),
    )


def _agreement_records(study: Study | None) -> list[dict[str, Any]]:
    """Each metric on each set; `p` is one-sided, for the tuned metric agreeing better than it."""
    records = []
    for one in study.agreements if study else ():
        p_values = study.significance.get((one.set, one.human)) if study else None
        place = study.metrics.index(one.metric) if study else 0
        p = None if p_values is None or place == 0 else float(p_values[0, place])
        interval = {"low": one.low, "high": one.high, "rows": one.rows, "p": p}
        records.append({"set": one.set, "metric": one.metric, "value": one.value, **interval})
    return records
