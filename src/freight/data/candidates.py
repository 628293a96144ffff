"""Lists of candidate texts for minimum Bayes risk decoding: checked, and read from files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from freight.data.files import STDIN, decode_lines, is_stream, lines, parse_json
from freight.errors import InvalidInput
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
