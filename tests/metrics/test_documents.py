"""Sentences move as wholes, at what moving the words inside them costs."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import freight
from freight.core.types import Pairs

HYP = "The cat sat on the mat. It was warm. A dog came by, wet and cold."
REF = "It was very warm! A cat sat on a mat. Nobody came."


def load(**settings: Any) -> Any:
    return freight.load("doc-lazy-emd", encoder="hashed", **settings)


def parts(text: str) -> list[str]:
    return [part for part in text.replace("! ", "!|").replace(". ", ".|").split("|") if part]


@pytest.mark.parametrize(
    ("inner", "metric", "column"),
    [
        ({}, freight.load("lazy-emd", encoder="hashed"), "objective"),
        (
            {"inner_readout": "transport"},
            freight.load("lazy-emd", encoder="hashed"),
            "transport",
        ),
        (
            {"inner_hyp": math.inf, "inner_ref": math.inf, "inner_epsilon": 0.0},
            freight.load("emd", encoder="hashed"),
            "objective",
        ),
        (
            {"inner_hyp": 1.0, "inner_ref": 0.5, "inner_epsilon": 0.0},
            freight.load("lazy-emd", encoder="hashed", hyp=1.0, ref=0.5, epsilon=0.0),
            "objective",
        ),
    ],
)
def test_it_is_lazy_emd_of_sentences_whose_cost_is_that_of_their_words(
    inner: dict[str, Any], metric: Any, column: str
) -> None:
    hyps, refs = parts(HYP), parts(REF)
    every = [(h, r) for h in hyps for r in refs]
    cost = metric.score(*map(list, zip(*every, strict=True)))[column].reshape(len(hyps), -1)
    words = [np.array([len(freight_words(s)) for s in side], float) for side in (hyps, refs)]
    masses = [count / count.sum() for count in words]
    plan = freight.solve(freight.Problem(0.23, 0.31, 0.009), cost, *masses)
    scores = load(**inner).score([HYP], [REF])
    assert scores["transport"][0] == pytest.approx(plan.transport, abs=1e-7)
    assert scores["objective"][0] == pytest.approx(plan.objective, abs=1e-7)


def freight_words(sentence: str) -> list[int]:
    return freight.encoder("hashed").encode([sentence], ()).ids.tolist()


def test_one_sentence_a_side_hard_is_the_inner_metric() -> None:
    hyps, refs = ["the cat sat", "a dog"], ["a cat lay down", "the dogs"]
    hard = load(preset="hard").score(hyps, refs)
    flat = freight.load("emd", encoder="hashed").score(hyps, refs)
    np.testing.assert_allclose(hard["transport"], flat["transport"], atol=1e-9)
    covered = load(preset="coverage").score(hyps, refs)
    recall = freight.load("bert-score", encoder="hashed").score(hyps, refs)["recall"]
    np.testing.assert_allclose(covered["transport"], 1.0 - recall, atol=1e-6)


def test_sentences_may_come_in_any_order_unless_order_counts() -> None:
    turned = "It was warm. A dog came by, wet and cold. The cat sat on the mat."
    exact: dict[str, Any] = {"epsilon": 0.0, "inner_epsilon": 0.0}
    assert load(**exact).score([HYP], [turned])["transport"][0] == pytest.approx(0.0, abs=1e-6)
    assert load(**exact, order=0.3).score([HYP], [turned])["transport"][0] > 0.01
    assert load(**exact, order=0.3).score([HYP], [HYP])["transport"][0] == pytest.approx(
        0.0, abs=1e-6
    )


def test_the_sentence_nobody_wrote_is_an_omission() -> None:
    metric = load(epsilon=0.0, inner_epsilon=0.0)
    explanation = metric.explain(
        HYP, HYP + " Penguins hatched in icy Antarctic colonies yesterday."
    )
    assert explanation.omissions == ("Penguins hatched in icy Antarctic colonies yesterday.",)
    assert explanation.additions == ()
    view = explanation.views[0]
    assert view.name == "sentences"
    assert view.hyp.names == tuple(parts(HYP))
    total = explanation.base + view.hyp.contributions.sum() + view.ref.contributions.sum()
    assert total == pytest.approx(explanation.score, abs=1e-12)
    assert explanation.score == metric.score([HYP], [explanation.references[0]])["objective"][0]


def test_a_document_of_a_hundred_sentences() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(300)]
    sentences = [" ".join(rng.choice(words, 6)) + "." for _ in range(100)]
    turned = " ".join(sentences[::-1])
    metric = freight.load("doc-lazy-emd", encoder=freight.encoder("hashed", dim=16), preset="hard")
    result = metric.score([" ".join(sentences), turned], [turned, " ".join(sentences[:50])])
    assert result["objective"][0] == pytest.approx(0.0, abs=1e-6)
    assert result["objective"][1] > 0.01


def test_bits_do_not_depend_on_neighbours() -> None:
    metric = load()
    texts = [HYP, REF, "One.", HYP + " " + REF]
    together = metric.score(texts, texts[::-1])
    for k in range(len(texts)):
        alone = metric.score([texts[k]], [texts[::-1][k]])
        assert alone["transport"][0] == together["transport"][k]


def test_a_cost_that_could_not_be_found_is_flagged_and_no_score() -> None:
    def unfinished(pairs: Pairs) -> torch.Tensor:
        cost = torch.ones(len(pairs.which), pairs.hyp_weights.shape[1], pairs.ref_weights.shape[1])
        cost[pairs.hyp_sizes == 1] = math.nan
        return cost

    metric = replace(load(), cost=unfinished)
    result = metric.score(["One sentence.", HYP], [REF, REF])
    assert result.flags == (("not converged",), ())
    assert np.isnan(result["transport"]).tolist() == [True, False]


def test_what_has_no_sentences_is_refused() -> None:
    with pytest.raises(freight.InvalidInput, match="needs texts"):
        load().score_measures([np.eye(3)], [np.eye(3)])
    with pytest.raises(freight.InvalidInput, match="barycenter"):
        load(pooling="barycenter")
    with pytest.raises(freight.InvalidInput, match="order=2"):
        load(order=2.0)


@pytest.mark.parametrize("name", ["wrd-score", "wrd-score-code"])
def test_word_order_counts_in_wrd_score_where_asked(name: str) -> None:
    pair = ["man bites dog"], ["dog bites man"]
    one_hot = "one-hot"
    free = freight.load(name, encoder=one_hot).score(*pair)
    bound = freight.load(name, encoder=one_hot, order=0.2).score(*pair)
    assert free["f1"][0] == pytest.approx(1.0)
    assert bound["wrd"][0] == pytest.approx(0.2 * 2 / 3 * 2 / 3)
    assert bound["f1"][0] < 1.0
    same = freight.load(name, encoder=one_hot, order=0.2).score(pair[0], pair[0])
    assert same["f1"][0] == pytest.approx(1.0)
