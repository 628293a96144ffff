"""An explanation as HTML: a fragment for other pages, or a page of its own, without any script.

`fragment` and `page` fill the templates with a `_Content`: the score and its parts, both texts
with their errors coloured and in words, one Sankey diagram per plan, tables of contributions,
heat maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from freight.core.flags import SIDES, CriticalDifference, SideName
from freight.core.result import cite
from freight.data.languages import detect_surely
from freight.explain.comparison import Comparison
from freight.explain.explanation import Explanation, Plan, Side, View, plan_for_side
from freight.explain.spans import ErrorSpan
from freight.report.formatting import colour_level, number, percent, round_to_sum, shorten
from freight.report.heatmaps import Grid, cost_grids, flow_grids
from freight.report.pages import render, template_source
from freight.report.sankey import Diagram, diagram, relevant_units
from freight.transport.types import Problem

_SMALL = 18  # units of a side, up to which everything is unfolded
_MOST_PHRASES = 12
_MOST_ROWS = 40
_NAME = 40


def fragment(explanation: Explanation | Comparison) -> str:
    """HTML for a page that has `fragment_style()` as a style sheet; all text is escaped."""
    if isinstance(explanation, Comparison):
        both = explanation.one, explanation.other
        return render(
            "comparison.html",
            changes=explanation.changes,
            both=[_content(one, narrow=True) for one in both],
        )
    return render("explanation.html", it=_content(explanation))


def fragment_style() -> str:
    """The style sheet of fragments, light and dark by the reader's preference or `data-theme`."""
    return template_source("explanation.css")


def page(explanation: Explanation | Comparison) -> str:
    """A page in one file."""
    both = isinstance(explanation, Comparison)
    title = "Two explanations compared" if both else "Explanation of a score"
    content = {"fragment": fragment(explanation), "fragment_style": fragment_style()}
    return render("explanation_page.html", title=title, **content)


@dataclass(frozen=True)
class _Meter:
    """The position of a score between the worst and the perfect one, in percent."""

    filled: str
    worst: str
    perfect: str


@dataclass(frozen=True)
class _Content:
    """What the template shows of an explanation."""

    metric: str
    column: str
    direction: str
    score: str
    meter: _Meter | None
    others: list[tuple[str, str]]
    base: str
    references: list[tuple[str, str, bool]]
    flags: list[tuple[str, str]]
    meaning: str
    summary: list[PhraseLine]
    citation: str
    signature: str
    views: list[_ViewContent]
    narrow: bool


def _content(explanation: Explanation, narrow: bool = False) -> _Content:
    column = explanation.column
    score = explanation.scores[column.name]
    sums = [float(np.sum(s.contributions)) for v in explanation.views for s in (v.hyp, v.ref)]
    base, *parts = round_to_sum(np.array([explanation.base, *sums]), score).tolist()
    references = zip(explanation.references, explanation.reference_scores, strict=True)
    return _Content(
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
        flags=[_label_flag(flag) for flag in explanation.flags],
        meaning=explanation.meaning,
        summary=_summary(explanation),
        citation=cite(explanation.signature),
        signature=explanation.signature,
        views=[
            _view_content(view, parts[2 * k], parts[2 * k + 1], explanation.spans)
            for k, view in enumerate(explanation.views)
        ],
        narrow=narrow,
    )


def _summary(explanation: Explanation) -> list[PhraseLine]:
    """What the colours show, in words."""
    lines = (
        PhraseLine("Worst words", explanation.worst_words, "the errors that are matched worst"),
        PhraseLine("Added", explanation.phrases("added"), "not in the reference"),
        PhraseLine("Missing", explanation.phrases("missing"), "not in the hypothesis"),
    )
    return [line for line in lines if line.phrases]


def _label_flag(flag: str) -> tuple[str, str]:
    label = "Critical difference" if isinstance(flag, CriticalDifference) else "Flag"
    return label, flag


def _meter(explanation: Explanation) -> _Meter | None:
    worst, perfect = explanation.column.worst, explanation.column.perfect
    filled = (explanation.scores[explanation.column.name] - worst) / (perfect - worst or 1.0)
    if not np.isfinite(filled) or not np.isfinite(worst):
        return None
    return _Meter(f"{100 * np.clip(filled, 0, 1):.1f}", f"{worst:.3g}", f"{perfect:.3g}")


@dataclass(frozen=True)
class _PlanContent:
    """A plan: its problem and its quality in words, and its diagram."""

    name: str
    problem: str
    quality: str
    diagram: Diagram


@dataclass(frozen=True)
class _ViewContent:
    """What the template shows of a view."""

    name: str
    weight: str
    total: str
    terms: tuple[tuple[str, str], ...]
    hyp: list[TextPiece]
    ref: list[TextPiece]
    languages: tuple[str, str]
    unmatched: list[PhraseLine]
    plans: list[_PlanContent]
    costs: list[Grid]
    flows: list[Grid]
    tables: tuple[ContributionTable, ContributionTable]
    small: bool

    @property
    def has_outside_units(self) -> bool:
        """Whether a unit is listed that is not in its text."""
        return any(not row.in_text for table in self.tables for row in table.rows)


def _view_content(view: View, hyp: float, ref: float, spans: Sequence[ErrorSpan]) -> _ViewContent:
    return _ViewContent(
        name=view.name,
        weight=f"{view.weight:g}" if view.weight != 1 else "",
        total=number(hyp + ref),
        terms=_cost_terms(view, hyp + ref),
        hyp=text_pieces(view.hyp, [span for span in spans if span.side == "hyp"]),
        ref=text_pieces(view.ref, [span for span in spans if span.side == "ref"]),
        languages=(_language(view.hyp.text), _language(view.ref.text)),
        unmatched=[line for line in map(partial(_unmatched_line, view), SIDES) if line.phrases],
        plans=[
            _PlanContent(
                plan.name, describe_problem(plan.problem), _quality(view, plan), diagram(view, plan)
            )
            for plan in view.plans
        ],
        costs=cost_grids(view),
        flows=flow_grids(view),
        tables=(
            _contribution_table("hypothesis", view.hyp, hyp),
            _contribution_table("reference", view.ref, ref),
        ),
        small=max(len(view.hyp.names), len(view.ref.names)) <= _SMALL,
    )


def _language(text: str) -> str:
    """The code of the language that a text is surely in: browsers draw and speak it by that."""
    return detect_surely([text]) or ""


def _cost_terms(view: View, total: float) -> tuple[tuple[str, str], ...]:
    """The part of a total that is due to each term of the cost, where one plan has several."""
    if len(view.terms) < 2 or len(view.plans) != 1:
        return ()
    paid = np.array([float(np.sum(view.plans[0].flow * term)) for term in view.terms.values()])
    parts = round_to_sum(paid * (total / paid.sum() if paid.sum() else 0.0), total)
    return tuple((name, number(x)) for name, x in zip(view.terms, parts.tolist(), strict=True))


def _quality(view: View, plan: Plan) -> str:
    """How incomplete and how noisy a plan is, for the sides whose marginal it constrains."""
    sentences = []
    for side, name in (("hyp", "hypothesis"), ("ref", "reference")):
        if getattr(plan.problem, side) > 0:
            matching = view.matching(side, plan)
            shares = {
                "is unmatched": matching.incomplete,
                "moves elsewhere than to the nearest unit": matching.noisy,
            }
            parts = [f"{percent(x)} {what}" for what, x in shares.items() if x >= 5e-4]
            sentences += [f"of the {name}'s mass {', '.join(parts)}"] if parts else []
    return "; ".join(sentences)


def describe_problem(problem: Problem) -> str:
    """A transport problem in words."""
    if problem.hyp == problem.ref == np.inf:
        words = ["both marginals hard"]
    else:
        sides = {"hypothesis": problem.hyp, "reference": problem.ref}
        words = [f"{side} {_describe_marginal(x)}" for side, x in sides.items()]
    return ", ".join([*words, *([f"epsilon {problem.epsilon:g}"] if problem.epsilon else [])])


def _describe_marginal(penalty: float) -> str:
    return {np.inf: "hard", 0.0: "free"}.get(penalty, f"KL-relaxed ({penalty:g})")


# Both texts, the errors coloured.


@dataclass(frozen=True)
class TextPiece:
    """A word, or what is between words; `severity` is minor or major where it is an error."""

    text: str
    severity: str = ""
    title: str = ""


@dataclass(frozen=True)
class PhraseLine:
    """Phrases of a text that have something in common: what, and a remark on it."""

    label: str
    phrases: tuple[str, ...]
    remark: str

    @property
    def shown(self) -> tuple[str, ...]:
        """The first of them."""
        return self.phrases[:_MOST_PHRASES]


def text_pieces(side: Side, spans: Sequence[ErrorSpan]) -> list[TextPiece]:
    """The text in pieces, of which those in a span are errors."""
    pieces, end = [], 0
    for word, quality in zip(side.words, side.word_quality.tolist(), strict=True):
        over = [span for span in spans if span.start < word.end and word.start < span.end]
        if word.start > end:
            inside = over and over[0].start < end
            pieces.append(
                TextPiece(side.text[end : word.start], over[0].severity if inside else "")
            )
        contribution = number(float(np.nansum(side.contributions[list(word.units)])))
        kind = f"{over[0].kind}, {over[0].severity}; " if over else ""
        title = f"{kind}match quality {number(quality, 2)}; contribution {contribution}"
        text = side.text[max(word.start, end) : word.end]
        pieces.append(TextPiece(text, over[0].severity if over else "", title))
        end = max(end, word.end)
    return [*pieces, TextPiece(side.text[end:])] if end < len(side.text) else pieces


def _unmatched_line(view: View, name: SideName) -> PhraseLine:
    """The phrases of a side whose mass a plan does not match."""
    side = view.hyp if name == "hyp" else view.ref
    phrases = tuple(dict.fromkeys(side.quote_words(side.unmatched_words)))
    plan = plan_for_side(view.plans, name) if view.plans else None
    if plan is not None and np.isfinite(getattr(plan.problem, name)):
        share = view.matching(name, plan).incomplete  # as in the caption of the plan
    else:
        share = float(np.nansum(side.unmatched_mass))
    label = f"Unmatched in the {'hypothesis' if name == 'hyp' else 'reference'}"
    return PhraseLine(label, phrases, f"{percent(share)} of the mass is unmatched")


# Tables of what each unit contributes.


@dataclass(frozen=True)
class ContributionRow:
    """A unit; `length` is that of its bar in percent, `in_text` whether it is in the text."""

    name: str
    in_text: bool
    mass: str
    match_quality: str
    level: int
    unmatched: str
    contribution: str
    length: str


@dataclass(frozen=True)
class ContributionTable:
    """A side's units, the largest contribution first, and their total."""

    side: str
    rows: tuple[ContributionRow, ...]
    others: str
    left_out: int
    total: str

    @property
    def signed_total(self) -> str:
        """The total as a term of a sum."""
        sign = "" if self.total.startswith("\u2212") else "+"
        return f"{sign}{self.total}"


def _contribution_table(name: str, side: Side, total: float) -> ContributionTable:
    """Rows that add up to a rounded total; the units left out have one row together."""
    units = relevant_units(side, len(side.names))
    contributions = np.nan_to_num(side.contributions[units])
    order = np.argsort(-np.abs(contributions), kind="stable")
    shown, rest = order[:_MOST_ROWS], order[_MOST_ROWS:]
    all_parts = np.append(contributions[shown], contributions[rest].sum())
    *values, others = round_to_sum(all_parts, total).tolist()
    longest = float(np.abs(contributions).max(initial=0.0)) or 1.0
    rows = tuple(
        _contribution_row(side, int(units[k]), value, abs(float(contributions[k])) / longest)
        for k, value in zip(shown.tolist(), values, strict=True)
    )
    return ContributionTable(name, rows, number(others), len(rest), number(total))


def _contribution_row(side: Side, unit: int, value: float, length: float) -> ContributionRow:
    unmatched = float(np.nan_to_num(side.unmatched_mass[unit]))
    return ContributionRow(
        name=shorten(side.names[unit], _NAME),
        in_text=bool(side.spans[unit, 0] >= 0),
        mass=percent(side.weights[unit]),
        match_quality=number(side.match_quality[unit], 2),
        level=int(colour_level(1 - side.match_quality[unit])),
        unmatched=percent(unmatched) if unmatched > 5e-4 else "",
        contribution=number(value),
        length=f"{100 * length:.1f}",
    )
