"""Errors that published implementations make in silence, and what Freight does instead."""

from itertools import permutations

import numpy as np
import pytest

import freight
from freight.core.metric import Metric
from freight.errors import UnknownVocabulary

WIDE = [("a cat", "a dog"), ("the cat sat", "the of and")]


def test_transport_ranks_backwards_on_wide_costs_and_the_objective_does_not() -> None:
    """Lazy-EMD on MiniLM's last layer; the authors' cut makes it worse."""
    hyps, refs = zip(*WIDE, strict=True)
    ours = freight.load("lazy-emd", layer=-1).score(hyps, refs)
    authors = freight.load("lazy-emd", layer=-1, preset="authors").score(hyps, refs)
    assert authors["transport"] == pytest.approx([0.1846, 0.1297], abs=1e-4)
    assert ours["transport"] == pytest.approx([0.1846, 0.1782], abs=1e-4)
    assert ours["objective"] == pytest.approx([0.2731, 0.4327], abs=1e-4)


@pytest.mark.parametrize("name", ["emd", "bert-score", "yisi-1", "bary-score"])
def test_idf_of_one_pair_gives_neither_nan_nor_a_perfect_score(name: str) -> None:
    metric = freight.load(name, idf="ref")
    same = metric.score(["a cat sat"], ["a cat sat"])
    other = metric.score(["a cat sat"], ["stocks fell sharply"])
    primary = metric.columns[0]
    assert same[primary.name][0] == pytest.approx(primary.perfect, abs=1e-5)
    assert abs(other[primary.name][0] - primary.perfect) > 0.05
    if name != "yisi-1":  # one added inside the logarithm leaves it some mass
        assert "IDF empty (hyp)" in same.flags[0]


def test_texts_outside_the_vocabulary_are_flagged() -> None:
    hyps, refs = ["🦖 🦕", "天气很好", "fine"], ["🐘 🐁", "他不在家", "fine"]
    with pytest.warns(UnknownVocabulary):
        result = freight.load("emd").score(hyps, refs)
    assert result["transport"][0] == pytest.approx(1.0), "they would look alike to the encoder"
    assert result["transport"][1] > 0.5
    assert result.flags[0] == ("unknown units 100% (hyp)", "unknown units 100% (ref)")
    assert any("unknown units" in flag for flag in result.flags[1])
    assert result.flags[2] == ()


def test_a_barycenter_distance_with_a_small_epsilon_does_not_underflow() -> None:
    hyps, refs = ["The cat sat on the mat.", "It rained."], ["A dog lay on a rug.", "It was dry."]
    exact = freight.load("bary-score").score(hyps, refs)["distance"]
    entropic = freight.load("bary-score", epsilon=0.001).score(hyps, refs)["distance"]
    np.testing.assert_allclose(entropic, exact, rtol=0.02)
    assert exact.min() > 0.05
    assert abs(exact[0] - exact[1]) > 1e-3


def test_a_barycenter_does_not_depend_on_the_order_of_units() -> None:
    metric = freight.load("bary-score", encoder="hashed", idf="ref")
    metric = metric.fit(["the cat", "the dog", "a mat and the rest"])
    words = ["the", "cat", "sat", "mat"]
    scores = [metric.score([" ".join(p)], ["a dog lay there"]) for p in permutations(words)]
    values = [score["distance"][0] for score in scores]
    assert max(values) - min(values) < 1e-9
    other = metric.score(["the cat sat there"], ["a dog lay there"])["distance"][0]
    assert abs(other - values[0]) > 1e-3


def test_own_tables_are_not_swapped() -> None:
    hyps, refs = ["a cat", "a dog"], ["the cat", "the cow"]
    metric = freight.load("emd", encoder="hashed", idf="own").fit(refs, hyps)
    assert isinstance(metric, Metric)
    mine, other = metric.weighting, metric.ref_weighting
    assert other is not None
    cloud = metric.encoder.encode(["a the"], metric.layers)
    assert mine(cloud).weights.tolist() == [0.0, 1.0]
    assert other(cloud).weights.tolist() == [1.0, 0.0]


def test_padding_never_beats_a_negative_similarity() -> None:
    """In the bert-score package a score depends on its batch mates where similarities are < 0."""
    metric = freight.load("bert-score", encoder="hashed")
    assert isinstance(metric, Metric)
    low = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.1]])
    long = np.random.default_rng(0).normal(size=(2, 16, 2))
    alone = metric.score_measures([low[0]], [low[1]])
    beside = metric.score_measures([low[0], long[0]], [low[1], long[1]])
    assert alone["precision"][0] == beside["precision"][0] < -0.9


def test_lists_of_the_caller_stay_as_they_were() -> None:
    hyps, refs = ["", "a cat"], [["", "b"], ["a cat"]]
    freight.load("emd", encoder="hashed").score(hyps, refs)
    assert hyps == ["", "a cat"]
    assert refs == [["", "b"], ["a cat"]]
