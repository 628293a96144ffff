"""The page of a tuning: what was picked, what it is worth elsewhere, and the whole landscape."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from freight.judge.grid import Range
from freight.judge.study import Study
from freight.judge.trials import Trial
from freight.judge.tuned import Tuned
from freight.report import plots
from freight.report.html import render, write_page
from freight.report.tables import (
    decimals,
    level_name,
    statistic_name,
    table_columns,
    table_rows,
)
from freight.report.tuned import chances, lead, ranking, settings_rows, word, words
from freight.types import Array

# What keeps pages small: pairs of parameters that are drawn, and trials that are listed.
_PAIRS = 10
_TRIALS = 2000
_MAPS = "where other parameters vary too, the best over them."
_STRIPS = "a dot is a setting, and the best one has a ring."


def write_tune_report(tuned: Tuned, path: Path) -> None:
    """Write the page of a tuning, one file that needs no network."""
    ranked = ranking(tuned)
    page = render(
        "tune.html",
        title=f"Tuning {tuned.metric}",
        statistic=statistic_name(tuned.question),
        higher=tuned.question.higher,
        lead=lead(tuned),
        facts=_facts(tuned),
        warnings=[note[1:].strip() for note in tuned.notes if note.startswith("!")],
        notes=[note for note in tuned.notes if not note.startswith("!")],
        settings=settings_rows(tuned),
        studies=[_shown(*one, tuned.notes) for one in _studies(tuned)],
        folds=[(fold.set, words(fold.settings), decimals(fold.value)) for fold in tuned.folds],
        legend=_MAPS if _mapped(tuned) else _STRIPS,
        pictures=list(_pictures(tuned)),
        parameters=list(tuned.space),
        sets=[one.name for one in tuned.train] if len(tuned.train) > 1 else [],
        trials=[_trial(tuned, trial) for trial in ranked[:_TRIALS]],
        left_out=max(0, len(ranked) - _TRIALS),
        signatures=tuned.signatures,
    )
    write_page(page, path)


def _facts(tuned: Tuned) -> list[str]:
    rows = sum(map(len, tuned.train))
    pairs = sum(len(x.preferences) for x in tuned.train if x.preferences is not None)
    found = [level_name(tuned.question), f"{len(tuned.trials):,} settings"]
    found.append({"grid": "a grid", "tpe": "a search by TPE"}[tuned.search])
    found.append(f"tuned on {rows:,} texts" + (f", {pairs:,} pairs" if pairs else ""))
    return found


def _studies(tuned: Tuned) -> Iterator[tuple[str, Study]]:
    if tuned.tests:
        yield "On sets that had no say", tuned.tests
    if tuned.held_out:
        yield "On each set, tuned on the others", tuned.held_out


def _shown(title: str, study: Study, said: tuple[str, ...]) -> dict[str, Any]:
    return {
        "title": title,
        "columns": table_columns(study),
        "rows": table_rows(study),
        "chances": chances(study),
        "notes": [note for note in study.notes if note not in said],
    }


def _trial(tuned: Tuned, trial: Trial) -> dict[str, Any]:
    values = [trial.value, *(trial.values.values() if len(trial.values) > 1 else ())]
    return {
        "settings": [(word(trial.settings[name]), trial.settings[name]) for name in tuned.space],
        "values": [(decimals(value), value) for value in values],
        "best": trial is tuned.best,
    }


def _mapped(tuned: Tuned) -> bool:
    return tuned.search == "grid" and len(tuned.space) > 1


def _pictures(tuned: Tuned) -> Iterator[str]:
    """Heat maps of each two parameters of a grid, the best over the others; else a strip each."""
    names = list(tuned.space)
    if _mapped(tuned):
        for row, column in list(combinations(names, 2))[:_PAIRS]:
            yield _landscape(tuned, row, column)
    else:
        for name in names:
            yield _strip(tuned, name)


def _landscape(tuned: Tuned, row: str, column: str) -> str:
    values = [list(tuned.space[name].values) for name in (row, column)]
    found = np.full([len(side) for side in values], np.nan)
    better = np.fmax if tuned.question.higher else np.fmin
    for trial in tuned.trials:
        at = values[0].index(trial.settings[row]), values[1].index(trial.settings[column])
        found[at] = better(found[at], trial.value)
    down, across = ([word(value) for value in side] for side in values)
    return plots.landscape(found, down, across, row, column, tuned.question.higher)


def _strip(tuned: Tuned, name: str) -> str:
    dimension = tuned.space[name]
    chosen = [trial.settings[name] for trial in tuned.trials]
    values: Array = np.array([trial.value for trial in tuned.trials])
    title, higher = statistic_name(tuned.question), tuned.question.higher
    if isinstance(dimension, Range):
        places = np.array(chosen, np.float64)
        return plots.strip(places, values, title, name, (), dimension.log, higher)
    there = [word(value) for value in dimension.values]
    places = np.array([there.index(word(value)) for value in chosen], np.float64)
    return plots.strip(places, values, title, name, there, False, higher)
