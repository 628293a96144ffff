"""Agreement over pairs: worked by hand, beside the plainest way to count, and under its laws."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freight.errors import InvalidInput
from freight.judge.levels import Draws, Rated
from freight.judge.pairwise import (
    Accuracy,
    Preferences,
    darr_tau,
    pairwise_accuracy,
    soft_pairwise_accuracy,
)
from ratings import Floats, ratings


def test_tau_worked_by_hand() -> None:
    # Right, wrong, tied, right: (2 - 2) / 4, the tie being discordant; without the tie 1 / 3.
    metric = np.array([3.0, 1.0, 2.0, 2.0])
    assert darr_tau(metric, np.array([[0, 1], [1, 2], [2, 3], [0, 2]])) == 0
    assert darr_tau(metric, np.array([[0, 1], [1, 2], [0, 2]])) == pytest.approx(1 / 3)


@settings(deadline=None)
@given(
    metric=st.lists(st.integers(0, 9), min_size=4, max_size=20, unique=True),
    seed=st.integers(0, 99),
)
def test_tau_turns_over_with_the_metric_or_the_pairs(metric: list[int], seed: int) -> None:
    rng, scores = np.random.default_rng(seed), np.array(metric, float)
    pairs = np.array([rng.choice(len(scores), 2, replace=False) for _ in range(15)])
    tau = darr_tau(scores, pairs)
    concordant = int((scores[pairs[:, 0]] > scores[pairs[:, 1]]).sum())
    assert tau == pytest.approx((2 * concordant - 15) / 15)
    assert darr_tau(-scores, pairs) == pytest.approx(-tau)
    assert darr_tau(scores, pairs[:, ::-1]) == pytest.approx(-tau)
    assert darr_tau(np.exp(scores), rng.permutation(pairs)) == tau


def test_a_pair_counts_as_often_as_it_was_drawn() -> None:
    rng = np.random.default_rng(0)
    segments, systems = np.indices((8, 5)).reshape(2, -1)
    first = rng.integers(40, size=60)
    pairs = np.stack((first, first // 5 * 5 + (first + rng.integers(1, 5, 60)) % 5), axis=1)
    metric = np.round(rng.normal(size=40), 1)
    draws = Draws(rng.integers(0, 3, (3, 8)) + 0.0, rng.integers(0, 3, (3, 5)) + 0.0)
    statistic = Preferences.of(pairs, 40, segments, systems)
    taus = statistic(statistic.sample.scores(metric), draws)
    assert len(set(taus.tolist())) == 3
    for k in range(3):
        times = draws.segments[k, segments[pairs[:, 0]]]
        times = times * draws.systems[k, systems[pairs]].prod(axis=1)
        assert taus[k] == pytest.approx(darr_tau(metric, pairs.repeat(times.astype(int), axis=0)))


def test_only_rows_in_pairs_need_scores() -> None:
    metric = np.array([np.nan, 1.0, 2.0])
    assert darr_tau(metric, np.array([[2, 1]])) == 1
    with pytest.raises(
        InvalidInput, match="1 of 2 metric scores are not finite, the first in row 0"
    ):
        darr_tau(metric, np.array([[2, 0]]))


def test_accuracy_worked_by_hand() -> None:
    # Six pairs: four right, one the wrong way round, and one that people tied, .25 apart.
    # A tie of .25 gains the last and loses none.
    human, metric = np.array([1, 1, 2, 3.0]), np.array([1.0, 1.25, 2.0, 1.875])
    segments = np.zeros(4)
    assert pairwise_accuracy(metric, human, segments) == pytest.approx((5 / 6, 0.25))
    assert pairwise_accuracy(metric, human, segments, epsilon=0.0) == pytest.approx((4 / 6, 0.0))
    # A tie of one: all that people ordered is lost but what the metric put further apart.
    assert pairwise_accuracy(metric, human, segments, epsilon=1.0).value == pytest.approx(1 / 6)


def test_accuracy_within_segments_is_a_mean_over_segments() -> None:
    # The first segment has three pairs, all right; the second one pair, wrong; the third no pair.
    human, metric = np.array([1, 2, 3, 1, 2, 5.0]), np.array([1, 2, 3, 2, 1, 5.0])
    segments = np.array([0, 0, 0, 1, 1, 2])
    assert pairwise_accuracy(metric, human, segments).value == pytest.approx((1 + 0) / 2)
    # Of all fifteen pairs three are wrong or tied by the metric alone.
    plain = pairwise_accuracy(metric, human, level="segment", epsilon=0.0)
    assert plain.value == pytest.approx(plainly(metric, human, np.zeros(6), 0.0))


def plainly(metric: Floats, human: Floats, segments: Floats, epsilon: float) -> float:
    shares = []
    for segment in np.unique(segments):
        x, y = metric[segments == segment], human[segments == segment]
        i, j = np.triu_indices(len(x), 1)
        if len(i):
            said = np.where(abs(x[i] - x[j]) <= epsilon, 0, np.sign(x[i] - x[j]))
            shares.append(np.mean(said == np.sign(y[i] - y[j])))
    return float(np.mean(shares))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("steps", [1, 4])
def test_no_other_width_of_a_tie_is_better(seed: int, steps: int) -> None:
    human, (metric, *_), segments, _ = ratings(seed, noise=(1.0,), steps=steps)
    metric = np.round(10 * metric)
    widths = np.unique([0.0, *abs(metric[:, None] - metric).ravel()])
    tried = np.array([plainly(metric, human, segments, width) for width in widths])
    accuracy = pairwise_accuracy(metric, human, segments)
    assert accuracy.value == pytest.approx(tried.max())
    assert accuracy.value == pytest.approx(plainly(metric, human, segments, accuracy.epsilon))
    assert accuracy.epsilon == pytest.approx(widths[np.argmax(tried > tried.max() - 1e-9)])
    tenths = pairwise_accuracy(metric / 10, human, segments)
    # rounding is no difference
    assert tenths == pytest.approx((accuracy.value, accuracy.epsilon / 10))


def test_drawing_an_input_twice_counts_it_twice() -> None:
    human, (metric, *_), segments, systems = ratings(2)
    times = np.random.default_rng(0).integers(0, 3, 12)
    statistic = Accuracy(Rated.of("text", human, segments, systems))
    draws = Draws(times[None] + 0.0, statistic.sample.once.systems)
    copies = [(segments == s, 100 * s + k) for s, n in enumerate(times) for k in range(n)]
    rows = np.concatenate([np.flatnonzero(here) for here, _ in copies])
    names = np.concatenate([np.full(here.sum(), name) for here, name in copies])
    expected = pairwise_accuracy(metric[rows], human[rows], names).value
    assert expected != pytest.approx(pairwise_accuracy(metric, human, segments).value)
    assert statistic(statistic.sample.scores(metric), draws)[0] == pytest.approx(expected)


def test_a_perfect_metric_and_one_that_says_nothing() -> None:
    human, _, segments, systems = ratings(5)
    for level in ("segment", "text", "system"):
        accuracy = pairwise_accuracy(human, human, segments, systems, level=level)
        assert accuracy == pytest.approx((1.0, 0.0))
    tied = pairwise_accuracy(np.ones_like(human), human, segments).value
    assert tied == pytest.approx(plainly(np.ones_like(human), human, segments, 0.0))


def test_no_pair_no_accuracy() -> None:
    assert np.isnan(pairwise_accuracy(np.arange(3.0), np.arange(3.0), np.arange(3)).value)


def test_soft_accuracy_of_the_same_and_of_the_opposite_opinion() -> None:
    human, _, segments, systems = ratings(6, segments=200, systems=2, missing=0.0)
    human = human + 3.0 * systems  # one system is better beyond doubt
    assert soft_pairwise_accuracy(human, human, segments, systems) == 1
    assert soft_pairwise_accuracy(2 * human + 5, human, segments, systems) == 1
    assert soft_pairwise_accuracy(-human, human, segments, systems) == pytest.approx(0, abs=0.01)


def test_soft_accuracy_worked_by_hand() -> None:
    # One segment, and the metric has it the wrong way round. A flip is as likely as none: chance
    # parts the two as far in half of the cases, equally far, for people (half of one half), and
    # in all of them, half of those equally far, for the metric: 1 - |1/4 - 3/4|.
    accuracy = soft_pairwise_accuracy(
        np.array([1.0, 2.0]), np.array([2.0, 1.0]), np.zeros(2), np.arange(2), resamples=40_000
    )
    assert accuracy == pytest.approx(0.5, abs=0.01)


def test_soft_accuracy_does_not_see_the_order_of_systems_or_rows() -> None:
    human, (metric, _), segments, systems = ratings(7)
    accuracy = soft_pairwise_accuracy(metric, human, segments, systems)
    assert 0.5 < accuracy < 1
    backwards = soft_pairwise_accuracy(metric, human, segments, -systems)
    assert backwards == pytest.approx(accuracy)
    order = np.random.default_rng(0).permutation(len(human))
    rows = metric[order], human[order], segments[order], systems[order]
    assert soft_pairwise_accuracy(*rows) == pytest.approx(accuracy)
    assert soft_pairwise_accuracy(metric, human, segments, systems, seed=1) != accuracy


def test_bad_input_is_named() -> None:
    metric, rows = np.arange(4.0), np.zeros(4, int)
    with pytest.raises(InvalidInput, match=re.escape("preferences have shape (2,)")):
        darr_tau(metric, np.array([0, 1]))
    with pytest.raises(InvalidInput, match="preferences name row 4, and there are 4 rows"):
        darr_tau(metric, np.array([[0, 4]]))
    with pytest.raises(InvalidInput, match="preferences name row -1, and there are 4 rows"):
        darr_tau(metric, np.array([[0, -1]]))
    with pytest.raises(InvalidInput, match="epsilon=-1; give a number from 0 up"):
        pairwise_accuracy(metric, metric, rows, epsilon=-1)
    with pytest.raises(InvalidInput, match="one system only"):
        soft_pairwise_accuracy(metric, metric, np.arange(4), rows)
    with pytest.raises(InvalidInput, match="two rows for one segment"):
        soft_pairwise_accuracy(metric, metric, rows, np.array([0, 1, 1, 2]))
