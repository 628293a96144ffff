"""A solved pair as people can look at it: units with names, prices, flows, and what each adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from freight import costs
from freight.clouds import Cloud
from freight.explanations import Plan, View, own_plan
from freight.pairings import Pairs
from freight.pipeline import solved
from freight.shares import Shares
from freight.sides import Seen, named, seen_side
from freight.types import Array, Plans, Problem
from freight.units import plural
from freight.weightings import Measures

if TYPE_CHECKING:
    from freight.metric import Metric


class Pair(NamedTuple):
    """A pair of texts inside a priced batch: the texts by number, the batch, and its row there."""

    texts: tuple[int, int]
    pairs: Pairs
    cost: torch.Tensor
    row: int


def viewed(
    metric: Metric, cloud: Cloud, measures: tuple[Measures, Measures], pair: Pair, column: str
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


def _solved(metric: Metric, pair: Pair, column: str) -> _Stage:
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
