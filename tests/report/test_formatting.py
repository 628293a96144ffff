"""Numbers, texts and table markup, by known answers."""

import numpy as np
import pytest

from freight.report.formatting import (
    Mark,
    brief,
    colour_level,
    decimals,
    flow_percent,
    latex,
    markdown,
    number,
    p_value,
    percent,
    round_to_sum,
    shorten,
)


def test_numbers_are_written_briefly_and_truly() -> None:
    assert [number(x) for x in (-0.25, -1e-9, np.nan)] == ["−0.2500", "0.0000", "–"]
    assert [brief(x) for x in (0.0, 0.234, 1.0, 1.25, 0.001, 10.0)] == [
        "0",
        ".23",
        "1",
        "1.25",
        "0",
        "10",
    ]
    assert [percent(x) for x in (0.125, 0.1, 1.0)] == ["12.5\u00a0%", "10\u00a0%", "100\u00a0%"]


def test_rounding_keeps_sums() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        parts = rng.normal(size=9)
        rounded = round_to_sum(parts, float(parts.sum()))
        assert rounded.sum() == pytest.approx(round(parts.sum(), 4), abs=1e-12)
        assert np.abs(rounded - parts).max() < 1.01e-4


def test_numbers_of_cells() -> None:
    assert [flow_percent(x) for x in (0.0, 0.05, 0.06, 9.94, 9.95, np.nan)] == [
        "", "", "0.1", "9.9", "10", "",
    ]  # fmt: skip
    assert [p_value(p) for p in (0.0004, 0.0301, 1.0, np.nan)] == ["< .001", ".030", "1.000", "–"]
    assert [decimals(x) for x in (-0.25, 1.0, np.nan)] == ["−0.250", "1.000", "–"]
    assert [int(colour_level(x)) for x in (-1.0, 0.0, 0.26, 1.0, np.nan)] == [0, 0, 3, 10, 10]


def test_control_characters_become_marks() -> None:
    assert shorten("a\x00b\ud800") == "a\ufffdb\ufffd"


def test_long_names_keep_both_ends() -> None:
    short = shorten("lazy-emd:" + "x" * 100 + ":objective", 24)
    assert len(short) == 24
    assert (short[:8], short[-9:]) == ("lazy-emd", "objective")


def test_what_means_something_is_escaped() -> None:
    row = [[Mark("a_b & 50% | c"), Mark("1", 1), Mark("2", 2)]]
    assert r"a\_b \& 50\% | c & \textbf{1} & \underline{2} \\" in latex(["x"] * 3, row)
    assert r"| a\_b & 50% \| c | **1** | <u>2</u> |" in markdown(["x"] * 3, row)
