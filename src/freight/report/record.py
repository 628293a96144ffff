"""A study as plain numbers, for other programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.judge.study import Study
from freight.report.leaderboard import ranks
from freight.report.tables import set_criteria, table_rows
from freight.types import Array


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
