"""Costs between vectors whose cosines and distances are known."""

import math

import numpy as np
import pytest
import torch

import freight
from clouds import cloud, measures
from freight.core import costs
from freight.core.costs import side_by_side
from freight.core.types import Pairs
from freight.core.weightings import Mass, Sentences

HALF = math.sqrt(0.5)


def pairs_of(hyp: list[list[float]], ref: list[list[float]]) -> Pairs:
    both = measures(hyp, ref)
    (pairs,) = side_by_side(both, both, np.array([[0, 1]]))
    return pairs


def values(cost: costs.Cost, pairs: Pairs) -> np.ndarray:
    n, m = int(pairs.hyp_sizes[0]), int(pairs.ref_sizes[0])
    return np.asarray(cost(pairs)[0, :n, :m].double())


PAIR = pairs_of([[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [1.0, 1.0], [-1.0, 0.0]])


def test_cosine_is_one_minus_similarity() -> None:
    expected = [[0.0, 1.0 - HALF, 2.0], [1.0, 1.0 - HALF, 1.0]]
    np.testing.assert_allclose(values(costs.cosine, PAIR), expected, atol=1e-7)


def test_clipping_makes_opposite_vectors_as_far_as_orthogonal_ones() -> None:
    expected = [[0.0, 1.0 - HALF, 1.0], [1.0, 1.0 - HALF, 1.0]]
    np.testing.assert_allclose(values(costs.clipped_cosine, PAIR), expected, atol=1e-7)


def test_a_zero_vector_is_orthogonal_to_everything() -> None:
    np.testing.assert_allclose(values(costs.cosine, pairs_of([[0.0, 0.0]], [[1.0, 0.0]])), [[1.0]])


def test_log_cosine_is_cut_at_its_floor() -> None:
    expected = [[0.0, -math.log(HALF), -math.log(0.05)], [-math.log(0.05)] * 3]
    expected[1][1] = -math.log(HALF)
    np.testing.assert_allclose(values(costs.LogCosine(0.05), PAIR), expected, atol=1e-6)


def test_distances() -> None:
    squared = [[4.0, 1.0, 4.0], [13.0, 2.0, 5.0]]
    np.testing.assert_allclose(values(costs.squared_euclidean, PAIR), squared, atol=1e-5)
    np.testing.assert_allclose(values(costs.euclidean, PAIR), np.sqrt(squared), atol=1e-7)


def test_order_is_the_difference_of_relative_positions() -> None:
    expected = [[abs(i / 2 - j / 3) for j in (1, 2, 3)] for i in (1, 2)]
    np.testing.assert_allclose(values(costs.order, PAIR), expected, atol=1e-12)


def test_a_mix_is_the_weighted_sum_and_names_its_terms() -> None:
    mix = costs.with_order(costs.cosine, 0.25)
    expected = 0.75 * values(costs.cosine, PAIR) + 0.25 * values(costs.order, PAIR)
    np.testing.assert_allclose(values(mix, PAIR), expected, atol=1e-7)
    terms = costs.cost_terms(mix, PAIR)
    assert list(terms) == ["meaning", "order"]
    np.testing.assert_allclose(
        np.asarray(terms["order"][0, :2, :3]), 0.25 * values(costs.order, PAIR)
    )
    assert costs.with_order(costs.cosine, 0.0) is costs.cosine
    assert costs.cost_terms(costs.cosine, PAIR) == {}
    with pytest.raises(freight.InvalidInput, match=r"order=1\.5"):
        costs.with_order(costs.cosine, 1.5)


def test_neighbours_are_averaged_along_the_diagonal() -> None:
    base = values(costs.cosine, PAIR)
    near = values(costs.Neighbours(costs.cosine, 0.5), PAIR)
    assert near[0, 0] == pytest.approx((base[0, 0] + 0.5 * base[1, 1]) / 1.5, abs=1e-6)
    assert near[0, 2] == pytest.approx(base[0, 2], abs=1e-6)  # no neighbour on either side
    assert near[1, 2] == pytest.approx((base[1, 2] + 0.5 * base[0, 1]) / 1.5, abs=1e-6)
    np.testing.assert_allclose(values(costs.Neighbours(costs.cosine, 0.0), PAIR), base)


def test_sentences_cost_what_transporting_their_words_costs() -> None:
    east, north = [1.0, 0.0], [0.0, 1.0]
    texts = cloud(["a b. c", "a. c"], [[east, north, north], [east, north]])
    sentences = Sentences(Mass())(texts)
    (pairs,) = side_by_side(sentences, sentences, np.array([[0, 1]]))
    cost = costs.Inner(costs.cosine, freight.Problem())
    np.testing.assert_allclose(values(cost, pairs), [[0.5, 0.5], [1.0, 0.0]], atol=1e-7)
    with pytest.raises(freight.InvalidInput, match="compares sentences"):
        cost(PAIR)


def test_a_cost_of_the_wrong_shape_is_named() -> None:
    metric = freight.load("emd", encoder="hashed")
    wrong = type(metric)(**{**vars(metric), "cost": lambda pairs: torch.zeros(3, 2)})
    with pytest.raises(freight.InvalidInput, match=r"cost of emd has shape \(3, 2\)"):
        wrong.score(["a b"], ["a"])
