"""The numbers of an explanation, and two side by side, on plans small enough to check by hand."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import freight
from freight.core.result import Column
from freight.explain.comparison import compare
from freight.explain.explanation import Explanation, Plan, Side, View, plan_for_side, to_json
from freight.transport.types import Array, Problem


def side(
    text: str, contributions: Any = None, unmatched_mass: Any = None, match_quality: Any = None
) -> Side:
    names = tuple(text.split())
    ends = np.cumsum([len(name) + 1 for name in names]) - 1
    starts = ends - [len(name) for name in names]
    count = len(names)
    numbers = [
        np.zeros(count) if x is None else np.array(x)
        for x in (contributions, match_quality, unmatched_mass)
    ]
    weights = np.full(count, 1 / count)
    return Side(text, names, np.stack((starts, ends), axis=1), weights, *numbers)


HARD = Problem()


def explanation(view: View, metric: str = "emd", score: float = 0.5) -> Explanation:
    column = Column("transport", False, 0.0, 2.0)
    place: Any = ((view.ref.text,), 0, (score,), (), "signed")
    return Explanation(metric, column, {"transport": score}, 0.0, (view,), *place)


def view(hyp: Side, ref: Side, flow: Any, problem: Problem = HARD, cost: Any = None) -> View:
    price: Array = np.ones(np.shape(flow)) if cost is None else np.array(cost)
    return View("words", 1.0, hyp, ref, price, {}, (Plan("plan", problem, np.array(flow)),))


COST = [[0.1, 0.5, 0.9], [0.4, 0.2, 0.2]]


def test_where_the_mass_went() -> None:
    flow = [[0.2, 0.1, 0.0], [0.1, 0.2, 0.2]]
    seen = view(side("a b"), side("x y z"), flow, Problem(1.0, 1.0), COST)
    hyp = seen.matching("hyp", seen.plans[0])
    np.testing.assert_allclose(hyp.nearest, [0.2, 0.4])  # two are equally near to b
    np.testing.assert_allclose(hyp.elsewhere, [0.1, 0.1])
    np.testing.assert_allclose(hyp.unmatched, [0.2, 0.0])
    assert hyp.noisy == pytest.approx(0.2)
    assert hyp.incomplete == pytest.approx(0.2)
    ref = seen.matching("ref", seen.plans[0])
    np.testing.assert_allclose(ref.nearest, [0.2, 0.2, 0.2])
    np.testing.assert_allclose(ref.unmatched, [1 / 30, 1 / 30, 2 / 15])
    two = seen.matching("hyp", seen.plans[0], k=2)
    np.testing.assert_allclose(two.elsewhere, [0.0, 0.1])
    assert seen.matching("hyp", seen.plans[0], k=9).noisy == 0.0


def test_a_side_asks_the_plan_in_which_it_has_a_say() -> None:
    flow = np.array([[0.5, 0.0], [0.5, 0.0]])
    plans = Plan("precision", Problem(ref=0.0), flow), Plan("recall", Problem(hyp=0.0), flow.T)
    both = replace(view(side("a b"), side("x y"), flow), plans=plans)
    assert plan_for_side(both.plans, "hyp").name == "precision"
    assert plan_for_side(both.plans, "ref").name == "recall"
    assert both.counterparts("hyp", 1) == ("x",)
    assert both.counterparts("ref", 1) == ("a",)
    only = replace(both, plans=plans[:1])
    assert plan_for_side(only.plans, "ref").name == "precision"
    assert only.counterparts("ref", 1) == ()


def test_counterparts_are_quoted_as_the_text_has_them() -> None:
    flow = [[0.2, 0.2, 0.0, 0.2, 0.01], [0.0, 0.0, 0.0, 0.0, 0.39]]
    seen = view(side("a b"), side("the young man in coats"), flow)
    assert seen.counterparts("hyp", 0) == ("the young", "in")
    assert seen.counterparts("ref", 4) == ("b",)
    assert seen.counterparts("ref", 2) == ()
    spread = view(side("a b"), side("r s t u v w"), np.full((2, 6), 1 / 12))
    assert spread.counterparts("hyp", 0) == ("r s t u v w",)


def test_a_unit_that_stays_on_itself_has_its_counterparts_in_the_text() -> None:
    hyp, ref = side("boy sat"), side("man boy")
    ref = replace(ref, spans=np.array([[0, 3], [-1, -1]]))
    stays = view(hyp, ref, [[0.05, 0.45], [0.45, 0.0]])
    assert stays.counterparts("hyp", 0) == ("man",)
    assert view(hyp, ref, [[0.0, 0.5], [0.5, 0.0]]).counterparts("hyp", 0) == ()


def test_additions_and_omissions() -> None:
    hyp, ref = side("a b c", unmatched_mass=[0.2, 0.3, 0.0]), side("x y", unmatched_mass=[0.0, 0.3])
    explained = explanation(view(hyp, ref, np.full((3, 2), 1 / 6)))
    assert (explained.additions, explained.omissions) == (("a b",), ("y",))
    assert explained.score == 0.5


def test_in_the_words_of_json() -> None:
    explained = explanation(view(side("a b"), side("x"), [[0.5], [0.5]]), score=float("nan"))
    shown = json.loads(json.dumps(explained.to_dict(), allow_nan=False))
    assert shown["scores"] == {"transport": None}
    ends = {"perfect": 0.0, "worst": 2.0, "bounds": [None, None]}
    assert shown["column"] == {"name": "transport", "higher": False, **ends}
    (plan,) = shown["views"][0]["plans"]
    assert plan["problem"] == {"hyp": None, "ref": None, "epsilon": 0.0}
    assert plan["flow"] == [[0.5], [0.5]]
    assert plan["matching"]["ref"] == {
        "nearest": [1.0], "elsewhere": [0.0], "unmatched": [0.0], "noisy": 0.0, "incomplete": 0.0,
    }  # fmt: skip
    assert shown["views"][0]["hyp"]["spans"] == [[0, 1], [2, 3]]


def test_matrices_have_six_digits_in_json() -> None:
    """There are n times m numbers of them; vectors have n, and all their digits."""
    matrix = np.array([[1 / 3, -2e-9 / 3, 12345.678], [0.0, np.nan, 1e7 + 0.5]])
    assert to_json(matrix) == [[0.333333, -6.66667e-10, 12345.7], [0.0, None, 10000000.0]]
    assert to_json(np.array([[0.1]], np.float32)) == [[0.1]]
    assert to_json(np.array([1 / 3, np.inf])) == [1 / 3, None]
    assert to_json(np.array([[3, 4]])) == [[3, 4]]


def test_two_metrics_on_one_pair() -> None:
    hyp, ref = (
        side("young man sat", match_quality=[0, 1, 1]),
        side("boy sat", match_quality=[0.2, 1.0]),
    )
    greedy = explanation(view(hyp, ref, [[0, 0], [0.5, 0], [0, 0.5]], Problem(hyp=0.0)), "greedy")
    better = replace(ref, match_quality=np.array([0.9, 1.0]), contributions=np.array([0.25, 0.0]))
    lazy = explanation(view(hyp, better, [[0.25, 0], [0.25, 0], [0, 0.5]]), "lazy")
    comparison = compare(greedy, lazy)
    first = comparison.changes[0]
    assert (first.side, first.name, first.span, first.match_quality) == (
        "ref",
        "boy",
        (0, 3),
        (0.2, 0.9),
    )
    assert first.counterparts == (("man",), ("young man",))
    assert str(first) == (
        "“boy” is matched to “man” under greedy, to “young man” under lazy;"
        " match quality 0.20 and 0.90"
    )
    assert [change.name for change in comparison.changes] == ["boy", "young"]
    shown = comparison.to_dict()
    assert shown["changes"][0]["words"] == str(first)
    assert shown["one"]["metric"] == "greedy"
    assert compare(greedy, lazy, most=1).changes[0].name == "boy"
    json.dumps(shown, allow_nan=False)


def test_two_hypotheses_of_one_reference() -> None:
    flow = [[0.5, 0.0], [0.0, 0.5]]
    ref = side("boy sat", contributions=[0.1, 0.0])
    one = explanation(view(side("man sat"), ref, flow))
    other = explanation(
        view(side("girl stood"), replace(ref, contributions=np.array([0.1, 0.4])), flow)
    )
    changes = compare(one, other).changes
    assert [change.name for change in changes] == ["sat", "boy"]
    assert str(changes[0]).endswith("contribution 0.0000 and 0.4000")
    assert str(changes[0]).startswith("“sat” is matched to “sat” in the first, to “stood” in the")
    with pytest.raises(freight.InvalidInput, match="no text in common"):
        compare(one, explanation(view(side("a b"), side("x y"), flow)))


def test_the_same_twice_and_nothing_at_all() -> None:
    one = explanation(view(side("man sat"), side("boy sat"), [[0.5, 0.0], [0.0, 0.5]]))
    assert compare(one, one).changes == ()
    nothing = replace(one, views=())
    assert compare(one, nothing).changes == ()


@pytest.mark.parametrize("name", ["picture.txt", "picture"])
def test_where_it_cannot_be_written(name: str, tmp_path: Any) -> None:
    explained = explanation(view(side("a b"), side("x"), [[0.5], [0.5]]))
    with pytest.raises(freight.InvalidInput, match=r"ends in none of \.html"):
        explained.save(tmp_path / name)
    with pytest.raises(freight.InvalidInput, match="there is no folder"):
        explained.save(tmp_path / "nowhere" / "picture.json")


def test_written_as_json(tmp_path: Any) -> None:
    explained = explanation(view(side("a b\ud800"), side("ß"), [[0.5], [0.5]]))
    explained.save(tmp_path / "it.json")
    assert json.loads((tmp_path / "it.json").read_text()) == explained.to_dict()
    assert [path.name for path in tmp_path.iterdir()] == ["it.json"]
