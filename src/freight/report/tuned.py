"""A tuning in words and at a terminal: the best settings, the default, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.judge.grid import Range
from freight.judge.study import Study
from freight.judge.trials import Trial
from freight.judge.tuned import Tuned
from freight.report.tables import (
    column_label,
    decimals,
    level_name,
    set_criteria,
    statistic_name,
    table_rows,
)
from freight.report.terminal import agreement_tables

_BEST = 5


def show_tuned(tuned: Tuned, console: Console) -> None:
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
    for note in dict.fromkeys(notes):
        style = "bold red" if note.startswith("!") else ""
        console.print(Text(note.lstrip("! "), style), highlight=False, soft_wrap=True)
    for signature in tuned.signatures:
        console.print(Text(signature, "dim"), soft_wrap=True)


def _best_table(tuned: Tuned) -> Table:
    """The first few settings, and the default."""
    asked = f"{statistic_name(tuned.question)}, {level_name(tuned.question)}"
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


def _fold_table(tuned: Tuned) -> Table:
    table = Table("held out", "settings picked on the others", title="Folds")
    table.add_column(f"{statistic_name(tuned.question)} there", justify="right")
    for fold in tuned.folds:
        table.add_row(*map(Text, (fold.set, words(fold.settings), decimals(fold.value))))
    return table


def _chance_table(study: Study) -> Table:
    table = Table("set", "against", "p", title=f"Is {study.metrics[0]} better?")
    for row in chances(study):
        table.add_row(*map(Text, row))
    return table


def ranking(tuned: Tuned) -> list[Trial]:
    """The trials, the best first, those without a number last."""
    sign = -1 if tuned.question.higher else 1
    values = np.array([trial.value for trial in tuned.trials])
    return [tuned.trials[k] for k in np.argsort(sign * values, kind="stable")]


def lead(tuned: Tuned) -> tuple[str, str]:
    """The settings, and the figure to go by: of other rows where there are any."""
    statistic = statistic_name(tuned.question)
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


def settings_rows(tuned: Tuned) -> list[tuple[str, str, str]]:
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
    """For each set and each metric but the tuned one, the p that the tuned one is no better."""
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
