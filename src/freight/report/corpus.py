"""The page of a scored corpus: systems compared, both ends, the effect of length, every row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from freight.core.result import Result
from freight.core.scoring import Refs, Scorer, pair_up
from freight.data.corpus import RowOrigins
from freight.judge.correlation import spearman
from freight.judge.significance import Interval
from freight.judge.systems import SystemRanking, rank_systems, system_scores
from freight.report import plots
from freight.report.explanation import fragment_style
from freight.report.extremes import BUDGET, Ends, explained, extreme_rows, shown_ends
from freight.report.html import check_page, render, write_page
from freight.report.rows import (
    ListedTexts,
    embedded,
    embedded_rows,
    flag_counts,
    listed_rows,
    read_texts,
)
from freight.report.tables import Cell, Row, decimals, placed, verdict
from freight.transport.types import Array


@dataclass(frozen=True, eq=False)
class ScoredCorpus:
    """A corpus with what metrics said of it, a result a metric.

    `segments` can be gone through again, so that texts need not be kept. `columns` are those to be
    shown of each metric, of which the first is ranked and drawn; all unless given. `metrics`, where
    given, explain the scores of the worst and the best segments. `known` are comparisons of
    systems, a list a metric, where they have been made already.
    """

    results: Sequence[Result]
    segments: Iterable[tuple[str, Sequence[str]]]
    places: RowOrigins | None = None
    metrics: Sequence[Scorer] = ()
    columns: Sequence[tuple[str, ...]] = ()
    known: Sequence[Sequence[SystemRanking]] = ()

    def __len__(self) -> int:
        return len(self.results[0])

    @cached_property
    def shown(self) -> list[tuple[str, ...]]:
        """The columns to be shown of each metric."""
        return [*self.columns] or [tuple(c.name for c in x.columns) for x in self.results]

    @cached_property
    def scores(self) -> list[Array]:
        """The column that leads, of each metric."""
        return [x[names[0]] for x, names in zip(self.results, self.shown, strict=True)]

    @cached_property
    def labels(self) -> list[list[str]]:
        """What the columns are called, of each metric."""
        return [
            [f"{result.name} {name}{'↑' if self.higher(k, name) else '↓'}" for name in names]
            for k, (result, names) in enumerate(zip(self.results, self.shown, strict=True))
        ]

    @cached_property
    def rankings(self) -> Sequence[Sequence[SystemRanking]]:
        """Systems against each other, by each column shown; nothing where there is one system."""
        if self.known or self.places is None or len(self.places.names) < 2:
            return self.known
        found = [{x.column: x for x in rank_systems(one, self.places)} for one in self.results]
        return [[by[n] for n in names] for by, names in zip(found, self.shown, strict=True)]

    @cached_property
    def whole(self) -> list[dict[str, Interval]]:
        """The scores of all rows together, by each metric and column."""
        return [system_scores(result) for result in self.results]

    def higher(self, metric: int, column: str) -> bool:
        """Whether higher is better."""
        return next(c.higher for c in self.results[metric].columns if c.name == column)

    def where(self, row: int) -> str:
        """A row's place in words."""
        if self.places is None:
            return f"segment {row + 1:,}"
        system = self.places.names[self.places.systems[row]]
        return f"segment {self.places.segments[row] + 1:,}, {system}"


def page(
    results: Sequence[Result],
    hyps: Sequence[str],
    refs: Refs,
    systems: Sequence[str] | None = None,
    metrics: Sequence[Scorer] = (),
    explain: int = 10,
) -> str:
    """The page of what metrics said of hypotheses, as one file's text.

    `systems` names the one that each hypothesis is of; the first of each system are for the same
    input, the second, and so on. Given the `metrics` themselves, the scores of so many of the worst
    and of the best segments by each are explained.
    """
    places = None if systems is None else RowOrigins.of_rows({"system": name} for name in systems)
    return corpus_page(ScoredCorpus(results, pair_up(hyps, refs), places, metrics), explain)


def write_corpus_report(scored: ScoredCorpus, path: Path, explain: int = 10) -> None:
    """Write the page of a corpus, one file that needs no network."""
    check_page(path)
    write_page(corpus_page(scored, explain), path)


def corpus_page(scored: ScoredCorpus, explain: int = 10) -> str:
    """The page of a corpus."""
    ends = [
        extreme_rows(scores, scored.higher(k, scored.shown[k][0]), explain)
        for k, scores in enumerate(scored.scores)
    ]
    rows = listed_rows(len(scored), {row for both in ends for side in both for row in side})
    reading = read_texts(scored.segments, scored.results, rows)
    fragments: dict[str, str] = {}
    columns, table = _table(scored)
    return render(
        "corpus.html",
        title="Scores of a corpus",
        fragment_style=fragment_style(),
        lead=_lead(scored),
        facts=_facts(scored),
        columns=columns,
        table=table,
        compared=len(scored.rankings) > 0,
        beats=list(_beats(scored)),
        notes=list(_notes(scored)),
        histograms=list(_histograms(scored)),
        ends=list(_ends(scored, ends, reading, fragments)),
        effect_heads=list(_sizes(reading, 0)),
        effects=_effects(scored, reading),
        lengths=list(_lengths(scored, reading)),
        flags=flag_counts(scored.results),
        names=[result.name for result in scored.results],
        heads=[labels[0] for labels in scored.labels],
        listed=len(rows),
        count=len(scored),
        systems=scored.places.names if scored.places else (),
        rows=embedded_rows(reading, scored.scores, scored.results, scored.places),
        explanations=embedded(fragments),
        signatures=[result.signature for result in scored.results],
    )


def _facts(scored: ScoredCorpus) -> list[str]:
    flagged = sum(any(flags) for flags in zip(*(x.flags for x in scored.results), strict=True))
    systems = len(scored.places.names) if scored.places else 0
    counts = (
        (len(scored), "segment", "segments"),
        (systems, "system", "systems"),
        (len(scored.results), "metric", "metrics"),
        (flagged, "flagged", "flagged"),
    )
    return [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]


def _lead(scored: ScoredCorpus) -> tuple[str, str]:
    label = scored.labels[0][0]
    if not scored.rankings:
        found = scored.whole[0][scored.shown[0][0]]
        return label, f" is {decimals(found.value)}{_interval(found)}."
    ranking = scored.rankings[0][0]
    first, second = ranking.order[:2]
    value = decimals(ranking.scores[first].value)
    said = verdict(ranking.names[second], float(ranking.p_values[first, second]))
    return ranking.names[first], f" scores best by {label}: {value}. {said}"


def _interval(found: Interval) -> str:
    if np.isnan(found.low):
        return ""
    return f", with a 95 % confidence interval from {decimals(found.low)} to {decimals(found.high)}"


def _table(scored: ScoredCorpus) -> tuple[list[str], list[Row]]:
    """Systems by columns, the best on top and marked; or the columns of the only one."""
    labels = [label for several in scored.labels for label in several]
    if not scored.rankings:
        found = zip(scored.whole, scored.shown, strict=True)
        cells = [_cell(scores[name]) for scores, names in found for name in names]
        return ["score"], [Row(*pair) for pair in zip(labels, [(c,) for c in cells], strict=True)]
    every = [ranking for several in scored.rankings for ranking in several]
    order = every[0].order
    cells_of = [[_cell(ranking.scores[k]) for ranking in every] for k in order]
    signs = np.array([1.0 if ranking.higher else -1.0 for ranking in every])
    names = [every[0].names[k] for k in order]
    return labels, [Row(*pair) for pair in zip(names, placed(cells_of, signs), strict=True)]


def _cell(found: Interval) -> Cell:
    return Cell(found.value, found.low, found.high)


def _beats(scored: ScoredCorpus) -> Iterator[tuple[str, str]]:
    for k, several in enumerate(scored.rankings):
        order, names, label = several[0].order, several[0].names, scored.labels[k][0]
        p = several[0].p_values[np.ix_(order, order)]
        said = f"one-sided p-values, row better than column, {label}"
        yield label, plots.significances(p, [names[k] for k in order], said)


def _notes(scored: ScoredCorpus) -> Iterator[str]:
    for several in scored.rankings[:1]:
        common, names = several[0].common, several[0].names
        if len(np.unique(common)) > 1:
            least = np.unravel_index(common.argmin(), common.shape)
            one, other = (names[k] for k in least)
            yield (
                "systems are compared on the inputs that both have, the fewest being "
                f"{common.min():,} between {one} and {other}"
            )


def _histograms(scored: ScoredCorpus) -> Iterator[str]:
    for scores, labels in zip(scored.scores, scored.labels, strict=True):
        yield plots.histogram(scores, labels[0])


def _ends(
    scored: ScoredCorpus,
    ends: Sequence[tuple[list[int], list[int]]],
    reading: ListedTexts,
    fragments: dict[str, str],
) -> Iterator[Ends]:
    """Both ends by each metric, whose explanations are added to the fragments."""
    for k, both in enumerate(ends):
        found: dict[int, str] = {}
        reason = ""
        if scored.metrics:
            budget = BUDGET // len(scored.metrics)
            asked = scored.metrics[k], scored.shown[k][0]
            found, reason = explained(*asked, reading.texts, both, budget)
        keys = {row: f"{k}:{row}" for row in found}
        fragments |= {keys[row]: found[row] for row in found}
        shown = scored.scores[k], both, reading.texts, scored.where, keys, reason
        yield shown_ends(scored.labels[k][0], *shown)


def _effects(scored: ScoredCorpus, reading: ListedTexts) -> list[Row]:
    found = []
    for k, labels in enumerate(scored.labels):
        cells = [Cell(_rho(x, scored.scores[k])) for x in _sizes(reading, k).values()]
        found.append(Row(labels[0], tuple(cells)))
    return found


def _lengths(scored: ScoredCorpus, reading: ListedTexts) -> Iterator[str]:
    for k, labels in enumerate(scored.labels):
        sizes = _sizes(reading, k)
        for below in ("characters of the hypothesis", "hypothesis over reference"):
            title = f"{labels[0]}  ρ {decimals(_rho(sizes[below], scored.scores[k]))}"
            yield plots.scatter(sizes[below], scored.scores[k], title, below)


def _sizes(reading: ListedTexts, metric: int) -> dict[str, Array]:
    hyps, refs = reading.hyp_lengths, reading.ref_lengths[metric]
    ratio = np.where(refs > 0, hyps / np.maximum(refs, 1), np.nan)
    return {
        "characters of the hypothesis": hyps,
        "characters of the reference": refs,
        "hypothesis over reference": ratio,
    }


def _rho(sizes: Array, scores: Array) -> float:
    """Spearman's, over the rows that have both."""
    both = np.isfinite(sizes) & np.isfinite(scores)
    return spearman(sizes[both], scores[both]) if both.sum() > 1 else np.nan
