"""From a metric and a pair of texts to an explanation of its score.

The steps are those of scoring, so the scores are the same to the bit; what scoring throws away is
kept. `explain` encodes and scores the pair by each part of the metric, solves it once more for the
plans (`_SolvedPair`), names the units of both texts (`View`, `Side`), and attributes the score to
them (`Explanation`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import tee
from typing import NamedTuple, Protocol

import numpy as np
import torch

from freight.core.costs import OmitsSharedMass, cost_terms
from freight.core.critical import critical_differences
from freight.core.joint_vocabulary import JointPairs
from freight.core.metric import Composition, Metric
from freight.core.pipeline import (
    ChunkSize,
    add_text_flags,
    chunks,
    compute_costs,
    encode_chunk,
    language_flags,
    read_scores,
    solve_pairs,
    weigh,
)
from freight.core.readouts import Shares, attribute
from freight.core.result import Column, Result
from freight.core.scorers import PipelineScorer, pair_up
from freight.core.types import Chunk, Cloud, Kind, Measures, Pairs, PairScores, Segment
from freight.core.units import unit_name
from freight.errors import InvalidInput
from freight.explain.explanation import Explanation, Plan, Side, View, plan_for_side
from freight.transport.types import Array, Plans, Problem

_TIE = 1e-9
_PAIRS = 128  # of a chunk: all their costs and vectors are in memory at once
_NEARLY_UNRELATED = 0.75  # of the cost between unrelated units


class Composed(PipelineScorer, Protocol):
    """A scorer whose columns are weighted sums over its parts, which is what can be explained."""

    def composition(self, column: str) -> Composition:
        """The weighted sum that a column is."""
        ...


def explain(
    scorer: Composed, hyp: str, ref: str | Sequence[str], column_name: str | None = None
) -> Explanation:
    """Score one hypothesis against its reference or references, and attribute the score to units.

    The named column is explained, by default the primary one. With several references the views
    are those of the best one.
    """
    (explanation,) = explain_segments(scorer, pair_up([hyp], [ref]), column_name)
    return explanation


def explain_segments(
    scorer: Composed, segments: Iterable[Segment], column_name: str | None = None
) -> Iterator[Explanation]:
    """Explain each segment in turn; texts are encoded a chunk at a time, as scoring does."""
    column = _find_column(scorer, column_name)
    if scorer.needs_fitting:
        raise InvalidInput(
            f"{scorer.name} weighs units by IDF, which cannot be fitted on one pair; fit it first,"
            " as in metric.fit(refs, hyps) on a corpus, or set idf=None"
        )
    own_texts, segments = tee(segments)
    for chunk in chunks(segments, ChunkSize(pairs=_PAIRS)):
        parts = _score_parts(scorer, chunk)
        scored = [part.scored for part in parts]
        result = scorer.read(chunk, scored)
        pairwise = scorer.read(replace(chunk, segments=np.arange(len(chunk.index))), scored)
        for k, (_, segment) in enumerate(zip(chunk, own_texts, strict=False)):
            rows = np.flatnonzero(chunk.segments == k)
            values = pairwise[column.name][rows]
            own = result.only(slice(k, k + 1))
            yield _explain_segment(scorer, parts, own, column, rows, values, segment)


def _explain_segment(
    scorer: Composed,
    parts: Sequence[_ScoredPart],
    result: Result,
    column: Column,
    rows: Array,
    values: Array,
    segment: Segment,
) -> Explanation:
    """The explanation of one segment, whose pairs are these rows with these scores."""
    hyp, refs = segment
    winner = int(result.winners[0])
    if scorer.references == "each":
        signed = values if column.higher else -values
        winner = int(np.argmax(np.where(np.isnan(values), -np.inf, signed)))
    views, base = _views(scorer, parts, int(rows[winner]), column.name)
    whole = base + sum(side.contributions.sum() for view in views for side in (view.hyp, view.ref))
    base += float(column.clip(whole)) - whole  # what the bounds take off belongs to no unit
    if scorer.references == "mean":
        views = [_scale(view, 1.0 / len(rows)) for view in views]
        base = (base + np.delete(values, winner).sum()) / len(rows)
    return Explanation(
        metric=scorer.name,
        column=column,
        scores={name: float(scores[0]) for name, scores in result.segments.items()},
        base=float(base if np.isfinite(result[column.name][0]) else result[column.name][0]),
        views=tuple(view.in_texts(hyp, refs[winner]) for view in views),
        references=tuple(refs),
        winner=winner,
        reference_scores=tuple(values.tolist()),
        flags=(*result.flags[0], *critical_differences(hyp, refs, winner)),
        signature=result.signature,
        hyp=hyp,
    )


def _find_column(scorer: PipelineScorer, name: str | None) -> Column:
    for column in scorer.columns:
        if name in (None, column.name):
            return column
    names = ", ".join(column.name for column in scorer.columns)
    raise InvalidInput(f"{scorer.name} has no column {name!r}; there is {names}")


# A metric and a pair: scored as always, with the intermediate data kept.


class _ScoredPart(NamedTuple):
    """One part of a scorer with all that scoring computed."""

    metric: Metric
    units: Cloud
    measures: tuple[Measures, Measures]
    batches: list[tuple[Pairs, torch.Tensor]]
    texts: Array  # (pair, 2)
    scored: PairScores

    def explain_pair(self, pair: int, column: str) -> tuple[View | None, float]:
        """The view of a pair, and the score outside it: all of it where a side is empty."""
        for pairs, cost in self.batches:
            for row in np.flatnonzero(pairs.which == pair):
                alone, own_cost = pairs.rows(slice(row, row + 1)), cost[row : row + 1]
                return _view(self, self.texts[pair], alone, own_cost, column)
        return None, float(self.scored[0][column][pair])


def _score_parts(scorer: PipelineScorer, chunk: Chunk) -> list[_ScoredPart]:
    parts = {}
    index = chunk.index
    spoken = language_flags(scorer.parts, chunk.texts, index)
    for encoded in encode_chunk(scorer.parts, chunk, {}):
        for k, cloud in encoded.clouds(scorer.parts):
            metric = scorer.parts[k]
            measures = weigh(metric, cloud)
            costs = compute_costs(metric, *measures, index)
            costs = add_text_flags(metric, costs, cloud, index, spoken)
            batches = list(costs.batches)
            scored = read_scores(metric, replace(costs, batches=batches))
            parts[k] = _ScoredPart(metric, metric.units(cloud), measures, batches, index, scored)
    return [parts[k] for k in sorted(parts)]


def _views(
    scorer: Composed, parts: Sequence[_ScoredPart], pair: int, column_name: str
) -> tuple[list[View], float]:
    """One view per part that counts and has units, and the score that belongs to no unit."""
    base, columns = scorer.composition(column_name)
    views = []
    for part, (column, factor) in zip(parts, columns, strict=True):
        if factor:
            view, rest = part.explain_pair(pair, column)
            base += factor * rest
            if view is not None:
                views.append(_scale(view, factor))
    return views, base


def _scale(view: View, factor: float) -> View:
    hyp, ref = (
        replace(side, contributions=factor * side.contributions) for side in (view.hyp, view.ref)
    )
    return replace(view, hyp=hyp, ref=ref, weight=abs(factor) * view.weight)


# The solved pair: costs, plans and the attribution of the score, without padding.


class _SolvedPair(NamedTuple):
    """One pair, solved; `ids` are None where the units are those of the texts in their order."""

    ids: tuple[Array, Array] | None
    weights: tuple[Array, Array]
    cost: Array
    unrelated_cost: Array  # what the cost would be if all units were orthogonal
    terms: dict[str, Array]
    flows: tuple[Array, ...]
    shares: Shares


def _solve_pair(metric: Metric, pairs: Pairs, cost: torch.Tensor, column: str) -> _SolvedPair:
    """The plans of a batch of one pair."""
    plans = solve_pairs(metric, pairs, cost)
    score = float(metric.readout(plans, pairs).columns[column][0])
    own_plans = [_unpad(plan) for plan in plans]
    shares = attribute(metric.readout, column, score, own_plans)
    flows = tuple(plan.flow for plan in own_plans)
    return _pair_costs(metric, pairs, own_plans[0].cost)._replace(flows=flows, shares=shares)


def _pair_costs(metric: Metric, pairs: Pairs, cost: Array) -> _SolvedPair:
    """A pair with its costs, its plans and shares yet to come."""
    n, m = int(pairs.hyp_sizes[0]), int(pairs.ref_sizes[0])
    with torch.inference_mode():
        unrelated_cost = metric.cost(pairs.orthogonal())
        terms = cost_terms(metric.cost, pairs)
    return _SolvedPair(
        (pairs.ids[0][0, :n], pairs.ids[1][0, :m]) if isinstance(pairs, JointPairs) else None,
        (pairs.hyp_weights[0, :n], pairs.ref_weights[0, :m]),
        cost,
        _to_array(unrelated_cost)[:n, :m],
        {name: _to_array(term)[:n, :m] for name, term in terms.items()},
        (),
        Shares(0.0, np.zeros(n), np.zeros(m)),
    )


def _with_shared_mass(rest: _SolvedPair, metric: Metric, pairs: Pairs, moved: float) -> _SolvedPair:
    """The pair on all its units: the mass that both texts put on one unit is matched at no cost.

    `rest` is the pair without that mass, which is the share `moved` of all the mass.
    """
    n, m = int(pairs.hyp_sizes[0]), int(pairs.ref_sizes[0])
    with torch.inference_mode():
        cost = _to_array(metric.cost(pairs))[:n, :m]
    whole = _pair_costs(metric, pairs, cost)
    if whole.ids is None or rest.ids is None:
        raise TypeError("a pairing that omits shared mass has to give the ids of its units")
    same = whole.ids[0][:, None] == whole.ids[1]
    shared = np.where(same, np.minimum.outer(*whole.weights), 0.0)
    hyp, ref = (
        (every[:, None] == some).argmax(axis=0)
        for every, some in zip(whole.ids, rest.ids, strict=True)
    )
    base, *shares = rest.shares
    return whole._replace(
        cost=np.where(same, 0.0, whole.cost),
        terms={name: np.where(same, 0.0, term) for name, term in whole.terms.items()},
        flows=tuple(shared + moved * _scatter(flow, (n, m), hyp, ref) for flow in rest.flows),
        shares=Shares(base, _scatter(shares[0], (n,), hyp), _scatter(shares[1], (m,), ref)),
    )


def _unpad(plans: Plans) -> Plans:
    """The plan of a batch of one, without its padding."""
    n, m = int(plans.hyp_sizes[0]), int(plans.ref_sizes[0])
    masses = plans.hyp_weights[0, :n], plans.ref_weights[0, :m]
    sizes = plans.hyp_sizes, plans.ref_sizes
    flow, ends = plans.flow[0, :n, :m], (plans.gap[0], plans.converged[0])
    return Plans(plans.problem, plans.cost[0, :n, :m], *masses, *sizes, flow, *ends)


def _scatter(values: Array, shape: tuple[int, ...], *indices: Array) -> Array:
    """Zeros of a shape with these values at these indices."""
    scattered = np.zeros(shape)
    scattered[np.ix_(*indices)] = values
    return scattered


def _to_array(cost: torch.Tensor) -> Array:
    """The matrix of a batch of one."""
    array: Array = cost[0].double().cpu().numpy()
    return array


# The view: the solved pair with the units' names.


def _view(
    part: _ScoredPart, texts: Array, pairs: Pairs, cost: torch.Tensor, column: str
) -> tuple[View, float]:
    """The view of a pair, and the part of a column's score that belongs to no unit."""
    metric = part.metric
    pair = _solve_pair(metric, pairs, cost, column)
    if isinstance(metric.pairing, OmitsSharedMass) and metric.pairing.in_full != metric.pairing:
        (full,) = metric.pairing.in_full(*part.measures, texts[None])
        moved = float(pairs.moved[0])
        pair = _with_shared_mass(pair, metric, full, moved)
    plans = tuple(
        Plan(_plan_name(problem), problem, flow)
        for problem, flow in zip(metric.problems, pair.flows, strict=True)
    )
    both = zip(part.measures, texts, strict=True)
    units = [_text_units(part.units, one, int(k)) for one, k in both]
    hyp, ref = (_side(pair, plans, side, units[side], units[1 - side]) for side in (0, 1))
    name = unit_name(metric.weighting, metric.units)
    return View(name, 1.0, hyp, ref, pair.cost, pair.terms, plans), pair.shares.base


def _plan_name(problem: Problem) -> str:
    marginals = {np.inf: "hard", 0.0: "free"}
    names = {
        ("hard", "hard"): "transport",
        ("hard", "free"): "precision",
        ("free", "hard"): "recall",
    }
    key = marginals.get(problem.hyp, "relaxed"), marginals.get(problem.ref, "relaxed")
    return names.get(key, "lazy")


class _TextUnits(NamedTuple):
    """The units of one text: their ids, names and characters."""

    text: str
    ids: Array
    names: tuple[str, ...]
    spans: Array


def _text_units(cloud: Cloud, measures: Measures, text: int) -> _TextUnits:
    """The units of a text as a measure has them; special tokens are named by their position."""
    units = np.arange(measures.offsets[text], measures.offsets[text + 1])
    runs = measures.extent[units]
    spans = np.stack((cloud.start[runs[:, 0]], cloud.end[runs[:, 1]]), axis=1)
    special: Array = np.asarray(cloud.having(Kind.SPECIAL)[runs].all(axis=1))
    content = cloud.texts[text]
    names = [
        ("[start]" if start == 0 else "[end]") if outside else content[start:end]
        for outside, (start, end) in zip(special, spans.tolist(), strict=True)
    ]
    spans[special] = -1
    return _TextUnits(content, measures.ids[units], tuple(names), spans)


def _side(
    pair: _SolvedPair, plans: tuple[Plan, ...], side: int, own: _TextUnits, other: _TextUnits
) -> Side:
    """One side of a pair; a unit that is not in its own text has its name from the other one."""
    names, spans, repeats = own.names, own.spans, np.zeros((0, 3), np.int64)
    if pair.ids is not None:
        ids = pair.ids[side]
        here, there = (_first_positions(text, ids) for text in (own, other))
        names = tuple(
            own.names[a] if a >= 0 else other.names[b] for a, b in zip(here, there, strict=True)
        )
        spans = np.where(here[:, None] >= 0, own.spans[here], -1)
        repeats = _later_positions(own, ids, here)
    seen = _row_plan(pair, plans, side)
    # Of a joint vocabulary only what the other text has is near: a unit is not its own counterpart.
    there_too = pair.ids is None or _first_positions(other, pair.ids[1 - side]) >= 0
    return Side(
        own.text,
        names,
        spans,
        seen.weights,
        (pair.shares.hyp, pair.shares.ref)[side],
        _match_quality(seen),
        _unmatched_mass(seen),
        repeats,
        _nearest_cost(seen, there_too),
    )


def _first_positions(text: _TextUnits, ids: Array) -> Array:
    """Where each of these ids first occurs in a text, -1 where it does not."""
    same = text.ids == ids[:, None]
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _later_positions(text: _TextUnits, ids: Array, first: Array) -> Array:
    """The unit, start and end of every further occurrence of one of these ids."""
    unit, position = np.nonzero(text.ids == ids[:, None])
    later = position != first[unit]
    return np.column_stack((unit[later], text.spans[position[later]]))


# How well each unit is matched, in the plan that constrains its side.


class _RowPlan(NamedTuple):
    """A plan with the units of one side in rows; `penalty` is that of the side's marginal."""

    weights: Array
    other_weights: Array
    penalty: float
    flow: Array
    cost: Array
    unrelated_cost: Array


def _row_plan(pair: _SolvedPair, plans: tuple[Plan, ...], side: int) -> _RowPlan:
    name = ("hyp", "ref")[side]
    plan = plan_for_side(plans, name)
    penalty: float = getattr(plan.problem, name)
    flow, cost, unrelated_cost = (
        x if side == 0 else x.T for x in (plan.flow, pair.cost, pair.unrelated_cost)
    )
    weights, other_weights = pair.weights[side], pair.weights[1 - side]
    return _RowPlan(weights, other_weights, penalty, flow, cost, unrelated_cost)


def _match_quality(plan: _RowPlan) -> Array:
    """1 minus the transport cost of a unit relative to that between unrelated units.

    It is multiplied by the share of the unit's mass that is matched. For a unit without mass it is
    that of its nearest unit.
    """
    moved = plan.flow.sum(axis=1)
    nearest = np.eye(plan.cost.shape[1])[plan.cost.argmin(axis=1)]
    flow = np.where(moved[:, None] > 0, plan.flow, nearest)
    paid, most = (flow * plan.cost).sum(axis=1), (flow * plan.unrelated_cost).sum(axis=1)
    relative_cost = np.clip(paid / np.where(most > 0, most, 1.0), 0.0, 1.0)
    heavy = plan.weights > 0
    matched_share = np.minimum(moved / np.where(heavy, plan.weights, 1.0), 1.0)
    quality: Array = (1.0 - relative_cost) * np.where(heavy, matched_share, 1.0)
    return quality


def _unmatched_mass(plan: _RowPlan) -> Array:
    """The mass that the plan leaves unmatched; under a hard marginal, the mass moved at high cost.

    High is above the mean cost between the sides, or near the cost between unrelated units.
    """
    if math.isfinite(plan.penalty):
        return np.maximum(plan.weights - plan.flow.sum(axis=1), 0.0)
    mean = plan.weights @ plan.cost @ plan.other_weights
    limit = np.minimum(mean + _TIE, _NEARLY_UNRELATED * plan.unrelated_cost)
    expensive: Array = (plan.flow * (plan.cost > limit)).sum(axis=1)
    return expensive


def _nearest_cost(plan: _RowPlan, allowed: Array | bool) -> Array:
    """The cost of each unit to its nearest one, relative to that between unrelated units."""
    nearest = np.where(allowed, plan.cost, np.inf).argmin(axis=1)
    rows = np.arange(len(nearest))
    most = plan.unrelated_cost[rows, nearest]
    cost: Array = plan.cost[rows, nearest] / np.where(most > 0, most, 1.0)
    return cost
