"""A study as files: a leaderboard in Markdown, CSV or LaTeX, a JSON record of all numbers."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from freight.data.judgements import Judgements
from freight.data.output import check_path, write_whole
from freight.judge.study import Study
from freight.report.formatting import Mark, Rows, latex, markdown
from freight.report.tables import (
    higher_is_better,
    level_name,
    set_criteria,
    statistic_name,
    table_columns,
    table_rows,
)
from freight.transport.types import Array

ENDINGS = (".md", ".csv", ".tex")


def write_leaderboard(study: Study, path: Path) -> None:
    """Write the table as Markdown, CSV or LaTeX, by the ending of the path."""
    check_path(path, ENDINGS)
    write_whole(path, leaderboard(study, path.suffix).encode())


def leaderboard(study: Study, ending: str = ".md") -> str:
    """The best metric first; CSV has all digits, and an empty cell for nan."""
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
    ]


def _csv(study: Study) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["rank", "metric", *table_columns(study)])
    cells, places = {row.name: row.cells for row in table_rows(study)}, ranks(study)
    for metric in _by_rank(study):
        values = [cell.value for cell in cells[metric]]
        digits = ["" if np.isnan(value) else repr(float(value)) for value in values]
        writer.writerow([_rank_text(places[metric]), metric, *digits])
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
    of a matrix are the metrics, or the criteria, in the order given here.
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
        "sets": [_set(study, judged) for judged in study.sets],
        "signatures": list(study.signatures),
        "warnings": list(study.warnings),
        "notes": list(study.notes),
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
