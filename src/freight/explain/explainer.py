"""From a metric and a pair of texts to why it scores as it does, by the steps of scoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch

from freight.core.pairings import Pairs
from freight.core.pipeline import Chunk, Scored, chunks, encode_chunk, measured, noted, price, read
from freight.core.result import Column
from freight.core.scoring import Scorer, pair_up
from freight.core.types import Cloud
from freight.core.weightings import Measures
from freight.errors import InvalidInput
from freight.explain.explanation import Explanation, View
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.core.metric import Metric
import math
from typing import TYPE_CHECKING

from freight.core import costs
from freight.core.pipeline import solved
from freight.core.readouts import Shares
from freight.core.types import Kind
from freight.core.units import plural
from freight.explain.explanation import Plan, Side, own_plan
from freight.transport.types import Plans, Problem


class Composition(NamedTuple):
    """A column as a sum: what it starts from, and a column of each part with its factor."""

    base: float
    parts: tuple[tuple[str, float], ...]


class Composed(Scorer, Protocol):
    """A scorer whose columns are sums over its parts."""

    def composition(self, column: str) -> Composition:
        """What a column is made of."""
        ...


def explain(
    scorer: Composed, hyp: str, ref: str | Sequence[str], named: str | None = None
) -> Explanation:
    """Score one pair, or one hypothesis against several references, and keep what was made.

    The column that is named is explained, the primary one where none is.
    """
    column = _column(scorer, named)
    if scorer.needs_fitting:
        raise InvalidInput(
            f"{scorer.name} weighs units by IDF, which one pair cannot teach; fit it first, as in"
            " metric.fit(refs, hyps) on a corpus, or set idf=None"
        )
    segments = pair_up([hyp], [ref])
    (chunk,) = chunks(segments)
    parts = _parts(scorer, chunk)
    scored = [part.scored for part in parts]
    result = scorer.read(chunk, scored)
    each = scorer.read(replace(chunk, segments=np.arange(len(chunk.index))), scored)
    values = each[column.name]
    winner = int(result.winners[0])
    if scorer.references == "each":
        signed = values if column.higher else -values
        winner = int(np.argmax(np.where(np.isnan(values), -np.inf, signed)))
    views, base = _views(scorer, parts, winner, column.name)
    if scorer.references == "mean":
        others = np.delete(values, winner).sum()
        views, base = (
            [_scaled(view, 1.0 / len(each)) for view in views],
            (base + others) / len(each),
        )
    return Explanation(
        metric=scorer.name,
        column=column,
        scores={name: float(values[0]) for name, values in result.segments.items()},
        base=float(base if np.isfinite(result[column.name][0]) else result[column.name][0]),
        views=tuple(views),
        references=tuple(segments[0][1]),
        winner=winner,
        reference_scores=tuple(values.tolist()),
        flags=result.flags[0],
        signature=result.signature,
    )


class _Part(NamedTuple):
    """A part of a scorer, with all that scoring made on its way."""

    metric: Metric
    cloud: Cloud
    measures: tuple[Measures, Measures]
    batches: list[tuple[Pairs, torch.Tensor]]
    texts: Array  # (pair, 2)
    scored: Scored

    def view(self, pair: int, column: str) -> tuple[View | None, float]:
        """A pair, and what of its score belongs to no unit: all of it where a side is empty."""
        for pairs, cost in self.batches:
            for row in np.flatnonzero(pairs.which == pair):
                hyp, ref = self.texts[pair].tolist()
                found = SolvedPair((hyp, ref), pairs, cost, int(row))
                return viewed(
                    self.metric, self.metric.units(self.cloud), self.measures, found, column
                )
        return None, float(self.scored[0][column][pair])


def _parts(scorer: Scorer, chunk: Chunk) -> list[_Part]:
    found = {}
    encoded = encode_chunk(scorer.parts, chunk, {})
    for k, cloud in (each for one in encoded for each in one.clouds(scorer.parts)):
        metric, index = scorer.parts[k], chunk.index
        measures = measured(metric, cloud)
        priced = price(metric, *measures, index)
        batches = list(priced.batches)
        scored = noted(read(metric, replace(priced, batches=batches)), cloud, index)
        found[k] = _Part(metric, cloud, measures, batches, index, scored)
    return [found[k] for k in sorted(found)]


def _column(scorer: Scorer, named: str | None) -> Column:
    found = [one for one in scorer.columns if named in (None, one.name)]
    if not found:
        there = ", ".join(one.name for one in scorer.columns)
        raise InvalidInput(f"{scorer.name} has no column {named!r}; there is {there}")
    return found[0]


def _views(
    scorer: Composed, parts: Sequence[_Part], pair: int, named: str
) -> tuple[list[View], float]:
    """A view for each part that counts and has units, and what of the score is in none."""
    base, columns = scorer.composition(named)
    views = []
    counted = ((part, *one) for part, one in zip(parts, columns, strict=True) if one[1])
    for part, column, factor in counted:
        view, rest = part.view(pair, column)
        base += factor * rest
        if view is not None:
            views.append(_scaled(view, factor))
    return views, base


def _scaled(view: View, factor: float) -> View:
    hyp, ref = (replace(side, shares=factor * side.shares) for side in (view.hyp, view.ref))
    return replace(view, hyp=hyp, ref=ref, weight=abs(factor) * view.weight)


class SolvedPair(NamedTuple):
    """A pair of texts inside a priced batch: the texts by number, the batch, and its row there."""

    texts: tuple[int, int]
    pairs: Pairs
    cost: torch.Tensor
    row: int


def viewed(
    metric: Metric, cloud: Cloud, measures: tuple[Measures, Measures], pair: SolvedPair, column: str
) -> tuple[View, float]:
    """The pair as a view, and which part of a column's score belongs to no unit.

    `cloud` has the metric's units, `measures` every text of it as a hypothesis and as a reference.
    """
    stage = _solved(metric, pair, column)
    full = getattr(metric.pairing, "in_full", metric.pairing)
    if full != metric.pairing:
        (pairs,) = full(*measures, np.array([pair.texts]))
        moved = 1.0 if pair.pairs.moved is None else float(pair.pairs.moved[pair.row])
        stage = _whole(stage, metric, pairs, moved)
    plans = tuple(
        Plan(_name(problem), problem, flow)
        for problem, flow in zip(metric.problems, stage.flows, strict=True)
    )
    texts = [named(cloud, one, text) for one, text in zip(measures, pair.texts, strict=True)]
    sides = [
        seen_side(stage.seen(k, plans), texts[k], texts[1 - k], stage.ids and stage.ids[k])
        for k in (0, 1)
    ]
    called = getattr(metric.weighting, "plural", "") or plural(metric.units)
    view = View(called, 1.0, sides[0], sides[1], stage.cost, stage.terms, plans)
    return view, stage.shares.base


class _Stage(NamedTuple):
    """All there is to show of a pair; ids where its units are not those of the texts in a row."""

    ids: tuple[Array, Array] | None
    weights: tuple[Array, Array]
    cost: Array
    unrelated: Array  # what it would cost if all units were at right angles
    terms: dict[str, Array]
    flows: tuple[Array, ...]
    shares: Shares

    def seen(self, side: int, plans: tuple[Plan, ...]) -> Seen:
        """What one side sees: its own units in rows, in the plan in which it has a say."""
        name = ("hyp", "ref")[side]
        plan = own_plan(plans, name)
        rows = [x if side == 0 else x.T for x in (plan.flow, self.cost, self.unrelated)]
        penalty: float = getattr(plan.problem, name)
        own, other = self.weights[side], self.weights[1 - side]
        shares = (self.shares.hyp, self.shares.ref)[side]
        return Seen(own, other, shares, penalty, *rows)


def _solved(metric: Metric, pair: SolvedPair, column: str) -> _Stage:
    plans = solved(metric, pair.pairs, pair.cost)
    score = float(metric.readout(plans, pair.pairs).columns[column][pair.row])
    alone = [_alone(plan, pair.row) for plan in plans]
    shares = metric.readout.shares(column, score, alone)
    flows = tuple(plan.flow for plan in alone)
    return _stage(metric, pair.pairs, alone[0].cost, pair.row)._replace(flows=flows, shares=shares)


def _stage(metric: Metric, pairs: Pairs, cost: Array, row: int) -> _Stage:
    n, m = int(pairs.hyp_sizes[row]), int(pairs.ref_sizes[row])
    with torch.inference_mode():
        unrelated = metric.cost(pairs.alone(row).unrelated())
        terms = costs.terms(metric.cost, pairs)
    return _Stage(
        pairs.ids and (pairs.ids[0][row, :n], pairs.ids[1][row, :m]),
        (pairs.hyp_weights[row, :n], pairs.ref_weights[row, :m]),
        cost,
        _array(unrelated, 0)[:n, :m],
        {name: _array(term, row)[:n, :m] for name, term in terms.items()},
        (),
        Shares(0.0, np.zeros(n), np.zeros(m)),
    )


def _whole(part: _Stage, metric: Metric, pairs: Pairs, moved: float) -> _Stage:
    """The same on all units of a pair: what both texts put on one unit stays there at no cost."""
    n, m = int(pairs.hyp_sizes[0]), int(pairs.ref_sizes[0])
    with torch.inference_mode():
        stage = _stage(metric, pairs, _array(metric.cost(pairs), 0)[:n, :m], 0)
    if stage.ids is None or part.ids is None:
        raise TypeError("this pairing does not say what its units are")
    same = stage.ids[0][:, None] == stage.ids[1]
    stays = np.where(same, np.minimum.outer(*stage.weights), 0.0)
    hyp, ref = (
        (every[:, None] == some).argmax(axis=0)
        for every, some in zip(stage.ids, part.ids, strict=True)
    )
    base, *shares = part.shares
    return stage._replace(
        cost=np.where(same, 0.0, stage.cost),
        terms={name: np.where(same, 0.0, term) for name, term in stage.terms.items()},
        flows=tuple(stays + moved * _spread(flow, (n, m), hyp, ref) for flow in part.flows),
        shares=Shares(base, _spread(shares[0], (n,), hyp), _spread(shares[1], (m,), ref)),
    )


def _spread(values: Array, shape: tuple[int, ...], *places: Array) -> Array:
    found = np.zeros(shape)
    found[np.ix_(*places)] = values
    return found


def _alone(plans: Plans, row: int) -> Plans:
    """One plan of a batch, without its padding."""
    n, m = int(plans.hyp_sizes[row]), int(plans.ref_sizes[row])
    masses = plans.hyp_weights[row, :n], plans.ref_weights[row, :m]
    sizes = plans.hyp_sizes[row : row + 1], plans.ref_sizes[row : row + 1]
    flow, ends = plans.flow[row, :n, :m], (plans.gap[row], plans.converged[row])
    return Plans(plans.problem, plans.cost[row, :n, :m], *masses, *sizes, flow, *ends)


def _name(problem: Problem) -> str:
    held = {np.inf: "held", 0.0: "free"}
    names = {
        ("held", "held"): "transport",
        ("held", "free"): "precision",
        ("free", "held"): "recall",
    }
    return names.get((held.get(problem.hyp, ""), held.get(problem.ref, "")), "lazy")


def _array(cost: torch.Tensor, row: int) -> Array:
    found: Array = cost[row].double().cpu().numpy()
    return found


_TIE = 1e-9
_NEARLY = 0.75


class NamedUnits(NamedTuple):
    """The units of a text as a measure has them: which they are, their names and characters."""

    text: str
    ids: Array
    names: tuple[str, ...]
    spans: Array


class Seen(NamedTuple):
    """A pair from one side, whose units are the rows, in the plan in which it has a say.

    `penalty` is how firmly the plan holds the side, `unrelated` what a move would cost if all units
    were at right angles to each other.
    """

    weights: Array
    other_weights: Array
    shares: Array
    penalty: float
    flow: Array
    cost: Array
    unrelated: Array


def named(cloud: Cloud, measures: Measures, text: int) -> NamedUnits:
    """What the units of a text say; special tokens are named by where they stand."""
    units = np.arange(measures.offsets[text], measures.offsets[text + 1])
    runs = np.stack((units, units), axis=1) if measures.extent is None else measures.extent[units]
    spans = np.stack((cloud.start[runs[:, 0]], cloud.end[runs[:, 1]]), axis=1)
    special = cloud.having(Kind.SPECIAL)[runs].all(axis=1)
    content = cloud.texts[text]
    names = [
        ("[start]" if start == 0 else "[end]") if outside else content[start:end]
        for outside, (start, end) in zip(special, spans.tolist(), strict=True)
    ]
    spans[special] = -1
    return NamedUnits(content, measures.ids[units], tuple(names), spans)


def seen_side(seen: Seen, own: NamedUnits, other: NamedUnits, ids: Array | None) -> Side:
    """A side with its names; `ids` says what its units are, unless they are the text's in a row.

    A unit that is not in the text has its name from the other one, and no characters here.
    """
    names, spans = own.names, own.spans
    if ids is not None:
        here, there = (_first(text, ids) for text in (own, other))
        names = tuple(
            own.names[a] if a >= 0 else other.names[b] for a, b in zip(here, there, strict=True)
        )
        spans = np.where(here[:, None] >= 0, own.spans[here], -1)
        again = _again(own, ids, here)
    found = Side(own.text, names, spans, seen.weights, seen.shares, _matched(seen), _excess(seen))
    return found if ids is None else replace(found, again=again)


def _first(text: NamedUnits, ids: Array) -> Array:
    """Where each of these ids stands first in a text, -1 where nowhere."""
    same = text.ids == ids[:, None]
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _again(text: NamedUnits, ids: Array, first: Array) -> Array:
    """The number and the characters of every place where one of these ids stands once more."""
    unit, place = np.nonzero(text.ids == ids[:, None])
    later = place != first[unit]
    return np.column_stack((unit[later], text.spans[place[later]]))


def _matched(seen: Seen) -> Array:
    """1 less what a unit's moves cost, as a share of what moving to unrelated units would.

    Of a unit that left mass unmoved only the share that it moved counts. A unit that weighs nothing
    is as well matched as it could have been.
    """
    moved = seen.flow.sum(axis=1)
    nearest = np.eye(seen.cost.shape[1])[seen.cost.argmin(axis=1)]
    flow = np.where(moved[:, None] > 0, seen.flow, nearest)
    paid, most = (flow * seen.cost).sum(axis=1), (flow * seen.unrelated).sum(axis=1)
    dear = np.clip(paid / np.where(most > 0, most, 1.0), 0.0, 1.0)
    heavy = seen.weights > 0
    found = np.minimum(moved / np.where(heavy, seen.weights, 1.0), 1.0)
    matched: Array = (1.0 - dear) * np.where(heavy, found, 1.0)
    return matched


def _excess(seen: Seen) -> Array:
    """The mass that stayed; on a held side, where all has to move, the mass that moved dearly.

    That is at more than the mean cost between the sides, or at nearly what unrelated units cost.
    """
    if math.isfinite(seen.penalty):
        return np.maximum(seen.weights - seen.flow.sum(axis=1), 0.0)
    mean = seen.weights @ seen.cost @ seen.other_weights
    limit = np.minimum(mean + _TIE, _NEARLY * seen.unrelated)
    dear: Array = (seen.flow * (seen.cost > limit)).sum(axis=1)
    return dear
