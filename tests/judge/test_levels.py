"""Levels of a comparison: which rows, points and weights a statistic is computed from."""

import re

import numpy as np
import pytest

from freight.errors import InvalidInput
from freight.judge.levels import Draws, LevelSample, Mean, Rated, estimate
from ratings import Floats

N = np.nan
HUMAN = np.array([4.0, N, 1.0, 3.0, 2.0])
METRIC = np.array([0.4, N, 0.1, 0.3, 0.2])
SEGMENTS = np.array([20, 20, 10, 10, 20])
SYSTEMS = np.array([7, 8, 7, 8, 9])


def test_rows_are_sorted_by_input_and_numbered_from_0() -> None:
    sample = Rated.of("segment", HUMAN, SEGMENTS, SYSTEMS).sample
    assert sample.rows.tolist() == [2, 3, 0, 4]
    assert sample.segments.tolist() == [0, 0, 1, 1]
    assert sample.systems.tolist() == [0, 1, 0, 2]
    assert sample.scores(METRIC).tolist() == [[0.1, 0.3, 0.4, 0.2]]
    assert [side.tolist() for side in sample.once] == [[[1, 1]], [[1, 1, 1]]]


def test_without_segments_and_systems_every_row_is_an_input_of_one_system() -> None:
    sample = LevelSample.of(np.array([1, 3]), 4, None, None)
    assert (sample.segments.tolist(), sample.systems.tolist()) == ([0, 1], [0, 0])


def test_a_mean_counts_a_row_as_often_as_its_input_and_its_system_were_drawn() -> None:
    sample = LevelSample.of(np.arange(3), 3, np.array([0, 0, 1]), np.array([0, 1, 0]))
    draws = Draws(np.array([[2.0, 1.0]]), np.array([[1.0, 3.0]]))
    # Weights 2, 6 and 1.
    expected = (2 * 10 + 6 * 20 + 1 * 30) / 9
    assert Mean(sample)(np.array([[10.0, 20.0, 30.0]]), draws).tolist() == [expected]
    assert estimate(Mean(sample), np.array([10.0, 20.0, 30.0])) == 20


def test_the_points_of_each_level_by_hand() -> None:
    draws = Draws(np.array([[2.0, 1.0]]), np.array([[1.0, 3.0, 0.0]]))
    points = {}
    for level in ("segment", "text", "system"):
        rated = Rated.of(level, HUMAN, SEGMENTS, SYSTEMS)
        points[level] = rated.points(rated.sample.scores(METRIC), draws)
    assert points["segment"].weights.tolist() == [[2, 6, 1, 0]]
    assert points["segment"].starts.tolist() == [0, 4]
    assert points["text"].weights.tolist() == [[1, 3, 1, 0]]
    assert points["text"].starts.tolist() == [0, 2, 4]
    assert points["text"].group_weights.tolist() == [[2, 1]]
    # The first system has .1 twice and .4 once, human scores 1 twice and 4 once.
    assert points["system"].metric[0] == pytest.approx([0.2, 0.3, 0.2])
    assert points["system"].human[0] == pytest.approx([2.0, 3.0, 2.0])
    assert points["system"].weights.tolist() == [[1, 3, 0]]


@pytest.mark.parametrize(
    ("level", "human", "message"),
    [
        ("word", HUMAN, "level='word'; there is segment, text, system"),
        ("text", HUMAN, "level='text' needs to know each row's segment"),
        ("system", HUMAN, "level='system' needs to know each row's system"),
        ("segment", np.full(3, N), "no row has a human score"),
        ("segment", np.array([1.0, np.inf]), "the human score of row 1 is infinite"),
    ],
)
def test_what_cannot_be_compared_is_named(level: str, human: Floats, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Rated.of(level, human)


def test_scores_of_another_length_or_without_a_number_are_named() -> None:
    sample = Rated.of("segment", HUMAN).sample
    with pytest.raises(InvalidInput, match=re.escape("metric has shape (3,), and there are 5")):
        sample.scores(np.arange(3.0))
    with pytest.raises(
        InvalidInput, match="1 of 4 metric scores are not finite, the first in row 4"
    ):
        sample.scores(np.array([1.0, N, 2.0, 3.0, N]))
