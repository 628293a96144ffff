"""Choose a metric's settings on some sets, and say what they are worth on others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from freight.core.scoring import Scorer
from freight.core.sweep_cache import Memories
from freight.core.types import name_of
from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.judge.comparisons import Chance, criteria, settle
from freight.judge.search import (
    Bench,
    Question,
    Range,
    Search,
    Settings,
    Space,
    Trial,
    Trials,
    best_of,
    check_space,
    run,
    search,
)
from freight.judge.study import Study, judge
from freight.metrics import load, preset_settings, write_preset

Told = Callable[[str, float], None]
"""Told, now and then, of a stage and which share of it was done since the last time."""

Sets = Judgements | Sequence[Judgements]
ENCODING, TRYING, TESTING = "encoding", "trying settings", "testing"


def tune(
    metric: str,
    space: Space,
    train: Sets,
    tests: Sets = (),
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
    progress: Told | None = None,
) -> Tuned:
    """Search settings of a metric on the training sets, the mean over language pairs deciding.

    All of a grid is tried, or `trials` settings where the last ones were good (optuna's TPE). What
    `settings` say is not searched. With `folds` each language pair of each set is also held out
    once: settings are picked on the sets of other pairs. `rows` draws whole segments of each
    training set until there are so many rows. On the tests, the tuned metric is compared with the
    default one, and with `rivals`.
    """
    check_space(metric, space)
    proposals = partial(search, space, trials)
    parts = [part for one in _several(train) for part in _with(one, human).split()]
    drawn = [_drawn(part, rows, seed) for part in parts]
    question = _question(drawn, level, statistic, human, Chance(resamples, seed, scale))
    if len({one.name for one in drawn}) < len(drawn):
        raise InvalidInput("two training sets have the same name; rename one of the files")
    if folds and not all(apart(drawn, one) for one in drawn):
        raise InvalidInput(f"folds hold out a language pair, and {drawn[0].name} is the only one")
    work = _Work(metric, space, _fixed(metric, space, settings or {}), question, drawn, progress)
    held = _several(tests)
    work.notes += _warnings(drawn, held, folds)
    work.notes += [f"{one.name}: {note}" for one in drawn for note in one.notes]
    found = work.search(proposals, len(drawn) if folds else 0)
    best = best_of(found.trials, question.higher)
    tested = work.test(best.settings, held, rivals or {}) if held else None
    return Tuned(
        metric,
        space,
        work.fixed,
        question,
        "grid" if trials is None else "tpe",
        tuple(drawn),
        tuple(found.trials),
        best,
        work.default,
        found.folds,
        work.hold_out(found.folds) if found.folds else None,
        tested,
        tuple(work.make(one).signature for one in (best.settings, {})),
        tuple(dict.fromkeys(work.notes)),
    )


class _TuneOutcome(NamedTuple):
    trials: list[Trial]
    folds: tuple[Fold, ...]


class _Work:
    """One tuning: the sets, what is kept of them, and what is worth saying."""

    def __init__(
        self,
        metric: str,
        space: Space,
        fixed: Settings,
        question: Question,
        sets: Sequence[Judgements],
        progress: Told | None,
    ) -> None:
        self.metric, self.space, self.fixed = metric, space, fixed
        self._names = f"{TUNED} {metric}", f"{DEFAULT} {metric}"
        self.notes: list[str] = []
        self._question, self._progress = question, progress or (lambda stage, share: None)
        self._sets = {one.name: one for one in sets}
        self._memories = Memories()
        probes = [self.make({name: x}) for name, one in space.items() for x in one.values]
        benches = [Bench(one, question, probes) for one in sets]
        for bench in benches:
            told = partial(self._tell, ENCODING, 1 / len(benches))
            self.notes += [note for note in [bench.prepare(self.make({}), told)] if note]
        self._trials = Trials(self.make, benches)
        self.default = self._trials.of({}, list(self._sets))

    def make(self, settings: Settings) -> Scorer:
        """The metric under these settings and the fixed ones, which encodes no text twice."""
        return self._memories.remembering(self._loaded(settings))

    def _loaded(self, settings: Settings) -> Scorer:
        return load(self.metric, **{**self.fixed, **settings})

    def search(self, proposals: Callable[..., Search], folds: int) -> _TuneOutcome:
        """Try settings on all sets, then, without each of them, on the others."""
        seed, higher = self._question.chance.seed, self._question.higher
        tell = partial(self._tell, TRYING, 1 / (1 + folds))
        found = run(proposals(seed=seed), self._trials, list(self._sets), higher, tell)
        stopped, held = found.stopped, []
        for name in list(self._sets)[:folds]:
            if stopped:
                break
            others = [one.name for one in apart(self._sets.values(), self._sets[name])]
            picked = run(proposals(seed=seed), self._trials, others, higher, tell)
            stopped = picked.stopped
            if not stopped:
                best = best_of(picked.trials, higher)
                held.append(Fold(name, best.settings, best.value))
        self._note(found.trials, stopped, len(held), folds)
        return _TuneOutcome(found.trials, tuple(held))

    def test(
        self, settings: Settings, tests: Sequence[Judgements], rivals: Mapping[str, Scorer]
    ) -> Study:
        """The tuned metric, the default one and others on sets that had no say."""
        pair = zip(self._names, (self._loaded(settings), self._loaded({})), strict=True)
        return self._study({**dict(pair), **rivals}, tests)

    def hold_out(self, folds: Sequence[Fold]) -> Study:
        """Each set under the settings that the others picked, as one study."""
        made = [(self.make(fold.settings), self.make({})) for fold in folds]
        studies = [
            self._study(dict(zip(self._names, pair, strict=True)), [self._sets[fold.set]])
            for fold, pair in zip(folds, made, strict=True)
        ]
        return joined(studies, self._names)

    def _study(self, scorers: Mapping[str, Scorer], sets: Sequence[Judgements]) -> Study:
        level, statistic, criterion, (resamples, seed, scale) = self._question
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
        )

    def _tell(self, stage: str, whole: float, share: float) -> None:
        self._progress(stage, whole * share)

    def _note(self, trials: Sequence[Trial], stopped: bool, held: int, folds: int) -> None:
        best = best_of(trials, self._question.higher)
        if stopped:
            done = f"{held} of {folds} folds" if held or folds else f"{len(trials):,} settings"
            self.notes.append(f"!stopped after {done}; this is the best until then")
        failed = [trial for trial in trials if np.isnan(trial.value)]
        if failed:
            why = next(iter(self._trials.failures.values()), "a row has no score")
            self.notes.append(f"{len(failed):,} settings could not be tried: {why}")
        gain = best.value - self.default.value
        if not (gain > 0 if self._question.higher else gain < 0):
            self.notes.append("none of the settings agrees better with people than the default")
        for name, one in self.space.items():
            if isinstance(one, Range) and best.settings[name] in (one.low, one.high):
                said = f"{name}={best.settings[name]:g} is the end of its range"
                self.notes.append(f"{said}; the best may lie beyond")


def apart(sets: Iterable[Judgements], held: Judgements) -> list[Judgements]:
    """The sets that may choose for one that is held out: others, and of other language pairs."""
    pairs = set(held.lang_pairs)
    return [one for one in sets if one is not held and not pairs & set(one.lang_pairs)]


def _several(sets: Sets) -> list[Judgements]:
    return [sets] if isinstance(sets, Judgements) else list(sets)


def _with(judged: Judgements, human: str | None) -> Judgements:
    return judged if human is None else judged.with_criteria([human])


def _fixed(metric: str, space: Space, settings: Mapping[str, Any]) -> Settings:
    """What is not searched, presets spelt out."""
    preset = settings.get("preset")
    known = {} if preset is None else preset_settings(metric, str(preset))
    given = {name: value for name, value in settings.items() if name != "preset"}
    for name in space:
        if name in given:
            raise InvalidInput(f"{name} is both set and searched; leave one of the two out")
    return {name: x for name, x in {**known, **given}.items() if name not in space}


def _question(
    sets: Sequence[Judgements],
    level: str | None,
    statistic: str | None,
    human: str | None,
    chance: Chance,
) -> Question:
    level, statistic = settle(sets, level, statistic)
    asked = [criteria(judged, level, statistic) for judged in sets]
    names = list(dict.fromkeys(name for several in asked for name in several))
    if len(names) > 1:
        raise InvalidInput(f"there are several criteria; name one of {', '.join(names)}")
    return Question(level, statistic, names[0], chance)


def _drawn(judged: Judgements, rows: int | None, seed: int) -> Judgements:
    """Whole segments, drawn at random until there are so many rows."""
    if rows is None or rows >= len(judged):
        return judged
    sizes = np.bincount(judged.segments)
    order = np.random.default_rng(seed).permutation(len(sizes))
    taken = order[: int(np.searchsorted(np.cumsum(sizes[order]), rows)) + 1]
    found = judged.only(np.isin(judged.segments, taken))
    drawn = f"{len(taken):,} of {len(sizes):,} segments, drawn at random (seed {seed})"
    said = f"tuned on {len(found):,} of {len(judged):,} rows: {drawn}"
    return replace(found, notes=(*found.notes, said))


def _warnings(
    train: Sequence[Judgements], tests: Sequence[Judgements], folds: bool
) -> Iterator[str]:
    held = [(apart(train, one), one) for one in train if folds]
    for others, test in [*held, *((train, test) for test in tests)]:
        count = shared_rows(others, test)
        if count:
            what = f"{count:,} of {len(test):,} rows of {test.name}"
            yield f"!tuned and tested on the same rows: {what}"
    if not tests and not folds:
        yield "!the figure is that of the tuning rows; only other rows say what it is worth"


TUNED, DEFAULT = "tuned", "default"


class Fold(NamedTuple):
    """A set that was held out, and the settings that were picked on the others."""

    set: str
    settings: Settings
    value: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best settings of those tried, beside the default, and what they are worth elsewhere.

    `tests` and `held_out` are studies of the tuned and the default metric on sets that had no say
    in the settings; in the second, each set has settings of its own, `folds`. `fixed` are settings
    that were not searched. A note that starts with "!" is a warning.
    """

    metric: str
    space: Space
    fixed: Settings
    question: Question
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

    @property
    def settings(self) -> Settings:
        """All that has to be set to have the tuned metric."""
        return {**self.fixed, **self.best.settings}

    @property
    def preset(self) -> dict[str, Any]:
        """The metric, its settings and how they were found, for a file."""
        return {"metric": self.metric, "settings": named(self.settings), "found": self._record}

    @property
    def _record(self) -> dict[str, Any]:
        level, statistic, criterion, chance = self.question
        return {
            "statistic": statistic,
            "level": level,
            "human": criterion,
            "value": self.best.value,
            "default": self.default.value,
            "search": self.search,
            "seed": chance.seed,
            "train": [
                {"set": one.name, "rows": len(one), "sha256": digest(one), "value": value}
                for one, value in zip(self.train, self.best.values.values(), strict=True)
            ],
            "held_out": _agreements(self.held_out),
            "tests": _agreements(self.tests),
            "signature": self.signatures[0],
            "notes": list(self.notes),
        }

    def write_preset(self, path: Path) -> None:
        """Write the settings to a file that `load(metric, preset=...)` takes."""
        write_preset(path, self.preset)


def named(settings: Settings) -> Settings:
    """The same with encoders by name; one without a name is left to whoever loads the settings."""
    chosen = settings.get("encoder")
    if chosen is None or isinstance(chosen, str):
        return dict(settings)
    name = name_of(chosen)
    others = {key: value for key, value in settings.items() if key != "encoder"}
    return {**others, "encoder": name} if name else others


def digest(judged: Judgements) -> str:
    """A hash of all texts and of what people said of them."""
    found = hashlib.sha256(repr((judged.hyps, judged.refs)).encode("utf-8", "surrogatepass"))
    for name, values in sorted({**judged.human, **judged.system_human}.items()):
        found.update(name.encode() + np.ascontiguousarray(values, np.float64).tobytes())
    if judged.preferences is not None:
        found.update(np.ascontiguousarray(judged.preferences, np.int64).tobytes())
    return found.hexdigest()


def shared_rows(train: Sequence[Judgements], test: Judgements) -> int:
    """How many rows of a set are among those of the others: the same text and references."""
    seen = {row for one in train for row in zip(one.hyps, one.refs, strict=True)}
    return sum(row in seen for row in zip(test.hyps, test.refs, strict=True))


def joined(studies: Sequence[Study], names: tuple[str, ...]) -> Study:
    """Studies of the same metrics on a set each, as one; the metrics are called by these names."""
    first = studies[0]
    called = [dict(zip(study.metrics, names, strict=True)) for study in studies]
    both = list(zip(studies, called, strict=True))
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


def _agreements(study: Study | None) -> list[dict[str, Any]]:
    """Each metric on each set, with the p that the tuned one beats it by chance."""
    found = []
    for one in study.agreements if study else ():
        p = study.significance.get((one.set, one.human)) if study else None
        place = study.metrics.index(one.metric) if study else 0
        beaten = None if p is None or place == 0 else float(p[0, place])
        interval = {"low": one.low, "high": one.high, "rows": one.rows, "p": beaten}
        found.append({"set": one.set, "metric": one.metric, "value": one.value, **interval})
    return found
