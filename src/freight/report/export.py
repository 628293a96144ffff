"""A study as a leaderboard: metrics by sets with average and rank, the best metric first."""

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
from freight.errors import InvalidInput
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


def check_record(path: Path) -> None:
    """Before any work: a place that cannot be written is no surprise at the end of it."""
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")


def write_record(study: Study, path: Path) -> None:
    """Write the numbers of a study as JSON, whole or not at all."""
    check_record(path)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(study_record(study), indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def study_record(study: Study) -> dict[str, Any]:
    """All numbers of a study; what is no number is None.

    Scores are higher for better, a number a row of the set; matrices have metrics, or criteria, in
    their order here.
    """
    several = len(set_criteria(study)) > 1
    averages = {row.metric: _plain(row.cells[-1].value) for row in table_rows(study)}
    return {
        "level": study.level,
        "statistic": study.statistic,
        "metrics": list(study.metrics),
        "average": averages if several else {},
        "rank": {metric: _plain(place) for metric, place in ranks(study).items()},
        "agreements": [
            {name: _plain(value) for name, value in asdict(agreement).items()}
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
            metric: [_plain(x) for x in study.scores[metric, name].tolist()]
            for metric in study.metrics
        },
    }


def _matrix(values: Array) -> list[list[float | None]]:
    return [[_plain(value) for value in row] for row in values.tolist()]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
