"""The segments of a corpus page: which are listed, which are explained, and their texts as data.

The worst and the best segments of each metric (`Extremes`) are explained, and errors are marked in
the segments in which two systems differ most (`PairDifferences`). The listing has every segment, or
an even sample of very many; its rows are compressed JSON inside the page, drawn by its script.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, zip_longest
from typing import Any

import numpy as np

from freight.core.result import Result, count_segments
from freight.core.scorers import Explainable, Scorer
from freight.data.corpus import RowOrigins
from freight.errors import InvalidInput
from freight.judge.systems import common_rows
from freight.report.formatting import decimals
from freight.transport.types import Array

# What keeps pages small.
MOST_ROWS = 40_000  # hypotheses listed
MOST_CHARACTERS = 2_000  # shown of a text
MOST_EXPLAINED = 1_500  # characters of a text: a longer one is not explained
MOST_EXPLANATION = 12_000_000  # characters of all explanations together
MOST_MARKED = 600  # hypotheses whose errors are marked, of a metric

Texts = tuple[str, list[str]]
"""A hypothesis and its references."""


@dataclass(frozen=True, eq=False)
class ListedTexts:
    """The texts of the listed rows, and the lengths of all rows, from one pass over a corpus."""

    texts: dict[int, Texts]
    hyp_lengths: Array
    ref_lengths: Array  # (metric, row): of the reference that the metric's score comes from


def listed_rows(
    count: int, extremes: Iterable[int], most: int = MOST_ROWS, origins: RowOrigins | None = None
) -> list[int]:
    """All rows, or of too many an even sample, and always the extremes.

    Of several systems all rows of a segment are listed, or none.
    """
    if origins is None:
        return _sample(count, extremes, most).tolist()
    most = max(most // len(origins.names), 1)
    last = int(origins.segments.max())
    segments = _sample(last + 1, origins.segments[[*extremes]], most)
    return np.flatnonzero(np.isin(origins.segments, segments)).tolist()


def _sample(count: int, extremes: Iterable[int], most: int) -> Array:
    even = np.linspace(0, count - 1, min(count, most)).round().astype(int)
    return np.union1d(even, np.array([*extremes], int))


def read_texts(
    segments: Iterable[tuple[str, Sequence[str]]], results: Sequence[Result], rows: Sequence[int]
) -> ListedTexts:
    """Go through the texts once and keep those of these rows."""
    wanted, count = set(rows), len(results[0])
    winners = np.stack([result.winners for result in results], axis=1)
    texts: dict[int, Texts] = {}
    hyps, refs = np.zeros(count), np.zeros((len(results), count))
    for k, (hyp, several) in enumerate(segments):
        hyps[k] = len(hyp)
        refs[:, k] = np.array([len(ref) for ref in several])[winners[k]]
        if k in wanted:
            texts[k] = hyp, list(several)
    return ListedTexts(texts, hyps, refs)


def bucket_edges(lengths: Array, most: int = 5, least: int = 20) -> list[int]:
    """Where lengths are cut into at most five buckets of about as many rows, at round numbers."""
    count = int(np.clip(len(lengths) // least, 1, most))
    inner = np.quantile(lengths, np.arange(1, count) / count)
    step = 10 if np.ptp(lengths) > 50 else 1
    rounded = {int(step * round(float(x) / step)) for x in inner}
    first, last = int(lengths.min()), int(lengths.max()) + 1
    return [first, *sorted(x for x in rounded if first < x < last), last]


def listing(
    listed: ListedTexts,
    scores: Sequence[Array],
    results: Sequence[Result],
    origins: RowOrigins | None,
) -> dict[str, Any]:
    """The listed segments for the page's script; equal references are there once.

    A segment has its number and a cell per system, null where the system lacks it: row, reference,
    hypothesis, the metrics' scores, flags.
    """
    flags = {label: k for k, label in enumerate(flag_counts(results))}
    names: tuple[str, ...] = ("",) if origins is None else origins.names
    refs: dict[tuple[str, ...], int] = {}
    segments: dict[int, list[Any]] = {}
    for k, (hyp, several) in listed.texts.items():
        raised = {flags[flag.label] for result in results for flag in result.flags[k]}
        values = [_json_number(column[k]) for column in scores]
        ref = refs.setdefault(tuple(truncate(ref) for ref in several), len(refs))
        segment, system = (k, 0) if origins is None else (origins.segments[k], origins.systems[k])
        cells = segments.setdefault(int(segment) + 1, [None] * len(names))
        cells[int(system)] = [k, ref, truncate(hyp), values, sorted(raised)]
    rows = [[segment, cells] for segment, cells in sorted(segments.items())]
    return {"rows": rows, "refs": list(refs), "flags": list(flags), "systems": names}


def packed_json(data: Any) -> str:
    """JSON, compressed, as text that a script element can hold and the page's script unpacks."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode()


def flag_counts(results: Sequence[Result]) -> dict[str, list[int]]:
    """The number of rows with each flag, by metric."""
    counts = [count_segments(result.flags) for result in results]
    return {label: [one[label] for one in counts] for label in sorted(set().union(*counts))}


def truncate(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text, or its beginning and its length if it is too long."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def _json_number(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


# The worst and the best segments of a metric.


@dataclass(frozen=True)
class ExtremeSegment:
    """One of the worst or best segments; `key` finds its explanation, empty if it has none."""

    key: str
    origin: str
    score: str
    hyp: str
    refs: tuple[str, ...]


@dataclass(frozen=True)
class Extremes:
    """A metric's worst and best segments, and why some or all are not explained."""

    label: str
    worst: tuple[ExtremeSegment, ...]
    best: tuple[ExtremeSegment, ...]
    reason: str

    @property
    def has_explanations(self) -> bool:
        """Whether at least one of them is explained."""
        return any(it.key for it in (*self.worst, *self.best))


def extreme_rows(scores: Array, higher: bool, count: int) -> tuple[list[int], list[int]]:
    """The worst and the best rows, the most extreme first; no row is both."""
    scored = np.flatnonzero(np.isfinite(scores))
    order = scored[np.argsort(scores[scored] if higher else -scores[scored], kind="stable")]
    count = min(count, len(order) // 2)
    return order[:count].tolist(), order[len(order) - count :][::-1].tolist()


def explain_rows(
    metric: Scorer,
    column: str,
    texts: Mapping[int, Texts],
    extremes: tuple[list[int], list[int]],
    budget: int,
) -> tuple[dict[int, str], str]:
    """HTML fragments by row, the most extreme rows first, and why some or all have none."""
    from freight.report.explanation import fragment

    if not isinstance(metric, Explainable):
        return {}, f"{metric.name} cannot explain its scores: it has no method explain."
    fragments: dict[int, str] = {}
    for row in (row for pair in zip(*extremes, strict=True) for row in pair):
        if max(map(len, (texts[row][0], *texts[row][1]))) > MOST_EXPLAINED:
            continue
        try:
            html = fragment(metric.explain(*texts[row], column))
        except InvalidInput as refusal:
            return {}, f"{refusal}."
        if len(html) <= budget:
            fragments[row] = html
            budget -= len(html)
    missing = len(extremes[0]) + len(extremes[1]) - len(fragments)
    return fragments, f"{missing} too long to be explained on this page." if missing else ""


def show_extremes(
    label: str,
    scores: Array,
    extremes: tuple[list[int], list[int]],
    texts: Mapping[int, Texts],
    origin: Callable[[int], str],
    keys: Mapping[int, str],
    reason: str,
) -> Extremes:
    """The worst and the best rows as they are listed; `origin` names a row."""

    def show(row: int) -> ExtremeSegment:
        hyp, refs = texts[row]
        short = tuple(truncate(ref) for ref in refs)
        score = decimals(float(scores[row]))
        return ExtremeSegment(keys.get(row, ""), origin(row), score, truncate(hyp), short)

    worst, best = (tuple(show(row) for row in rows) for rows in extremes)
    return Extremes(label, worst, best, reason)


# The segments in which two systems differ most.

BINS = 40  # of a histogram of differences


@dataclass(frozen=True)
class PairDifferences:
    """By how much the first of two systems is better, over the segments that both have.

    `first` are the segments where it is better by most, `second` those where the other one is;
    `p` are the one-sided p-values of the first and of the second being better. The histogram has
    `BINS` bins from -reach to reach, without the segments in which both are equal.
    """

    systems: tuple[int, int]
    count: int
    better: int
    worse: int
    mean: float | None
    p: tuple[float | None, float | None]
    reach: float
    histogram: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]

    @property
    def record(self) -> dict[str, Any]:
        """JSON for the page's script; segments are numbered from 1 there."""
        numbers = {name: [k + 1 for k in getattr(self, name)] for name in ("first", "second")}
        return {**asdict(self), **numbers}


def pair_differences(
    scores: Array, higher: bool, origins: RowOrigins, p_values: Array, most: int
) -> list[PairDifferences]:
    """Every pair of systems in their order, with its `most` extreme segments of either kind."""
    rows = [origins.rows_of(k) for k in range(len(origins.names))]
    pairs = combinations(range(len(rows)), 2)
    every = []
    for one, other in pairs:
        first, second = common_rows(origins, rows[one], rows[other])
        values = (scores[first] - scores[second]) * (1.0 if higher else -1.0)
        values = np.where(np.abs(values) < 1e-9, 0.0, values)  # rounding is no difference
        segments = origins.segments[first]
        defined = np.isfinite(values)
        values, segments = values[defined], segments[defined]
        order = np.argsort(-values, kind="stable")
        reach = float(np.abs(values).max(initial=0.0)) or 1.0
        every.append(
            PairDifferences(
                (one, other),
                len(values),
                int((values > 0).sum()),
                int((values < 0).sum()),
                _json_number(values.mean()) if len(values) else None,
                (_json_number(p_values[one, other]), _json_number(p_values[other, one])),
                reach,
                tuple(np.histogram(values[values != 0], BINS, (-reach, reach))[0].tolist()),
                tuple(segments[order[: min(most, (values > 0).sum())]].tolist()),
                tuple(segments[order[::-1][: min(most, (values < 0).sum())]].tolist()),
            )
        )
    return every


def marked_errors(
    metric: Scorer | None,
    column: str,
    texts: Mapping[int, Texts],
    pairs: Sequence[PairDifferences],
    origins: RowOrigins,
) -> tuple[dict[int, list[Any]], str]:
    """By row, the errors of the hypotheses in the extreme segments, and why some have none.

    A row has [start, end, severity, kind] of each error in the hypothesis, then [text, severity] of
    what is missing. The pairs take turns, so that each of them has its most extreme segments.
    """
    if not isinstance(metric, Explainable):
        return {}, "" if metric is None else f"{metric.name} cannot mark errors."
    turns = zip_longest(*(one for pair in pairs for one in (pair.first, pair.second)))
    errors: dict[int, list[Any]] = {}
    for segment in dict.fromkeys(k for turn in turns for k in turn if k is not None):
        rows = np.flatnonzero(origins.segments == segment).tolist()
        if len(errors) + len(rows) > MOST_MARKED:
            break
        for row in rows:
            if max(map(len, (texts[row][0], *texts[row][1]))) > MOST_EXPLAINED:
                continue
            try:
                spans = metric.explain(*texts[row], column).spans
            except InvalidInput as refusal:
                return {}, f"{refusal}."
            errors[row] = [
                [[x.start, x.end, x.severity, x.kind] for x in spans if x.side == "hyp"],
                [[x.text, x.severity] for x in spans if x.side == "ref"],
            ]
    return errors, ""
