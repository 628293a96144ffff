"""A human evaluation of your own: draw a sample, write a rating sheet, read it back, check it.

Texts are drawn by strata of a metric's score, so that all ranges of it are in the sample. Raters
get a sheet with neither systems nor scores; a key beside it has both. A rated sheet becomes a
judgement set, and the agreement between raters is measured.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from freight.data.files import Row, rows
from freight.data.judgements import Judgements, rating
from freight.data.output import check_path, write_whole
from freight.data.tables import TableWriter, escape_formula, unescape_formula
from freight.errors import InvalidInput
from freight.transport.types import Array

RANDOM, REST = "random", "rest"
_BOUND = r"([+-]?(?:\d+\.?\d*|\.\d+|inf))"
_STRATUM = re.compile(rf"([\[(]){_BOUND},{_BOUND}([\])])(?:rouge-1<{_BOUND})?")
_ROUNDING = 1e-6  # by rounding, the score of identical texts may be a little above 1


@dataclass(frozen=True)
class Stratum:
    """Texts with a score in an interval and, optionally, with ROUGE-1 below a bound."""

    label: str
    low: float = -np.inf
    high: float = np.inf
    with_low: bool = True
    with_high: bool = True
    rouge: float = np.inf

    @classmethod
    def parse(cls, text: str) -> Stratum:
        """From "random", "[0,0.2)" or "[0.8,1] rouge-1<0.5"."""
        if text.strip() == RANDOM:
            return cls(RANDOM)
        match = _STRATUM.fullmatch(re.sub(r"\s", "", text))
        if match is None:
            raise InvalidInput(
                f"stratum {text!r} is not of the form random, [0,0.2) or '[0.8,1] rouge-1<0.5'"
            )
        opening, low, high, closing, rouge = match.groups()
        if float(low) >= float(high):
            raise InvalidInput(f"stratum {text!r} is empty: {low} is not below {high}")
        ends = opening == "[", closing == "]"
        return cls(text.strip(), float(low), float(high), *ends, float(rouge or "inf"))

    @property
    def needs_rouge(self) -> bool:
        """Whether ROUGE-1 is bounded."""
        return bool(np.isfinite(self.rouge))

    def contains(self, scores: Array, rouge: Array | None = None) -> Array:
        """A mask of the texts in this stratum; one without a score is in "random" only."""
        if self.label == RANDOM:
            return np.ones(len(scores), dtype=bool)
        low = scores >= self.low if self.with_low else scores > self.low
        high = scores <= self.high + _ROUNDING if self.with_high else scores < self.high
        if not self.needs_rouge:
            return low & high
        if rouge is None:
            raise InvalidInput(f"stratum {self.label!r} needs the texts' ROUGE-1")
        return low & high & (rouge < self.rouge)


WRD_SCORE = tuple(
    Stratum.parse(text)
    for text in (RANDOM, "[0,0.2)", "[0.2,0.5)", "[0.5,0.8)", "[0.8,1] rouge-1<0.5")
)
"""The five strata of the human evaluation in the WRDScore paper."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a set in the order of the sheet, each with the label of its stratum."""

    rows: Array
    strata: tuple[str, ...]
    notes: tuple[str, ...] = ()


def draw_sample(
    judgements: Judgements,
    scores: Array,
    count: int,
    strata: Sequence[Stratum] = WRD_SCORE,
    rouge: Array | None = None,
    seed: int = 0,
    fill: bool = True,
) -> Sample:
    """Draw `count` texts, equally many from each stratum, none twice, in random order.

    A stratum with too few texts is noted, and texts of no stratum are added for it if `fill`.
    """
    available = _first_rows(judgements)
    if not 0 < count <= available.sum():
        raise InvalidInput(
            f"{judgements.name} has {available.sum()} different texts; {count} cannot be drawn"
        )
    generator, rows, labels, notes = np.random.default_rng(seed), [], [], []
    for k, stratum in enumerate(strata):
        wanted = count // len(strata) + (k < count % len(strata))
        candidates = np.flatnonzero(available & stratum.contains(scores, rouge))
        taken = generator.choice(candidates, min(wanted, len(candidates)), replace=False)
        available[taken] = False
        rows += taken.tolist()
        labels += [stratum.label] * len(taken)
        if len(taken) < wanted:
            cure = "filled up from the rest" if fill else "not filled up"
            notes.append(f"stratum {stratum.label} has {len(taken)} of {wanted} texts; {cure}")
    if fill and len(rows) < count:
        rest = np.flatnonzero(available)
        rows += generator.choice(rest, count - len(rows), replace=False).tolist()
        labels += [REST] * (count - len(labels))
    order = generator.permutation(len(rows))
    return Sample(np.array(rows, int)[order], tuple(labels[k] for k in order), tuple(notes))


def _first_rows(judgements: Judgements) -> Array:
    """A mask of the first row of each hypothesis and its references: none is rated twice."""
    first: dict[object, int] = {}
    for row, key in enumerate(zip(judgements.hyps, judgements.refs, strict=True)):
        first.setdefault(key, row)
    mask: Array = np.zeros(len(judgements), dtype=bool)
    mask[list(first.values())] = True
    return mask


ID, HYP, REF = "id", "hyp", "ref"
KEY = ("id", "row", "lang_pair", "segment", "system", "score", "stratum", "texts")
ESCAPED = "escaped"  # a column of the key, where texts are
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
    """A rated sheet: texts, ratings (item, rater) with nan where one is missing, and the key."""

    hyps: tuple[str, ...]
    refs: tuple[tuple[str, ...], ...]
    raters: tuple[str, ...]
    ratings: Array
    key: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def means(self) -> Array:
        """The mean rating of each item, nan where nobody rated it."""
        counts = np.isfinite(self.ratings).sum(axis=1)
        sums = np.nansum(self.ratings, axis=1)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def key_path(sheet: Path) -> Path:
    """The key of sheet.csv is sheet.key.csv."""
    return sheet.with_suffix(".key.csv")


def write_sheet(
    path: Path,
    judgements: Judgements,
    sample: Sample,
    scores: Array,
    raters: int = 3,
    escape: bool = False,
) -> None:
    """Write a sheet without systems and scores, and beside it the key with both.

    Existing files are never overwritten: they may contain ratings. `escape` keeps spreadsheets from
    running texts as formulas; `read_sheet` undoes it.
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
    key = [(*row, *[ESCAPED] * escape) for row in (KEY, *_key_rows(judgements, sample, scores))]
    _write_csv(key_path(path), key[0], key[1:], escape)
    _write_csv(path, heading, sheet, escape)


def check_sheet(path: Path) -> None:
    """Refuse, before any work, a path where the sheet cannot be written."""
    if path.suffix != ".csv":
        raise InvalidInput(f"{path} does not end in .csv, as a sheet does")
    check_path(path)
    for file in (path, key_path(path)):
        if file.exists():
            raise InvalidInput(f"{file} exists already; remove it, or choose another name")


def read_sheet(
    path: Path, scale: tuple[float, float] | None = None, encoding: str = "utf-8"
) -> Sheet:
    """Read a rated sheet with its key; every column besides the texts is a rater's.

    A rating that is not a number on the scale is an error; a missing rating is noted.
    """
    if path.suffix != ".csv":
        raise InvalidInput(f"{path} does not end in .csv; save the sheet as CSV")
    table = list(rows(path, encoding))
    names = list(table[0]) if table else []
    refs = [name for name in names if name == REF or name.startswith(f"{REF}.")]
    if ID not in names or HYP not in names or not refs:
        raise InvalidInput(
            f"{path} lacks rows, or one of the columns {ID}, {HYP}, {REF}; save it with commas"
        )
    raters, key_rows = [x for x in names if x not in (ID, HYP, *refs)], list(rows(key_path(path)))
    if key_rows and ESCAPED in key_rows[0]:
        table, key_rows = _unescape(table), _unescape(key_rows)
    ratings = _ratings(path, table, raters, scale)
    hyps = tuple(row[HYP] for row in table)
    several = tuple(tuple(row[n] for n in refs if row[n] or n in refs[:1]) for row in table)
    digests = [_text_digest(*texts) for texts in zip(hyps, several, strict=True)]
    key, notes = _match_key(path, table, key_rows, digests)
    used = np.isfinite(ratings).sum(axis=0) > 0
    if not used.any():
        raise InvalidInput(f"{path} has no ratings yet")
    notes += _missing_ratings(ratings, raters)
    names = [name for name, is_used in zip(raters, used, strict=True) if is_used]
    return Sheet(hyps, several, tuple(names), ratings[:, used], key, tuple(notes))


def write_rated(path: Path, sheet: Sheet) -> None:
    """Write a judgement set: the mean rating as the only criterion, and each rater's own."""
    if path.suffix != ".jsonl":
        raise InvalidInput(f"{path} does not end in .jsonl, as the set that is written does")
    columns: dict[str, list[Any]] = {
        "lang_pair": [row["lang_pair"] for row in sheet.key],
        "segment": [row["segment"] for row in sheet.key],
        "system": [row["system"] for row in sheet.key],
        "hyp": list(sheet.hyps),
        "refs": [list(refs) for refs in sheet.refs],
        "human": [{CRITERION: _none_for_nan(value)} for value in sheet.means],
        "raters": [
            {name: _none_for_nan(value) for name, value in zip(sheet.raters, values, strict=True)}
            for values in sheet.ratings
        ],
        "stratum": [row["stratum"] for row in sheet.key],
    }
    with TableWriter(path, {}) as writer:
        writer.write(columns)


def _none_for_nan(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _key_rows(judgements: Judgements, sample: Sample, scores: Array) -> Iterable[Sequence[Any]]:
    for number, (row, stratum) in enumerate(zip(sample.rows, sample.strata, strict=True), 1):
        pair = judgements.lang_pairs[row] if judgements.lang_pairs else ""
        system = judgements.system_names[judgements.systems[row]]
        digest = _text_digest(judgements.hyps[row], judgements.refs[row])
        origin = number, row + 1, pair, judgements.segments[row], system
        yield *origin, float(scores[row]), stratum, digest


def _text_digest(hyp: str, refs: Sequence[str]) -> str:
    """A hash that ignores white space and empty cells, which spreadsheets change."""
    words = [" ".join(text.split()) for text in (hyp, *refs)]
    return hashlib.sha256("\0".join(filter(None, words)).encode()).hexdigest()[:12]


def _write_csv(
    path: Path, heading: Sequence[str], lines: Iterable[Sequence[Any]], escape: bool
) -> None:
    text, rows = io.StringIO(newline=""), [heading, *lines]
    csv.writer(text).writerows([map(escape_formula, row) for row in rows] if escape else rows)
    write_whole(path, text.getvalue().encode("utf-8-sig", "replace"))  # spreadsheets need the mark


def _unescape(table: list[Row]) -> list[Row]:
    return [{name: unescape_formula(cell) for name, cell in row.items()} for row in table]


def _ratings(
    path: Path, table: list[Row], raters: list[str], scale: tuple[float, float] | None
) -> Array:
    values: Array = np.full((len(table), len(raters)), np.nan)
    wrong = []
    low, high = scale or (-np.inf, np.inf)
    for number, row in enumerate(table, 1):
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
        also = f" (and {len(others)} more, in row {_shorten(others)})" if others else ""
        raise InvalidInput(wrong[0][1] + also)
    return values


def _match_key(
    path: Path, table: list[Row], key_rows: list[Row], digests: list[str]
) -> tuple[tuple[Row, ...], list[str]]:
    """The row of the key for each row of the sheet, whose texts must be the drawn ones."""
    key = {row["id"]: row for row in key_rows}
    for number, (row, digest) in enumerate(zip(table, digests, strict=True), 1):
        if row[ID] not in key:
            raise InvalidInput(f"row {number} of {path}: id {row[ID]} is not in {key_path(path)}")
        if key[row[ID]]["texts"] != digest:
            raise InvalidInput(f"row {number} of {path}: the texts are not those that were drawn")
    ids = [row[ID] for row in table]
    twice = next((name for name in ids if ids.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{path} has id {twice} twice")
    missing = [name for name in key if name not in ids]
    notes = [f"ids {', '.join(missing)} of the key are not in the sheet"] if missing else []
    return tuple(key[name] for name in ids), notes


def _missing_ratings(ratings: Array, raters: list[str]) -> list[str]:
    notes = []
    for name, values in zip(raters, ratings.T, strict=True):
        places = (np.flatnonzero(np.isnan(values)) + 1).tolist()
        if len(places) == len(values):
            notes.append(f"{name} has rated nothing and is left out")
        elif places:
            notes.append(f"{name} has not rated row{'s' * (len(places) > 1)} {_shorten(places)}")
    return notes


def _shorten(places: list[int], most: int = 10) -> str:
    shown = ", ".join(map(str, places[:most]))
    return f"{shown} and {len(places) - most} more" if len(places) > most else shown


@dataclass(frozen=True, eq=False)
class RaterAgreement:
    """The agreement between raters: pairwise correlations, Krippendorff's alpha and ICC(2,k).

    `complete` is the number of items that all raters rated, from which the ICC is computed.
    """

    pearson: Array
    spearman: Array
    alpha: float
    icc: float
    complete: int


def rater_agreement(ratings: Array) -> RaterAgreement:
    """All statistics of agreement, from ratings (item, rater) with nan where one is missing."""
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise InvalidInput("agreement needs the ratings of two raters or more")
    complete = int(np.isfinite(ratings).all(axis=1).sum())
    return RaterAgreement(
        rater_correlations(ratings),
        rater_correlations(ratings, ranks=True),
        krippendorff_alpha(ratings),
        icc2k(ratings),
        complete,
    )


def rater_correlations(ratings: Array, ranks: bool = False) -> Array:
    """Pearson's (or, with `ranks`, Spearman's) correlation of each two raters, (rater, rater).

    Over the items that both rated; nan where these are fewer than two, or one rater gave them all
    the same rating.
    """
    count = ratings.shape[1]
    matrix: Array = np.full((count, count), np.nan)
    np.fill_diagonal(matrix, 1.0)
    for i, j in combinations(range(count), 2):
        both = ratings[:, [i, j]]
        both = both[np.isfinite(both).all(axis=1)]
        if len(both) > 1 and (both != both[0]).any(axis=0).all():
            sides = rankdata(both, axis=0) if ranks else both
            matrix[i, j] = matrix[j, i] = np.corrcoef(sides.T)[0, 1]
    return matrix


def krippendorff_alpha(ratings: Array) -> float:
    """Krippendorff's alpha for interval data: 1 − observed / expected disagreement.

    Disagreement is the mean squared difference of two ratings. Items with fewer than two ratings
    are left out; nan where all ratings are equal.
    """
    pairable = ratings[np.isfinite(ratings).sum(axis=1) > 1]
    if not len(pairable):
        return float("nan")
    rated = np.isfinite(pairable)
    counts, total = rated.sum(axis=1), rated.sum()
    middle = np.nanmean(pairable)
    squares = np.nansum((pairable - middle) ** 2)
    deviations = pairable - np.nanmean(pairable, axis=1, keepdims=True)
    within = np.nansum(deviations**2, axis=1)
    observed = (counts * within / (counts - 1)).sum() / total
    expected = squares / (total - 1)
    return float(1 - observed / expected) if expected > 0 else float("nan")


def icc2k(ratings: Array) -> float:
    """ICC(2,k) of Shrout and Fleiss (1979): the reliability of the mean of these raters.

    Two-way random effects, absolute agreement, over the items that all raters rated; nan where
    these are fewer than two or all ratings are equal.
    """
    whole = ratings[np.isfinite(ratings).all(axis=1)]
    items, raters = whole.shape
    if items < 2 or raters < 2:
        return float("nan")
    middle = whole.mean()
    by_item, by_rater = whole.mean(axis=1, keepdims=True), whole.mean(axis=0, keepdims=True)
    between = raters * ((by_item - middle) ** 2).sum() / (items - 1)
    across = items * ((by_rater - middle) ** 2).sum() / (raters - 1)
    residual = ((whole - by_item - by_rater + middle) ** 2).sum() / ((items - 1) * (raters - 1))
    scale = between + (across - residual) / items
    return float((between - residual) / scale) if scale > 0 else float("nan")
