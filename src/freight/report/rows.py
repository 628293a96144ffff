"""The rows of a corpus as data inside a page, which a script draws a few at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freight.core.result import Result, flag_kind
from freight.data.corpus import RowOrigins
from freight.transport.types import Array

MOST_ROWS = 20_000
MOST_CHARACTERS = 2_000
"""What keeps pages small: the rows that one lists, and the characters that it shows of a text."""

Texts = tuple[str, list[str]]


@dataclass(frozen=True, eq=False)
class ListedTexts:
    """What one pass over the texts leaves: those of the rows to be listed, and all lengths."""

    texts: dict[int, Texts]
    hyp_lengths: Array
    ref_lengths: Array  # (metric, row): of the reference that the metric's score comes from


def listed_rows(count: int, extremes: Iterable[int]) -> list[int]:
    """All rows, or of many some at even steps, and the extremes."""
    even = np.linspace(0, count - 1, min(count, MOST_ROWS)).round().astype(int)
    return np.union1d(even, np.array([*extremes], int)).tolist()


def read_texts(
    segments: Iterable[tuple[str, Sequence[str]]], results: Sequence[Result], rows: Sequence[int]
) -> ListedTexts:
    """One pass over the texts, of which these rows are kept."""
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


def embedded_rows(
    reading: ListedTexts,
    scores: Sequence[Array],
    results: Sequence[Result],
    places: RowOrigins | None,
) -> str:
    """JSON for a script of the page: a list a row, references once however many rows have them."""
    flags = {kind: k for k, kind in enumerate(flag_counts(results))}
    refs: dict[tuple[str, ...], int] = {}
    rows = []
    for k, (hyp, several) in reading.texts.items():
        found = {flags[flag_kind(flag)] for result in results for flag in result.flags[k]}
        values = [_number(column[k]) for column in scores]
        where = refs.setdefault(tuple(shortened(ref) for ref in several), len(refs))
        segment, system = (k, 0) if places is None else (places.segments[k], places.systems[k])
        rows.append(
            [k, int(segment) + 1, int(system), values, sorted(found), shortened(hyp), where]
        )
    names = () if places is None else places.names
    return embedded({"rows": rows, "refs": list(refs), "flags": list(flags), "systems": names})


def embedded(data: Any) -> str:
    """JSON that cannot end the script element that it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def flag_counts(results: Sequence[Result]) -> dict[str, list[int]]:
    """How many rows have a flag of each kind, by metric."""
    found: dict[str, list[int]] = {}
    for k, result in enumerate(results):
        for flags in result.flags:
            for kind in {flag_kind(flag) for flag in flags}:
                found.setdefault(kind, [0] * len(results))[k] += 1
    return dict(sorted(found.items()))


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text, or its beginning and how long it is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None
