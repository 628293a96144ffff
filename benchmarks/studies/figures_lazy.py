"""Lazy-EMD's picture: a pair of sentences matched by precision, by recall, by EMD and lazily."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import inf
from typing import Any

import freight
from freight.explain.explanation import Plan, View
from freight.report.formatting import number
from freight.report.sankey import Diagram, Node, diagram

HYP, REF = "The boy in a coat.", "The young man in a slicker."
NEAR, FAR = (0x2A, 0x7F, 0xC4), (0xD9, 0x64, 0x0A)
INK, MUTED = "#14181d", "#5b6470"
WIDE, TALL = 390, 268
MATCHINGS: dict[str, dict[str, Any]] = {
    "Precision (∞, 0)": {"hyp": inf, "ref": 0.0, "epsilon": 0.0},
    "Recall (0, ∞)": {"hyp": 0.0, "ref": inf, "epsilon": 0.0},
    "EMD (∞, ∞)": {"hyp": inf, "ref": inf, "epsilon": 0.0},
    "Lazy-EMD (.23, .31)": {},
}


def matchings() -> str:
    """Four diagrams, two in a row."""
    shown = [
        f'<g transform="translate({WIDE * (k % 2) + 20} {TALL * (k // 2) + 24})">{body}</g>'
        for k, body in enumerate(_panels())
    ]
    width, height = 2 * WIDE + 10, 2 * TALL + 8
    style = "background:#fff;font:13px sans-serif"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" style="{style}" role="img"'
        f' aria-label="{escape(HYP)} matched to {escape(REF)} in four ways">'
        + "".join(shown)
        + "</svg>\n"
    )


def _panels() -> Iterator[str]:
    for name, options in MATCHINGS.items():
        explanation = freight.load("lazy-emd", column="transport", **options).explain(HYP, REF)
        [view] = explanation.views
        title = f"{name}: ⟨C,P⟩ = {number(explanation.score, 3)}"
        yield _panel(title, view, view.plans[0])


def _panel(title: str, view: View, plan: Plan) -> str:
    drawn = diagram(view, plan)
    nodes = [(node, True) for node in drawn.hyps] + [(node, False) for node in drawn.refs]
    ribbons = (
        f'<path d="{ribbon.path}" fill="{_colour(ribbon.level)}" fill-opacity=".55"/>'
        for node in drawn.hyps
        for ribbon in node.ribbons
    )
    head = f'<text y="4" font-weight="bold" fill="{INK}">{escape(title)}</text>'
    return head + "".join(ribbons) + "".join(_node(drawn, *node) for node in nodes)


def _node(drawn: Diagram, node: Node, above: bool) -> str:
    top = drawn.top if above else drawn.bottom - drawn.thick
    name = drawn.top - 8 if above else drawn.bottom + 18
    bar = f'x="{node.left:.1f}" y="{top}" height="{drawn.thick}"'
    return (
        f'<rect {bar} width="{node.moved:.1f}" fill="{_colour(node.level)}"/>'
        f'<rect {bar} width="{node.weight:.1f}" fill="none" stroke="{MUTED}"/>'
        f'<text x="{node.middle:.1f}" y="{name}" text-anchor="middle" fill="{INK}">'
        f"{escape(node.name)}</text>"
    )


def _colour(level: int) -> str:
    mixed = (round(a + (b - a) * level / 10) for a, b in zip(NEAR, FAR, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
