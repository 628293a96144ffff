"""Leaderboards: the order, the marks, and what must be escaped."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

import studies
from freight.errors import InvalidInput
from freight.report.tables import leaderboard, ranks, table_rows, write_leaderboard

STUDY = studies.study(
    studies.rated("one", 40, 4, ("quality",)), studies.rated("two", 40, 4, ("quality",))
)


def test_the_best_metric_comes_first() -> None:
    rows = list(csv.DictReader(io.StringIO(leaderboard(STUDY, ".csv"))))
    assert [int(row["rank"]) for row in rows] == sorted(int(row["rank"]) for row in rows)
    cells = {row.name: [cell.value for cell in row.cells] for row in table_rows(STUDY)}
    for row in rows:
        assert [float(row[x]) for x in ("one", "two", "average")] == cells[row["metric"]]
        assert float(row["average"]) == pytest.approx((float(row["one"]) + float(row["two"])) / 2)
    best = min(ranks(STUDY).values())
    assert best == 1
    assert ranks(STUDY)[rows[0]["metric"]] == 1


def test_marks_are_those_of_the_table() -> None:
    page = leaderboard(STUDY)
    assert page.startswith("Pearson's r↑, segment level\n\n| rank | metric | one | two | average |")
    best = [row.name for row in table_rows(STUDY) if row.cells[0].place == 1]
    line = next(x for x in page.splitlines() if f"| {best[0]} |" in x)
    assert line.split("|")[3].strip().startswith("**")
    paper = leaderboard(STUDY, ".tex")
    assert paper.count(r"\textbf{") >= 3
    assert paper.count("\\\\\n") == 1 + len(STUDY.metrics)


def test_a_metric_without_a_cell_has_no_rank() -> None:
    kept = [a for a in STUDY.agreements if (a.metric, a.set) != ("chrf", "two")]
    gap = studies.study(*STUDY.sets, agreements=tuple(kept))
    assert np.isnan(ranks(gap)["chrf"])
    assert sorted(place for place in ranks(gap).values() if place == place) == [1, 2, 3, 4]
    assert leaderboard(gap, ".csv").splitlines()[-1].startswith(",chrf,")


def test_files_are_written_by_their_ending(tmp_path: Path) -> None:
    for ending in (".md", ".csv", ".tex"):
        path = tmp_path / f"table{ending}"
        write_leaderboard(STUDY, path)
        assert path.read_text(encoding="utf-8") == leaderboard(STUDY, ending)
    with pytest.raises(InvalidInput, match="ends in none of"):
        write_leaderboard(STUDY, tmp_path / "table.xls")
