"""The table of a study, metrics by sets: cells with ranks, printed, and written to files.

Files are a leaderboard in Markdown, CSV or LaTeX, or a JSON record of all numbers.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text
from scipy import stats

from freight.core.result import cite
from freight.data.judgements import Judgements
from freight.data.output import check_path, write_whole
from freight.judge.study import Agreement, Study
from freight.report.formatting import Mark, Rows, decimals, latex, markdown
from freight.transport.types import Array

_STATISTICS = {
    "pearson": "Pearson's r",
    "spearman": "Spearman's ρ",
    "kendall": "Kendall's τ",
    "accuracy": "pairwise accuracy",
    "soft-accuracy": "soft pairwise accuracy",
    "tau": "DARR τ",
    "mse": "mean squared error",
    "mae": "mean absolute error",
}


class StatisticOnLevel(Protocol):
    """What computes a statistic on a level: a study, or the question of a tuning."""

    @property
    def level(self) -> str:
        """The level's name in `judge`."""

    @property
    def statistic(self) -> str:
        """The statistic's name in `judge`."""


@dataclass(frozen=True)
class Cell:
    """A number and its interval, if any; `place` is 1 for the best of a column, then 2."""

    value: float
    low: float = np.nan
    high: float = np.nan
    place: int = 0

    @property
    def text(self) -> str:
        """The number with three decimals, or a dash for nan."""
        return decimals(self.value)

    @property
    def interval(self) -> str:
        """The interval, or an empty text."""
        if np.isnan(self.low) or np.isnan(self.high):
            return ""
        return f"{decimals(self.low)}\u2009–\u2009{decimals(self.high)}"


@dataclass(frozen=True)
class Row:
    """The cells of a metric or a system, one per column."""

    name: str
    cells: tuple[Cell, ...]


def table_columns(study: Study) -> list[str]:
    """The headings: sets, criteria or both, and "average" if there are several."""
    columns = [column_label(study, *key) for key in set_criteria(study)]
    return [*columns, "average"] if len(columns) > 1 else columns


def table_rows(study: Study) -> list[Row]:
    """One row per metric, in the order of the study; a metric that lacks a cell has no average."""
    agreements = {(a.metric, a.set, a.human): a for a in study.agreements}
    keys = set_criteria(study)
    cells = [
        _with_average([_cell(agreements.get((metric, *key))) for key in keys])
        for metric in study.metrics
    ]
    signs = np.full(len(cells[0]) if cells else 0, 1.0 if higher_is_better(study) else -1.0)
    marked = rank_cells(cells, signs)
    return [Row(metric, row) for metric, row in zip(study.metrics, marked, strict=True)]


CHANCE, CEILING = "chance", "human ceiling"


def sentinel_rows(study: Study) -> list[Row]:
    """What metrics are to be compared with: sentinels, the chance level and the human ceiling.

    A sentinel that is one of the metrics has its row there.
    """
    sentinels, keys = study.sentinels, set_criteria(study)
    names = [name for name in sentinels.names if name not in study.metrics]
    cells = {name: dict.fromkeys(keys, Cell(np.nan)) for name in names}
    for one in sentinels.agreements:
        if one.sentinel in cells:
            cells[one.sentinel][one.set, one.human] = Cell(one.value, one.low, one.high)
    for name, values in ((CHANCE, sentinels.chance), (CEILING, sentinels.ceiling)):
        if values:
            cells[name] = {key: Cell(values.get(key, np.nan)) for key in keys}
    return [Row(name, tuple(_with_average(list(row.values())))) for name, row in cells.items()]


def _with_average(cells: list[Cell]) -> list[Cell]:
    """With the mean at the end where there are several; nan where a cell is missing."""
    several = len(cells) > 1
    return [*cells, Cell(float(np.mean([cell.value for cell in cells])))] if several else cells


def rank_cells(cells: list[list[Cell]], signs: Array) -> list[tuple[Cell, ...]]:
    """The same cells with the best and second best of each column marked.

    The sign of a column is −1 where lower is better.
    """
    places = _places(np.array([[cell.value for cell in row] for row in cells]) * signs)
    return [
        tuple(replace(cell, place=int(place)) for cell, place in zip(row, ranks, strict=True))
        for row, ranks in zip(cells, places, strict=True)
    ]


def set_criteria(study: Study) -> list[tuple[str, str]]:
    """Every (set, criterion) that has an agreement, in order."""
    return list(dict.fromkeys((a.set, a.human) for a in study.agreements))


def column_label(study: Study, name: str, human: str) -> str:
    """The parts of a set's name and criterion that differ between columns."""
    sets, humans = ({key[k] for key in set_criteria(study)} for k in (0, 1))
    if len(sets) == 1 and len(humans) > 1:
        return human
    first, _, rest = name.partition(" ")
    if len(sets) > 1 and rest and all(one.startswith(f"{first} ") for one in sets):
        name = rest
    return f"{name} · {human}" if len(humans) > 1 else name


def statistic_name(study: StatisticOnLevel) -> str:
    """The usual name of the statistic."""
    return _STATISTICS.get(study.statistic, study.statistic)


def level_name(study: StatisticOnLevel) -> str:
    """The level as people say it."""
    return "preferences" if study.level == "darr" else f"{study.level} level"


def higher_is_better(study: StatisticOnLevel) -> bool:
    """Whether higher values of the statistic are better: all but the errors."""
    return study.statistic not in ("mse", "mae")


def describe_lead(second: str, p: float) -> str:
    """Whether the lead over the second best is significant at 5 %, by a one-sided p-value."""
    if np.isnan(p):
        return f"The second best is {second}."
    shown = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"Its lead over {second} is {'' if p < 0.05 else 'not '}significant (one-sided {shown})."


def _cell(agreement: Agreement | None) -> Cell:
    if agreement is None:
        return Cell(np.nan)
    return Cell(agreement.value, agreement.low, agreement.high)


def _places(values: Array) -> Array:
    """By column: 1 for all that show the highest number, 2 for all that show the second highest."""
    shown = np.round(values, 3)
    places = np.zeros(shown.shape, dtype=int)
    for column, place in zip(shown.T, places.T, strict=True):
        best = np.unique(column[~np.isnan(column)])[::-1][:2]
        for rank, value in enumerate(best, 1):
            place[column == value] = rank if len(column) > 1 else 0
    return places


# The same at the terminal.

_STYLES = {0: "", 1: "bold", 2: "underline"}


def show_study(study: Study, console: Console, level: float = 0.05) -> None:
    """Print the tables, notes and signatures of a study."""
    for table in agreement_tables(study, console.width):
        console.print(table)
    if study.significance:
        console.print(_significance_table(study, level))
    for warning in study.warnings:
        console.print(Text(warning, "bold red"), highlight=False, soft_wrap=True)
    for note in study.notes:
        console.print(Text(note), highlight=False, soft_wrap=True)
    for signature in study.signatures:
        console.print(Text(cite(signature), "dim"), soft_wrap=True)


def agreement_tables(study: Study, width: int = 80) -> Iterator[Table]:
    """Metrics by sets; several tables where the columns do not fit into the width."""
    names, metrics = table_columns(study), table_rows(study)
    rows = [*metrics, *sentinel_rows(study)]
    shown = [[_cell_text(cell) for cell in row.cells] for row in rows]
    arrow = "↑" if higher_is_better(study) else "↓"
    title: str | None = f"{statistic_name(study)}{arrow}, {level_name(study)}"
    longest = min(max(len(row.name) for row in rows), width // 3)
    widths = [
        max(cell_len(x) for text in column for x in (name, *text.plain.split("\n")))
        for name, column in zip(names, zip(*shown, strict=True), strict=True)
    ]
    for part in _fitting_columns(widths, width - longest - 4):
        table = Table(title=title, title_justify="left")
        table.add_column("metric", overflow="fold", min_width=longest)
        for name in names[part]:
            table.add_column(Text(name), justify="right", overflow="fold")
        for k, (row, cells) in enumerate(zip(rows, shown, strict=True)):
            table.add_row(
                Text(row.name, "" if k < len(metrics) else "dim"),
                *cells[part],
                end_section=k == len(metrics) - 1,
            )
        yield table
        title = None


def _fitting_columns(widths: list[int], room: int) -> Iterator[slice]:
    """Slices of columns that fit into the room, with three characters between columns."""
    start, used = 0, 0
    for k, width in enumerate(widths):
        if k > start and used + width + 3 > room:
            yield slice(start, k)
            start, used = k, 0
        used += width + 3
    yield slice(start, len(widths))


def _cell_text(cell: Cell) -> Text:
    """The number with its interval below it."""
    text = Text()
    text.append(cell.text, _STYLES[cell.place])
    if cell.interval:
        text.append(f"\n{_brief(cell.low)}–{_brief(cell.high)}", "dim")
    return text


def _brief(value: float) -> str:
    """Two decimals without a leading zero."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")


def _significance_table(study: Study, level: float) -> Table:
    """Which metric agrees significantly better than which: its p-value, or in how many columns."""
    keys = [key for key in set_criteria(study) if key in study.significance]
    p = np.array([study.significance[key] for key in keys])
    only = (
        column_label(study, *keys[0]) if len(keys) == 1 else f"number of columns out of {len(keys)}"
    )
    title = f"Significant differences (one-sided p < {level:g}), {only}"
    table = Table(title=title, title_justify="left")
    table.add_column("metric", overflow="fold")
    table.add_column("agrees better than", overflow="fold")
    for k, metric in enumerate(study.metrics):
        wins = (p[:, k] < level).sum(axis=0)
        beaten = [
            f"{study.metrics[j]} ({_p_text(p[0, k, j]) if len(keys) == 1 else wins[j]})"
            for j in np.argsort(-wins, kind="stable")
            if wins[j]
        ]
        table.add_row(Text(metric), Text(", ".join(beaten) or "–"))
    return table


def _p_text(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)


ENDINGS = (".md", ".csv", ".tex")


def write_leaderboard(study: Study, path: Path) -> None:
    """Write the table as Markdown, CSV or LaTeX, by the ending of the path."""
    check_path(path, ENDINGS)
    write_whole(path, leaderboard(study, path.suffix).encode())


def leaderboard(study: Study, ending: str = ".md") -> str:
    """The best metric first, sentinels last and without a rank.

    CSV has all digits, and an empty cell for nan.
    """
    if ending == ".csv":
        return _csv(study)
    heading, rows = ["rank", "metric", *table_columns(study)], _rows(study)
    arrow = "↑" if higher_is_better(study) else "↓"
    caption = f"{statistic_name(study)}{arrow}, {level_name(study)}"
    if ending == ".md":
        return f"{caption}\n\n{markdown(heading, rows, 2)}"
    return f"% {caption}\n{latex(heading, rows, 2)}"


def ranks(study: Study) -> dict[str, float]:
    """The rank of each metric by its mean rank over the columns; nan if it lacks a column."""
    width = len(set_criteria(study))
    values = np.array([[cell.value for cell in row.cells[:width]] for row in table_rows(study)])
    shown = np.round(-values if higher_is_better(study) else values, 3)
    means: Array = stats.rankdata(shown, axis=0, nan_policy="omit").mean(axis=1)
    places = stats.rankdata(np.round(means, 9), "min", nan_policy="omit")
    return dict(zip(study.metrics, np.where(np.isnan(means), np.nan, places).tolist(), strict=True))


def _rows(study: Study) -> Rows:
    cells, places = {row.name: row.cells for row in table_rows(study)}, ranks(study)
    return [
        [
            Mark(_rank_text(places[metric]) or "–"),
            Mark(metric),
            *(Mark(cell.text, cell.place) for cell in cells[metric]),
        ]
        for metric in _by_rank(study)
    ] + [
        [Mark("–"), Mark(row.name), *(Mark(cell.text) for cell in row.cells)]
        for row in sentinel_rows(study)
    ]


def _csv(study: Study) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["rank", "metric", *table_columns(study)])
    cells, places = {row.name: row.cells for row in table_rows(study)}, ranks(study)
    ranked = [(_rank_text(places[metric]), metric, cells[metric]) for metric in _by_rank(study)]
    for rank, name, row in [*ranked, *(("", one.name, one.cells) for one in sentinel_rows(study))]:
        digits = ["" if np.isnan(cell.value) else repr(float(cell.value)) for cell in row]
        writer.writerow([rank, name, *digits])
    return text.getvalue()


def _by_rank(study: Study) -> list[str]:
    places = ranks(study)
    return sorted(study.metrics, key=lambda metric: (np.isnan(places[metric]), places[metric]))


def _rank_text(place: float) -> str:
    return "" if np.isnan(place) else f"{place:.0f}"


def write_record(study: Study, path: Path) -> None:
    """Write all numbers of a study as JSON."""
    check_path(path)
    write_whole(path, (json.dumps(study_record(study), indent=1) + "\n").encode())


def study_record(study: Study) -> dict[str, Any]:
    """All numbers of a study; nan becomes None.

    Scores have one number per row of a set, oriented so that higher is better. The rows and columns
    of a matrix are the metrics, or the criteria, in the order given here. Sentinels are apart from
    metrics: they have neither ranks nor scores here.
    """
    several = len(set_criteria(study)) > 1
    averages = {row.name: _finite(row.cells[-1].value) for row in table_rows(study)}
    return {
        "level": study.level,
        "statistic": study.statistic,
        "metrics": list(study.metrics),
        "average": averages if several else {},
        "rank": {metric: _finite(place) for metric, place in ranks(study).items()},
        "agreements": [
            {name: _finite(value) for name, value in asdict(agreement).items()}
            for agreement in study.agreements
        ],
        "significance": [
            {"set": name, "human": human, "p": _matrix(p)}
            for (name, human), p in study.significance.items()
        ],
        "sentinels": _sentinels(study),
        "sets": [_set(study, judged) for judged in study.sets],
        "signatures": list(study.signatures),
        "warnings": list(study.warnings),
        "notes": list(study.notes),
    }


def _sentinels(study: Study) -> dict[str, Any]:
    """Agreements with the p-values of the metrics against them, chance levels and ceilings."""
    sentinels = study.sentinels
    records = [asdict(one) for one in sentinels.agreements]
    for one in records:
        one["p_values"] = {metric: _finite(p) for metric, p in one["p_values"].items()}
    levels = {
        name: [{"set": of, "human": human, "value": _finite(x)} for (of, human), x in by.items()]
        for name, by in (("chance", sentinels.chance), ("ceiling", sentinels.ceiling))
    }
    return {
        "agreements": [{name: _finite(x) for name, x in one.items()} for one in records],
        **levels,
        "signature": sentinels.signature,
    }


def _set(study: Study, judged: Judgements) -> dict[str, Any]:
    name = judged.name
    return {
        "name": name,
        "rows": len(judged),
        "segments": int(judged.segments.max()) + 1,
        "systems": list(judged.system_names),
        "pairs": 0 if judged.preferences is None else len(judged.preferences),
        "humans": [human for of, human in set_criteria(study) if of == name and human],
        "between_metrics": _matrix(study.between_metrics[name]),
        "between_humans": _matrix(study.between_humans.get(name, np.empty((0, 0)))),
        "scores": {
            metric: [_finite(x) for x in study.scores[metric, name].tolist()]
            for metric in study.metrics
        },
    }


def _matrix(values: Array) -> list[list[float | None]]:
    return [[_finite(value) for value in row] for row in values.tolist()]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
