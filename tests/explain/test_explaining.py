"""Explanations: what the units add is the score, and what is shown is what was solved."""

import json
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import freight
from freight.explain.explanation import Explanation, Side
from freight.report.explanation import text_pieces
from freight.transport import solvers
from freight.transport.solvers import solve
from freight.transport.types import Plans

MOVING = [name for name in freight.list_metrics() if "encoder" in freight.parameters(name)]
REF = "The young man in a slicker."
HYP = "The boy in a coat."
CORPUS = [HYP, REF, "A dog sat there. It was wet.", "the old man and the sea", "A coat, a boy."]
WORDS = ["the", "boy", "man", "young", "coat", "slicker", "sat", "Sea", "wet", ".", "it", "x"]
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)


@cache
def metric(name: str, encoder: str = "hashed", **options: Any) -> Any:
    scorer = freight.load(name, encoder=encoder, **options)
    return scorer.fit(CORPUS, CORPUS) if scorer.needs_fitting else scorer


def added_up(explanation: Explanation) -> float:
    parts = [
        side.contributions.sum() for view in explanation.views for side in (view.hyp, view.ref)
    ]
    return float(explanation.base + sum(parts))


def check(scorer: Any, hyp: str, refs: Any) -> Explanation:
    """What holds for every explanation."""
    explanation = scorer.explain(hyp, refs)
    scored = scorer.score([hyp], [refs])
    assert explanation.scores.keys() == scored.segments.keys()
    for name, score in explanation.scores.items():
        np.testing.assert_array_equal(score, scored[name][0])
    assert explanation.winner == scored.winners[0]
    assert explanation.flags == scored.with_differences([hyp], [refs]).flags[0]
    assert explanation.signature == scored.signature
    np.testing.assert_allclose(added_up(explanation), explanation.score, rtol=0, atol=1e-9)
    for view in explanation.views:
        check_view(view)
        assert view.hyp.text == hyp
        assert view.ref.text == explanation.references[explanation.winner]
    json.dumps(explanation.to_dict(), allow_nan=False)
    return explanation


def check_view(view: Any) -> None:
    for side in (view.hyp, view.ref):
        fields = {name: x for name, x in vars(side).items() if name not in ("text", "repeats")}
        assert {len(fields[name]) for name in Side.__match_args__ if name in fields} == {
            len(side.names)
        }
        for unit, start, end in side.occurrences.tolist():
            assert side.text[start:end].lower() == side.names[unit].lower()
        for name, (start, end) in zip(side.names, side.spans.tolist(), strict=True):
            assert start == -1 or side.text[start:end] == name
        assert ((side.match_quality >= 0) & (side.match_quality <= 1)).all()
        assert ((side.unmatched_mass >= 0) & (side.unmatched_mass <= side.weights + 1e-9)).all()
        assert side.weights.sum() == pytest.approx(1.0)
    shape = len(view.hyp.names), len(view.ref.names)
    assert view.cost.shape == shape
    if view.terms:
        np.testing.assert_allclose(sum(view.terms.values()), view.cost, atol=1e-6)
    for plan in view.plans:
        assert plan.flow.shape == shape
        for name, axis in (("hyp", 1), ("ref", 0)):
            if getattr(plan.problem, name) == math.inf:
                weights = getattr(view, name).weights
                np.testing.assert_allclose(plan.flow.sum(axis=axis), weights, atol=1e-9)


@pytest.mark.parametrize("name", MOVING)
@settings(max_examples=6, deadline=None)
@given(hyp=sentences, ref=sentences, other=sentences)
def test_shares_add_up_to_the_score(name: str, hyp: str, ref: str, other: str) -> None:
    check(metric(name), hyp, ref)
    check(metric(name), hyp, [ref, other])


@pytest.mark.parametrize("name", MOVING)
def test_they_do_for_every_column_and_rule(name: str) -> None:
    for column in metric(name).columns:
        for rule in ("best", "each", "mean"):
            scorer = metric(name, column=column.name, references=rule)
            check(scorer, HYP, [REF, "An old man.", "It was wet. A boy sat in a coat."])


@pytest.mark.parametrize("rule", ["best", "each", "mean"])
def test_a_column_can_be_named(rule: str) -> None:
    scorer = metric("bert-score", references=rule)
    refs = [REF, "An old man.", "It was wet. A boy sat in a coat."]
    for column in scorer.columns:
        explanation = scorer.explain(HYP, refs, column.name)
        assert (explanation.column, explanation.scores) == (
            column,
            scorer.explain(HYP, refs).scores,
        )
        assert added_up(explanation) == pytest.approx(explanation.score, abs=1e-9)


@pytest.mark.parametrize("name", MOVING)
def test_they_do_with_the_embedded_encoder(name: str) -> None:
    explanation = check(metric(name, "embedded"), HYP, [REF, "The boy in the coat."])
    assert explanation.winner == 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lazy-emd", {"readout": "objective", "epsilon": 0.0}),
        ("lazy-emd", {"cut": 0.9}),
        ("lazy-emd", {"hyp": math.inf, "ref": 0.0, "epsilon": 0.0}),
        ("lazy-emd", {"hyp": 0.0, "ref": 0.4}),
        ("emd", {"mass": "norm", "unit": "words", "idf": "ref"}),
        ("bert-score", {"baseline": (0.2, 0.3, 0.4)}),
        ("f-alpha", {"alpha": 1.0}),
        ("bary-score", {"idf": "ref", "epsilon": 0.05}),
        ("wrd-score", {"clip": True, "idf": "own"}),
        ("std", {"shared": "moved", "order": 0.3}),
        ("std", {"mass": "nbow"}),
        ("std", {"mass": "tfidf", "shared": "moved"}),
        ("std", {"unigram": 0.0, "bigram": 1.0}),
        ("wmd", {"stop_words": None, "unit": True}),
        ("wmdo", {"order": 0.0, "unknown": 0.5}),
        ("mover-score", {"version": 1, "ngram": 2}),
        ("freight", {"greedy": 0.0, "neighbours": 0.0}),
        ("freight", {"greedy": 1.0, "hyp": 0.2, "ref": math.inf}),
    ],
)
def test_every_knob_keeps_the_sum(name: str, options: dict[str, Any]) -> None:
    plain, turned = metric(name), metric(name, **options)
    for refs in (REF, [REF, "A boy."]):
        assert check(turned, HYP, refs).scores != check(plain, HYP, refs).scores
    check(turned, HYP, HYP)


def test_what_each_metric_calls_its_units_and_plans() -> None:
    def names(name: str, **options: Any) -> tuple[list[str], list[str]]:
        explanation = metric(name, **options).explain(HYP, REF)
        return [v.name for v in explanation.views], [p.name for p in explanation.views[0].plans]

    assert names("freight") == (["tokens"], ["lazy", "precision", "recall"])
    assert names("lazy-emd", unit="words") == (["words"], ["lazy"])
    assert names("bert-score") == (["tokens"], ["precision", "recall"])
    assert names("bary-score") == (["barycenter"], ["transport"])
    assert names("std") == (["unigrams", "bigrams"], ["transport"])
    assert names("std", column="bigram") == (["bigrams"], ["transport"])
    assert names("wmd") == (["words"], ["transport"])
    assert names("sms") == (["sentences"], ["transport"])
    assert names("s+wms") == (["sentences and words"], ["transport"])
    assert names("mover-score", ngram=2) == (["runs of words"], ["transport"])
    assert names("wrd-score-code") == (["words"], ["transport", "precision"])


def test_units_are_the_characters_that_they_cover() -> None:
    assert metric("wmd").explain(HYP, REF).views[0].hyp.names == ("boy", "coat")
    sentence = metric("sms").explain("A dog sat. It was wet.", REF).views[0]
    assert sentence.hyp.names == ("A dog sat.", "It was wet.")
    runs = metric("mover-score", ngram=2, idf=None).explain(HYP, REF).views[0].hyp
    assert runs.names == ("The boy", "boy in", "in a", "a coat")
    special = metric("bert-score", "embedded").explain(" slicker\n", REF).views[0].hyp
    assert special.names == ("[start]", "slick", "er", "[end]")
    assert special.spans.tolist() == [[-1, -1], [1, 6], [6, 8], [-1, -1]]
    assert special.weights[[0, -1]].tolist() == [0.0, 0.0]
    heavy = metric("bary-score", "embedded").explain(HYP, REF).views[0].hyp
    assert heavy.names[0] == "[start]"
    assert (heavy.weights > 0).all()


def test_a_lazy_plan_leaves_additions_and_omissions() -> None:
    explanation = metric("lazy-emd").explain("The boy in a coat today", "The boy wore a coat")
    view = explanation.views[0]
    moved = view.plans[0].flow
    np.testing.assert_allclose(
        view.hyp.unmatched_mass, np.maximum(view.hyp.weights - moved.sum(1), 0)
    )
    np.testing.assert_allclose(
        view.ref.unmatched_mass, np.maximum(view.ref.weights - moved.sum(0), 0)
    )
    assert explanation.additions == ("in", "today")
    assert explanation.omissions == ("wore",)
    assert view.hyp.match_quality[1] > 0.9 > 0.2 > view.hyp.match_quality[5]


@pytest.mark.parametrize("name", ["emd", "bert-score", "wmd", "bary-score", "std"])
def test_a_held_side_has_them_too(name: str) -> None:
    explanation = metric(name).explain("A wet dog sat quietly", "A wet dog sat")
    assert explanation.additions == ("quietly",)
    assert explanation.omissions == ()


def test_even_one_word_can_be_without_a_counterpart() -> None:
    assert metric("emd").explain("boy", "sea").additions == ("boy",)
    assert metric("emd").explain("boy", "Boy").additions == ()


def test_what_is_the_same_is_matched() -> None:
    for name in MOVING:
        explanation = metric(name).explain(REF, REF)
        least = min(
            side.match_quality.min() for view in explanation.views for side in (view.hyp, view.ref)
        )
        assert least > (0.7 if name in ("lazy-emd", "doc-lazy-emd", "freight") else 0.999), name


def test_a_word_that_comes_again_is_one_unit_in_two_places() -> None:
    view = metric("std").explain("the cat and the dog", "a cat").views[0]
    the = view.hyp.names.index("the")
    assert view.hyp.spans[the].tolist() == [0, 3]
    assert [12, 15] in [
        [start, end] for unit, start, end in view.hyp.repeats.tolist() if unit == the
    ]
    titles = {piece.title for piece in text_pieces(view.hyp, ()) if piece.text == "the"}
    assert len(titles) == 1
    places = [word.start for word in view.hyp.words if the in word.units]
    assert places == [0, 12]


def test_std_separates_meaning_from_order() -> None:
    moved = metric("std", shared="moved").explain("man bites dog", "dog bites man").views[0]
    assert moved.hyp.names == moved.ref.names == ("man", "bites", "dog")
    paid = {name: float((moved.plans[0].flow * term).sum()) for name, term in moved.terms.items()}
    assert paid["order"] > 0.1
    assert paid["meaning"] == pytest.approx(0.0, abs=1e-9)
    stays = metric("std").explain("man bites dog", "dog bites man")
    assert stays.scores["unigram"] == pytest.approx(0.0, abs=1e-12)
    assert np.diag(stays.views[0].plans[0].flow) == pytest.approx(stays.views[0].hyp.weights)
    assert stays.views[1].terms["order"].max() > 0


def test_std_shows_what_stays_and_units_of_the_other_text() -> None:
    explanation = metric("std").explain("The boy sat", "The man sat")
    view = explanation.views[0]
    assert view.hyp.names == ("The", "boy", "sat", "man")
    assert view.hyp.spans.tolist() == [[0, 3], [4, 7], [8, 11], [-1, -1]]
    assert view.ref.spans.tolist() == [[0, 3], [-1, -1], [8, 11], [4, 7]]
    flow = view.plans[0].flow
    assert flow[0, 0] == pytest.approx(view.hyp.weights[0])
    assert view.cost[1, 1] == 0.0
    assert flow[1, 3] > 0
    assert (flow * view.cost).sum() == pytest.approx(explanation.scores["unigram"], abs=1e-12)
    assert view.counterparts("hyp", 1) == ("man",)
    assert [view.weight for view in explanation.views] == [0.5, 0.5]


def test_the_house_metric_says_what_neighbours_cost() -> None:
    terms = metric("freight").explain(HYP, REF).views[0].terms
    assert terms.keys() == {"meaning", "neighbours"}
    assert metric("freight", neighbours=0.0).explain(HYP, REF).views[0].terms == {}


def test_fragments_and_unknown_words_are_in_no_word() -> None:
    explanation = metric("wmdo").explain("dog bites man", "man bites dog")
    assert explanation.base == pytest.approx(0.18)
    assert added_up(explanation) == pytest.approx(explanation.score)


def test_several_references() -> None:
    refs = ["It was wet.", HYP, REF]
    best = metric("lazy-emd").explain(HYP, refs)
    assert (best.winner, best.references) == (1, tuple(refs))
    alone = [metric("lazy-emd").explain(HYP, ref).score for ref in refs]
    np.testing.assert_array_equal(best.reference_scores, alone)
    mean = metric("lazy-emd", references="mean").explain(HYP, refs)
    assert mean.score == pytest.approx(np.mean(alone))
    assert mean.views[0].weight == pytest.approx(1 / 3)
    np.testing.assert_allclose(3 * mean.views[0].hyp.contributions, best.views[0].hyp.contributions)
    each = metric("bert-score").explain(HYP, ["The boy.", REF])
    scored = metric("bert-score").score([HYP], [["The boy.", REF]])
    assert each.scores == {name: values[0] for name, values in scored.segments.items()}


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize(("hyp", "ref"), [("", REF), (HYP, " "), ("", "")])
def test_an_empty_side_has_nothing_to_show(name: str, hyp: str, ref: str) -> None:
    explanation = metric(name).explain(hyp, ref)
    assert explanation.views == ()
    assert explanation.additions == explanation.omissions == ()
    side = "hyp" if ref.strip() else "ref"
    assert explanation.flags == (
        (f"empty side ({side})",) if hyp or ref.strip() else ("both sides empty",)
    )
    np.testing.assert_array_equal(explanation.base, explanation.score)
    json.dumps(explanation.to_dict(), allow_nan=False)


def test_a_second_reference_helps_an_empty_one() -> None:
    explanation = check(metric("wmd"), HYP, ["", REF])
    assert explanation.winner == 1
    assert explanation.views
    assert explanation.flags == ("empty side (ref)",)
    assert explanation.to_dict()["flags"] == [{"kind": "empty side", "side": "ref", "share": None}]
    assert explanation.to_dict()["reference_scores"][0] is None


@pytest.mark.parametrize("name", ["mover-score", "yisi-1"])
def test_idf_has_to_be_fitted_first(name: str) -> None:
    unfitted = freight.load(name, encoder="hashed")
    with pytest.raises(freight.InvalidInput, match=r"fit it first.*idf=None"):
        unfitted.explain(HYP, REF)
    check(freight.load(name, encoder="hashed", idf=None), HYP, REF)


def test_what_is_refused() -> None:
    with pytest.raises(freight.InvalidInput, match="bleu moves nothing"):
        freight.load("bleu").explain(HYP, REF)
    with pytest.raises(freight.InvalidInput, match="not a text"):
        metric("emd").explain([HYP], REF)
    with pytest.raises(freight.InvalidInput, match="not a text"):
        metric("emd").explain(HYP, [REF, None])
    with pytest.raises(freight.InvalidInput, match="empty list"):
        metric("emd").explain(HYP, [])
    with pytest.raises(freight.InvalidInput, match="no column 'f1'; there is transport, objective"):
        metric("emd").explain(HYP, REF, "f1")


def test_a_plan_that_did_not_converge_is_shown_and_flagged(monkeypatch: Any) -> None:
    def unfinished(*data: Any, **options: Any) -> Plans:
        plans = solve(*data, **options)
        return replace(plans, converged=np.zeros_like(plans.converged))

    monkeypatch.setattr(solvers, "solve", unfinished)
    explanation = metric("emd").explain(HYP, REF)
    assert "not converged" in explanation.flags
    assert math.isnan(explanation.score)
    assert math.isnan(explanation.base)
    assert explanation.views[0].plans[0].flow.sum() == pytest.approx(1.0)
    assert explanation.to_dict()["base"] is None


def test_where_a_score_stands() -> None:
    embedded = freight.load("freight")
    explained = embedded.explain("The boy in a coat.", "The young man in a slicker.")
    result = embedded.score(["The boy in a coat."], ["The young man in a slicker."])
    assert explained.meaning == result.meaning != ""
    assert explained.to_dict()["citation"] == result.citation
    assert embedded.explain("A boy.", ["A boy.", "A man."]).meaning == ""
    assert embedded.explain("", "").meaning == ""
    assert freight.load("freight", encoder="hashed").explain("A boy.", "A man.").meaning == ""


def test_the_summary_says_what_the_marks_show() -> None:
    pairs = [
        ("The boy took 10 mg, whistling loudly.", "The young man took 100 mg in a slicker."),
        ("She bought apples and plums.", "Yesterday she bought apples, pears and plums."),
    ]
    for name in ("freight", "lazy-emd", "emd", "bert-score"):
        for hyp, ref in pairs:
            explained = freight.load(name).explain(hyp, ref)
            marked = dict.fromkeys(("hyp", "ref"), "")
            for span in explained.spans:
                marked[span.side] += f" {span.text}"
            assert all(word in marked["hyp"] for word in explained.worst_words), name
            assert bool(explained.worst_words) == bool(marked["hyp"].strip()), name
            assert all(phrase in marked["hyp"] for phrase in explained.phrases("added")), name
            assert " ".join(explained.phrases("missing")) == marked["ref"].strip(), name
