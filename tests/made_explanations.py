"""Explanations made without an encoder: the cost between two words is that of their letters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from freight.core.result import Column
from freight.explain.explanation import Explanation, Plan, Side, View
from freight.transport.solvers import solve
from freight.transport.types import Array, Problem

LAZY = Problem(0.23, 0.31, 0.009)


def explain_transport(
    hyp: str,
    ref: str,
    problem: Problem = LAZY,
    references: Sequence[str] = (),
    words: str = r"\w+|[^\w\s]",
) -> Explanation:
    """An explanation of a score that is the transport cost."""
    view = make_view(hyp, ref, problem, words)
    score = float(view.hyp.contributions.sum() + view.ref.contributions.sum())
    given = (ref, *references)
    return Explanation(
        metric="lazy-emd",
        column=Column("transport", False, 0.0, 2.0),
        scores={"transport": score, "objective": 2 * score},
        base=0.0,
        views=(view,),
        references=given,
        winner=0,
        reference_scores=tuple(score + k / 10 for k in range(len(given))),
        flags=(),
        signature="lazy-emd|encoder:letters",
    )


def explain_greedy(hyp: str, ref: str) -> Explanation:
    """An explanation of the mean of precision and recall, where higher is better."""
    view = make_view(hyp, ref, Problem(ref=0.0))
    back = make_view(hyp, ref, Problem(hyp=0.0))
    plans = tuple(
        replace(one.plans[0], name=name) for one, name in ((view, "precision"), (back, "recall"))
    )
    hyp_side = replace(view.hyp, contributions=-view.hyp.contributions)
    ref_side = replace(back.ref, contributions=-back.ref.contributions)
    score = 1.0 + float(hyp_side.contributions.sum() + ref_side.contributions.sum())
    return replace(
        explain_transport(hyp, ref),
        metric="mean",
        column=Column("f1", True, 1.0, 0.0),
        scores={"f1": score},
        base=1.0,
        views=(replace(view, plans=plans, hyp=hyp_side, ref=ref_side),),
        reference_scores=(score,),
    )


def explain_blend(hyp: str, ref: str) -> Explanation:
    """An explanation of a blend of unigrams and bigrams, whose cost has two terms."""
    views = []
    for name, words in (("unigrams", r"\w+"), ("bigrams", r"\w+(?=(\s+\w+))")):
        view = make_view(hyp, ref, Problem(), words)
        halves = {
            side: replace(getattr(view, side), contributions=getattr(view, side).contributions / 2)
            for side in ("hyp", "ref")
        }
        terms = {"meaning": 0.7 * view.cost, "order": 0.3 * view.cost}
        views.append(replace(view, name=name, weight=0.5, terms=terms, **halves))
    score = float(sum(side.contributions.sum() for view in views for side in (view.hyp, view.ref)))
    return replace(
        explain_transport(hyp, ref),
        metric="std",
        column=Column("distance", False, 0.0, 1.0),
        scores={"distance": score},
        views=tuple(views),
        reference_scores=(score,),
    )


def make_view(hyp: str, ref: str, problem: Problem = LAZY, words: str = r"\w+|[^\w\s]") -> View:
    spans = [
        np.array(
            [(m.start(), max(m.end(), m.end(m.lastindex or 0))) for m in re.finditer(words, t)]
        )
        for t in (hyp, ref)
    ]
    names = [tuple(t[a:b] for a, b in s.tolist()) for t, s in zip((hyp, ref), spans, strict=True)]
    cost = np.array([[_letter_distance(a, b) for b in names[1]] for a in names[0]])
    weights = [np.full(len(n), 1 / len(n)) for n in names]
    flow = solve(problem, cost, *weights).flow
    paid = cost * flow
    sides = [
        _side(text, names[k], spans[k], weights[k], paid.sum(axis=1 - k) / 2, flow.sum(axis=1 - k))
        for k, text in enumerate((hyp, ref))
    ]
    return View("words", 1.0, sides[0], sides[1], cost, {}, (Plan("transport", problem, flow),))


def _side(
    text: str,
    names: tuple[str, ...],
    spans: Array,
    weights: Array,
    contributions: Array,
    moved: Array,
) -> Side:
    cost = 2 * contributions / np.maximum(moved, 1e-12)
    quality = np.clip(1 - cost, 0, 1) * np.minimum(moved / weights, 1.0)
    unmatched = np.maximum(weights - moved, 0)
    return Side(text, names, spans, weights, contributions, quality, unmatched)


def _letter_distance(one: str, other: str) -> float:
    """One minus the Jaccard similarity of the letter bigrams."""
    a, b = ({w[k : k + 2] for k in range(-1, len(w))} for w in (one.lower(), other.lower()))
    return 1 - len(a & b) / len(a | b)
