"""What a reader of a study has to know besides its numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.types import Array

if TYPE_CHECKING:
    from freight.judge.comparisons import Comparison
    from freight.judge.scores import Entrant, Scored
    from freight.scoring import Scorer


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
        self, judged: Judgements, scorers: Sequence[Scorer], scored: Scored, level: str
    ) -> None:
        """Flags, what was learnt, what came from the cache."""
        self._rows += len(judged)
        self._sets += 1
        for scorer, scores, known in zip(scorers, *scored[:2], strict=True):
            for flag, count in scores.flags.items():
                self._flags[scorer.name, flag] += count
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

    def of_comparison(self, judged: Judgements, criterion: str, asked: Comparison) -> None:
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
