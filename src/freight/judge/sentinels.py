"""Sentinels: what agrees with people without measuring quality, beside the metrics of a study.

A study is to be trusted if its metrics agree better with people than the length of the hypothesis,
than themselves with the reference of another segment (what can be guessed from the hypothesis
alone), and than chrF, which compares characters. The chance level is the agreement of a metric that
knows nothing; the human ceiling is that of one rater with the mean of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from freight.data.judgements import Judgements
from freight.judge.comparisons import ErrorComparison, LevelComparison
from freight.judge.scores import StudyColumn
from freight.transport.types import Array

LENGTH, CHRF = "length", "chrf"
LEVEL = 0.05
_BLOCK = 64
_NAMED = 3


@dataclass(frozen=True)
class SentinelAgreement:
    """A sentinel on one set by one criterion; `p_values` are by metric.

    A p-value is one-sided, for the null hypothesis that metric and sentinel agree equally well with
    people and the alternative that the metric agrees better.
    """

    sentinel: str
    set: str
    human: str
    value: float
    low: float
    high: float
    p_values: dict[str, float]


@dataclass(frozen=True, eq=False)
class Sentinels:
    """All sentinels of a study, and by set and criterion the chance level and the human ceiling.

    The ceiling is there where several people rated. `signature` is that of chrF.
    """

    agreements: tuple[SentinelAgreement, ...] = ()
    chance: dict[tuple[str, str], float] = field(default_factory=dict)
    ceiling: dict[tuple[str, str], float] = field(default_factory=dict)
    signature: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Each sentinel once, in order."""
        return tuple(dict.fromkeys(one.sentinel for one in self.agreements))

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each metric that does not agree significantly better than a sentinel."""
        columns = list(dict.fromkeys((one.set, one.human) for one in self.agreements))
        lost: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for one in self.agreements:
            for metric, p in one.p_values.items():
                if not p < LEVEL:
                    where = f"{one.set}, {one.human}" if one.human else one.set
                    lost[metric][one.sentinel].append(where)
        return tuple(
            f"{metric} does not agree with people significantly better (one-sided p < {LEVEL:g})"
            f" than {'; '.join(_where(name, at, len(columns)) for name, at in several.items())}"
            for metric, several in lost.items()
        )


def _where(sentinel: str, columns: Sequence[str], of: int) -> str:
    if of == 1:
        return sentinel
    if len(columns) == of:
        return f"{sentinel} in any column"
    if len(columns) > _NAMED:
        return f"{sentinel} in {len(columns)} of {of} columns"
    return f"{sentinel} on {', '.join(columns)}"


def unrelated_references(
    refs: Sequence[tuple[str, ...]], seed: int = 0
) -> tuple[tuple[str, ...], ...] | None:
    """For each row the references of another segment, the same for all its outputs.

    They have no text in common with its own. They come from nearby rows, whose texts are encoded
    at about the same time. None where some row has no such references.
    """
    distinct = list(dict.fromkeys(refs))
    rng = np.random.default_rng(seed)
    cycles = [
        start + rng.permutation(min(_BLOCK, len(distinct) - start))
        for start in range(0, len(distinct), _BLOCK)
    ]
    order = [int(k) for cycle in cycles for k in cycle]
    ends = np.cumsum([len(cycle) for cycle in cycles])
    other: dict[tuple[str, ...], tuple[str, ...]] = {}
    for place, k in enumerate(order):
        own = set(distinct[k])
        block = int(np.searchsorted(ends, place, side="right"))
        start, end = int(ends[block]) - len(cycles[block]), int(ends[block])
        inside = [*range(place + 1, end), *range(start, place)]
        outside = (at % len(order) for at in range(end, end + len(order)))
        for at in (*inside, *outside):
            candidate = distinct[order[at]]
            if own.isdisjoint(candidate):
                other[distinct[k]] = candidate
                break
        else:
            return None
    return tuple(other[several] for several in refs)


def lengths(hyps: Sequence[str]) -> Array:
    """The number of characters of each hypothesis, without white space at its ends."""
    return np.array([float(len(hyp.strip())) for hyp in hyps])


class SentinelScores(NamedTuple):
    """One number per row of a set, higher for better, and the metrics that have to beat it.

    `column` has the scale of the numbers; None where they have none, so that no error is measured.
    """

    name: str
    scores: Array
    column: StudyColumn | None
    metrics: tuple[str, ...]


def set_sentinels(
    judged: Judgements,
    columns: Sequence[StudyColumn],
    shuffled: Sequence[Array],
    chrf: tuple[StudyColumn, Array],
) -> Iterator[SentinelScores]:
    """The sentinels of one set.

    `shuffled` are the scores of the metrics' columns against the references of other segments,
    empty where there are none; `chrf` its column with its scores.
    """
    metrics = tuple(column.name for column in columns)
    yield SentinelScores(LENGTH, lengths(judged.hyps), None, metrics)
    own = chrf[0].scorer.signature
    rivals = tuple(column.name for column in columns if column.scorer.signature != own)
    yield SentinelScores(CHRF, chrf[1], chrf[0], rivals)
    for column, row in zip(columns, shuffled, strict=False):
        yield SentinelScores(f"{column.name} (shuffled ref)", row, column, (column.name,))


Compare = Callable[[Judgements, Array, str], LevelComparison | None]
"""The comparison of a study, over some rows of a set and by one criterion."""


def sentinel_agreement(
    sentinel: SentinelScores,
    judged: Judgements,
    criterion: str,
    usable: Array,
    compare: Compare,
    metrics: Mapping[str, Array],
) -> SentinelAgreement | None:
    """How well a sentinel agrees with people, and each of its metrics tested against it.

    `metrics` are scores by name, as the statistic takes them. None where fewer than half of the
    rows have a number, or errors are asked of one without a scale.
    """
    known = usable & ~np.isnan(sentinel.scores)
    comparison = compare(judged, known, criterion)
    if comparison is None or 2 * known.sum() < usable.sum():
        return None
    scores = sentinel.scores
    if isinstance(comparison, ErrorComparison):
        if sentinel.column is None:
            return None
        scores = sentinel.column.rescale(scores)
    value, _, low, high, _ = comparison.interval(scores)
    rival = scores
    if sentinel.name == LENGTH and comparison.value(-scores) > value:
        rival = -scores  # here people prefer short texts
    p_values = {
        name: float(comparison.p_values(np.stack((metrics[name], rival)))[0, 1])
        for name in sentinel.metrics
    }
    return SentinelAgreement(sentinel.name, judged.name, criterion, value, low, high, p_values)


def human_ceiling(
    judged: Judgements, criterion: str, usable: Array, compare: Compare
) -> float | None:
    """The agreement of one rater with the mean of the others, by the statistic of a study.

    Where the criterion is one rater, of that rater, whom the mean of the others predicts; where it
    is the mean of all, the mean over the raters, each of whom predicts the mean of the others.
    None elsewhere.
    """
    if criterion not in judged.human or len(judged.raters) < 2:
        return None
    sides = []
    for name, one in judged.raters.items():
        others = _mean_of_known(np.array([x for k, x in judged.raters.items() if k != name]))
        if name == criterion:
            sides = [(others, one)]
            break
        sides.append((one, others))
    else:
        mean = _mean_of_known(np.array(list(judged.raters.values())))
        given = judged.human[criterion]
        if not np.allclose(mean, given, rtol=1e-3, atol=1e-3, equal_nan=True):
            return None
    values = []
    for predicting, predicted in sides:
        rated = usable & ~np.isnan(predicting)
        comparison = compare(replace(judged, human={criterion: predicted}), rated, criterion)
        if isinstance(comparison, ErrorComparison):
            low, high = comparison.scale
            predicting = (predicting - low) / (high - low)
        if comparison is not None:
            values.append(comparison.value(predicting))
    return float(np.mean(values)) if values else None


def _mean_of_known(ratings: Array) -> Array:
    """The mean over raters (rater, row), nan where nobody rated."""
    counts = (~np.isnan(ratings)).sum(axis=0)
    sums = np.nansum(ratings, axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
