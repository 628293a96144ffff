"""Explanations as fragments and pages: well-formed, escaped, sums that add up, a real browser."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight.explain.comparison import Comparison
from freight.explain.explanation import Explanation
from freight.report import heatmaps, sankey
from freight.report.explanation import (
    describe_problem,
    fragment,
    fragment_style,
    page,
    text_pieces,
)
from freight.report.formatting import brief, number, percent, round_to_sum
from freight.report.sankey import is_right_to_left
from freight.transport.types import Problem
from made_explanations import LAZY, explain_blend, explain_greedy, explain_transport
from pages import Elements, OpenPage

HYP, REF = "The boy in a blue coat walked.", "The young man in a slicker walks."
BAD = (
    """</p></svg></style><script>alert(1)</script> "' onload="alert(2)" """
    "<img src=x onerror=alert(3)>"
)
LONG = " ".join(f"word{k % 57} and{k % 13}" for k in range(90))


def everything() -> dict[str, Explanation | Comparison]:
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
        "both": Comparison(
            short, explain_greedy("The man in a coat.", REF), ("“man” fares better",)
        ),  # type: ignore[arg-type]
    }


EVERYTHING = everything()


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_fragment_is_well_formed_and_fetches_nothing(name: str) -> None:
    found = Elements(fragment(EVERYTHING[name]))
    assert found.open == []
    assert found.links == []
    assert not {"html", "head", "body", "script", "style"} & set(found.names)


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_browser_opens_the_page_without_complaint(name: str, open_page: OpenPage) -> None:
    made = page(EVERYTHING[name])
    assert "http" not in re.sub("http-equiv", "", made)
    found, messages = open_page(made)
    assert messages == ""
    assert Elements(found).names["section"] > 0


def test_tags_and_quotes_in_texts_stay_text(open_page: OpenPage) -> None:
    tame = explain_transport("x" + re.sub(r"\W", "x", BAD), "y")
    bad = replace(
        EVERYTHING["hostile"], metric=BAD, signature=BAD, flags=(BAD,), references=(BAD, "y")
    )  # type: ignore[type-var]
    bad = replace(bad, views=tuple(replace(view, name=BAD) for view in bad.views))  # type: ignore[union-attr]
    found, messages = open_page(page(bad))  # type: ignore[arg-type]
    there = Elements(found)
    assert messages == ""
    assert there.names["script"] == Elements(page(tame)).names["script"] == 1
    assert there.names["img"] == 0
    assert there.text.count("<script>alert(1)</script>") >= 5
    assert "<title>Explanation of a score</title>" in found


def test_every_class_is_ours_and_styled() -> None:
    classes = {c for text in map(fragment, EVERYTHING.values()) for c in _classes(text)}
    assert all(name.startswith("fx") for name in classes)
    unstyled = {c for c in classes if not re.search(rf"\.{c}\b", fragment_style())}
    assert unstyled <= {"fx-hyp", "fx-middle", "fx-b3"}


def _classes(text: str) -> set[str]:
    return {c for found in re.findall(r'class="([^"]*)"', text) for c in found.split()}


@pytest.mark.parametrize("name", ["short", "long", "greedy", "blended", "chinese"])
def test_what_is_shown_adds_up_to_the_score(name: str) -> None:
    explanation = EVERYTHING[name]
    assert isinstance(explanation, Explanation)
    text = fragment(explanation)
    sums = [_numbers(found) for found in re.findall(r'<p class="fx-sum">(.*?)</p>', text, re.S)]
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
        found = Elements(fragment(explanation))
        assert found.open == []
        assert number(explanation.score) in found.text
        assert explanation.signature in found.text
        explanation.save(tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text("utf-8") == explanation.html()
    assert found.names["svg"] <= 1
    assert "(empty)" in found.text


def test_a_notebook_shows_it_with_its_style() -> None:
    shown = Elements(EVERYTHING["short"]._repr_html_() or "")
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
    assert "“man” fares better" in fragment(EVERYTHING["both"])


def test_terms_and_parts_of_a_blend_stand_apart() -> None:
    text = Elements(fragment(EVERYTHING["blended"])).text
    assert "Unigrams" in text
    assert "Bigrams" in text
    assert len(re.findall(r"by (meaning|order)", text)) == 4
    assert len(re.findall(r"Meaning|Order", text)) == 4


def test_pieces_are_the_text_and_spaces_have_no_colour() -> None:
    for explanation in (EVERYTHING["short"], EVERYTHING["blended"], EVERYTHING["hostile"]):
        for view in explanation.views:  # type: ignore[union-attr]
            for side in (view.hyp, view.ref):
                found = text_pieces(side)
                assert "".join(piece.text for piece in found) == side.text
                assert all(piece.level < 0 for piece in found if piece.text.isspace())
    better = {p.text: p for p in text_pieces(EVERYTHING["short"].views[0].hyp)}  # type: ignore[union-attr]
    assert better["The"].level < better["coat"].level
    assert better["The"].band > better["coat"].band
    assert better["coat"].unmatched


def test_ribbons_lie_within_their_units_and_are_as_wide_as_their_mass() -> None:
    view = EVERYTHING["short"].views[0]  # type: ignore[union-attr]
    drawn = sankey.diagram(view, view.plans[0])
    scale = drawn.hyps[0].weight / view.hyp.weights[0]
    assert drawn.refs[0].weight == pytest.approx(scale * view.ref.weights[0])
    for nodes, axis in ((drawn.hyps, 1), (drawn.refs, 0)):
        moved = view.plans[0].flow.sum(axis=axis)
        assert [node.moved for node in nodes] == pytest.approx((scale * moved).tolist())
        ends = [node.left + max(node.weight, node.moved) for node in nodes]
        assert all(a <= b.left for a, b in zip(ends, nodes[1:], strict=False))
        assert ends[-1] <= drawn.width
    for node in drawn.hyps:
        for ribbon in node.ribbons:
            start = float(re.match(r"M([\d.]+)", ribbon.path)[1])  # type: ignore[index]
            assert node.left - 0.1 <= start <= node.left + node.moved + 0.1


def test_arabic_runs_from_right_to_left() -> None:
    view = EVERYTHING["arabic"].views[0]  # type: ignore[union-attr]
    middles = [node.middle for node in sankey.diagram(view, view.plans[0]).hyps]
    assert middles == sorted(middles, reverse=True)
    assert is_right_to_left("  \u200f123 אבג")
    assert not is_right_to_left("12 abc אבג")


def test_what_is_left_out_of_long_texts_is_said() -> None:
    view = EVERYTHING["long"].views[0]  # type: ignore[union-attr]
    drawn = sankey.diagram(view, view.plans[0])
    assert len(drawn.hyps) == sankey.MOST_UNITS < len(view.hyp.names)
    assert sum(len(node.ribbons) for node in drawn.hyps) <= sankey.MOST_RIBBONS
    assert any("largest of" in note for note in drawn.notes)
    assert any("contribute most" in note for note in drawn.notes)
    grid = heatmaps.cost_grids(view)[0]
    assert len(grid.rows) == len(grid.columns) == heatmaps.MOST_CELLS
    assert "contribute most" in grid.note
    assert len(fragment(EVERYTHING["long"])) < 600_000


def test_units_without_mass_are_drawn_where_something_went_to_them() -> None:
    made = explain_greedy(HYP, REF)
    view = made.views[0]
    weights = view.ref.weights.copy()
    taken = int(view.plans[0].flow.sum(axis=0).argmax())
    weights[taken] = 0.0
    view = replace(view, ref=replace(view.ref, weights=weights, contributions=0 * weights))
    shown = sankey.diagram(view, view.plans[0]).refs
    assert view.ref.names[taken] in [node.name for node in shown]


def test_problems_in_words() -> None:
    assert describe_problem(Problem()) == "both marginals hard"
    assert describe_problem(Problem(ref=0.0)) == "hypothesis hard, reference free"
    assert (
        describe_problem(LAZY)
        == "hypothesis KL-relaxed (0.23), reference KL-relaxed (0.31), epsilon 0.009"
    )


def test_numbers_are_written_briefly_and_truly() -> None:
    assert [number(x) for x in (-0.25, -1e-9, np.nan)] == ["−0.2500", "0.0000", "–"]
    assert [brief(x) for x in (0.0, 0.234, 1.0, 1.25, 0.001, 10.0)] == [
        "0",
        ".23",
        "1",
        "1.25",
        "0",
        "10",
    ]
    assert [percent(x) for x in (0.125, 0.1, 1.0)] == ["12.5\u00a0%", "10\u00a0%", "100\u00a0%"]


def test_rounding_keeps_sums() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        parts = rng.normal(size=9)
        found = round_to_sum(parts, float(parts.sum()))
        assert found.sum() == pytest.approx(round(parts.sum(), 4), abs=1e-12)
        assert np.abs(found - parts).max() < 1.01e-4
