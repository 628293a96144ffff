"""The search over a metric's settings: the space, proposals from it, and trials on judgement sets.

A space gives each parameter a range or a list of values. Settings are proposed by going through
the grid or by optuna's TPE sampler, and each is tried on every tuning set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from freight.core.scorers import PipelineScorer, pair_up
from freight.core.sweep_cache import SweepCache
from freight.core.types import Progress
from freight.data.judgements import Judgements
from freight.errors import FreightError, InvalidInput, MissingPart
from freight.judge.comparisons import StatisticOptions, comparison_of
from freight.judge.error import POWERS
from freight.judge.scores import study_columns
from freight.metrics import parameters
from freight.transport.types import Array

Settings = dict[str, Any]
DEFAULT_COUNT = 7
"""Number of values of a range in a grid, unless given."""

DEFAULT_SPACES = {
    "lazy-emd": ("hyp=0.05:4", "ref=0.05:4", "column=objective,transport"),
    "f-alpha": ("alpha=0.1:0.9:9:linear",),
    "yisi-1": ("alpha=0.1:0.9:9:linear",),
}
"""What is searched of a metric, unless given."""

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(\d+))?(?::(log|linear))?")


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, `count` of them in a grid, at equal ratios if `log`."""

    low: float
    high: float
    count: int = DEFAULT_COUNT
    log: bool = True
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InvalidInput(f"the range {self.low:g}:{self.high:g} is empty")
        if self.log and self.low <= 0:
            raise InvalidInput(f"a range from {self.low:g} cannot be log; write linear")
        if self.count < 2:
            raise InvalidInput(f"a range has at least 2 values, not {self.count}")

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of a grid, rounded to four digits; all integers of a short integer range."""
        few = self.whole and self.high - self.low < self.count
        spaced = np.geomspace if self.log and not few else np.linspace
        count = int(self.high - self.low) + 1 if few else self.count
        return tuple(dict.fromkeys(map(self.round, spaced(self.low, self.high, count))))

    def round(self, value: float) -> float | int:
        """To an integer or to four significant digits, easy to read and to set."""
        return round(value) if self.whole else float(f"{value:.4g}")


@dataclass(frozen=True)
class Choices:
    """A list of values to choose from."""

    values: tuple[Any, ...]


Dimension = Range | Choices
Space = Mapping[str, Dimension]


def parse_space(metric: str, items: Sequence[str]) -> dict[str, Dimension]:
    """The space written as NAME=LOW:HIGH[:COUNT][:linear] or NAME=VALUE,VALUE,... items."""
    space: dict[str, Dimension] = {}
    for item in items or DEFAULT_SPACES.get(metric, ()):
        name, equals, values = item.partition("=")
        if not equals or not values:
            raise InvalidInput(f"--grid {item} lacks values; write --grid {name}=0.1:2")
        if name in space:
            raise InvalidInput(f"--grid {name} is given twice; write all values in one")
        space[name] = _dimension(metric, name, values)
    check_space(metric, space)
    return space


def check_space(metric: str, space: Space) -> None:
    """Refuse an empty space, and parameters that the metric does not have."""
    if not space:
        names = ", ".join(parameters(metric))
        raise InvalidInput(
            f"say what to search of {metric}, as in --grid layer=3,4; there is {names}"
        )
    known = parameters(metric)
    for name in space:
        if name not in known:
            raise InvalidInput(f"{metric} has no parameter {name!r}; there is {', '.join(known)}")


def grid_settings(space: Space) -> list[Settings]:
    """All settings of a grid; the column changes fastest, as columns share their plans."""
    names = sorted(space, key=lambda name: name == "column")
    combinations = product(*(space[name].values for name in names))
    return [dict(zip(names, one, strict=True)) for one in combinations]


def _dimension(metric: str, name: str, values: str) -> Dimension:
    match = _RANGE.fullmatch(values)
    if match is None:
        return Choices(tuple(_value(text) for text in dict.fromkeys(values.split(","))))
    low, high = float(match[1]), float(match[2])
    known = parameters(metric).get(name)
    continuous = known is not None and known.is_continuous
    whole = not continuous and low.is_integer() and high.is_integer()
    log = match[4] == "log" or (match[4] is None and low > 0 and not whole)
    return Range(low, high, int(match[3] or DEFAULT_COUNT), log, whole)


def _value(text: str) -> Any:
    """A JSON value where it is one, text otherwise."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return float(text) if text in ("inf", "-inf") else text


Proposals = Generator[tuple[float, Settings], float, None]
"""Yields settings, each with its share of the work, and is sent the value they reached.

Higher values are better; nan says that the settings could not be tried.
"""


def propose_settings(space: Space, trials: int | None = None, seed: int = 0) -> Proposals:
    """The whole grid, or `trials` settings by optuna's tree-structured Parzen estimator (TPE)."""
    if trials is None:
        return _propose_grid(space)
    if trials < 1:
        raise InvalidInput(f"trials={trials}; give a number from 1 up")
    return _propose_by_tpe(_optuna(), space, trials, seed)


def _propose_grid(space: Space) -> Proposals:
    grid = grid_settings(space)
    for settings in grid:
        yield 1 / len(grid), settings


def _propose_by_tpe(optuna: Any, space: Space, trials: int, seed: int) -> Proposals:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.TPESampler(seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(verbosity)
    distributions = {name: _distribution(optuna, one) for name, one in space.items()}
    for _ in range(trials):
        trial = study.ask(distributions)
        drawn = {name: _setting(space[name], trial.params[name]) for name in space}
        value = yield 1 / trials, drawn
        if np.isnan(value):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingPart.extra("optuna", "tune") from error
    return optuna


def _distribution(optuna: Any, dimension: Dimension) -> Any:
    """Choices are represented by their index, since optuna accepts no lists as values."""
    kinds = optuna.distributions
    if isinstance(dimension, Choices):
        return kinds.CategoricalDistribution(tuple(range(len(dimension.values))))
    if dimension.whole:
        return kinds.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return kinds.FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def _setting(dimension: Dimension, drawn: Any) -> Any:
    return dimension.values[drawn] if isinstance(dimension, Choices) else dimension.round(drawn)


MakeScorer = Callable[[Settings], PipelineScorer]
"""Makes the metric with these settings."""


class TuningObjective(NamedTuple):
    """What is maximised, or minimised for errors: a statistic on a level, by one criterion."""

    level: str
    statistic: str
    criterion: str
    options: StatisticOptions

    @property
    def higher(self) -> bool:
        """Whether a higher value is better; not for errors."""
        return self.statistic not in POWERS


@dataclass(frozen=True)
class Trial:
    """Settings, and the agreement they reach on each set, nan where they could not be tried."""

    settings: Settings
    values: dict[str, float]

    @property
    def value(self) -> float:
        """The mean over the sets."""
        return float(np.mean(list(self.values.values())))


class TuningSet:
    """A judgement set on which settings are tried.

    Rows that the metric cannot score with its default settings are left out for all settings.
    """

    def __init__(
        self, judged: Judgements, objective: TuningObjective, probes: Sequence[PipelineScorer]
    ) -> None:
        self.judged = judged
        self._objective = objective
        self._probes = probes
        self._rehearsal = SweepCache(pair_up(judged.hyps, judged.refs))

    def prepare(self, default: PipelineScorer, progress: Progress | None) -> str:
        """Encode all texts and pick the rows to compare; returns a note, empty if there is none."""
        parts = [part for probe in (default, *self._probes) for part in probe.parts]
        self._rehearsal.encode(parts, progress)
        usable = ~np.isnan(self._scores(default))
        level, statistic, criterion, options = self._objective
        comparison = comparison_of(self.judged, usable, level, statistic, criterion, options)
        if comparison is None:
            raise InvalidInput(
                f"{self.judged.name} has nothing to agree with: all its ratings are equal"
            )
        self._comparison = comparison
        lost = len(usable) - int(usable.sum())
        return f"{self.judged.name}: {lost:,} rows that could not be scored are left out" * (
            lost > 0
        )

    def value(self, scorer: PipelineScorer) -> float:
        """The agreement of a metric with people; nan where it cannot score all the rows."""
        try:
            return self._comparison.value(self._scores(scorer))
        except InvalidInput:
            return float("nan")

    def _scores(self, scorer: PipelineScorer) -> Array:
        """Higher for better, rescaled where the statistic is an error."""
        column = study_columns({scorer.name: scorer})[0]
        oriented = column.orient(self._rehearsal.score(scorer)[column.column.name])
        return oriented if self._objective.higher else column.rescale(oriented)


class TrialRunner:
    """Tries settings on tuning sets, and keeps all values: no settings are tried twice on a set."""

    def __init__(self, make: MakeScorer, sets: Sequence[TuningSet]) -> None:
        self._make = make
        self._sets = sets
        self._known: dict[tuple[str, str], float] = {}
        self.failures: dict[str, str] = {}

    def run(self, settings: Settings, names: Sequence[str]) -> Trial:
        """One trial, on the sets with these names only."""
        sets = [one for one in self._sets if one.judged.name in names]
        return Trial(settings, {one.judged.name: self._value(settings, one) for one in sets})

    def _value(self, settings: Settings, tuning_set: TuningSet) -> float:
        key = repr(sorted(settings.items())), tuning_set.judged.name
        if key not in self._known:
            try:
                self._known[key] = tuning_set.value(self._make(settings))
            except FreightError as error:
                self._known[key] = float("nan")
                self.failures[key[0]] = str(error)
        return self._known[key]


class SearchRun(NamedTuple):
    """The trials of a search, in order, and whether it was interrupted."""

    trials: list[Trial]
    stopped: bool


def run_search(
    proposals: Proposals,
    runner: TrialRunner,
    names: Sequence[str],
    higher: bool,
    progress: Progress | None = None,
) -> SearchRun:
    """Try all proposals on the sets with these names; an interrupt ends it and keeps the trials."""
    trials: list[Trial] = []
    try:
        share, settings = next(proposals)
        while True:
            trials.append(runner.run(settings, names))
            if progress:
                progress(share)
            value = trials[-1].value
            share, settings = proposals.send(value if higher else -value)
    except StopIteration:
        return SearchRun(trials, False)
    except KeyboardInterrupt:
        if not trials:
            raise
        return SearchRun(trials, True)


def best_trial(trials: Sequence[Trial], higher: bool) -> Trial:
    """The trial with the best value, the first of equal ones."""
    values = np.array([trial.value for trial in trials])
    if np.isnan(values).all():
        raise InvalidInput("none of the settings could score all the rows")
    return trials[int(np.nanargmax(values) if higher else np.nanargmin(values))]
