"""The results of a tuning, as a page and at the terminal: best settings, gain, all trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.core.result import cite
from freight.judge.search import Range, Trial
from freight.judge.study import Study
from freight.judge.tuning import TuningResult
from freight.report import plots
from freight.report.formatting import decimals, p_value
from freight.report.pages import render, write_page
from freight.report.tables import (
    agreement_tables,
    column_label,
    level_name,
    set_criteria,
    statistic_name,
    table_columns,
    table_rows,
)
from freight.transport.types import Array

# What keeps pages small.
_PAIRS = 10  # pairs of parameters drawn
_TRIALS = 2000  # trials listed
_BEST = 5  # trials printed at the terminal
_MAPS = "Each cell is the best over all values of the other parameters."
_STRIPS = "Each dot is one setting; the best one has a ring."


def write_tune_report(tuned: TuningResult, path: Path) -> None:
    """Write the page of a tuning, one file that needs no network."""
    ranked = _rank_trials(tuned)
    page = render(
        "tune.html",
        title=f"Tuning {tuned.metric}",
        statistic=statistic_name(tuned.objective),
        higher=tuned.objective.higher,
        lead=_lead(tuned),
        facts=_facts(tuned),
        warnings=tuned.warnings,
        notes=tuned.notes,
        settings=_settings_rows(tuned),
        studies=[_study_content(*one, tuned.notes) for one in _studies(tuned)],
        folds=[
            (fold.set, settings_text(fold.settings), decimals(fold.value)) for fold in tuned.folds
        ],
        legend=_legend(tuned),
        pictures=list(_plots(tuned)),
        parameters=list(tuned.space),
        sets=[one.name for one in tuned.train] if len(tuned.train) > 1 else [],
        trials=[_trial_content(tuned, trial) for trial in ranked[:_TRIALS]],
        left_out=max(0, len(ranked) - _TRIALS),
        signatures=tuned.signatures,
    )
    write_page(page, path)


def _facts(tuned: TuningResult) -> list[str]:
    rows = sum(map(len, tuned.train))
    pairs = sum(len(x.preferences) for x in tuned.train if x.preferences is not None)
    return [
        level_name(tuned.objective),
        f"{len(tuned.trials):,} settings",
        {"grid": "grid search", "tpe": "TPE search"}[tuned.search],
        f"tuned on {rows:,} texts" + (f", {pairs:,} pairs" if pairs else ""),
    ]


def _studies(tuned: TuningResult) -> Iterator[tuple[str, Study]]:
    if tuned.tests:
        yield "On test sets", tuned.tests
    if tuned.held_out:
        yield "On each set, tuned on the other sets", tuned.held_out


def _study_content(title: str, study: Study, known_notes: tuple[str, ...]) -> dict[str, Any]:
    return {
        "title": title,
        "columns": table_columns(study),
        "rows": table_rows(study),
        "p_values": _p_values(study),
        "notes": [note for note in study.notes if note not in known_notes],
    }


def _trial_content(tuned: TuningResult, trial: Trial) -> dict[str, Any]:
    values = [trial.value, *(trial.values.values() if len(trial.values) > 1 else ())]
    return {
        "settings": [
            (_value_text(trial.settings[name]), trial.settings[name]) for name in tuned.space
        ],
        "values": [(decimals(value), value) for value in values],
        "best": trial is tuned.best,
    }


def _legend(tuned: TuningResult) -> str:
    if _has_maps(tuned):
        return _MAPS if len(tuned.space) > 2 else ""
    return _STRIPS


def _has_maps(tuned: TuningResult) -> bool:
    return tuned.search == "grid" and len(tuned.space) > 1


def _plots(tuned: TuningResult) -> Iterator[str]:
    """A heat map per pair of parameters of a grid; otherwise one strip per parameter."""
    names = list(tuned.space)
    if _has_maps(tuned):
        for row, column in list(combinations(names, 2))[:_PAIRS]:
            yield _landscape(tuned, row, column)
    else:
        for name in names:
            yield _strip(tuned, name)


def _landscape(tuned: TuningResult, row: str, column: str) -> str:
    values = [list(tuned.space[name].values) for name in (row, column)]
    best = np.full([len(side) for side in values], np.nan)
    better = np.fmax if tuned.objective.higher else np.fmin
    for trial in tuned.trials:
        at = values[0].index(trial.settings[row]), values[1].index(trial.settings[column])
        best[at] = better(best[at], trial.value)
    down, across = ([_value_text(value) for value in side] for side in values)
    return plots.landscape(best, down, across, row, column, tuned.objective.higher)


def _strip(tuned: TuningResult, name: str) -> str:
    dimension = tuned.space[name]
    chosen = [trial.settings[name] for trial in tuned.trials]
    values: Array = np.array([trial.value for trial in tuned.trials])
    title, higher = statistic_name(tuned.objective), tuned.objective.higher
    if isinstance(dimension, Range):
        places = np.array(chosen, np.float64)
        return plots.strip(places, values, title, name, (), dimension.log, higher)
    there = [_value_text(value) for value in dimension.values]
    places = np.array([there.index(_value_text(value)) for value in chosen], np.float64)
    return plots.strip(places, values, title, name, there, False, higher)


# The same at the terminal.


def show_tuned(tuned: TuningResult, console: Console) -> None:
    """Print the tables, notes and signatures of a tuning."""
    console.print(_best_table(tuned))
    if tuned.folds:
        console.print(_fold_table(tuned))
    for study in (tuned.held_out, tuned.tests):
        if study:
            for table in agreement_tables(study, console.width):
                console.print(table)
            console.print(_p_value_table(study))
    studies = [study for study in (tuned.held_out, tuned.tests) if study]
    notes = [*tuned.notes, *(note for study in studies for note in study.notes)]
    for warning in tuned.warnings:
        console.print(Text(warning, "bold red"), highlight=False, soft_wrap=True)
    for note in dict.fromkeys(notes):
        console.print(Text(note), highlight=False, soft_wrap=True)
    for signature in tuned.signatures:
        console.print(Text(cite(signature), "dim"), soft_wrap=True)


def _best_table(tuned: TuningResult) -> Table:
    """The best settings, and the default."""
    question = f"{statistic_name(tuned.objective)}, {level_name(tuned.objective)}"
    table = Table(title=f"{tuned.metric}: {len(tuned.trials):,} settings, {question}")
    for name in tuned.space:
        table.add_column(name, overflow="fold")
    table.add_column("on the tuning rows", justify="right")
    for place, trial in enumerate(_rank_trials(tuned)[:_BEST]):
        cells = [_value_text(trial.settings[name]) for name in tuned.space]
        style = "" if place else "bold"
        table.add_row(*map(Text, [*cells, decimals(trial.value)]), style=style)
    table.add_section()
    empty = [""] * (len(tuned.space) - 1)
    table.add_row("default", *empty, decimals(tuned.default.value))
    return table


def _fold_table(tuned: TuningResult) -> Table:
    table = Table("held-out set", "best settings on the other sets", title="Folds")
    heading = f"{statistic_name(tuned.objective)} on the held-out set"
    table.add_column(heading, justify="right")
    for fold in tuned.folds:
        table.add_row(*map(Text, (fold.set, settings_text(fold.settings), decimals(fold.value))))
    return table


def _p_value_table(study: Study) -> Table:
    table = Table(
        "set", "against", "one-sided p", title=f"Significance of the gain of {study.metrics[0]}"
    )
    for row in _p_values(study):
        table.add_row(*map(Text, row))
    return table


def _rank_trials(tuned: TuningResult) -> list[Trial]:
    """The trials, the best first, those without a value last."""
    sign = -1 if tuned.objective.higher else 1
    values = np.array([trial.value for trial in tuned.trials])
    return [tuned.trials[k] for k in np.argsort(sign * values, kind="stable")]


def _lead(tuned: TuningResult) -> tuple[str, str]:
    """The best settings, and their result: on test or held-out sets if there are any."""
    statistic = statistic_name(tuned.objective)
    study = tuned.tests or tuned.held_out
    if study is None:
        where = "on the tuning rows"
        both = decimals(tuned.best.value), decimals(tuned.default.value)
    else:
        rows, several = table_rows(study), len(set_criteria(study))
        kind = "test sets" if tuned.tests else "held-out sets"
        where = f"on average over {several} {kind}" if several > 1 else f"on {study.sets[0].name}"
        both = rows[0].cells[-1].text, rows[1].cells[-1].text
    result = f"{statistic} {both[0]} {where}, {both[1]} with the default settings"
    return settings_text(tuned.best.settings), result


def _settings_rows(tuned: TuningResult) -> list[tuple[str, str, str]]:
    """Each parameter of the search: its name, the values tried, the best value."""
    return [
        (name, _tried_values(dimension.values, isinstance(dimension, Range)), best)
        for name, dimension in tuned.space.items()
        for best in [_value_text(tuned.best.settings[name])]
    ]


def settings_text(settings: dict[str, Any]) -> str:
    """Settings as on the command line."""
    return (
        " ".join(f"{name}={_value_text(value)}" for name, value in settings.items())
        or "the default"
    )


def _value_text(value: Any) -> str:
    """A value as on the command line."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _p_values(study: Study) -> list[tuple[str, str, str]]:
    """By set and other metric, the one-sided p-value of the tuned metric agreeing better."""
    rows = []
    for key in set_criteria(study):
        p = study.significance.get(key)
        for place, metric in enumerate(study.metrics[1:], 1):
            if p is not None:
                rows.append((column_label(study, *key), metric, p_value(float(p[0, place]))))
    return rows


def _tried_values(values: Sequence[Any], ranged: bool) -> str:
    return (
        f"{_value_text(values[0])} to {_value_text(values[-1])}"
        if ranged
        else ", ".join(map(_value_text, values))
    )
