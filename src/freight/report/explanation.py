"""An explanation as a fragment of a page, and as a page of its own: no script, nothing fetched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freight.explain.comparison import Comparison
from freight.explain.explanation import Explanation, Plan, Side, View
from freight.report.formatting import level, number, percent, rounded
from freight.report.heatmaps import Grid, cost_grids, flow_grids
from freight.report.html import render, source
from freight.report.phrases import Lacking, TextPiece, lacking, pieces
from freight.report.plots import shorten
from freight.report.sankey import Diagram, diagram, heaviest
from freight.transport.types import Problem

_SMALL = 18  # units of a side, up to which everything is unfolded


def fragment(explanation: Explanation | Comparison) -> str:
    """What goes into a page that has `fragment_style()`; all text is escaped."""
    if isinstance(explanation, Comparison):
        both = explanation.one, explanation.other
        return render(
            "comparison.html",
            changes=explanation.changes,
            both=[_content(one, narrow=True) for one in both],
        )
    return render("explanation.html", it=_content(explanation))


def fragment_style() -> str:
    """The style of fragments: light and dark by what the reader prefers, or by `data-theme`."""
    return source("explanation.css")


def page(explanation: Explanation | Comparison) -> str:
    """A file of its own."""
    both = isinstance(explanation, Comparison)
    title = "What moved the score" if both else "Why a text scored as it did"
    content = {"fragment": fragment(explanation), "fragment_style": fragment_style()}
    return render("explained.html", title=title, **content)


@dataclass(frozen=True)
class Meter:
    """Where a score lies between the worst and the perfect one, in percent."""

    filled: str
    worst: str
    perfect: str


@dataclass(frozen=True)
class MatchingTable:
    """A plan: the problem that it solves and what became of the mass, in words, and a drawing."""

    name: str
    held: str
    outcome: str
    diagram: Diagram


@dataclass(frozen=True)
class Part:
    """All that is drawn of a view."""

    name: str
    weight: str
    total: str
    terms: tuple[tuple[str, str], ...]
    hyp: list[TextPiece]
    ref: list[TextPiece]
    added: Lacking
    omitted: Lacking
    matchings: list[MatchingTable]
    costs: list[Grid]
    flows: list[Grid]
    totals: tuple[Total, Total]
    small: bool

    @property
    def foreign(self) -> bool:
        """Whether a unit is listed that is not in its text."""
        return any(not row.own for total in self.totals for row in total.rows)


@dataclass(frozen=True)
class Content:
    """All that is drawn of an explanation."""

    metric: str
    column: str
    direction: str
    score: str
    meter: Meter | None
    others: list[tuple[str, str]]
    base: str
    references: list[tuple[str, str, bool]]
    flags: tuple[str, ...]
    signature: str
    parts: list[Part]
    narrow: bool


def _content(explanation: Explanation, narrow: bool = False) -> Content:
    column = explanation.column
    score = explanation.scores[column.name]
    sums = [float(np.sum(s.shares)) for v in explanation.views for s in (v.hyp, v.ref)]
    base, *parts = rounded(np.array([explanation.base, *sums]), score).tolist()
    references = zip(explanation.references, explanation.reference_scores, strict=True)
    return Content(
        metric=explanation.metric,
        column=column.name,
        direction="higher is better" if column.higher else "lower is better",
        score=number(score),
        meter=_meter(explanation),
        others=[(k, number(x)) for k, x in explanation.scores.items() if k != column.name],
        base=number(base) if base else "",
        references=[
            (text, number(x), k == explanation.winner) for k, (text, x) in enumerate(references)
        ],
        flags=explanation.flags,
        signature=explanation.signature,
        parts=[
            _part(view, parts[2 * k], parts[2 * k + 1]) for k, view in enumerate(explanation.views)
        ],
        narrow=narrow,
    )


def _meter(explanation: Explanation) -> Meter | None:
    worst, perfect = explanation.column.worst, explanation.column.perfect
    filled = (explanation.scores[explanation.column.name] - worst) / (perfect - worst or 1.0)
    if not np.isfinite(filled) or not np.isfinite(worst):
        return None
    return Meter(f"{100 * np.clip(filled, 0, 1):.1f}", f"{worst:g}", f"{perfect:g}")


def _part(view: View, hyp: float, ref: float) -> Part:
    return Part(
        name=view.name,
        weight=f"{view.weight:g}" if view.weight != 1 else "",
        total=number(hyp + ref),
        terms=_terms(view, hyp + ref),
        hyp=pieces(view.hyp),
        ref=pieces(view.ref),
        added=lacking(view.hyp),
        omitted=lacking(view.ref),
        matchings=[
            MatchingTable(plan.name, held(plan.problem), _outcome(view, plan), diagram(view, plan))
            for plan in view.plans
        ],
        costs=cost_grids(view),
        flows=flow_grids(view),
        totals=(shares("hypothesis", view.hyp, hyp), shares("reference", view.ref, ref)),
        small=max(len(view.hyp.names), len(view.ref.names)) <= _SMALL,
    )


def _terms(view: View, total: float) -> tuple[tuple[str, str], ...]:
    """What each term of the cost is of a total, where one plan was priced by several."""
    if len(view.terms) < 2 or len(view.plans) != 1:
        return ()
    paid = np.array([float(np.sum(view.plans[0].flow * term)) for term in view.terms.values()])
    parts = rounded(paid * (total / paid.sum() if paid.sum() else 0.0), total)
    return tuple((name, number(x)) for name, x in zip(view.terms, parts.tolist(), strict=True))


def _outcome(view: View, plan: Plan) -> str:
    """How incomplete and how noisy a matching is, for the sides that have a say in it."""
    said = []
    for side, name in (("hyp", "hypothesis"), ("ref", "reference")):
        if getattr(plan.problem, side) > 0:
            found = view.matching(side, plan)
            shares = {"stays": found.incomplete, "does not go to its nearest": found.noisy}
            parts = [f"{percent(x)} {what}" for what, x in shares.items() if x >= 5e-4]
            said += [f"of the {name} {', '.join(parts)}"] if parts else []
    return "; ".join(said)


def held(problem: Problem) -> str:
    """A problem in words."""
    sides = {"hypothesis": problem.hyp, "reference": problem.ref}
    words = {np.inf: "held", 0.0: "free"}
    said = [f"{side} {words.get(x, f'priced at {x:g}')}" for side, x in sides.items()]
    if set(sides.values()) == {np.inf}:
        said = ["both sides held"]
    return ", ".join([*said, *([f"blur {problem.epsilon:g}"] if problem.epsilon else [])])


MOST = 40
_NAME = 40


@dataclass(frozen=True)
class Share:
    """A unit's row; `length` is that of its bar in percent."""

    name: str
    own: bool
    mass: str
    matched: str
    level: int
    alone: str
    adds: str
    length: str


@dataclass(frozen=True)
class Total:
    """A side's rows, the largest first, and what they come to."""

    side: str
    rows: tuple[Share, ...]
    others: str
    left_out: int
    total: str

    @property
    def signed(self) -> str:
        """The total as a term of a sum."""
        sign = "" if self.total.startswith("\u2212") else "+"
        return f"{sign}{self.total}"


def shares(name: str, side: Side, total: float) -> Total:
    """Rows that add up to a rounded total, with what is left out on a line of its own."""
    units = heaviest(side, len(side.names))
    adds = np.nan_to_num(side.shares[units])
    order = np.argsort(-np.abs(adds), kind="stable")
    shown, rest = order[:MOST], order[MOST:]
    *values, others = rounded(np.append(adds[shown], adds[rest].sum()), total).tolist()
    longest = float(np.abs(adds).max(initial=0.0)) or 1.0
    rows = tuple(
        _row(side, int(units[k]), value, abs(float(adds[k])) / longest)
        for k, value in zip(shown.tolist(), values, strict=True)
    )
    return Total(name, rows, number(others), len(rest), number(total))


def _row(side: Side, unit: int, value: float, length: float) -> Share:
    excess = float(np.nan_to_num(side.excess[unit]))
    return Share(
        name=shorten(side.names[unit], _NAME),
        own=bool(side.spans[unit, 0] >= 0),
        mass=percent(side.weights[unit]),
        matched=number(side.matched[unit], 2),
        level=int(level(1 - side.matched[unit])),
        alone=percent(excess) if excess > 5e-4 else "",
        adds=number(value),
        length=f"{100 * length:.1f}",
    )
