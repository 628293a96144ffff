"""Minimum-Bayes-risk decoding: of several candidates the one that the others agree with most.

Kumar and Byrne, "Minimum Bayes-Risk Decoding for Statistical Machine Translation", HLT-NAACL 2004;
Eikema and Aziz, "Is MAP Decoding All You Need?", COLING 2020, for samples in place of n-best lists.

Lists of candidates are checked, and read from files, piece by piece.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, overload, runtime_checkable

import numpy as np

from freight.core.flags import Flag
from freight.core.pipeline import (
    ChunkSize,
    add_text_flags,
    compose,
    compute_costs,
    encode_chunk,
    language_flags,
    read_scores,
    weigh,
)
from freight.core.scorers import PipelineScorer, Scorer
from freight.core.types import Chunk, Cloud, Measures, Progress
from freight.data.files import STDIN, decode_lines, is_stream, lines, parse_json
from freight.errors import InvalidInput
from freight.metrics import scorer_of, with_primary_column
from freight.transport.types import Array

NAMES = ("candidates", "references", "weights")


@dataclass(frozen=True, eq=False)
class Candidates:
    """Texts to choose from, the references each is compared with, and the references' weights.

    `own` says that the candidates themselves are the references.
    """

    texts: Sequence[str]
    references: Sequence[str]
    weights: Array
    own: bool

    @classmethod
    def checked(
        cls, texts: Any, references: Any = None, weights: Any = None, *, where: str
    ) -> Candidates:
        """From any lists; `where` names them in messages."""
        hyps = _texts(texts, where, "candidates")
        refs = hyps if references is None else _texts(references, where, "references")
        return cls(hyps, refs, _weights(weights, len(refs), where), references is None)


class CandidateFile:
    """Lists from a file, which can be iterated again: JSON lines, or blocks of plain text lines.

    The whole file is checked when it is opened, so that an error in its last line shows before
    hours of work. Standard input or a pipe, which can be read only once, is kept in memory.
    """

    def __init__(self, name: str, encoding: str = "utf-8") -> None:
        self._name, self._encoding = name, encoding
        self._kept: list[Candidates] | None = None
        if name == STDIN:
            self._kept = list(_standard_input(encoding))
        elif is_stream(Path(name)):
            self._kept = list(iter(self))
        self._count = sum(1 for _ in self)
        if not self._count:
            raise InvalidInput(f"{self._shown} is empty")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Candidates]:
        if self._kept is not None:
            return iter(self._kept)
        path = Path(self._name)
        ending = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
        read = _json_lists if ending in (".jsonl", ".ndjson") else _blocks
        return read(lines(path, self._encoding), self._name)

    @property
    def _shown(self) -> str:
        return "standard input" if self._name == STDIN else self._name


def _standard_input(encoding: str) -> Iterator[Candidates]:
    stream = decode_lines(sys.stdin.buffer, encoding, "standard input")
    first = next(stream, "")
    try:
        is_json = isinstance(json.loads(first), (list, dict))
    except json.JSONDecodeError:
        is_json = False
    except (ValueError, RecursionError):
        is_json = True
    read = _json_lists if is_json else _blocks
    return read(chain([first] if first else [], stream), "standard input")


def _json_lists(stream: Iterable[str], shown: str) -> Iterator[Candidates]:
    for number, line in enumerate(stream, 1):
        where = f"line {number} of {shown}"
        row = parse_json(line, where)
        if isinstance(row, list):
            row = {"candidates": row}
        if not isinstance(row, dict) or "candidates" not in row:
            raise InvalidInput(
                f'{where} is neither ["a text", "another"] nor {{"candidates": ["a text", ...]}}'
            )
        yield Candidates.checked(*(row.get(name) for name in NAMES), where=where)


def _blocks(stream: Iterable[str], shown: str) -> Iterator[Candidates]:
    """One candidate per line; an empty line ends a list, and is optional after the last."""
    block: list[str] = []
    empty = 0
    for number, line in enumerate(stream, 1):
        text = line.removesuffix("\n").removesuffix("\r")
        if text:
            if empty > 1:
                raise InvalidInput(
                    f"line {number - 1} of {shown} ends a list without candidates; one empty line"
                    " stands between two lists"
                )
            block, empty = [*block, text], 0
            continue
        empty += 1
        if block:
            yield Candidates.checked(block, where=f"the list before line {number} of {shown}")
        block = []
    if block:
        yield Candidates.checked(block, where=f"the last list of {shown}")


def _texts(given: Any, where: str, what: str) -> Sequence[str]:
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
        raise InvalidInput(f"{where}: {what} is {given!r}, not a list of texts")
    if not len(given):
        raise InvalidInput(f"{where}: there are no {what}; give at least one")
    for k, text in enumerate(given):
        if not isinstance(text, str):
            raise InvalidInput(f"{where}: {what}[{k}] is {text!r}, not a text; an empty one is ''")
    return list(given)


def _weights(given: Any, count: int, where: str) -> Array:
    if given is None:
        return np.ones(count)
    try:
        weights = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(f"{where}: weights is {given!r}, not a list of numbers") from None
    if weights.shape != (count,):
        raise InvalidInput(
            f"{where}: there are {weights.size} weights for {count} texts; give each text one"
        )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if bad.size:
        raise InvalidInput(f"{where}: weights[{bad[0]}] is {weights[bad[0]]}; none is below 0")
    if not weights.any():
        raise InvalidInput(f"{where}: all weights are 0, so that no text counts")
    return weights


_BLOCK = 8
"""Pairs are scored in blocks of so many chunks."""


@runtime_checkable
class Symmetric(Protocol):
    """A scorer that knows whether hyp and ref may change places, to the bit."""

    @property
    def symmetric(self) -> bool:
        """Whether they may."""
        ...


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen one of a list of candidates, and what is to be expected of each of them.

    `utilities` are higher for better candidates whatever the metric, a distance being negated; nan
    is for one that could be compared with fewer of the others than the rest could. `matrix` (where
    asked for) has a row a candidate and a column a reference.
    """

    index: int
    text: str
    utilities: Array
    flags: tuple[str, ...]
    signature: str
    matrix: Array | None = None

    @property
    def utility(self) -> float:
        """That of the chosen one."""
        return float(self.utilities[self.index])


@overload
def mbr(  # type: ignore[overload-overlap]  # a text is a sequence of texts, but refused
    candidates: Sequence[str],
    metric: str | Scorer = ...,
    column: str | None = ...,
    weights: Sequence[float] | Array | None = ...,
    references: Sequence[str] | None = ...,
    itself: bool = ...,
    matrix: bool = ...,
    progress: Progress | None = ...,
    size: ChunkSize | None = ...,
) -> Choice: ...


@overload
def mbr(
    candidates: Sequence[Sequence[str]],
    metric: str | Scorer = ...,
    column: str | None = ...,
    weights: Sequence[Sequence[float] | Array | None] | None = ...,
    references: Sequence[Sequence[str] | None] | None = ...,
    itself: bool = ...,
    matrix: bool = ...,
    progress: Progress | None = ...,
    size: ChunkSize | None = ...,
) -> list[Choice]: ...


def mbr(
    candidates: Any,
    metric: str | Scorer = "freight",
    column: str | None = None,
    weights: Any = None,
    references: Any = None,
    itself: bool = True,
    matrix: bool = False,
    progress: Progress | None = None,
    size: ChunkSize | None = None,
) -> Choice | list[Choice]:
    """Choose from a list of candidates, or from each of several lists, by expected utility.

    That of a candidate is the weighted mean of its scores against `references`, by default the
    candidates themselves: samples of a model, a repeated one counting as often as it is there.
    `itself=False` leaves each candidate's own sample out. `weights` belong to the references; they
    need not add up to 1. A metric that needs IDF and has none learns it from these references.
    """
    scorer = with_primary_column(scorer_of(metric), column)
    many = _are_many(candidates)
    lists = (
        _several(candidates, references, weights)
        if many
        else [Candidates.checked(candidates, references, weights, where="mbr")]
    )
    choices = list(decode(fit_to_lists(scorer, lists), lists, itself, matrix, progress, size))
    return choices if many else choices[0]


def decode(
    scorer: PipelineScorer,
    lists: Iterable[Candidates],
    itself: bool = True,
    matrix: bool = False,
    progress: Progress | None = None,
    size: ChunkSize | None = None,
) -> Iterator[Choice]:
    """The choices of a stream of lists, as they come; see `mbr`.

    Every distinct text of a few lists is encoded once, then all their pairs are scored. `progress`
    is called with how many lists' worth of work has been done since the last time.
    """
    size = size or ChunkSize()
    for group in _groups(lists, size.characters):
        if not itself and not all(one.own for one in group):
            raise InvalidInput(
                "itself=False is for candidates that are compared with each other; with references"
                " there is nothing of their own to leave out"
            )
        yield from _decide(scorer, group, itself, matrix, progress, _BLOCK * size.pairs)


def fit_to_lists(scorer: PipelineScorer, lists: Iterable[Candidates]) -> PipelineScorer:
    """The metric with document frequencies from all lists, where it needs them and has none."""
    if not scorer.needs_fitting:
        return scorer
    refs = (ref for one in lists for ref in one.references)
    return scorer.fit(refs, (text for one in lists for text in one.texts), "given texts")


def _are_many(candidates: Any) -> bool:
    if isinstance(candidates, (str, bytes)):
        raise InvalidInput("candidates is one text; give a list of texts, [text]")
    if not isinstance(candidates, (Sequence, np.ndarray)) or not len(candidates):
        raise InvalidInput(f"candidates is {candidates!r}; give a list of texts, or several lists")
    return not isinstance(candidates[0], str)


def _several(candidates: Any, references: Any, weights: Any) -> list[Candidates]:
    sides = [candidates]
    for name, given in (("references", references), ("weights", weights)):
        if given is not None and len(given) != len(candidates):
            raise InvalidInput(
                f"there are {len(candidates)} lists of candidates but {len(given)} of {name}"
            )
        sides.append([None] * len(candidates) if given is None else given)
    every = enumerate(zip(*sides, strict=True))
    return [Candidates.checked(*one, where=f"list {k}") for k, one in every]


def _groups(lists: Iterable[Candidates], characters: int) -> Iterator[list[Candidates]]:
    """Consecutive lists, until their texts have as many characters in all as those of a chunk."""
    group: list[Candidates] = []
    size = 0
    for one in lists:
        group.append(one)
        size += sum(map(len, one.texts)) + (0 if one.own else sum(map(len, one.references)))
        if size >= characters:
            yield group
            group, size = [], 0
    if group:
        yield group


def _decide(
    scorer: PipelineScorer,
    group: list[Candidates],
    itself: bool,
    keep: bool,
    progress: Progress | None,
    most: int,
) -> Iterator[Choice]:
    place: dict[str, int] = {}
    grids = [_grid(one, place) for one in group]
    asked = np.concatenate([grid.reshape(-1, 2) for grid in grids])
    if isinstance(scorer, Symmetric) and scorer.symmetric:
        asked.sort(axis=1)
    keys, back = np.unique(asked @ [len(place), 1], return_inverse=True)
    index = np.stack(np.divmod(keys, len(place)), axis=1)
    shared = (lambda part: progress(part * len(group))) if progress else None
    values, flags = _utilities(scorer, list(place), index, shared, most)
    ends = np.cumsum([grid.size // 2 for grid in grids])[:-1]
    for one, grid, mine in zip(group, grids, np.split(back, ends), strict=True):
        matrix = values[mine].reshape(grid.shape[:2])
        expected = _expected(matrix, one.weights, itself)
        best = int(np.argmax(np.where(np.isnan(expected), -np.inf, expected)))
        kinds = sorted({flag.kind for k in np.unique(mine) for flag in flags[k]})
        about = tuple(kinds), scorer.signature, matrix if keep else None
        yield Choice(best, str(one.texts[best]), expected, *about)


def _grid(one: Candidates, place: dict[str, int]) -> Array:
    """The numbers of both texts of every pair (candidate, reference, 2)."""
    sides = [
        [place.setdefault(compose(text), len(place)) for text in side]
        for side in (one.texts, one.references)
    ]
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1)


def _utilities(
    scorer: PipelineScorer, texts: list[str], index: Array, progress: Progress | None, most: int
) -> tuple[Array, list[tuple[Flag, ...]]]:
    """Of every pair, the higher the better, and its flags; each text goes through encoders once."""
    blocks = np.array_split(index, -(-len(index) // most))
    steps = len(blocks) + bool(scorer.parts)
    part = (lambda done: progress(done / steps)) if progress else None
    sides = _sides(scorer, texts, index, part)
    column = scorer.columns[0]
    values: list[Array] = []
    flags: list[tuple[Flag, ...]] = []
    for block in blocks:
        scored = []
        spoken = language_flags(scorer.parts, texts, block)
        for metric, (cloud, hyp, ref) in zip(scorer.parts, sides, strict=True):
            costs = compute_costs(metric, hyp, ref, block)
            scored.append(read_scores(metric, add_text_flags(metric, costs, cloud, block, spoken)))
        result = scorer.read(Chunk(texts, block, np.arange(len(block))), scored)
        values.append(result[column.name])
        flags.extend(result.flags)
        if part:
            part(1.0)
    joined = np.concatenate(values)
    return joined if column.higher else 0.0 - joined, flags


def _sides(
    scorer: PipelineScorer, texts: list[str], index: Array, progress: Progress | None
) -> list[tuple[Cloud, Measures, Measures]]:
    """Every text as each part of the metric sees it, as a hypothesis and as a reference."""
    sides: dict[int, tuple[Cloud, Measures, Measures]] = {}
    done: list[float] = []

    def report(share: float) -> None:
        done.append(share)
        if progress:
            progress(share)

    whole = Chunk(texts, index, np.arange(len(index)))
    for encoded in encode_chunk(scorer.parts, whole, {}, report):
        for k, cloud in encoded.clouds(scorer.parts):
            sides[k] = cloud, *weigh(scorer.parts[k], cloud)
    if scorer.parts:
        report(1.0 - sum(done))
    return [sides[k] for k in range(len(scorer.parts))]


def _expected(values: Array, weights: Array, itself: bool) -> Array:
    """Means over the references that a candidate could be compared with.

    A candidate that lacks more of them than another is out: its mean would be over the few, itself
    among them, that flatter it.
    """
    counted = np.broadcast_to(weights, values.shape).copy()
    if not itself:
        np.fill_diagonal(counted, 0.0)
    known = ~np.isnan(values)
    lacking = np.where(known, 0.0, counted).sum(axis=1)
    weight = np.where(known, counted, 0.0).sum(axis=1)
    total = (np.where(known, values, 0.0) * counted).sum(axis=1)
    usable = (lacking == lacking.min()) & (weight > 0)
    return np.where(usable, total / np.where(usable, weight, 1.0), np.nan)
