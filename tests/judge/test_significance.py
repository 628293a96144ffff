"""Tests of tests: known values, uniform under the null, and intervals that cover."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from freight.errors import InvalidInput
from freight.judge import significance
from freight.judge.correlation import CORRELATIONS, Correlation
from freight.judge.levels import Rated, Statistic, estimate
from freight.judge.pairwise import Accuracy, Preferences
from freight.judge.significance import (
    bootstrap_interval,
    bootstrap_values,
    permutation_p_values,
    permutation_test,
    williams_p_values,
    williams_test,
)
from ratings import Ratings, ratings


def preferences(data: Ratings) -> Preferences:
    """Every pair of rows of a segment that people told apart."""
    i, j = np.nonzero(
        (data.segments[:, None] == data.segments) & (data.human[:, None] > data.human)
    )
    return Preferences.of(np.stack((i, j), axis=1), len(data.human), data.segments, data.systems)


def rated(level: str) -> Callable[[Ratings], Rated]:
    return lambda data: Rated.of(level, data.human, data.segments, data.systems)


def correlation(level: str, how: str) -> Callable[[Ratings], Statistic]:
    return lambda data: Correlation(how, rated(level)(data))


STATISTICS: dict[str, Callable[[Ratings], Statistic]] = {
    f"{level} {how}": correlation(level, how)
    for level in ("segment", "text", "system")
    for how in CORRELATIONS
} | {
    "segment accuracy": lambda data: Accuracy(rated("segment")(data)),
    "text accuracy": lambda data: Accuracy(rated("text")(data)),
    "system accuracy": lambda data: Accuracy(rated("system")(data)),
    "preferences": preferences,
}
every_statistic = pytest.mark.parametrize("name", STATISTICS)
every_way = pytest.mark.parametrize("over", ["inputs", "systems", "both"])


def test_williams_worked_by_hand() -> None:
    # K = 1 - .36 - .16 - .25 + .24 = .47. Under the root 102 * 1.5 = 153 over
    # .94 * 102 / 100 + .25 * .125 = .99005, which is 154.5376; t = .2 * 12.43132.
    p = float(williams_test(0.6, 0.4, 0.5, 103))
    assert p == pytest.approx(stats.t.sf(2.486264, 100), abs=1e-7)
    assert 0.005 < p < 0.01  # tables: t = 2.364 at .01, 2.626 at .005
    assert float(williams_test(0.4, 0.6, 0.5, 103)) == pytest.approx(1 - p)
    assert float(williams_test(0.4, 0.4, 0.5, 103)) == 0.5
    assert float(williams_test(0.4, 0.4, 1.0, 103)) == 0.5
    assert float(williams_test(0.6, 0.4, 0.9, 103)) < p  # metrics alike differ by less by chance


def test_williams_is_uniform_where_metrics_are_equally_good() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(600, 1, 60))
    seen = np.concatenate((truth, truth + rng.normal(size=(600, 2, 60))), axis=1)
    r = np.array([np.corrcoef(rows) for rows in seen])
    assert (
        stats.kstest(williams_test(r[:, 0, 1], r[:, 0, 2], r[:, 1, 2], 60), "uniform").pvalue > 0.01
    )


def test_williams_matrix() -> None:
    human, metrics, *_ = ratings(1, noise=(0.1, 1.0, 3.0))
    human = human.copy()
    human[3] = np.nan
    p_values = williams_p_values(metrics, human)
    kept = ~np.isnan(human)
    r = np.corrcoef(np.vstack((human, metrics))[:, kept])
    for i, j in ((0, 1), (2, 0)):
        expected = williams_test(r[0, i + 1], r[0, j + 1], r[i + 1, j + 1], int(kept.sum()))
        assert p_values[i, j] == pytest.approx(float(expected))
    assert np.isnan(np.diag(p_values)).all()
    np.testing.assert_allclose(p_values + p_values.T, np.where(np.eye(3), np.nan, 1.0))
    assert p_values[0, 2] < 0.01


@every_statistic
@every_way
def test_every_statistic_can_be_resampled(name: str, over: str) -> None:
    data = ratings(2, noise=(0.3, 0.3))
    statistic = STATISTICS[name](data)
    good, bad = data.metrics[0], -data.metrics[1]
    interval = bootstrap_interval(statistic, good, over, resamples=200)
    assert interval.value == estimate(statistic, good)
    assert interval.low < interval.mean < interval.high
    assert interval.undefined < 20
    test = permutation_test(statistic, good, bad, over, resamples=200)
    assert test.value == estimate(statistic, good) - estimate(statistic, bad)
    assert test.p < 0.2  # six systems can be swapped in 64 ways only
    other = permutation_test(statistic, bad, good, over, resamples=200)
    assert other.value == -test.value
    assert other.p > 0.8


@every_statistic
@every_way
def test_a_scale_is_no_difference(name: str, over: str) -> None:
    data = ratings(3)
    statistic = STATISTICS[name](data)
    test = permutation_test(statistic, data.metrics[0], 4 * data.metrics[0] + 8, over, resamples=20)
    assert test.value == pytest.approx(0)
    assert test.p == 1
    turned = permutation_test(statistic, data.metrics[0], -data.metrics[0], over, resamples=20)
    assert turned.value > 0
    assert turned.p < 1


@every_statistic
def test_blocks_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = ratings(4)
    statistic = STATISTICS[name](data)
    whole = bootstrap_values(statistic, data.metrics[0], "both", 30, seed=5)
    p = permutation_p_values(statistic, data.metrics, "both", 30, seed=5)
    monkeypatch.setattr(significance, "BLOCK", 7 * len(statistic.sample.rows))
    np.testing.assert_array_equal(
        bootstrap_values(statistic, data.metrics[0], "both", 30, seed=5), whole
    )
    np.testing.assert_array_equal(
        permutation_p_values(statistic, data.metrics, "both", 30, seed=5), p
    )
    assert (bootstrap_values(statistic, data.metrics[0], "both", 30, seed=6) != whole).any()


def test_permutation_matrix_holds_the_tests_of_pairs() -> None:
    data = ratings(5, noise=(0.5, 1.0, 2.0))
    statistic = STATISTICS["text kendall"](data)
    p_values = permutation_p_values(statistic, data.metrics, resamples=100)
    for i, j in ((0, 1), (1, 0), (1, 2), (2, 0)):
        assert (
            p_values[i, j]
            == permutation_test(statistic, data.metrics[i], data.metrics[j], resamples=100).p
        )
    assert np.isnan(np.diag(p_values)).all()
    assert len(np.unique(p_values[~np.isnan(p_values)])) > 2


@pytest.mark.parametrize(
    "name", ["segment pearson", "text kendall", "text accuracy", "preferences"]
)
@pytest.mark.parametrize("over", ["inputs", "both"])
def test_permutation_is_uniform_where_metrics_are_equally_good(name: str, over: str) -> None:
    p_values = []
    for seed in range(150):
        data = ratings(seed, segments=15, systems=5, noise=(1.0, 1.0))
        first, second = data.metrics
        test = permutation_test(STATISTICS[name](data), first, second, over, resamples=99)
        p_values.append(test.p)
    assert stats.kstest(p_values, "uniform").pvalue > 0.001
    assert np.mean(np.array(p_values) <= 0.1) < 0.2


@pytest.mark.parametrize("how", CORRELATIONS)
def test_intervals_cover(how: str) -> None:
    rng = np.random.default_rng(0)
    # For two normal variables of correlation .6.
    truth = {
        "pearson": 0.6,
        "spearman": 6 / np.pi * np.arcsin(0.3),
        "kendall": 2 / np.pi * np.arcsin(0.6),
    }
    hits = 0
    for _ in range(200):
        human, noise = rng.normal(size=(2, 80))
        statistic = Correlation.of("segment", how, human)
        interval = bootstrap_interval(statistic, 0.6 * human + 0.8 * noise, resamples=300)
        hits += interval.low <= truth[how] <= interval.high
    assert 0.88 <= hits / 200 <= 0.99


def test_a_wider_confidence_is_wider_and_undefined_resamples_are_counted() -> None:
    data = ratings(6, systems=3)
    statistic = STATISTICS["system pearson"](data)
    narrow = bootstrap_interval(statistic, data.metrics[0], "systems", confidence=0.5)
    wide = bootstrap_interval(statistic, data.metrics[0], "systems", confidence=0.99)
    assert wide.low <= narrow.low <= narrow.high <= wide.high
    # One of nine times the same system is drawn three times over.
    assert wide.undefined == pytest.approx(1000 / 9, abs=40)


def test_nothing_to_say_is_said() -> None:
    data = ratings(7)
    flat = np.ones_like(data.human)
    statistic = STATISTICS["segment pearson"](data)
    assert np.isnan(bootstrap_interval(statistic, flat, resamples=20)[:4]).all()
    assert np.isnan(permutation_test(statistic, flat, data.metrics[0], resamples=20)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"over": "rows"}, "over='rows'; there is inputs, systems, both"),
        ({"over": "systems"}, "over='systems' needs at least two systems; there is one"),
        ({"resamples": 0}, "resamples=0; give a number from 1 up"),
        ({"confidence": 95}, "confidence=95; give a number between 0 and 1"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    statistic = Correlation.of("segment", "pearson", np.arange(5.0))
    with pytest.raises(InvalidInput, match=re.escape(message)):
        bootstrap_interval(statistic, np.arange(5.0), **settings)
    with pytest.raises(InvalidInput, match="at least 4 rows, and there are 3"):
        williams_test(0.1, 0.2, 0.3, 3)
