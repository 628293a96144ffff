"""From a metric and a pair of texts to why it scores as it does, by the steps of scoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch

from freight.clouds import Cloud
from freight.errors import InvalidInput
from freight.explanations import Explanation, View
from freight.pairings import Pairs
from freight.pipeline import Chunk, Scored, chunks, encode_chunk, measured, noted, price, read
from freight.results import Column
from freight.scoring import Scorer, pair_up
from freight.types import Array
from freight.views import Pair, viewed
from freight.weightings import Measures

if TYPE_CHECKING:
    from freight.metric import Metric


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
                found = Pair((hyp, ref), pairs, cost, int(row))
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
