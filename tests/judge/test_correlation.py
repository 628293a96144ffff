"""Correlations beside scipy's, worked by hand, and under the laws that they obey."""

import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from freight.errors import InvalidInput
from freight.judge.correlation import (
    CORRELATIONS,
    Correlation,
    correlation_matrix,
    kendall,
    pearson,
    segment_level,
    spearman,
    system_level,
    text_level,
)
from freight.judge.levels import Draws
from ratings import Floats, Ratings, ratings

SCIPY: dict[str, Callable[[Floats, Floats], float]] = {
    "pearson": lambda x, y: float(stats.pearsonr(x, y)[0]),
    "spearman": lambda x, y: float(stats.spearmanr(x, y)[0]),
    "kendall": lambda x, y: float(stats.kendalltau(x, y)[0]),
}
every_correlation = pytest.mark.parametrize("how", CORRELATIONS)
pairs_of_numbers = st.lists(
    st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=40
).map(lambda pairs: np.array(pairs, float).T)


def by_scipy(x: Floats, y: Floats, how: str) -> float:
    if len(set(x)) < 2 or len(set(y)) < 2:
        return np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SCIPY[how](x, y)


def test_worked_by_hand() -> None:
    # Deviations -1.5 -.5 .5 1.5 and -1.5 .5 -.5 1.5: 4 / 5. One of six pairs is discordant.
    x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])
    assert pearson(x, y) == pytest.approx(0.8)
    assert spearman(x, y) == pytest.approx(0.8)
    assert kendall(x, y) == pytest.approx((5 - 1) / 6)


def test_ties_worked_by_hand() -> None:
    # Ranks 1 2.5 2.5 4 and 1 2 3.5 3.5: 3.75 / 4.5. Four concordant pairs, a tie on each side.
    x, y = np.array([1.0, 2, 2, 3]), np.array([1.0, 2, 3, 3])
    assert spearman(x, y) == pytest.approx(3.75 / 4.5)
    assert kendall(x, y) == pytest.approx(4 / 5)


def test_text_level_worked_by_hand() -> None:
    # Four segments of three systems: 1, one half, one human score for all, and a constant metric.
    human = np.array([1, 2, 3, 1, 2, 3, 2, 2, 2, 1, 2, 3.0])
    metric = np.array([4, 5, 6, 1, 3, 2, 1, 2, 3, 7, 7, 7.0])
    segments = np.repeat([10, 7, 3, 8], 3)
    correlation = text_level(metric, human, segments)
    assert correlation.value == pytest.approx((1 + 0.5 + 0) / 3)
    assert (correlation.used, correlation.skipped) == (3, 1)


def test_system_level_worked_by_hand() -> None:
    # Means 2 3 7 and 1 3 2: deviations -2 -1 3 and -1 1 0, so 1 / sqrt(14 * 2).
    metric, human = np.array([1, 2, 6, 3, 4, 8.0]), np.array([0, 3, 1, 2, 3, 3.0])
    systems = np.array([5, 9, 2, 5, 9, 2])
    assert system_level(metric, human, systems) == pytest.approx(1 / np.sqrt(28))
    assert system_level(metric, human, systems, "kendall") == pytest.approx(1 / 3)


@every_correlation
@settings(deadline=None)
@given(xy=pairs_of_numbers)
def test_it_is_what_scipy_says(how: str, xy: Floats) -> None:
    x, y = xy
    np.testing.assert_allclose(CORRELATIONS[how](x, y), by_scipy(x, y, how), atol=1e-12)


@every_correlation
def test_many_rows(how: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=5000)
    y = np.round(x + rng.normal(size=5000), 1)
    assert segment_level(x, y, how) == pytest.approx(by_scipy(x, y, how), abs=1e-12)


@every_correlation
@settings(deadline=None)
@given(xy=pairs_of_numbers, seed=st.integers(0, 99))
def test_neither_order_nor_side_matters(how: str, xy: Floats, seed: int) -> None:
    correlate = CORRELATIONS[how]
    order = np.random.default_rng(seed).permutation(xy.shape[1])
    x, y = xy
    expected = by_scipy(x, y, how)
    for other in (correlate(x[order], y[order]), correlate(y, x), -correlate(-x, y)):
        np.testing.assert_allclose(other, expected, atol=1e-12)


@settings(deadline=None)
@given(xy=pairs_of_numbers)
def test_rank_statistics_see_order_alone(xy: Floats) -> None:
    x, y = xy
    for how in ("spearman", "kendall"):
        changed = CORRELATIONS[how](np.exp(x), y**3)
        np.testing.assert_allclose(changed, by_scipy(x, y, how), atol=1e-12)


@settings(deadline=None)
@given(xy=pairs_of_numbers, scale=st.floats(0.1, 50), shift=st.floats(-50, 50))
def test_pearson_sees_no_scale(xy: Floats, scale: float, shift: float) -> None:
    x, y = xy
    expected = by_scipy(x, y, "pearson")
    np.testing.assert_allclose(pearson(scale * x + shift, y), expected, atol=1e-9)


def written_out(level: str, how: str, data: Ratings, draws: Draws) -> float:
    """The statistic of a resample whose rows were copied, by scipy."""
    human, (metric, *_), segments, systems = data
    times = (draws.segments[0, segments] * draws.systems[0, systems]).astype(int)
    if level == "segment":
        return by_scipy(metric.repeat(times), human.repeat(times), how)
    if level == "text":
        values, counts = [], []
        for segment, count in enumerate(draws.segments[0]):
            here = segments == segment
            copies = draws.systems[0, systems[here]].astype(int)
            y = human[here].repeat(copies)
            if count and len(set(y)) > 1:
                values.append(np.nan_to_num(by_scipy(metric[here].repeat(copies), y, how)))
                counts.append(count)
        return float(np.average(values, weights=counts))
    x, y = [], []
    for system, count in enumerate(draws.systems[0]):
        here = systems == system
        copies = draws.segments[0, segments[here]].astype(int)
        if copies.any():
            x += [metric[here].repeat(copies).mean()] * int(count)
            y += [human[here].repeat(copies).mean()] * int(count)
    # Means of the same numbers may differ in their last bit, which is no difference.
    return by_scipy(np.round(x, 9), np.round(y, 9), how)


@every_correlation
@pytest.mark.parametrize("level", ["segment", "text", "system"])
@pytest.mark.parametrize("seed", range(5))
def test_a_weight_is_a_number_of_copies(level: str, how: str, seed: int) -> None:
    data = ratings(seed, missing=0.3)
    rng = np.random.default_rng(seed)
    draws = Draws(rng.integers(0, 3, (4, 12)).astype(float), rng.integers(0, 3, (4, 6)) + 0.0)
    statistic = Correlation.of(level, how, data.human, data.segments, data.systems)
    values = statistic(statistic.sample.scores(data.metrics[0]), draws)
    rows = [Draws(*(side[None, k] for side in draws)) for k in range(4)]
    expected = [written_out(level, how, data, row) for row in rows]
    np.testing.assert_allclose(values, expected, atol=1e-9)


@every_correlation
def test_text_and_system_level_as_scipy_has_them(how: str) -> None:
    data = ratings(3)
    once = Draws(np.ones((1, 12)), np.ones((1, 6)))
    human, (metric, _), segments, systems = data
    text = text_level(metric, human, segments, how)
    assert text.value == pytest.approx(written_out("text", how, data, once))
    assert text.used + text.skipped == len(set(segments))
    system = system_level(metric, human, systems, how)
    assert system == pytest.approx(written_out("system", how, data, once))


@every_correlation
def test_a_constant_side_has_no_correlation(how: str) -> None:
    # 0.1 has no exact mean: variance by rounding is none.
    assert np.isnan(CORRELATIONS[how](np.full(7, 0.1), np.arange(7.0)))
    assert np.isnan(CORRELATIONS[how](np.arange(7.0), np.full(7, 0.1)))


def test_no_segment_to_go_by() -> None:
    correlation = text_level(np.arange(3.0), np.arange(3.0), np.arange(3))
    assert np.isnan(correlation.value)
    assert (correlation.used, correlation.skipped) == (0, 3)


@every_correlation
def test_rows_without_a_human_score_are_left_out(how: str) -> None:
    human, (metric, _), segments, systems = ratings(4)
    holes = human.copy()
    holes[::5] = np.nan
    kept = ~np.isnan(holes)
    spoilt = np.where(kept, metric, np.nan)  # a metric need not score what nobody rated
    assert segment_level(spoilt, holes, how) == segment_level(metric[kept], human[kept], how)
    assert segment_level(spoilt, holes, how) == pytest.approx(
        by_scipy(metric[kept], human[kept], how)
    )
    assert segment_level(spoilt, holes, how) != segment_level(metric, human, how)
    some = text_level(spoilt, holes, segments, how)
    assert some == text_level(metric[kept], human[kept], segments[kept], how)
    assert system_level(spoilt, holes, systems, how) == pytest.approx(
        system_level(metric[kept], human[kept], systems[kept], how)
    )


def test_matrix() -> None:
    columns = np.random.default_rng(0).normal(size=(3, 50))
    np.testing.assert_allclose(correlation_matrix(columns), np.corrcoef(columns), atol=1e-12)
    columns[0, :10] = np.nan
    columns[1, 5:20] = np.nan
    ours = correlation_matrix(columns, "kendall")
    assert ours[0, 1] == ours[1, 0] == kendall(columns[0, 20:], columns[1, 20:])
    assert ours[0, 2] == kendall(columns[0, 10:], columns[2, 10:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("segment", "r", [1, 2]), "how='r'; there is pearson, spearman, kendall"),
        (("word", "pearson", [1, 2]), "level='word'; there is segment, text, system"),
        (("text", "pearson", [1, 2]), "level='text' needs to know each row's segment"),
        (("system", "pearson", [1, 2]), "level='system' needs to know each row's system"),
        (("text", "pearson", [1, 2], [1]), "segments has shape (1,), and there are 2 rows"),
        (("segment", "pearson", [np.nan, np.nan]), "no row has a human score"),
        (("segment", "pearson", [1, np.inf]), "the human score of row 1 is infinite"),
        (("segment", "pearson", [[1], [2]]), "human has shape (2, 1), and there are 2 rows"),
    ],
)
def test_bad_input_is_named(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Correlation.of(*arguments)  # type: ignore[arg-type]


def test_a_metric_that_did_not_score_is_an_error() -> None:
    metric, human = np.array([1, 2, np.nan, np.inf, 3]), np.array([np.nan, 2, 3, 4, 5])
    with pytest.raises(
        InvalidInput, match="2 of 4 metric scores are not finite, the first in row 2"
    ):
        pearson(metric, human)
    with pytest.raises(InvalidInput, match=r"metric has shape \(3,\), and there are 5 rows"):
        pearson(metric[:3], human)
