"""Comparisons of a set: the level and statistic that data ask for, methods, and tests."""

from dataclasses import replace

import numpy as np
import pytest

from freight.data.judgements import Judgements
from freight.judge.comparisons import (
    LevelComparison,
    StatisticOptions,
    choose_statistic,
    comparison_of,
    criteria,
    ratings,
)
from freight.judge.error import paired_test, rescale
from studies import preferred, rated

RATED = rated("rated", 10, 3, ("sense", "form"))
PREFERRED = replace(preferred("pairs", 10, 3, 20), human={})
WHOLE = replace(RATED, human={}, system_human={"da": np.array([1.0, 3.0, 2.0])})


def compared(judged: Judgements, level: str, statistic: str, criterion: str) -> LevelComparison:
    usable = np.ones(len(judged), bool)
    options = StatisticOptions(50, 0, None)
    comparison = comparison_of(judged, usable, level, statistic, criterion, options)
    assert comparison is not None
    return comparison


@pytest.mark.parametrize(
    ("judged", "level", "statistic", "expected"),
    [
        (RATED, None, None, ("segment", "pearson")),
        (RATED, "text", None, ("text", "pearson")),
        (RATED, None, "kendall", ("segment", "kendall")),
        (RATED, None, "accuracy", ("text", "accuracy")),
        (RATED, None, "soft-accuracy", ("system", "soft-accuracy")),
        (RATED, None, "mae", ("segment", "mae")),
        (PREFERRED, None, None, ("darr", "tau")),
        (WHOLE, None, None, ("system", "pearson")),
        (WHOLE, None, "spearman", ("system", "spearman")),
    ],
)
def test_what_is_not_given_follows_from_the_data(
    judged: Judgements, level: str | None, statistic: str | None, expected: tuple[str, str]
) -> None:
    assert choose_statistic([judged], level, statistic) == expected


def test_criteria_and_ratings_by_level() -> None:
    both = replace(RATED, system_human={"da": np.array([1.0, 3.0, 2.0])})
    assert criteria(both, "segment", "pearson") == ("sense", "form")
    assert criteria(both, "system", "pearson") == ("da", "sense", "form")
    assert criteria(both, "system", "soft-accuracy") == ("sense", "form")
    assert criteria(PREFERRED, "darr", "tau") == ("",)
    assert ratings(both, "system", "da").tolist() == [1.0, 3.0, 2.0] * 10
    assert (ratings(both, "system", "sense") == both.human["sense"]).all()


def test_methods_name_interval_test_sidedness_and_number_of_resamples() -> None:
    start = "95 % percentile bootstrap intervals from 50 resamples of "
    permuted = "; one-sided p-values from paired permutation tests with 50 "
    assert compared(RATED, "segment", "pearson", "sense").method == (
        f"{start}inputs; one-sided p-values from Williams' test"
    )
    assert compared(RATED, "text", "kendall", "sense").method == (
        f"{start}inputs{permuted}permutations of inputs"
    )
    assert compared(RATED, "system", "pearson", "sense").method == (
        f"{start}systems{permuted}permutations of systems"
    )
    errors = compared(RATED, "segment", "mse", "sense").method
    assert errors.endswith(f"{start}rows{permuted}sign flips of the differences")
    soft = compared(RATED, "system", "soft-accuracy", "sense").method
    assert soft.startswith(f"{start}systems{permuted}permutations of systems; confidences")


def test_one_sided_p_values_of_errors_come_from_the_two_sided_one() -> None:
    human = rescale(RATED.human["sense"])
    rng = np.random.default_rng(0)
    near, far = (human + size * rng.normal(size=len(human)) for size in (0.3, 0.4))
    p_values = compared(RATED, "segment", "mse", "sense").p_values(np.stack((near, far)))
    assert p_values is not None
    two_sided = paired_test(near, far, human, "mse", 50).permutation_p
    assert 0 < two_sided < 1
    assert p_values[0, 1] == two_sided / 2
    assert p_values[1, 0] == 1 - two_sided / 2
    assert np.isnan(np.diag(p_values)).all()


def test_equal_ratings_and_pairs_without_scores_give_no_comparison() -> None:
    flat = replace(RATED, human={"flat": np.ones(len(RATED))})
    usable, options = np.ones(len(RATED), bool), StatisticOptions()
    assert comparison_of(flat, usable, "segment", "pearson", "flat", options) is None
    assert comparison_of(PREFERRED, ~usable, "darr", "tau", "", options) is None
    assert comparison_of(PREFERRED, usable, "darr", "tau", "", options) is not None
