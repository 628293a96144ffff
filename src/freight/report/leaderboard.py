"""A study as a leaderboard: metrics by sets with average and rank, the best metric first."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
from scipy import stats

from freight.errors import InvalidInput
from freight.judge.study import Study
from freight.report.markup import Mark, Rows, latex, markdown
from freight.report.tables import (
    higher_is_better,
    level_name,
    set_criteria,
    statistic_name,
    table_columns,
    table_rows,
)
from freight.types import Array

ENDINGS = (".md", ".csv", ".tex")


def write_leaderboard(study: Study, path: Path) -> None:
    """Write the table as Markdown, CSV or LaTeX, by the ending, whole or not at all."""
    check_leaderboard(path)
    part = path.with_name(path.name + ".part")
    part.write_text(leaderboard(study, path.suffix), encoding="utf-8")
    part.replace(path)


def check_leaderboard(path: Path) -> None:
    """Before any work: a place that cannot be written is no surprise at the end of it."""
    if path.suffix not in ENDINGS:
        raise InvalidInput(f"{path} ends in none of {' '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")


def leaderboard(study: Study, ending: str = ".md") -> str:
    """The table as text; CSV has all digits, and an empty cell for what could not be computed."""
    if ending == ".csv":
        return _comma_separated(study)
    heading, rows = ["rank", "metric", *table_columns(study)], _rows(study)
    arrow = "↑" if higher_is_better(study) else "↓"
    asked = f"{statistic_name(study)}{arrow}, {level_name(study)}"
    if ending == ".md":
        return f"{asked}\n\n{markdown(heading, rows, 2)}"
    return f"% {asked}\n{latex(heading, rows, 2)}"


def ranks(study: Study) -> dict[str, float]:
    """The place of each metric by its mean rank over the columns; nan where it lacks a column."""
    width = len(set_criteria(study))
    values = np.array([[cell.value for cell in row.cells[:width]] for row in table_rows(study)])
    shown = np.round(-values if higher_is_better(study) else values, 3)
    means: Array = stats.rankdata(shown, axis=0, nan_policy="omit").mean(axis=1)
    places = stats.rankdata(np.round(means, 9), "min", nan_policy="omit")
    return dict(zip(study.metrics, np.where(np.isnan(means), np.nan, places).tolist(), strict=True))


def _rows(study: Study) -> Rows:
    found, places = {row.metric: row.cells for row in table_rows(study)}, ranks(study)
    return [
        [
            Mark(_whole(places[metric]) or "–"),
            Mark(metric),
            *(Mark(cell.text, cell.place) for cell in found[metric]),
        ]
        for metric in _ordered(study)
    ]


def _comma_separated(study: Study) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["rank", "metric", *table_columns(study)])
    found, places = {row.metric: row.cells for row in table_rows(study)}, ranks(study)
    for metric in _ordered(study):
        values = [cell.value for cell in found[metric]]
        cells = ["" if np.isnan(value) else repr(float(value)) for value in values]
        writer.writerow([_whole(places[metric]), metric, *cells])
    return text.getvalue()


def _ordered(study: Study) -> list[str]:
    places = ranks(study)
    return sorted(study.metrics, key=lambda metric: (np.isnan(places[metric]), places[metric]))


def _whole(place: float) -> str:
    return "" if np.isnan(place) else f"{place:.0f}"
