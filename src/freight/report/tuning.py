"""The page of a tuning: what was picked, what it is worth elsewhere, and the whole landscape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.judge.search import Range, Trial
from freight.judge.study import Study
from freight.judge.tuning import TuningResult
from freight.report import plots
from freight.report.html import render, write_page
from freight.report.tables import (
    agreement_tables,
    column_label,
    decimals,
    level_name,
    set_criteria,
    statistic_name,
    table_columns,
    table_rows,
)
from freight.transport.types import Array

# What keeps pages small: pairs of parameters that are drawn, and trials that are listed.
_PAIRS = 10
_TRIALS = 2000
_MAPS = "where other parameters vary too, the best over them."
_STRIPS = "a dot is a setting, and the best one has a ring."


def write_tune_report(tuned: TuningResult, path: Path) -> None:
    """Write the page of a tuning, one file that needs no network."""
    ranked = ranking(tuned)
    page = render(
        "tune.html",
        title=f"Tuning {tuned.metric}",
        statistic=statistic_name(tuned.objective),
        higher=tuned.objective.higher,
        lead=lead(tuned),
        facts=_facts(tuned),
        warnings=tuned.warnings,
        notes=tuned.notes,
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


def _facts(tuned: TuningResult) -> list[str]:
    rows = sum(map(len, tuned.train))
    pairs = sum(len(x.preferences) for x in tuned.train if x.preferences is not None)
    found = [level_name(tuned.objective), f"{len(tuned.trials):,} settings"]
    found.append({"grid": "a grid", "tpe": "a search by TPE"}[tuned.search])
    found.append(f"tuned on {rows:,} texts" + (f", {pairs:,} pairs" if pairs else ""))
    return found


def _studies(tuned: TuningResult) -> Iterator[tuple[str, Study]]:
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


def _trial(tuned: TuningResult, trial: Trial) -> dict[str, Any]:
    values = [trial.value, *(trial.values.values() if len(trial.values) > 1 else ())]
    return {
        "settings": [(word(trial.settings[name]), trial.settings[name]) for name in tuned.space],
        "values": [(decimals(value), value) for value in values],
        "best": trial is tuned.best,
    }


def _mapped(tuned: TuningResult) -> bool:
    return tuned.search == "grid" and len(tuned.space) > 1


def _pictures(tuned: TuningResult) -> Iterator[str]:
    """Heat maps of each two parameters of a grid, the best over the others; else a strip each."""
    names = list(tuned.space)
    if _mapped(tuned):
        for row, column in list(combinations(names, 2))[:_PAIRS]:
            yield _landscape(tuned, row, column)
    else:
        for name in names:
            yield _strip(tuned, name)


def _landscape(tuned: TuningResult, row: str, column: str) -> str:
    values = [list(tuned.space[name].values) for name in (row, column)]
    found = np.full([len(side) for side in values], np.nan)
    better = np.fmax if tuned.objective.higher else np.fmin
    for trial in tuned.trials:
        at = values[0].index(trial.settings[row]), values[1].index(trial.settings[column])
        found[at] = better(found[at], trial.value)
    down, across = ([word(value) for value in side] for side in values)
    return plots.landscape(found, down, across, row, column, tuned.objective.higher)


def _strip(tuned: TuningResult, name: str) -> str:
    dimension = tuned.space[name]
    chosen = [trial.settings[name] for trial in tuned.trials]
    values: Array = np.array([trial.value for trial in tuned.trials])
    title, higher = statistic_name(tuned.objective), tuned.objective.higher
    if isinstance(dimension, Range):
        places = np.array(chosen, np.float64)
        return plots.strip(places, values, title, name, (), dimension.log, higher)
    there = [word(value) for value in dimension.values]
    places = np.array([there.index(word(value)) for value in chosen], np.float64)
    return plots.strip(places, values, title, name, there, False, higher)


_BEST = 5


def show_tuned(tuned: TuningResult, console: Console) -> None:
    """Print all that there is to say in lines."""
    console.print(_best_table(tuned))
    if tuned.folds:
        console.print(_fold_table(tuned))
    for study in (tuned.held_out, tuned.tests):
        if study:
            for table in agreement_tables(study, console.width):
                console.print(table)
            console.print(_chance_table(study))
    studies = [study for study in (tuned.held_out, tuned.tests) if study]
    notes = [*tuned.notes, *(note for study in studies for note in study.notes)]
    for warning in tuned.warnings:
        console.print(Text(warning, "bold red"), highlight=False, soft_wrap=True)
    for note in dict.fromkeys(notes):
        console.print(Text(note), highlight=False, soft_wrap=True)
    for signature in tuned.signatures:
        console.print(Text(signature, "dim"), soft_wrap=True)


def _best_table(tuned: TuningResult) -> Table:
    """The first few settings, and the default."""
    asked = f"{statistic_name(tuned.objective)}, {level_name(tuned.objective)}"
    table = Table(title=f"{tuned.metric}: {len(tuned.trials):,} settings, {asked}")
    for name in tuned.space:
        table.add_column(name, overflow="fold")
    table.add_column("on the tuning rows", justify="right")
    for place, trial in enumerate(ranking(tuned)[:_BEST]):
        cells = [word(trial.settings[name]) for name in tuned.space]
        style = "" if place else "bold"
        table.add_row(*map(Text, [*cells, decimals(trial.value)]), style=style)
    table.add_section()
    empty = [""] * (len(tuned.space) - 1)
    table.add_row("default", *empty, decimals(tuned.default.value))
    return table


def _fold_table(tuned: TuningResult) -> Table:
    table = Table("held out", "settings picked on the others", title="Folds")
    table.add_column(f"{statistic_name(tuned.objective)} there", justify="right")
    for fold in tuned.folds:
        table.add_row(*map(Text, (fold.set, words(fold.settings), decimals(fold.value))))
    return table


def _chance_table(study: Study) -> Table:
    table = Table("set", "against", "one-sided p", title=f"Is {study.metrics[0]} better?")
    for row in chances(study):
        table.add_row(*map(Text, row))
    return table


def ranking(tuned: TuningResult) -> list[Trial]:
    """The trials, the best first, those without a number last."""
    sign = -1 if tuned.objective.higher else 1
    values = np.array([trial.value for trial in tuned.trials])
    return [tuned.trials[k] for k in np.argsort(sign * values, kind="stable")]


def lead(tuned: TuningResult) -> tuple[str, str]:
    """The settings, and the figure to go by: of other rows where there are any."""
    statistic = statistic_name(tuned.objective)
    study = tuned.tests or tuned.held_out
    if study is None:
        where = "on the tuning rows"
        both = decimals(tuned.best.value), decimals(tuned.default.value)
    else:
        rows, several = table_rows(study), len(set_criteria(study))
        kind = "sets" if tuned.tests else "held-out sets"
        where = f"on average over {several} {kind}" if several > 1 else f"on {study.sets[0].name}"
        both = rows[0].cells[-1].text, rows[1].cells[-1].text
    figures = f"{statistic} {both[0]} {where}, {both[1]} under the default"
    return words(tuned.best.settings), figures


def settings_rows(tuned: TuningResult) -> list[tuple[str, str, str]]:
    """Each parameter that was searched: its name, what was tried, and what was picked."""
    return [
        (name, _tried(dimension.values, isinstance(dimension, Range)), word(picked))
        for name, dimension in tuned.space.items()
        for picked in [tuned.best.settings[name]]
    ]


def words(settings: dict[str, Any]) -> str:
    """Settings as they are written on a command line."""
    return " ".join(f"{name}={word(value)}" for name, value in settings.items()) or "the default"


def word(value: Any) -> str:
    """A value as it is written there."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def chances(study: Study) -> list[tuple[str, str, str]]:
    """By set and other metric, the one-sided p-value of the tuned metric agreeing better."""
    found = []
    for key in set_criteria(study):
        p = study.significance.get(key)
        for place, metric in enumerate(study.metrics[1:], 1):
            if p is not None:
                found.append((column_label(study, *key), metric, _chance(float(p[0, place]))))
    return found


def _chance(p: float) -> str:
    return "–" if np.isnan(p) else "< .001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)


def _tried(values: Sequence[Any], ranged: bool) -> str:
    return f"{word(values[0])} to {word(values[-1])}" if ranged else ", ".join(map(word, values))
