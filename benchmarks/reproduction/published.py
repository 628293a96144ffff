"""Figures from the papers: their tables as printed, and their worked examples."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PAPERS = {"lazy-emd": "Lazy-EMD", "bary-score": "BaryScore", "std": "STD", "wrd-score": "WRDScore"}


@dataclass(frozen=True)
class Printed:
    """A table: by row and column what is printed, and the cells that look damaged in print."""

    columns: tuple[str, ...]
    rows: dict[str, dict[str, float]]
    doubt: frozenset[tuple[str, str]]


@cache
def printed(paper: str, table: str) -> Printed:
    """A table by the name that the paper gives it."""
    stored = _stored()[paper][table]
    columns = tuple(stored["columns"])
    rows = {
        row: {c: v for c, v in zip(columns, values, strict=True) if v is not None}
        for row, values in stored["rows"].items()
    }
    return Printed(columns, rows, frozenset((row, column) for row, column in stored["doubt"]))


def tables(paper: str) -> tuple[str, ...]:
    """The names of a paper's tables."""
    return tuple(_stored()[paper])


@cache
def _stored() -> dict[str, dict[str, Any]]:
    stored: dict[str, dict[str, Any]] = json.loads(
        Path(__file__).with_name("published.json").read_text("utf-8")
    )
    return stored


EXAMPLES = (
    ("The young man in a slicker.", "The boy in a coat.", "example 1 candidate 1"),
    ("The young man in a slicker.", "The man in a coat.", "example 1 candidate 2"),
    ("The boy in a coat.", "The young man in a slicker.", "example 2 candidate 1"),
    ("The boy in a coat.", "The old man in a slicker.", "example 2 candidate 2"),
)
"""Lazy-EMD, Table 1: a reference, a hypothesis and its row; the better one first."""

HOLIDAY = (
    "The man will fly to France for a holiday",
    "The guy is scheduled to France for a vacation",
    "Vacation a for France to scheduled is the guy",
)
"""STD, Table I and Figs. 1 and 2: a reference, a hypothesis, and its words backwards."""

VICTORY = "Dettori soaks up the cheers as he brings in Predilection after victory"
VICTORIES = {
    "H_1": "Dai Tuli brought the Predilection after the victory, causing the crowd to cheer.",
    "H_2": "Dai Tuli received the Predilection after winning, causing the audience cheers.",
    "H_3": "After winning the winner, Doodle led the Predilation, causing the whole field.",
}
"""STD, Table VIII: a reference and its hypotheses, the best one first."""

NAMES = (
    ("update image", "set artwork entry", 0.5787, 0.4652, 0.5158),
    ("advance", "next char", 0.7152, 0.7112, 0.7132),
    ("size", "get count", 0.7669, 0.7597, 0.7632),
    ("receive message", "log", 0.7939, 0.7720, 0.7828),
    ("advance", "next char", 0.7152, 0.7112, 0.7132),
    ("perform validation", "validate url", 0.7849, 0.7877, 0.7863),
    ("do until result", "execute", 0.5904, 0.5900, 0.5902),
    ("detect capital use", "is all capitalized", 0.5672, 0.5225, 0.5439),
    ("longest consecutive", "max path", 0.6778, 0.6627, 0.6702),
    ("schedule course", "get number of days", 0.6409, 0.6351, 0.6380),
    ("process username", "verify", 0.6930, 0.6878, 0.6904),
)
"""WRDScore, Section 4: reference, prediction, precision, recall and F1; ROUGE-1 is 0 for all."""

SPEED = {"bary-score": 180, "mover-score": 195}
"""BaryScore, Section 6.1: pairs a second on a V100, bert-base."""
