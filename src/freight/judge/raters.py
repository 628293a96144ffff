"""How far raters agree with each other: numbers (item, rater), nan where somebody did not rate."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from freight.errors import InvalidInput
from freight.types import Array


@dataclass(frozen=True, eq=False)
class RaterAgreement:
    """Correlations between raters two by two, and two numbers for all of them together.

    `complete` is the number of items that everybody rated, which ICC is computed from.
    """

    pearson: Array
    spearman: Array
    alpha: float
    icc: float
    complete: int


def rater_agreement(ratings: Array) -> RaterAgreement:
    """All the statistics below."""
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise InvalidInput("agreement needs the ratings of two raters or more")
    complete = int(np.isfinite(ratings).all(axis=1).sum())
    return RaterAgreement(
        pairwise(ratings),
        pairwise(ratings, ranks=True),
        krippendorff_alpha(ratings),
        icc2k(ratings),
        complete,
    )


def pairwise(ratings: Array, ranks: bool = False) -> Array:
    """Pearson's r, or Spearman's, of each two raters over what both rated: (rater, rater).

    nan where that is fewer than two items, or one of them rated all of it the same.
    """
    count = ratings.shape[1]
    found: Array = np.full((count, count), np.nan)
    np.fill_diagonal(found, 1.0)
    for i, j in combinations(range(count), 2):
        both = ratings[:, [i, j]]
        both = both[np.isfinite(both).all(axis=1)]
        if len(both) > 1 and (both != both[0]).any(axis=0).all():
            sides = rankdata(both, axis=0) if ranks else both
            found[i, j] = found[j, i] = np.corrcoef(sides.T)[0, 1]
    return found


def krippendorff_alpha(ratings: Array) -> float:
    """Krippendorff's alpha of numbers: 1 less the observed over the expected squared difference.

    Items that fewer than two rated are left out; nan where nothing differs anywhere.
    """
    pairable = ratings[np.isfinite(ratings).sum(axis=1) > 1]
    if not len(pairable):
        return float("nan")
    there = np.isfinite(pairable)
    counts, total = there.sum(axis=1), there.sum()
    middle = np.nanmean(pairable)
    squares = np.nansum((pairable - middle) ** 2)
    apart = pairable - np.nanmean(pairable, axis=1, keepdims=True)
    within = np.nansum(apart**2, axis=1)
    observed = (counts * within / (counts - 1)).sum() / total
    expected = squares / (total - 1)
    return float(1 - observed / expected) if expected > 0 else float("nan")


def icc2k(ratings: Array) -> float:
    """ICC(2,k) of Shrout and Fleiss (1979): how reliable the mean of these raters is.

    Two-way random effects, absolute agreement; over the items that everybody rated, nan where they
    are fewer than two or nothing differs.
    """
    whole = ratings[np.isfinite(ratings).all(axis=1)]
    items, raters = whole.shape
    if items < 2 or raters < 2:
        return float("nan")
    middle = whole.mean()
    by_item, by_rater = whole.mean(axis=1, keepdims=True), whole.mean(axis=0, keepdims=True)
    between = raters * ((by_item - middle) ** 2).sum() / (items - 1)
    across = items * ((by_rater - middle) ** 2).sum() / (raters - 1)
    left = ((whole - by_item - by_rater + middle) ** 2).sum() / ((items - 1) * (raters - 1))
    scale = between + (across - left) / items
    return float((between - left) / scale) if scale > 0 else float("nan")
