"""Sankey diagrams: positions and widths of units and ribbons."""

import re
from dataclasses import replace

import pytest

from freight.report.sankey import diagram, is_right_to_left
from made_explanations import explain_greedy, explain_transport

HYP, REF = "The boy in a blue coat walked.", "The young man in a slicker walks."


def test_ribbons_lie_within_their_units_and_are_as_wide_as_their_mass() -> None:
    view = explain_transport(HYP, REF).views[0]
    drawn = diagram(view, view.plans[0])
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
            first = re.match(r"M([\d.]+)", ribbon.path)
            assert first
            start = float(first[1])
            assert node.left - 0.1 <= start <= node.left + node.moved + 0.1


def test_arabic_runs_from_right_to_left() -> None:
    view = explain_transport("وافق المجلس على الجسر", "أقر مجلس المدينة").views[0]
    middles = [node.middle for node in diagram(view, view.plans[0]).hyps]
    assert middles == sorted(middles, reverse=True)
    assert is_right_to_left("  \u200f123 אבג")
    assert not is_right_to_left("12 abc אבג")


def test_marks_of_a_text_from_right_to_left_are_mirrored_as_in_it() -> None:
    view = explain_transport("على ( الجسر", "أقر ( 12", words=r"\S+").views[0]
    drawn = diagram(view, view.plans[0])
    assert [node.name for node in drawn.hyps] == ["على", "\u200f(\u200f", "الجسر"]
    assert [node.name for node in drawn.refs] == ["أقر", "\u200f(\u200f", "12"]
    plain = explain_transport("a ( b", "c ( d", words=r"\S+").views[0]
    assert [node.name for node in diagram(plain, plain.plans[0]).hyps] == ["a", "(", "b"]


def test_units_without_mass_are_drawn_where_something_went_to_them() -> None:
    made = explain_greedy(HYP, REF)
    view = made.views[0]
    weights = view.ref.weights.copy()
    taken = int(view.plans[0].flow.sum(axis=0).argmax())
    weights[taken] = 0.0
    view = replace(view, ref=replace(view.ref, weights=weights, contributions=0 * weights))
    shown = diagram(view, view.plans[0]).refs
    assert view.ref.names[taken] in [node.name for node in shown]
