"""Annotation sheets: what raters see, the key that they do not, and the way back to a set."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from freight.data.files import Row, rows
from freight.data.judgements import Judgements, rating
from freight.data.tables import TableWriter
from freight.errors import InvalidInput
from freight.judge.sample import Sample
from freight.transport.types import Array

ID, HYP, REF = "id", "hyp", "ref"
KEY = ("id", "row", "lang_pair", "segment", "system", "score", "stratum", "texts")
CRITERION = "score"
INSTRUCTIONS = """\
How to rate

Each line of the sheet has a text (hyp) and one or more references (ref). Say how well the text
carries the meaning of a reference, in your own column, with a number from {low:g} to {high:g}:

  {high:>4g}  it means the same, whatever the words
  {middle:>4g}  it means something near, or a part of it
  {low:>4g}  it means something else

Fractions are fine. Go through the lines in order and rate each one by itself. Leave a cell empty
where you cannot tell. Change nothing but your column, do not look at the columns of others, and
save the sheet as CSV.
"""


@dataclass(frozen=True, eq=False)
class Sheet:
    """A rated sheet: texts, numbers (item, rater) with nan where one is missing, and the key."""

    hyps: tuple[str, ...]
    refs: tuple[tuple[str, ...], ...]
    raters: tuple[str, ...]
    ratings: Array
    key: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def means(self) -> Array:
        """The raters' mean an item, nan where nobody rated it."""
        counts = np.isfinite(self.ratings).sum(axis=1)
        sums = np.nansum(self.ratings, axis=1)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def key_path(sheet: Path) -> Path:
    """sheet.csv has its key in sheet.key.csv."""
    return sheet.with_suffix(".key.csv")


def write_sheet(
    path: Path, judgements: Judgements, sample: Sample, scores: Array, raters: int = 3
) -> None:
    """Write a sheet that tells neither system nor score, and beside it the key that does.

    Nothing is overwritten: an older sheet may hold somebody's work.
    """
    check_sheet(path)
    texts = [(judgements.hyps[row], judgements.refs[row]) for row in sample.rows]
    width = max(len(refs) for _, refs in texts)
    names = [REF] if width == 1 else [f"{REF}.{k}" for k in range(1, width + 1)]
    blank = [""] * raters
    sheet = [
        [number, hyp, *refs, *[""] * (width - len(refs)), *blank]
        for number, (hyp, refs) in enumerate(texts, 1)
    ]
    heading = [ID, HYP, *names, *(f"rater{k}" for k in range(1, raters + 1))]
    _write(key_path(path), KEY, _key(judgements, sample, scores))
    _write(path, heading, sheet)


def check_sheet(path: Path) -> None:
    """Before any work: whether the sheet can be written."""
    if path.suffix != ".csv":
        raise InvalidInput(f"{path} does not end in .csv, as a sheet does")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")
    for there in (path, key_path(path)):
        if there.exists():
            raise InvalidInput(f"{there} is there already; remove it, or choose another name")


def read_sheet(
    path: Path, scale: tuple[float, float] | None = None, encoding: str = "utf-8"
) -> Sheet:
    """Read a rated sheet with its key; every column besides the texts is a rater's.

    What is no number, or not on the scale, is an error; what is missing is noted.
    """
    if path.suffix != ".csv":
        raise InvalidInput(f"{path} does not end in .csv; save the sheet as CSV")
    found = list(rows(path, encoding))
    names = list(found[0]) if found else []
    refs = [name for name in names if name == REF or name.startswith(f"{REF}.")]
    if ID not in names or HYP not in names or not refs:
        raise InvalidInput(
            f"{path} lacks rows, or one of the columns {ID}, {HYP}, {REF}; save it with commas"
        )
    raters = [name for name in names if name not in (ID, HYP, *refs)]
    ratings = _ratings(path, found, raters, scale)
    hyps = tuple(row[HYP] for row in found)
    several = tuple(tuple(row[n] for n in refs if row[n] or n in refs[:1]) for row in found)
    key, notes = _matched(
        path, found, [_digest(*texts) for texts in zip(hyps, several, strict=True)]
    )
    used = np.isfinite(ratings).sum(axis=0) > 0
    if not used.any():
        raise InvalidInput(f"{path} has no ratings yet")
    notes += _missing(ratings, raters)
    names = [name for name, there in zip(raters, used, strict=True) if there]
    return Sheet(hyps, several, tuple(names), ratings[:, used], key, tuple(notes))


def write_rated(path: Path, sheet: Sheet) -> None:
    """Write a judgement set: the raters' mean as the one criterion, and each rater beside it."""
    if path.suffix != ".jsonl":
        raise InvalidInput(f"{path} does not end in .jsonl, as the set that is written does")
    columns: dict[str, list[Any]] = {
        "lang_pair": [row["lang_pair"] for row in sheet.key],
        "segment": [row["segment"] for row in sheet.key],
        "system": [row["system"] for row in sheet.key],
        "hyp": list(sheet.hyps),
        "refs": [list(refs) for refs in sheet.refs],
        "human": [{CRITERION: _known(value)} for value in sheet.means],
        "raters": [
            {name: _known(value) for name, value in zip(sheet.raters, values, strict=True)}
            for values in sheet.ratings
        ],
        "stratum": [row["stratum"] for row in sheet.key],
    }
    with TableWriter(path, {}) as writer:
        writer.write(columns)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _key(judgements: Judgements, sample: Sample, scores: Array) -> Iterable[Sequence[Any]]:
    for number, (row, stratum) in enumerate(zip(sample.rows, sample.strata, strict=True), 1):
        pair = judgements.lang_pairs[row] if judgements.lang_pairs else ""
        system = judgements.system_names[judgements.systems[row]]
        digest = _digest(judgements.hyps[row], judgements.refs[row])
        where = number, row + 1, pair, judgements.segments[row], system
        yield *where, float(scores[row]), stratum, digest


def _digest(hyp: str, refs: Sequence[str]) -> str:
    """Tells texts apart, but not white space and empty cells, which spreadsheets change."""
    words = [" ".join(text.split()) for text in (hyp, *refs)]
    return hashlib.sha256("\0".join(filter(None, words)).encode()).hexdigest()[:12]


def _write(path: Path, heading: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as stream:  # the mark is for spreadsheets
        writer = csv.writer(stream)
        writer.writerow(heading)
        writer.writerows(lines)


def _ratings(
    path: Path, found: list[Row], raters: list[str], scale: tuple[float, float] | None
) -> Array:
    values: Array = np.full((len(found), len(raters)), np.nan)
    wrong = []
    low, high = scale or (-np.inf, np.inf)
    for number, row in enumerate(found, 1):
        for k, name in enumerate(raters):
            where = f"row {number} of {path}: {name}"
            try:
                value = rating(row[name].strip(), where, textual=True)
                if value < low or value > high:
                    raise InvalidInput(f"{where} is {value:g}, not from {low:g} to {high:g}")
                values[number - 1, k] = value
            except InvalidInput as error:
                wrong.append((number, str(error)))
    if wrong:
        others = [number for number, _ in wrong[1:]]
        also = f" (and {len(others)} more, in row {_listed(others)})" if others else ""
        raise InvalidInput(wrong[0][1] + also)
    return values


def _matched(path: Path, found: list[Row], digests: list[str]) -> tuple[tuple[Row, ...], list[str]]:
    """The row of the key for each row of the sheet, whose texts must be those that were drawn."""
    key = {row["id"]: row for row in rows(key_path(path))}
    for number, (row, digest) in enumerate(zip(found, digests, strict=True), 1):
        if row[ID] not in key:
            raise InvalidInput(f"row {number} of {path}: id {row[ID]} is not in {key_path(path)}")
        if key[row[ID]]["texts"] != digest:
            raise InvalidInput(f"row {number} of {path}: the texts are not those that were drawn")
    ids = [row[ID] for row in found]
    twice = next((name for name in ids if ids.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{path} has id {twice} twice")
    gone = [name for name in key if name not in ids]
    notes = [f"ids {', '.join(gone)} of the key are not in the sheet"] if gone else []
    return tuple(key[name] for name in ids), notes


def _missing(ratings: Array, raters: list[str]) -> list[str]:
    notes = []
    for name, values in zip(raters, ratings.T, strict=True):
        places = (np.flatnonzero(np.isnan(values)) + 1).tolist()
        if len(places) == len(values):
            notes.append(f"{name} has rated nothing and is left out")
        elif places:
            notes.append(f"{name} has not rated row{'s' * (len(places) > 1)} {_listed(places)}")
    return notes


def _listed(places: list[int], most: int = 10) -> str:
    shown = ", ".join(map(str, places[:most]))
    return f"{shown} and {len(places) - most} more" if len(places) > most else shown


@dataclass(frozen=True, eq=False)
class RaterAgreement:
    """Correlations between raters two by two, and two numbers for all of them together.

    `complete` is the number of items that everybody rated, which ICC is computed from.
    """

    pearson: Array
    spearman: Array
    alpha: float
    icc: float
    complete: int


def rater_agreement(ratings: Array) -> RaterAgreement:
    """All the statistics below."""
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise InvalidInput("agreement needs the ratings of two raters or more")
    complete = int(np.isfinite(ratings).all(axis=1).sum())
    return RaterAgreement(
        pairwise(ratings),
        pairwise(ratings, ranks=True),
        krippendorff_alpha(ratings),
        icc2k(ratings),
        complete,
    )


def pairwise(ratings: Array, ranks: bool = False) -> Array:
    """Pearson's r, or Spearman's, of each two raters over what both rated: (rater, rater).

    nan where that is fewer than two items, or one of them rated all of it the same.
    """
    count = ratings.shape[1]
    found: Array = np.full((count, count), np.nan)
    np.fill_diagonal(found, 1.0)
    for i, j in combinations(range(count), 2):
        both = ratings[:, [i, j]]
        both = both[np.isfinite(both).all(axis=1)]
        if len(both) > 1 and (both != both[0]).any(axis=0).all():
            sides = rankdata(both, axis=0) if ranks else both
            found[i, j] = found[j, i] = np.corrcoef(sides.T)[0, 1]
    return found


def krippendorff_alpha(ratings: Array) -> float:
    """Krippendorff's alpha of numbers: 1 less the observed over the expected squared difference.

    Items that fewer than two rated are left out; nan where nothing differs anywhere.
    """
    pairable = ratings[np.isfinite(ratings).sum(axis=1) > 1]
    if not len(pairable):
        return float("nan")
    there = np.isfinite(pairable)
    counts, total = there.sum(axis=1), there.sum()
    middle = np.nanmean(pairable)
    squares = np.nansum((pairable - middle) ** 2)
    apart = pairable - np.nanmean(pairable, axis=1, keepdims=True)
    within = np.nansum(apart**2, axis=1)
    observed = (counts * within / (counts - 1)).sum() / total
    expected = squares / (total - 1)
    return float(1 - observed / expected) if expected > 0 else float("nan")


def icc2k(ratings: Array) -> float:
    """ICC(2,k) of Shrout and Fleiss (1979): how reliable the mean of these raters is.

    Two-way random effects, absolute agreement; over the items that everybody rated, nan where they
    are fewer than two or nothing differs.
    """
    whole = ratings[np.isfinite(ratings).all(axis=1)]
    items, raters = whole.shape
    if items < 2 or raters < 2:
        return float("nan")
    middle = whole.mean()
    by_item, by_rater = whole.mean(axis=1, keepdims=True), whole.mean(axis=0, keepdims=True)
    between = raters * ((by_item - middle) ** 2).sum() / (items - 1)
    across = items * ((by_rater - middle) ** 2).sum() / (raters - 1)
    left = ((whole - by_item - by_rater + middle) ** 2).sum() / ((items - 1) * (raters - 1))
    scale = between + (across - left) / items
    return float((between - left) / scale) if scale > 0 else float("nan")
