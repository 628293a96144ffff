"""The segments of a corpus page: which are listed, which are explained, and their texts as data.

The worst and the best segments of each metric (`Extremes`) are explained. The listing has every
segment, or an even sample of very many; its rows are JSON inside the page, drawn by its script.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freight.core.result import Result, count_segments
from freight.core.scorers import Explainable, Scorer
from freight.data.corpus import RowOrigins
from freight.errors import InvalidInput
from freight.report.formatting import decimals
from freight.transport.types import Array

# What keeps pages small.
MOST_ROWS = 20_000  # rows listed
MOST_CHARACTERS = 2_000  # shown of a text
MOST_EXPLAINED = 1_500  # characters of a text: a longer one is not explained
MOST_EXPLANATION = 12_000_000  # characters of all explanations together

Texts = tuple[str, list[str]]
"""A hypothesis and its references."""


@dataclass(frozen=True, eq=False)
class ListedTexts:
    """The texts of the listed rows, and the lengths of all rows, from one pass over a corpus."""

    texts: dict[int, Texts]
    hyp_lengths: Array
    ref_lengths: Array  # (metric, row): of the reference that the metric's score comes from


def listed_rows(count: int, extremes: Iterable[int], most: int = MOST_ROWS) -> list[int]:
    """All rows, or of too many an even sample, and always the extremes."""
    even = np.linspace(0, count - 1, min(count, most)).round().astype(int)
    return np.union1d(even, np.array([*extremes], int)).tolist()


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


def rows_json(
    listed: ListedTexts,
    scores: Sequence[Array],
    results: Sequence[Result],
    origins: RowOrigins | None,
) -> str:
    """The listed rows as JSON for the page's script; equal references are there once."""
    flags = {label: k for k, label in enumerate(flag_counts(results))}
    refs: dict[tuple[str, ...], int] = {}
    rows = []
    for k, (hyp, several) in listed.texts.items():
        raised = {flags[flag.label] for result in results for flag in result.flags[k]}
        values = [_json_number(column[k]) for column in scores]
        ref = refs.setdefault(tuple(truncate(ref) for ref in several), len(refs))
        segment, system = (k, 0) if origins is None else (origins.segments[k], origins.systems[k])
        rows.append([k, int(segment) + 1, int(system), values, sorted(raised), truncate(hyp), ref])
    names = () if origins is None else origins.names
    return script_json({"rows": rows, "refs": list(refs), "flags": list(flags), "systems": names})


def script_json(data: Any) -> str:
    """JSON that cannot end the script element that it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


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
