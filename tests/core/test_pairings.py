"""Padded batches: what each row holds, and what its dummies and its padding may not touch."""

from dataclasses import replace

import numpy as np
import pytest

import freight
from clouds import cloud, measures
from freight.core import costs
from freight.core.costs import (
    CELLS,
    MOST_CELLS,
    NestedPairs,
    PointPairs,
    buckets,
    check_cells,
    side_by_side,
)
from freight.core.metric import measures_of_points
from freight.core.weightings import Mass, Sentences

ONE, TWO = [[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]


def test_a_batch_has_the_pairs_of_the_index_with_their_masses_and_sizes() -> None:
    both = measures(ONE, TWO)
    (pairs,) = side_by_side(both, both, np.array([[0, 1], [1, 0], [1, 1]]))
    assert pairs.which.tolist() == [0, 1, 2]
    assert pairs.hyp_sizes.tolist() == [1, 2, 2]
    assert pairs.ref_sizes.tolist() == [2, 1, 2]
    assert pairs.hyp_weights[:, :3].tolist() == [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]
    assert pairs.hyp_weights.shape == (3, 16)
    assert pairs.present.sum(axis=(1, 2)).tolist() == [2, 2, 4]
    assert pairs.moved.tolist() == [1.0, 1.0, 1.0]


def test_dummy_rows_are_cut_before_a_cost_sees_them() -> None:
    both = measures(ONE, TWO)
    (pairs,) = side_by_side(both, both, np.array([[0, 1]]))
    assert isinstance(pairs, PointPairs)
    assert len(pairs.padded_points[0]) == CELLS // 16**2
    assert len(pairs.points[0]) == len(pairs.similarity()) == len(costs.cosine(pairs)) == 1
    assert len(pairs.squared_distances()) == 1


def test_orthogonal_pairs_have_similarity_0() -> None:
    both = measures(TWO, TWO)
    (pairs,) = side_by_side(both, both, np.array([[0, 1]]))
    assert pairs.similarity()[0, :2, :2].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert not pairs.orthogonal().similarity().any()


def test_one_row_is_a_batch_of_one() -> None:
    both = measures(ONE, TWO)
    (pairs,) = side_by_side(both, both, np.array([[0, 1], [1, 0]]))
    row = pairs.rows(slice(1, 2))
    assert row.which.tolist() == [1]
    assert row.hyp_sizes.tolist() == [2]
    assert row.similarity()[0, :2, :1].tolist() == pairs.similarity()[1, :2, :1].tolist()


def test_units_that_are_measures_bring_them_along() -> None:
    texts = cloud(["a b. c", "a"], [[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 0.0]]])
    sentences = Sentences(Mass())(texts)
    (pairs,) = side_by_side(sentences, sentences, np.array([[0, 1]]))
    assert isinstance(pairs, NestedPairs)
    assert pairs.hyp_sizes.tolist() == [2]
    parts = pairs.hyp_parts
    first = pairs.hyp_units[0, 0]
    assert parts.offsets[first + 1] - parts.offsets[first] == 2
    np.testing.assert_allclose(pairs.hyp_weights[0, :2], [2 / 3, 1 / 3])
    assert not pairs.orthogonal().similarity().any()


def test_buckets_are_cut_by_their_cells_longest_first() -> None:
    cut = list(buckets(np.array([3, 40, 17, 16]), cells=1024))
    assert [(width, rows, which.tolist()) for width, rows, which in cut] == [
        (48, 1, [1]),
        (32, 1, [2]),
        (16, 4, [0, 3]),
    ]


def test_texts_too_long_for_a_matrix_are_refused() -> None:
    check_cells(MOST_CELLS // 4, 4)
    with pytest.raises(freight.InvalidInput, match="too long to be matched"):
        check_cells(MOST_CELLS // 4, 5)


def test_literal_units_are_equal_or_orthogonal_whatever_their_vectors_are() -> None:
    same = [[0.6, 0.8]]
    plain = measures(same * 2, same * 2, [[1.0, 0.0]])
    literal = replace(
        plain, ids=np.array([7, 8, 8, 9, 0]), literal=np.array([True, True, True, False, False])
    )
    (pairs,) = side_by_side(literal, literal, np.array([[0, 1]]))
    assert isinstance(pairs, PointPairs)
    np.testing.assert_allclose(pairs.similarity()[0, :2, :2], [[0.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(
        pairs.squared_distances()[0, :2, :2], [[2.0, 0.0], [0.0, 0.0]], atol=1e-12
    )
    assert not pairs.orthogonal().similarity()[0, :2, :2].any()
    assert pairs.rows(slice(0, 1)).similarity().tolist() == pairs.similarity().tolist()


def test_without_literal_units_on_both_sides_nothing_is_compared_by_characters() -> None:
    plain = measures(ONE, TWO)
    one_sided = replace(plain, literal=np.array([True, False, False]))
    for both in (plain, one_sided):
        (pairs,) = side_by_side(both, both, np.array([[0, 1]]))
        assert isinstance(pairs, PointPairs)
        assert pairs.spellings is None


def test_cosines_never_leave_their_range() -> None:
    points = np.random.default_rng(0).normal(size=(400, 1, 37)).astype(np.float32)
    both = measures_of_points(list(points))
    index = np.repeat(np.arange(400), 2).reshape(-1, 2)
    similarities = np.concatenate(
        [pairs.similarity()[:, 0, 0] for pairs in side_by_side(both, both, index)]
    )
    assert similarities.max() == 1.0
