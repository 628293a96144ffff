"""The page of a scored corpus: its scores, worst and best segments, length, every segment.

Of several systems it also shows where they differ: intervals, significance, a histogram of the
differences of any two, the segments where one beats the other, scores by length of the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from freight.core.result import Result
from freight.core.scale import scale_of
from freight.core.scorers import Refs, Scorer, pair_up
from freight.data.corpus import RowOrigins
from freight.judge.correlation import spearman
from freight.judge.significance import Interval
from freight.judge.systems import SystemRanking, rank_systems, system_scores
from freight.report import plots
from freight.report.explanation import fragment_style
from freight.report.formatting import decimals
from freight.report.pages import check_page, render, write_page
from freight.report.segments import (
    MOST_EXPLANATION,
    MOST_ROWS,
    Extremes,
    ListedTexts,
    PairDifferences,
    bucket_edges,
    explain_rows,
    extreme_rows,
    flag_counts,
    listed_rows,
    listing,
    marked_errors,
    packed_json,
    pair_differences,
    read_texts,
    show_extremes,
)
from freight.report.tables import Cell, Row, describe_lead, rank_cells
from freight.transport.types import Array


@dataclass(frozen=True, eq=False)
class ScoredCorpus:
    """A corpus with one result per metric.

    `segments` can be iterated again, so that texts need not be kept in memory. `columns` are those
    to show of each metric, by default all; the first is ranked and drawn. `metrics`, if given,
    explain the scores of the worst and the best segments; one that is not `Explainable` is shown
    without explanations. `known` are comparisons of systems, one
    list per metric, if they have been made already. `title`, `files` and the day that it was
    `made` head the page, where they are given.
    """

    results: Sequence[Result]
    segments: Iterable[tuple[str, Sequence[str]]]
    places: RowOrigins | None = None
    metrics: Sequence[Scorer] = ()
    columns: Sequence[tuple[str, ...]] = ()
    known: Sequence[Sequence[SystemRanking]] = ()
    title: str = ""
    files: Sequence[str] = ()
    made: str = ""

    def __len__(self) -> int:
        return len(self.results[0])

    @cached_property
    def shown(self) -> list[tuple[str, ...]]:
        """The columns to show of each metric."""
        return [*self.columns] or [tuple(c.name for c in x.columns) for x in self.results]

    @cached_property
    def scores(self) -> list[Array]:
        """The first column shown of each metric."""
        return [x[names[0]] for x, names in zip(self.results, self.shown, strict=True)]

    @cached_property
    def labels(self) -> list[list[str]]:
        """The names of the columns shown of each metric."""
        return [
            [f"{result.name} {name}{'↑' if self.higher(k, name) else '↓'}" for name in names]
            for k, (result, names) in enumerate(zip(self.results, self.shown, strict=True))
        ]

    @cached_property
    def rankings(self) -> Sequence[Sequence[SystemRanking]]:
        """Systems compared by each column shown; empty where there is one system."""
        if self.known or self.places is None or len(self.places.names) < 2:
            return self.known
        by_column = [{x.column: x for x in rank_systems(one, self.places)} for one in self.results]
        return [[by[n] for n in names] for by, names in zip(by_column, self.shown, strict=True)]

    @cached_property
    def totals(self) -> list[dict[str, Interval]]:
        """The system scores of all rows together, by metric and column."""
        return [system_scores(result) for result in self.results]

    def higher(self, metric: int, column: str) -> bool:
        """Whether higher is better."""
        return next(c.higher for c in self.results[metric].columns if c.name == column)

    def origin(self, row: int) -> str:
        """A row's segment, and its system if there are several."""
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
    title: str = "",
) -> str:
    """The page of a scored corpus as HTML.

    `systems` names the system of each hypothesis; the k-th rows of all systems are for the same
    input. If the `metrics` themselves are given, the scores of the `explain` worst and best
    segments by each metric are explained, and errors are marked where two systems differ most.
    """
    places = None if systems is None else RowOrigins.of_rows({"system": name} for name in systems)
    segments = pair_up(hyps, refs)
    return corpus_page(ScoredCorpus(results, segments, places, metrics, title=title), explain)


def write_corpus_report(scored: ScoredCorpus, path: Path, explain: int = 10) -> None:
    """Write the page of a corpus, one file that needs no network."""
    check_page(path)
    write_page(corpus_page(scored, explain), path)


def corpus_page(scored: ScoredCorpus, explain: int = 10, most_rows: int = MOST_ROWS) -> str:
    """The page of a corpus as HTML; of more than `most_rows` rows an even sample is listed."""
    extremes = [
        extreme_rows(scores, scored.higher(k, scored.shown[k][0]), explain)
        for k, scores in enumerate(scored.scores)
    ]
    differences = _differences(scored, explain)
    compared = len(differences) > 0
    several = scored.places if compared else None
    rows = listed_rows(len(scored), _shown_rows(scored, extremes, differences), most_rows, several)
    listed = read_texts(scored.segments, scored.results, rows)
    fragments: dict[str, str] = {}
    columns, table = _system_table(scored)
    errors, unmarked = _errors(scored, differences, listed)
    data = {
        **listing(listed, scored.scores, scored.results, scored.places),
        "labels": [labels[0] for labels in scored.labels],
        "pairs": [[pair.record for pair in pairs] for pairs in differences],
        "errors": errors,
    }
    return render(
        "corpus.html",
        title=scored.title or ("Systems compared" if compared else "Scores of a corpus"),
        fragment_style=fragment_style(),
        lead=_lead(scored),
        sources=_sources(scored),
        facts=_facts(scored),
        columns=columns,
        table=table,
        compared=compared,
        intervals=list(_intervals(scored)),
        p_values=list(_p_values(scored)),
        notes=list(_notes(scored)),
        unmarked=unmarked,
        marked=max(map(len, errors), default=0),
        buckets=list(_buckets(scored, listed)),
        histograms=list(_histograms(scored)),
        extremes=list(_extremes(scored, extremes, listed, fragments)),
        length_columns=list(_lengths(listed, 0)),
        length_table=_length_table(scored, listed),
        length_plots=list(_length_plots(scored, listed)),
        flags=flag_counts(scored.results),
        names=[result.name for result in scored.results],
        heads=[labels[0] for labels in scored.labels],
        listed=len(data["rows"]),
        count=len(scored) if several is None else len(np.unique(several.segments)),
        systems=scored.places.names if scored.places else (),
        rows=packed_json(data),
        explanations=packed_json(fragments),
        signatures=[result.signature for result in scored.results],
    )


def _differences(scored: ScoredCorpus, most: int) -> list[list[PairDifferences]]:
    """By metric, how every two systems differ; empty where there is one system."""
    if scored.places is None:
        return []
    return [
        pair_differences(
            scored.scores[k], several[0].higher, scored.places, several[0].p_values, most
        )
        for k, several in enumerate(scored.rankings)
    ]


def _shown_rows(
    scored: ScoredCorpus,
    extremes: Sequence[tuple[list[int], list[int]]],
    differences: Sequence[Sequence[PairDifferences]],
) -> set[int]:
    """The rows that have to be listed, however many others there are."""
    rows = {row for both in extremes for side in both for row in side}
    if scored.places is not None and differences:
        every = (pair for pairs in differences for pair in pairs)
        wanted = [*{segment for pair in every for segment in (*pair.first, *pair.second)}]
        rows.update(np.flatnonzero(np.isin(scored.places.segments, wanted)).tolist())
    return rows


def _errors(
    scored: ScoredCorpus, differences: Sequence[Sequence[PairDifferences]], listed: ListedTexts
) -> tuple[list[dict[int, list[Any]]], str]:
    """By metric and row the errors to mark, and why some metrics mark none."""
    errors, reasons = [], []
    for k, pairs in enumerate(differences):
        metric = scored.metrics[k] if scored.metrics else None
        if scored.places is not None:
            column = scored.shown[k][0]
            marked, reason = marked_errors(metric, column, listed.texts, pairs, scored.places)
            errors.append(marked)
            reasons.append(reason)
    return errors, " ".join(dict.fromkeys(filter(None, reasons)))


def _sources(scored: ScoredCorpus) -> str:
    """The files that were scored, and when."""
    return " · ".join(filter(None, (", ".join(scored.files), scored.made)))


def _facts(scored: ScoredCorpus) -> list[str]:
    flagged = sum(any(flags) for flags in zip(*(x.flags for x in scored.results), strict=True))
    counts = (
        (0 if scored.places else len(scored), "segment", "segments"),
        (len(scored.results), "metric", "metrics"),
        (flagged, "flagged", "flagged"),
    )
    systems = [scored.places.extent] if scored.places else []
    counted = [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
    return [*systems, *counted]


def _lead(scored: ScoredCorpus) -> tuple[str, str]:
    label = scored.labels[0][0]
    if not scored.rankings:
        total = scored.totals[0][scored.shown[0][0]]
        return label, f" is {decimals(total.value)}{_describe_interval(total)}."
    ranking = scored.rankings[0][0]
    first, second = ranking.order[:2]
    value = decimals(ranking.scores[first].value)
    lead = describe_lead(ranking.names[second], float(ranking.p_values[first, second]))
    return ranking.names[first], f" scores best by {label}: {value}. {lead}"


def _describe_interval(interval: Interval) -> str:
    if np.isnan(interval.low):
        return ""
    low, high = decimals(interval.low), decimals(interval.high)
    return f", with a 95 % confidence interval from {low} to {high}"


def _system_table(scored: ScoredCorpus) -> tuple[list[str], list[Row]]:
    """Systems by columns, the best system first; with one system, its columns as rows."""
    labels = [label for several in scored.labels for label in several]
    if not scored.rankings:
        columns = zip(scored.totals, scored.shown, strict=True)
        cells = [_cell(totals[name]) for totals, names in columns for name in names]
        return ["score"], [Row(*pair) for pair in zip(labels, [(c,) for c in cells], strict=True)]
    every = [ranking for several in scored.rankings for ranking in several]
    order = every[0].order
    cells_of = [[_cell(ranking.scores[k]) for ranking in every] for k in order]
    signs = np.array([1.0 if ranking.higher else -1.0 for ranking in every])
    names = [every[0].names[k] for k in order]
    return labels, [Row(*pair) for pair in zip(names, rank_cells(cells_of, signs), strict=True)]


def _cell(interval: Interval) -> Cell:
    return Cell(interval.value, interval.low, interval.high)


def _p_values(scored: ScoredCorpus) -> Iterator[tuple[str, str]]:
    for k, several in enumerate(scored.rankings):
        order, names, label = several[0].order, several[0].names, scored.labels[k][0]
        p = several[0].p_values[np.ix_(order, order)]
        title = f"one-sided p-values, row better than column, {label}"
        yield label, plots.significances(p, [names[k] for k in order], title)


def _intervals(scored: ScoredCorpus) -> Iterator[str]:
    """The systems' scores by each metric with their confidence intervals, the best on top."""
    for k, several in enumerate(scored.rankings):
        ranking = several[0]
        order = ranking.order
        scores = [ranking.scores[n] for n in order]
        values, low, high = np.array([(x.value, x.low, x.high) for x in scores]).T
        ends = np.array([values, low, high])
        ends = ends[np.isfinite(ends)]
        if not len(ends):
            continue
        room = 0.06 * float(np.ptp(ends)) or 0.01
        limits = float(ends.min()) - room, float(ends.max()) + room
        names = [ranking.names[n] for n in order]
        yield plots.intervals(names, values, low, high, scored.labels[k][0], limits)


def _buckets(
    scored: ScoredCorpus, listed: ListedTexts
) -> Iterator[tuple[str, list[str], list[Row]]]:
    """By metric, the systems' scores in segments with references of about the same length."""
    places = scored.places
    if places is None:
        return
    for k, several in enumerate(scored.rankings):
        # All outputs of a segment are in one bucket, whichever references their scores come from.
        per_segment = np.bincount(places.segments, listed.ref_lengths[k])
        lengths = (per_segment / np.bincount(places.segments))[places.segments]
        result, column = scored.results[k], several[0].column
        columns, cells = [], []
        for low, high in pairwise(bucket_edges(lengths)):
            inside = (lengths >= low) & (lengths < high)
            if not inside.any():
                continue
            rows = [np.flatnonzero(inside & (places.systems == n)) for n in several[0].order]
            count = len(np.unique(places.segments[inside]))
            columns.append(f"{low:,}–{high - 1:,} ({count:,})")
            cells.append(
                [
                    _cell(system_scores(result.only(some))[column]) if len(some) else Cell(np.nan)
                    for some in rows
                ]
            )
        names = [several[0].names[n] for n in several[0].order]
        by_system = [list(row) for row in zip(*cells, strict=True)]
        signs = np.full(len(columns), 1.0 if several[0].higher else -1.0)
        ranked = [Row(*pair) for pair in zip(names, rank_cells(by_system, signs), strict=True)]
        yield scored.labels[k][0], columns, ranked


def _notes(scored: ScoredCorpus) -> Iterator[str]:
    yield from _meanings(scored)
    for several in scored.rankings[:1]:
        common, names = several[0].common, several[0].names
        if len(np.unique(common)) > 1:
            least = np.unravel_index(common.argmin(), common.shape)
            one, other = (names[k] for k in least)
            yield (
                "systems are compared on the inputs that both have, at least "
                f"{common.min():,} (between {one} and {other})"
            )


def _meanings(scored: ScoredCorpus) -> Iterator[str]:
    """Where scores stand among those of real texts, and how often people agree, where known."""
    for k, result in enumerate(scored.results):
        name, label = scored.shown[k][0], scored.labels[k][0]
        scale = scale_of(result, name)
        if scale is None:
            continue
        score = result.system[name]
        if not scored.rankings and np.isfinite(score):
            yield f"{label} {scale.describe(score, len(result))} (measured on {scale.texts})"
        ranked = [several[0] for several in scored.rankings[k : k + 1]]
        for ranking, one, other in [(x, *two) for x in ranked for two in pairwise(x.order)][:5]:
            difference = ranking.scores[one].value - ranking.scores[other].value
            rate = scale.agree(difference, int(ranking.common[one, other]))
            if rate is not None:
                names = ranking.names[one], ranking.names[other]
                yield (
                    f"{label}: of systems that differ as {names[0]} and {names[1]}, people prefer"
                    f" the first in {rate} of the cases (measured on {scale.texts})"
                )


def _histograms(scored: ScoredCorpus) -> Iterator[str]:
    for scores, labels in zip(scored.scores, scored.labels, strict=True):
        yield plots.histogram(scores, labels[0])


def _extremes(
    scored: ScoredCorpus,
    extremes: Sequence[tuple[list[int], list[int]]],
    listed: ListedTexts,
    fragments: dict[str, str],
) -> Iterator[Extremes]:
    """Worst and best segments by each metric; their explanations are added to the fragments."""
    for k, both in enumerate(extremes):
        explained: dict[int, str] = {}
        reason = ""
        if scored.metrics:
            budget = MOST_EXPLANATION // len(scored.metrics)
            metric, column = scored.metrics[k], scored.shown[k][0]
            explained, reason = explain_rows(metric, column, listed.texts, both, budget)
        keys = {row: f"{k}:{row}" for row in explained}
        fragments |= {keys[row]: explained[row] for row in explained}
        label, scores = scored.labels[k][0], scored.scores[k]
        yield show_extremes(label, scores, both, listed.texts, scored.origin, keys, reason)


def _length_table(scored: ScoredCorpus, listed: ListedTexts) -> list[Row]:
    rows = []
    for k, labels in enumerate(scored.labels):
        cells = [Cell(_rho(x, scored.scores[k])) for x in _lengths(listed, k).values()]
        rows.append(Row(labels[0], tuple(cells)))
    return rows


def _length_plots(scored: ScoredCorpus, listed: ListedTexts) -> Iterator[str]:
    for k, labels in enumerate(scored.labels):
        lengths = _lengths(listed, k)
        for name in ("hypothesis length", "hypothesis / reference length"):
            title = f"{labels[0]}  ρ {decimals(_rho(lengths[name], scored.scores[k]))}"
            yield plots.scatter(lengths[name], scored.scores[k], title, name)


def _lengths(listed: ListedTexts, metric: int) -> dict[str, Array]:
    hyps, refs = listed.hyp_lengths, listed.ref_lengths[metric]
    ratio = np.where(refs > 0, hyps / np.maximum(refs, 1), np.nan)
    return {
        "hypothesis length": hyps,
        "reference length": refs,
        "hypothesis / reference length": ratio,
    }


def _rho(lengths: Array, scores: Array) -> float:
    """Spearman's ρ over the rows that have both."""
    both = np.isfinite(lengths) & np.isfinite(scores)
    return spearman(lengths[both], scores[both]) if both.sum() > 1 else np.nan
