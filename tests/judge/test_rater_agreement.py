"""Agreement between raters against cases worked by hand, and published ones."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from freight.errors import InvalidInput
from freight.judge.annotation import icc2k, krippendorff_alpha, rater_agreement, rater_correlations

N = np.nan
# Shrout and Fleiss (1979), table 2: six targets, four judges; ICC(2,4) is .62.
SHROUT = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float
)
# Krippendorff's example of four observers with missing values; alpha for intervals is .849.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
        [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
    ]
).T


def test_published_cases() -> None:
    assert icc2k(SHROUT) == pytest.approx(0.62, abs=0.005)
    assert krippendorff_alpha(OBSERVERS) == pytest.approx(0.849, abs=0.0005)


def test_alpha_by_hand() -> None:
    # Items (1, 2) and (3, 3). Within items the four ordered pairs differ by 1, 1, 0, 0 squared:
    # observed (1 + 1 + 0 + 0) / 4 = 1/2. Between all values 1, 2, 3, 3 the six pairs differ by
    # 1, 4, 4, 1, 1, 0 squared, 11 in all: expected 11 / 6. Alpha 1 - (1/2) / (11/6) = 8/11.
    assert krippendorff_alpha(np.array([[1.0, 2.0], [3.0, 3.0]])) == pytest.approx(8 / 11)
    # An item that one person rated says nothing.
    more = np.array([[1.0, 2.0], [3.0, 3.0], [9.0, N]])
    assert krippendorff_alpha(more) == pytest.approx(8 / 11)


def test_icc_by_hand() -> None:
    # Items (1, 2) and (3, 3): the mean is 9/4, items' means 3/2 and 3, raters' means 2 and 5/2.
    # Between items 2 (9/16 + 9/16) / 1 = 9/4, across raters 2 (1/16 + 1/16) / 1 = 1/4, residuals
    # are 1/4 each: 4/16 / 1 = 1/4. (9/4 - 1/4) / (9/4 + (1/4 - 1/4) / 2) = 8/9.
    assert icc2k(np.array([[1.0, 2.0], [3.0, 3.0]])) == pytest.approx(8 / 9)
    assert icc2k(np.array([[1.0, 2.0], [3.0, 3.0], [N, 7.0]])) == pytest.approx(8 / 9)


def test_pairwise_takes_what_both_rated() -> None:
    # 1, 2, 3 against 1, 3, 2: r = 1/2 either way; the fourth item was rated by one of them.
    ratings = np.array([[1.0, 1.0, 5.0], [2.0, 3.0, 5.0], [3.0, 2.0, 5.0], [9.0, N, 5.0]])
    for ranks in (False, True):
        correlations = rater_correlations(ratings, ranks)
        assert correlations[0, 1] == correlations[1, 0] == pytest.approx(0.5)
        assert np.isnan(correlations[:2, 2]).all()  # the third said the same of everything
        np.testing.assert_array_equal(np.diag(correlations), 1)


def test_pairwise_is_scipys() -> None:
    ratings = np.random.default_rng(0).integers(0, 6, (40, 3)).astype(float)
    x, _, z = ratings.T
    assert rater_correlations(ratings)[0, 2] == pytest.approx(pearsonr(x, z)[0])
    assert rater_correlations(ratings, ranks=True)[0, 2] == pytest.approx(spearmanr(x, z)[0])


def test_raters_who_agree_and_raters_who_say_nothing() -> None:
    same = rater_agreement(np.repeat([[1.0], [2.0], [5.0]], 3, axis=1))
    assert (same.alpha, same.icc, same.complete) == (1, 1, 3)
    assert (same.pearson == 1).all()
    flat = rater_agreement(np.full((4, 2), 3.0))
    assert np.isnan([flat.alpha, flat.icc]).all()
    assert np.isnan(krippendorff_alpha(np.array([[1.0, N], [N, 2.0]])))
    with pytest.raises(InvalidInput, match="two raters"):
        rater_agreement(np.ones((3, 1)))
    # Where all differ at random there is no agreement beyond chance.
    noise = np.random.default_rng(1).normal(size=(20_000, 4))
    assert krippendorff_alpha(noise) == pytest.approx(0, abs=0.01)
    assert icc2k(noise) == pytest.approx(0, abs=0.05)
