"""A study at a terminal: the table in parts that fit, who beats whom, and what to know of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.cells import cell_len
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
    shown = [[_shown(cell) for cell in row.cells] for row in rows]
    arrow = "↑" if higher_is_better(study) else "↓"
    title: str | None = f"{statistic_name(study)}{arrow}, {level_name(study)}"
    longest = min(max(len(row.metric) for row in rows), width // 3)
    widths = [
        max(cell_len(x) for text in column for x in (name, *text.plain.split("\n")))
        for name, column in zip(names, zip(*shown, strict=True), strict=True)
    ]
    for part in _parts(widths, width - longest - 4):
        table = Table(title=title, title_justify="left")
        table.add_column("metric", overflow="fold", min_width=longest)
        for name in names[part]:
            table.add_column(Text(name), justify="right", overflow="fold")
        for row, cells in zip(rows, shown, strict=True):
            table.add_row(Text(row.metric), *cells[part])
        yield table
        title = None


def _parts(widths: list[int], room: int) -> Iterator[slice]:
    """As many columns at a time as there is room for, with three characters between them."""
    start, used = 0, 0
    for k, width in enumerate(widths):
        if k > start and used + width + 3 > room:
            yield slice(start, k)
            start, used = k, 0
        used += width + 3
    yield slice(start, len(widths))


def _shown(cell: Cell) -> Text:
    """The number, and its interval below it."""
    text = Text()
    text.append(cell.text, _STYLES[cell.place])
    if cell.interval:
        text.append(f"\n{_brief(cell.low)}–{_brief(cell.high)}", "dim")
    return text


def _brief(value: float) -> str:
    """Two decimals without the 0 before them."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")


def _beats_table(study: Study, level: float) -> Table:
    """Who is significantly better than whom: with the p on one column, on how many of several."""
    keys = [key for key in set_criteria(study) if key in study.significance]
    p = np.array([study.significance[key] for key in keys])
    only = column_label(study, *keys[0]) if len(keys) == 1 else f"in how many of {len(keys)}"
    table = Table(title=f"Who beats whom (p < {level:g}), {only}", title_justify="left")
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
