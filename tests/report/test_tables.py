"""The table of a study: places, averages, names."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from freight.judge.study import Agreement, Study
from freight.report.tables import agreement_tables, show_study, table_columns, table_rows
from studies import NOISE, preferred, rated, study

PAIRS = tuple(rated(f"wmt15-da {pair}", 30, 3, ("da_z",)) for pair in ("cs-en", "de-en"))


def agreed(values: dict[str, list[float]], **changes: Any) -> Study:
    """A study whose agreements are these numbers, metric by metric."""
    agreements = tuple(
        Agreement(metric, one.name, "da_z", value, value - 0.1, value + 0.1, 90, 0)
        for metric, row in values.items()
        for one, value in zip(PAIRS, row, strict=True)
    )
    return study(*PAIRS, metrics=tuple(values), agreements=agreements, **changes)


def test_best_and_second_of_every_column_the_average_among_them() -> None:
    rows = table_rows(agreed({"a": [0.5, 0.9], "b": [0.8, 0.7], "c": [0.6, 0.1]}))
    assert [row.name for row in rows] == ["a", "b", "c"]
    assert [[cell.text for cell in row.cells] for row in rows] == [
        ["0.500", "0.900", "0.700"],
        ["0.800", "0.700", "0.750"],
        ["0.600", "0.100", "0.350"],
    ]
    assert [[cell.place for cell in row.cells] for row in rows] == [[0, 1, 2], [1, 2, 1], [2, 0, 0]]
    assert rows[0].cells[0].interval == "0.400\u2009–\u20090.600"
    assert rows[0].cells[2].interval == ""


def test_of_errors_the_lowest_is_best() -> None:
    rows = table_rows(agreed({"a": [0.5, 0.5], "b": [0.2, 0.2]}, statistic="mse"))
    assert [row.cells[0].place for row in rows] == [2, 1]


def test_numbers_that_look_alike_share_a_place_and_what_is_none_has_none() -> None:
    rows = table_rows(agreed({"a": [0.50001, 0.1], "b": [0.50002, 0.1], "c": [np.nan, 0.2]}))
    assert [row.cells[0].place for row in rows] == [1, 1, 0]
    assert (rows[2].cells[0].text, rows[2].cells[2].text) == ("–", "–")


def test_negative_numbers_have_a_minus_sign() -> None:
    assert table_rows(agreed({"a": [-0.25, 0.0]}))[0].cells[0].text == "−0.250"


@pytest.mark.parametrize(
    ("sets", "criteria", "expected"),
    [
        (["wmt15-da cs-en", "wmt15-da de-en"], ("da",), ["cs-en", "de-en", "average"]),
        (["wmt15-da cs-en", "wmt17-da cs-en"], ("da",), ["wmt15-da cs-en", "wmt17-da cs-en"]),
        (["webnlg"], ("fluency", "relevance"), ["fluency", "relevance", "average"]),
        (["x a", "x b"], ("f", "g"), ["a · f", "a · g", "b · f", "b · g", "average"]),
        (["webnlg"], ("fluency",), ["webnlg"]),
    ],
)
def test_headings_say_what_differs(
    sets: list[str], criteria: tuple[str, ...], expected: list[str]
) -> None:
    made = study(*(rated(name, 20, 2, criteria) for name in sets))
    assert table_columns(made)[: len(expected)] == expected


def test_the_terminal_shows_whole_names_and_marks_the_best() -> None:
    console = Console(width=100, force_terminal=True, color_system="standard", record=True)
    console.print(*agreement_tables(study(*PAIRS)))
    text = console.export_text(styles=False, clear=False)
    assert all(name in text for name in NOISE)
    assert "Pearson's r↑, segment level" in text
    best = max(cell.value for row in table_rows(study(*PAIRS)) for cell in row.cells[:1])
    assert f"\x1b[1m{best:.3f}" in console.export_text(styles=True)


def test_a_wide_table_is_shown_in_parts_that_fit() -> None:
    sets = [rated(f"wmt pair-{k}", 20, 2, ("da",)) for k in range(9)]
    made = study(*sets)
    narrow = list(agreement_tables(made, 80))
    assert len(narrow) > 1
    headings = [str(column.header) for table in narrow for column in table.columns]
    assert [name for name in headings if name != "metric"] == table_columns(made)
    console = Console(width=80, record=True)
    console.print(*narrow)
    assert all(f"{a.value:.3f}" in console.export_text(clear=False) for a in made.agreements)
    assert len(list(agreement_tables(made, 200))) == 1


def test_significant_differences_and_warnings_in_red() -> None:
    console = Console(width=100, force_terminal=True, color_system="standard", record=True)
    p = np.array([[np.nan, 0.0001, 0.2], [1, np.nan, 0.03], [1, 1, np.nan]])
    made = agreed(
        {"a": [0.5, 0.9], "b": [0.8, 0.7], "c": [0.6, 0.1]},
        significance={(PAIRS[0].name, "da_z"): p},
        warnings=("tuned and tested on the same rows",),
        notes=("plain [note]",),
    )
    show_study(made, console)
    text = console.export_text(styles=False, clear=False)
    assert "b (p < .001)" in text
    assert "c (p = .030)" in text
    assert "plain [note]" in text
    assert "\x1b[1;31mtuned and tested" in console.export_text(styles=True)
    both = replace(made, significance={(one.name, "da_z"): p for one in PAIRS})
    show_study(both, console)
    assert "b (2)" in console.export_text()


def test_names_in_brackets_are_no_markup() -> None:
    console = Console(width=100, record=True)
    console.print(*agreement_tables(agreed({"a[bold]b[/]": [0.1, 0.2], "c": [0.3, 0.1]})))
    assert "a[bold]b[/]" in console.export_text()


def test_preferences_have_one_column() -> None:
    made = study(preferred("wmt18-darr et-en", 30, 4, 50), level="darr")
    assert table_columns(made) == ["wmt18-darr et-en"]
    assert all(len(row.cells) == 1 for row in table_rows(made))
