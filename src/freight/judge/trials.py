"""Settings of a metric tried on sets, each at the price of its transport problems alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from freight.clouds import Tick
from freight.data.judgements import Judgements
from freight.errors import FreightError, InvalidInput
from freight.judge.comparisons import Chance, comparison
from freight.judge.error import POWERS
from freight.judge.grid import Settings
from freight.judge.scores import entrants
from freight.judge.search import Search
from freight.rehearsal import Rehearsal
from freight.scoring import Scorer, pair_up
from freight.types import Array

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

    def prepare(self, default: Scorer, tick: Tick | None) -> str:
        """Encode, and find the rows that can be scored; what is worth saying of them."""
        parts = [part for probe in (default, *self._probes) for part in probe.parts]
        self._rehearsal.encode(parts, tick)
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
    tick: Tick | None = None,
) -> Searched:
    """Try what is proposed; an interrupt ends it, and keeps what was found."""
    found: list[Trial] = []
    try:
        share, settings = next(proposals)
        while True:
            found.append(trials.of(settings, names))
            if tick:
                tick(share)
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
