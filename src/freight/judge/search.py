"""What is searched: values and ranges of a metric's parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from freight.core.scoring import Scorer, pair_up
from freight.core.sweep_cache import Rehearsal
from freight.core.types import Progress
from freight.data.judgements import Judgements
from freight.errors import FreightError, InvalidInput, MissingPart
from freight.judge.comparisons import Chance, comparison
from freight.judge.error import POWERS
from freight.judge.scores import entrants
from freight.metrics import is_continuous, parameters
from freight.transport.types import Array

Settings = dict[str, Any]
COUNT = 7
"""Values of a range in a grid, where nothing is said."""

SEARCHED = {
    "lazy-emd": ("hyp=0.05:4", "ref=0.05:4", "column=transport,objective"),
    "f-alpha": ("alpha=0.1:0.9:9:linear",),
    "yisi-1": ("alpha=0.1:0.9:9:linear",),
}
"""What is searched of a metric where nothing is said."""

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(\d+))?(?::(log|linear))?")


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, as many as `count` in a grid; `log` has them at equal ratios."""

    low: float
    high: float
    count: int = COUNT
    log: bool = True
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InvalidInput(f"the range {self.low:g}:{self.high:g} is empty")
        if self.log and self.low <= 0:
            raise InvalidInput(f"a range from {self.low:g} cannot be log; say linear")
        if self.count < 2:
            raise InvalidInput(f"a range has at least 2 values, not {self.count}")

    @property
    def values(self) -> tuple[Any, ...]:
        """Those of a grid: four digits of each, or every whole number where there are few."""
        few = self.whole and self.high - self.low < self.count
        spaced = np.geomspace if self.log and not few else np.linspace
        count = int(self.high - self.low) + 1 if few else self.count
        return tuple(dict.fromkeys(map(self.rounded, spaced(self.low, self.high, count))))

    def rounded(self, value: float) -> float | int:
        """A number that is easy to read and to set."""
        return round(value) if self.whole else float(f"{value:.4g}")


@dataclass(frozen=True)
class Values:
    """These values, and no others."""

    values: tuple[Any, ...]


Dimension = Range | Values
Space = Mapping[str, Dimension]


def parse_space(metric: str, items: Sequence[str]) -> dict[str, Dimension]:
    """From NAME=LOW:HIGH[:COUNT][:linear] and NAME=VALUE,VALUE,... to what is searched."""
    found: dict[str, Dimension] = {}
    for item in items or SEARCHED.get(metric, ()):
        name, equals, values = item.partition("=")
        if not equals or not values:
            raise InvalidInput(f"--grid {item} lacks values; write --grid {name}=0.1:2")
        if name in found:
            raise InvalidInput(f"--grid {name} is given twice; write all values in one")
        found[name] = _dimension(metric, name, values)
    check_space(metric, found)
    return found


def check_space(metric: str, space: Space) -> None:
    """Refuse what the metric does not have."""
    if not space:
        there = ", ".join(parameters(metric))
        raise InvalidInput(
            f"say what to search of {metric}, as in --grid layer=3,4; there is {there}"
        )
    known = parameters(metric)
    for name in space:
        if name not in known:
            raise InvalidInput(f"{metric} has no parameter {name!r}; there is {', '.join(known)}")


def every(space: Space) -> list[Settings]:
    """All settings of a grid; columns change fastest, since they come from the same plans."""
    names = sorted(space, key=lambda name: name == "column")
    several = product(*(space[name].values for name in names))
    return [dict(zip(names, one, strict=True)) for one in several]


def _dimension(metric: str, name: str, values: str) -> Dimension:
    found = _RANGE.fullmatch(values)
    if found is None:
        return Values(tuple(_value(text) for text in dict.fromkeys(values.split(","))))
    low, high = float(found[1]), float(found[2])
    whole = not is_continuous(metric, name) and low.is_integer() and high.is_integer()
    log = found[4] == "log" or (found[4] is None and low > 0 and not whole)
    return Range(low, high, int(found[3] or COUNT), log, whole)


def _value(text: str) -> Any:
    """JSON where it is that, text otherwise."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return float(text) if text in ("inf", "-inf") else text


Search = Generator[tuple[float, Settings], float, None]
"""Gives settings, each with its share of the work, and is sent how good they were.

Higher is better, and nan is no answer.
"""


def search(space: Space, trials: int | None = None, seed: int = 0) -> Search:
    """All of a grid, or so many trials of the tree-structured Parzen estimator."""
    if trials is None:
        return _grid(space)
    if trials < 1:
        raise InvalidInput(f"trials={trials}; give a number from 1 up")
    return _parzen(_optuna(), space, trials, seed)


def _grid(space: Space) -> Search:
    several = every(space)
    for settings in several:
        yield 1 / len(several), settings


def _parzen(optuna: Any, space: Space, trials: int, seed: int) -> Search:
    said = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.TPESampler(seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(said)
    asked = {name: _distribution(optuna, one) for name, one in space.items()}
    for _ in range(trials):
        trial = study.ask(asked)
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
    """Values by their place, since optuna takes no lists among them."""
    kinds = optuna.distributions
    if isinstance(dimension, Values):
        return kinds.CategoricalDistribution(tuple(range(len(dimension.values))))
    if dimension.whole:
        return kinds.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return kinds.FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def _setting(dimension: Dimension, drawn: Any) -> Any:
    return dimension.values[drawn] if isinstance(dimension, Values) else dimension.rounded(drawn)


Make = Callable[[Settings], Scorer]
"""The metric under these settings."""


class Question(NamedTuple):
    """What agreement is: the statistic, its level, the criterion, and chance."""

    level: str
    statistic: str
    criterion: str
    chance: Chance

    @property
    def higher(self) -> bool:
        """Whether a higher number is better: not for errors."""
        return self.statistic not in POWERS


@dataclass(frozen=True)
class Trial:
    """Settings, and how well the metric then agrees with people on each set; nan: it cannot."""

    settings: Settings
    values: dict[str, float]

    @property
    def value(self) -> float:
        """The mean over the sets."""
        return float(np.mean(list(self.values.values())))


class Bench:
    """A set on which settings are tried.

    Rows that the metric cannot score under its default settings are left out for all.
    """

    def __init__(self, judged: Judgements, question: Question, probes: Sequence[Scorer]) -> None:
        self.judged = judged
        self._question = question
        self._probes = probes
        self._rehearsal = Rehearsal(pair_up(judged.hyps, judged.refs))

    def prepare(self, default: Scorer, progress: Progress | None) -> str:
        """Encode, and find the rows that can be scored; what is worth saying of them."""
        parts = [part for probe in (default, *self._probes) for part in probe.parts]
        self._rehearsal.encode(parts, progress)
        usable = ~np.isnan(self._scores(default))
        level, statistic, criterion, chance = self._question
        if statistic != "soft-accuracy":
            chance = chance._replace(resamples=1)  # the interval is not looked at
        found = comparison(self.judged, usable, level, statistic, criterion, chance)
        if found is None:
            raise InvalidInput(
                f"{self.judged.name} has nothing to agree with: people told none apart"
            )
        self._comparison = found
        lost = len(usable) - int(usable.sum())
        return f"{self.judged.name}: {lost:,} rows that could not be scored are left out" * (
            lost > 0
        )

    def value(self, scorer: Scorer) -> float:
        """How well a metric agrees with people; nan where it cannot score all the rows."""
        try:
            return self._comparison.interval(self._scores(scorer)).value
        except InvalidInput:
            return float("nan")

    def _scores(self, scorer: Scorer) -> Array:
        """Higher for better, as the statistic takes them."""
        entrant = entrants({scorer.name: scorer})[0]
        oriented = entrant.oriented(self._rehearsal.score(scorer)[entrant.column.name])
        return oriented if self._question.higher else entrant.scaled(oriented)


class Trials:
    """Settings on benches, remembered: what one search has tried the next need not try again."""

    def __init__(self, make: Make, benches: Sequence[Bench]) -> None:
        self._make = make
        self._benches = benches
        self._known: dict[tuple[str, str], float] = {}
        self.failures: dict[str, str] = {}

    def of(self, settings: Settings, names: Sequence[str]) -> Trial:
        """One trial, on the sets of these names alone."""
        benches = [bench for bench in self._benches if bench.judged.name in names]
        values = {bench.judged.name: self._value(settings, bench) for bench in benches}
        return Trial(settings, values)

    def _value(self, settings: Settings, bench: Bench) -> float:
        key = repr(sorted(settings.items())), bench.judged.name
        if key not in self._known:
            try:
                self._known[key] = bench.value(self._make(settings))
            except FreightError as error:
                self._known[key] = float("nan")
                self.failures[key[0]] = str(error)
        return self._known[key]


class Searched(NamedTuple):
    """What a search tried, in order, and whether it was stopped before its end."""

    trials: list[Trial]
    stopped: bool


def run(
    proposals: Search,
    trials: Trials,
    names: Sequence[str],
    higher: bool,
    progress: Progress | None = None,
) -> Searched:
    """Try what is proposed; an interrupt ends it, and keeps what was found."""
    found: list[Trial] = []
    try:
        share, settings = next(proposals)
        while True:
            found.append(trials.of(settings, names))
            if progress:
                progress(share)
            value = found[-1].value
            share, settings = proposals.send(value if higher else -value)
    except StopIteration:
        return Searched(found, False)
    except KeyboardInterrupt:
        if not found:
            raise
        return Searched(found, True)


def best_of(trials: Sequence[Trial], higher: bool) -> Trial:
    """The first of the best."""
    values = np.array([trial.value for trial in trials])
    if np.isnan(values).all():
        raise InvalidInput("none of the settings could score all the rows")
    return trials[int(np.nanargmax(values) if higher else np.nanargmin(values))]
