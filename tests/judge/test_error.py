"""Errors against the human score: worked by hand, beside scipy, and honest under the null."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from freight.errors import InvalidInput
from freight.judge.error import bootstrap_errors, bootstrap_t_test, mae, mse, paired_test, rescale
from ratings import Floats


def three(seed: int = 0, rows: int = 150) -> tuple[Floats, Floats, Floats]:
    """Human scores, a metric near them, and one that is further off."""
    rng = np.random.default_rng(seed)
    human = rng.uniform(size=rows)
    near, far = human + 0.1 * rng.normal(size=rows), human + 0.2 * rng.normal(size=rows)
    return human, near, far


def test_worked_by_hand() -> None:
    human = rescale(np.array([0, 5, 10, np.nan]), 0, 10)
    np.testing.assert_array_equal(human, [0, 0.5, 1, np.nan])
    metric = np.array([0.5, 0.5, 0.0, np.nan])  # off by .5, 0 and 1
    assert mae(metric, human) == pytest.approx(1.5 / 3)
    assert mse(metric, human) == pytest.approx(1.25 / 3)


@settings(deadline=None)
@given(values=st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20, unique=True))
def test_a_range_of_its_own(values: list[float]) -> None:
    scaled = rescale(np.array(values))
    assert scaled.min() == 0
    assert scaled.max() == 1
    np.testing.assert_array_equal(np.argsort(scaled, kind="stable")[0], np.argmin(values))


def test_bootstrap_means_and_intervals() -> None:
    human, near, _ = three()
    intervals = bootstrap_errors(near, human, resamples=4000)
    errors = np.abs(near - human)
    for kind, rows in (("mae", errors), ("mse", errors**2)):
        value, mean, low, high, undefined = intervals[kind]
        assert value == pytest.approx(rows.mean())
        spread = rows.std() / np.sqrt(len(rows))
        assert mean == pytest.approx(value, abs=0.1 * spread)
        assert low == pytest.approx(value - 1.96 * spread, abs=0.3 * spread)
        assert high == pytest.approx(value + 1.96 * spread, abs=0.3 * spread)
        assert undefined == 0
    assert bootstrap_errors(near, human, resamples=50) == bootstrap_errors(near, human, 50, seed=0)
    assert bootstrap_errors(near, human, 50, seed=1) != bootstrap_errors(near, human, 50)


def test_what_is_found_does_not_depend_on_the_size_of_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    human, near, _ = three()
    whole = bootstrap_errors(near, human, resamples=100)
    monkeypatch.setattr("freight.judge.significance.BLOCK", 1000)
    parts = bootstrap_errors(near, human, resamples=100)
    for kind, error in whole.items():
        assert error.low < error.value < error.high
        assert parts[kind] == pytest.approx(error, rel=1e-12)


@pytest.mark.parametrize("error", ["mse", "mae"])
def test_paired_test_is_what_scipy_says(error: str) -> None:
    human, near, far = three(rows=40)
    power = 2 if error == "mse" else 1
    sides = [np.abs(metric - human) ** power for metric in (near, far)]
    t, p = stats.ttest_rel(*sides)
    test = paired_test(near, far, human, error)
    assert test[:3] == pytest.approx((sides[0].mean() - sides[1].mean(), t, p))
    expected = stats.permutation_test(
        sides,
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        n_resamples=10_000,
        vectorized=True,
        rng=np.random.default_rng(1),
    )
    assert test.permutation_p == pytest.approx(expected.pvalue, abs=0.01)
    other = paired_test(far, near, human, error)
    assert other == pytest.approx((-test.difference, -test.t, test.p, test.permutation_p))


def test_the_same_metric_twice_is_no_difference() -> None:
    human, near, far = three()
    assert paired_test(near, near, human) == (0, 0, 1, 1)
    assert max(paired_test(near, far, human)[2:]) < 0.01


def test_more_bootstraps_make_the_bootstrap_t_test_surer_of_nothing() -> None:
    human, near, _ = three(3)
    also = 2 * human - near  # off by as much, the other way, but for a little
    also[:5] += 0.02
    few, many = (bootstrap_t_test(near, also, human, "mae", n) for n in (100, 20_000))
    assert few.difference == many.difference
    assert many.p < 1e-6 < few.p
    assert paired_test(near, also, human, "mae").p == pytest.approx(
        paired_test(near, also, human, "mae", resamples=10).p
    )


def test_no_difference_gives_any_p_alike() -> None:
    rng = np.random.default_rng(0)
    human = rng.uniform(size=(200, 60))
    noise = 0.1 * rng.normal(size=(2, 200, 60))
    tests = [
        paired_test(h + a, h + b, h, resamples=200) for h, a, b in zip(human, *noise, strict=True)
    ]
    for p in ([test.p for test in tests], [test.permutation_p for test in tests]):
        assert stats.kstest(p, "uniform").pvalue > 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 1],), "cannot scale from [1.0, 1.0]; give low below high"),
        (([1, 2], 0, 1.5), "the human score 2.0 is not in [0, 1.5]; widen low and high"),
        (([np.nan],), "no row has a human score"),
    ],
)
def test_bad_scales_are_named(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        rescale(*arguments)  # type: ignore[arg-type]


def test_unknown_errors_are_named() -> None:
    with pytest.raises(InvalidInput, match="error='rmse'; there is mse, mae"):
        paired_test(np.ones(3), np.ones(3), np.ones(3), "rmse")
