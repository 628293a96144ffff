"""The texts over which judges disagree most, worked out by hand."""

from dataclasses import replace

import numpy as np

from freight.report.judge import disagreements, percentiles, wrong_preferences
from studies import rated

FOUR = replace(rated("set", 4, 1, ("da",)), hyps=("a", "b", "c", "d"))


def test_percentiles_stand_in_the_middle_of_their_share() -> None:
    np.testing.assert_allclose(
        percentiles(np.array([3.0, 1.0, 2.0, 9.0])), [62.5, 12.5, 37.5, 87.5]
    )
    np.testing.assert_allclose(percentiles(np.array([1.0, np.nan, 1.0])), [50, np.nan, 50])


def test_the_largest_difference_of_ranks_comes_first() -> None:
    people, metric = np.array([1.0, 2, 3, 4]), np.array([40.0, 20, 30, 10])
    cases = disagreements(FOUR, ("people", "m"), (people, metric), 2)
    assert [case.texts[0] for case in cases] == [("hyp", "a"), ("hyp", "d")]
    assert cases[0].percentiles == (("people", 12.5), ("m", 87.5))
    assert cases[0].texts[1] == ("ref", FOUR.refs[0][0])
    assert cases[0].origin == "segment 1, system-0"


def test_rows_without_a_number_are_no_cases() -> None:
    people, metric = np.array([1.0, np.nan, 3, 4]), np.array([1.0, 2, np.nan, 0])
    assert len(disagreements(FOUR, ("people", "m"), (people, metric), 4)) == 2


def test_a_text_is_listed_once() -> None:
    same = replace(FOUR, hyps=("a", "a", "a", "d"), segments=np.zeros(4, dtype=int))
    cases = disagreements(same, ("x", "y"), (np.arange(4.0), -np.arange(4.0)), 4)
    assert sorted(case.texts[0][1] for case in cases) == ["a", "d"]


def test_preferences_that_the_metric_turns_round() -> None:
    judged = replace(FOUR, human={}, preferences=np.array([[0, 1], [2, 1], [3, 0]]))
    cases = wrong_preferences(judged, np.array([1.0, 4.0, 3.0, 2.0]), 5)
    assert [(c.texts[0], c.texts[1]) for c in cases] == [(("better", "a"), ("worse", "b"))]
    assert cases[0].percentiles == (("better", 12.5), ("worse", 87.5))
    assert wrong_preferences(judged, np.array([3.0, 1.0, 2.0, 4.0]), 5) == ()


def test_long_texts_are_cut_and_further_references_counted() -> None:
    judged = replace(FOUR, hyps=("x" * 5000, "b", "c", "d"), refs=(("r", "s", "t"),) * 4)
    [case] = disagreements(judged, ("x", "y"), (np.arange(4.0), -np.arange(4.0)), 1)
    assert len(case.texts[0][1]) < 800
    assert case.texts[1] == ("ref + 2", "r")


def test_systems_without_names_are_not_mentioned() -> None:
    judged = replace(FOUR, system_names=("",), preferences=np.array([[0, 1]]))
    [case] = disagreements(judged, ("x", "y"), (np.arange(4.0), -np.arange(4.0)), 1)
    assert case.origin in ("segment 1", "segment 4")
    [case] = wrong_preferences(judged, np.arange(4.0), 1)
    assert case.origin == "segment 1"
