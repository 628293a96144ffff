"""A study at a terminal: the table in parts that fit, who beats whom, and what to know of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.judge.study import Study
from freight.report.tables import (
    Cell,
    column_label,
    higher_is_better,
    level_name,
    set_criteria,
    statistic_name,
    table_columns,
    table_rows,
)

_STYLES = {0: "", 1: "bold", 2: "underline"}
_CELL = 12
"""The least width of a column with its border: an interval, or a name cut in two."""


def show_study(study: Study, console: Console, level: float = 0.05) -> None:
    """Print all that there is to say in lines."""
    for table in agreement_tables(study, console.width):
        console.print(table)
    if study.significance:
        console.print(_beats_table(study, level))
    for note in study.notes:
        warning = note.startswith("!")
        style = "bold red" if warning else ""
        console.print(Text(note.lstrip("! "), style), highlight=False, soft_wrap=True)
    for signature in study.signatures:
        console.print(Text(signature, "dim"), soft_wrap=True)


def agreement_tables(study: Study, width: int = 80) -> Iterator[Table]:
    """Metrics by sets; where they do not fit side by side, in several tables."""
    names, rows = table_columns(study), table_rows(study)
    longest = min(max(len(row.metric) for row in rows), width // 3)
    several = max(1, (width - longest - 4) // _CELL)
    arrow = "↑" if higher_is_better(study) else "↓"
    title = f"{statistic_name(study)}{arrow}, {level_name(study)}"
    for start in range(0, len(names), several):
        table = Table(title=title if start == 0 else None)
        table.add_column("metric", overflow="fold", min_width=longest)
        for name in names[start : start + several]:
            table.add_column(Text(name), justify="right", overflow="fold")
        for row in rows:
            shown = map(_shown, row.cells[start : start + several])
            table.add_row(Text(row.metric), *shown)
        yield table


def _shown(cell: Cell) -> Text:
    text = Text(cell.text, _STYLES[cell.place])
    if cell.interval:
        text.append(f"\n{_brief(cell.low)}–{_brief(cell.high)}", "not bold not underline dim")
    return text


def _brief(value: float) -> str:
    """Two decimals without the 0 before them."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")


def _beats_table(study: Study, level: float) -> Table:
    """Who is significantly better than whom: with the p on one column, on how many of several."""
    keys = [key for key in set_criteria(study) if key in study.significance]
    p = np.array([study.significance[key] for key in keys])
    only = column_label(study, *keys[0]) if len(keys) == 1 else f"in how many of {len(keys)}"
    table = Table(title=f"Who beats whom (p < {level:g}), {only}")
    table.add_column("metric", overflow="fold")
    table.add_column("beats", overflow="fold")
    for k, metric in enumerate(study.metrics):
        wins = (p[:, k] < level).sum(axis=0)
        beaten = [
            f"{study.metrics[j]} ({_chance(p[0, k, j]) if len(keys) == 1 else wins[j]})"
            for j in np.argsort(-wins, kind="stable")
            if wins[j]
        ]
        table.add_row(Text(metric), Text(", ".join(beaten) or "–"))
    return table


def _chance(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)
