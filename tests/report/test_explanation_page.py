"""Explanations as fragments and pages: well-formed, escaped, sums that add up, a real browser."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight.explain.comparison import Change, Comparison
from freight.explain.explanation import Explanation
from freight.explain.spans import ErrorSpan
from freight.report import heatmaps, sankey
from freight.report.explanation import (
    describe_problem,
    fragment,
    fragment_style,
    page,
    text_pieces,
)
from freight.report.formatting import number
from freight.transport.types import Problem
from made_explanations import LAZY, explain_blend, explain_greedy, explain_transport
from pages import Elements, OpenPage

HYP, REF = "The boy in a blue coat walked.", "The young man in a slicker walks."
BAD = (
    """</p></svg></style><script>alert(1)</script> "' onload="alert(2)" """
    "<img src=x onerror=alert(3)>"
)
LONG = " ".join(f"word{k % 57} and{k % 13}" for k in range(90))


def explanations() -> dict[str, Explanation]:
    short = explain_transport(HYP, REF, references=("A man walks.", ""))
    return {
        "short": short,
        "long": explain_transport(LONG, LONG[::-1]),
        "greedy": explain_greedy(HYP, REF),
        "blended": explain_blend(HYP, REF),
        "chinese": explain_transport("委员会批准了新桥。", "市议会批准了新的桥。", words=r"\w"),
        "arabic": explain_transport("وافق المجلس على الجسر", "أقر مجلس المدينة"),
        "hostile": explain_transport(BAD, BAD[::-1], references=(BAD,)),
        "empty": replace(short, views=(), flags=("empty side",)),
        "unsolved": replace(short, scores={"transport": np.nan}, flags=("not converged",)),
    }


EXPLANATIONS = explanations()
CHANGE = Change(
    "ref", "man", (10, 13), (0.1, 0.2), (0.5, 0.9), (("boy",), ("man",)), ("here", "there"),
    "match_quality",
)  # fmt: skip
EVERYTHING: dict[str, Explanation | Comparison] = {
    **EXPLANATIONS,
    "both": Comparison(EXPLANATIONS["short"], explain_greedy("The man in a coat.", REF), (CHANGE,)),
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_fragment_is_well_formed_and_fetches_nothing(name: str) -> None:
    elements = Elements(fragment(EVERYTHING[name]))
    assert elements.open == []
    assert elements.links == []
    assert not {"html", "head", "body", "script", "style"} & set(elements.names)


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_browser_opens_the_page_without_complaint(name: str, open_page: OpenPage) -> None:
    made = page(EVERYTHING[name])
    assert "http" not in re.sub("http-equiv", "", made)
    rendered, messages = open_page(made)
    assert messages == ""
    assert Elements(rendered).names["section"] > 0


def test_texts_say_which_language_they_are_in_where_it_is_sure() -> None:
    assert fragment(EXPLANATIONS["chinese"]).count('<p class="fx-text" dir="auto" lang="zh">') == 2
    assert fragment(EXPLANATIONS["arabic"]).count('<p class="fx-text" dir="auto" lang="ar">') == 2
    hostile = fragment(EXPLANATIONS["hostile"])
    assert hostile.count('<p class="fx-text" dir="auto">') == 2


def test_tags_and_quotes_in_texts_stay_text(open_page: OpenPage) -> None:
    tame = explain_transport("x" + re.sub(r"\W", "x", BAD), "y")
    hostile = EXPLANATIONS["hostile"]
    views = tuple(replace(view, name=BAD) for view in hostile.views)
    bad = replace(hostile, metric=BAD, signature=BAD, references=(BAD, "y"), views=views)
    bad = replace(bad, flags=(BAD,))
    rendered, messages = open_page(page(bad))
    there = Elements(rendered)
    assert messages == ""
    assert there.names["script"] == Elements(page(tame)).names["script"] == 1
    assert there.names["img"] == 0
    assert there.text.count("<script>alert(1)</script>") >= 5
    assert "<title>Explanation of a score</title>" in rendered


def test_every_class_is_ours_and_styled() -> None:
    classes = {c for text in map(fragment, EVERYTHING.values()) for c in _classes(text)}
    assert all(name.startswith("fx") for name in classes)
    unstyled = {c for c in classes if not re.search(rf"\.{c}\b", fragment_style())}
    assert unstyled <= {"fx-hyp", "fx-middle"}


def _classes(text: str) -> set[str]:
    return {c for value in re.findall(r'class="([^"]*)"', text) for c in value.split()}


@pytest.mark.parametrize("name", ["short", "long", "greedy", "blended", "chinese"])
def test_what_is_shown_adds_up_to_the_score(name: str) -> None:
    explanation = EXPLANATIONS[name]
    text = fragment(explanation)
    sums = [_numbers(line) for line in re.findall(r'<p class="fx-sum">(.*?)</p>', text, re.S)]
    assert all(sum(parts) == pytest.approx(total, abs=1e-9) for *parts, total in sums)
    assert sums[0][-1] == round(explanation.scores[explanation.column.name], 4)
    tables = re.findall(r'<table class="fx-shares">(.*?)</table>', text, re.S)
    totals = []
    for table in tables:
        *units, total = _numbers(" ".join(re.findall(r'class="fx-adds">(.*?)</td>', table, re.S)))
        assert sum(units) == pytest.approx(total, abs=1e-9)
        totals.append(total)
    assert sum(totals) + explanation.base == pytest.approx(sums[0][-1], abs=1e-9)


def _numbers(text: str) -> list[float]:
    bare = re.sub("<svg.*?</svg>", "", text, flags=re.S).replace("\u2212", "-")
    return [float(x) for x in re.findall(r"[-+]?\d+\.\d{4}", bare)]


@pytest.mark.parametrize(
    "name", [m for m in freight.list_metrics() if "encoder" in freight.parameters(m)]
)
def test_every_metric_that_moves_something_is_drawn(name: str, tmp_path: Path) -> None:
    metric: Any = freight.load(name, encoder="hashed")
    metric = metric.fit([HYP, REF], [HYP, REF]) if metric.needs_fitting else metric
    for refs in (REF, ["", REF], ""):
        explanation = metric.explain(HYP, refs)
        elements = Elements(fragment(explanation))
        assert elements.open == []
        assert number(explanation.score) in elements.text
        assert explanation.signature in elements.text
        explanation.save(tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text("utf-8") == explanation.html()
    assert elements.names["svg"] <= 1
    assert "(empty)" in elements.text


def test_a_notebook_shows_it_with_its_style() -> None:
    shown = Elements(EXPLANATIONS["short"]._repr_html_() or "")
    assert shown.open == []
    assert shown.names["style"] == 1
    assert "lazy-emd" in shown.text


def test_the_facts_are_there() -> None:
    text = Elements(fragment(EVERYTHING["short"])).text
    assert all(x in text for x in ("lazy-emd", "transport, lower is better", "objective", "best"))
    assert "hypothesis KL-relaxed (0.23), reference KL-relaxed (0.31), epsilon 0.009" in text
    assert "lazy-emd|encoder:letters" in text
    assert "“boy”" in text
    assert "“young man”" in text
    assert "not converged" in fragment(EVERYTHING["unsolved"])
    assert str(CHANGE) in unescape(fragment(EVERYTHING["both"]))


def test_terms_and_parts_of_a_blend_stand_apart() -> None:
    text = Elements(fragment(EVERYTHING["blended"])).text
    assert "Unigrams" in text
    assert "Bigrams" in text
    assert len(re.findall(r"by (meaning|order)", text)) == 4
    assert len(re.findall(r"Meaning|Order", text)) == 4


def test_pieces_are_the_text_and_errors_are_coloured() -> None:
    for name in ("short", "blended", "hostile"):
        for view in EXPLANATIONS[name].views:
            for side in (view.hyp, view.ref):
                shown = text_pieces(side, ())
                assert "".join(piece.text for piece in shown) == side.text
                assert not any(piece.title for piece in shown if piece.text.isspace())
    side = EXPLANATIONS["short"].views[0].hyp
    error = ErrorSpan("hyp", 4, 17, "major", "wrong", side.text[4:17])
    pieces = [(p.text, p.severity) for p in text_pieces(side, [error])]
    assert "".join(text for text, severity in pieces if severity == "major") == side.text[4:17]
    assert pieces[0] == ("The", "")


def test_what_is_left_out_of_long_texts_is_said() -> None:
    view = EXPLANATIONS["long"].views[0]
    drawn = sankey.diagram(view, view.plans[0])
    assert len(drawn.hyps) == sankey.MOST_UNITS < len(view.hyp.names)
    assert sum(len(node.ribbons) for node in drawn.hyps) <= sankey.MOST_RIBBONS
    assert any("largest of" in note for note in drawn.notes)
    assert any("contribute most" in note for note in drawn.notes)
    grid = heatmaps.cost_grids(view)[0]
    assert len(grid.rows) == len(grid.columns) == heatmaps.MOST_CELLS
    assert "contribute most" in grid.note
    assert len(fragment(EVERYTHING["long"])) < 600_000


def test_problems_in_words() -> None:
    assert describe_problem(Problem()) == "both marginals hard"
    assert describe_problem(Problem(ref=0.0)) == "hypothesis hard, reference free"
    assert (
        describe_problem(LAZY)
        == "hypothesis KL-relaxed (0.23), reference KL-relaxed (0.31), epsilon 0.009"
    )
