"""What tuning found."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from freight.catalogue.files import write_preset
from freight.data.judgements import Judgements
from freight.judge.grid import Settings, Space
from freight.judge.study import Study
from freight.judge.trials import Question, Trial

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
    name = getattr(chosen, "name", "")
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
