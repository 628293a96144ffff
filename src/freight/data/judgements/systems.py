"""Ratings of whole systems, which lie in a file beside the texts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freight.data.judgements.outputs import check_spread, rating, set_name
from freight.data.judgements.sets import Judgements
from freight.data.judgements.wmt import is_wmt_table, wmt_rows
from freight.data.lines import lines
from freight.data.rows import is_table, is_typed, rows
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.types import Array

Ratings = dict[tuple[str, str], dict[str, float]]


def scores_beside(path: Path) -> Path | None:
    """For a.b.jsonl: a.b.human.json, or else a.human.json; for WMT's tables their own."""
    parts = set_name(path).split(".")
    names = [".".join((*parts[:k], "human.json")) for k in range(len(parts), 0, -1)]
    names += ["DA-syslevel.csv"] if path.name.endswith("-seglevel.csv") else []
    return next((path.parent / name for name in names if (path.parent / name).is_file()), None)


def with_system_scores(found: Judgements, source: Path, asked: bool = True) -> Judgements:
    """A copy that knows how its systems were rated; nan and a note for those that were not.

    Where none of them is in the file, that is an error if the file was asked for.
    """
    scores = _read(source)
    mine = [_mine(scores, key) for key in _keys(found)]
    if not any(mine):
        if asked:
            raise InvalidInput(f"{source} rates none of the systems of {found.name}")
        return found
    names = dict.fromkeys(name for ratings in mine for name in ratings)
    human: dict[str, Array] = {
        name: np.array([ratings.get(name, np.nan) for ratings in mine]) for name in names
    }
    unrated = [name for name, ratings in zip(found.system_names, mine, strict=True) if not ratings]
    notes = [f"{source.name} does not rate {', '.join(unrated)}"] if unrated else []
    notes += _without_texts(found, source, scores) + check_spread(source, human)
    return replace(found, system_human=human, notes=(*found.notes, *notes))


def _keys(found: Judgements) -> list[tuple[str, str]]:
    """The language pair and the name of each system."""
    firsts = np.unique(found.systems, return_index=True)[1]
    pairs = [found.lang_pairs[row] if found.lang_pairs else "" for row in firsts]
    return list(zip(pairs, found.system_names, strict=True))


def _mine(scores: Ratings, key: tuple[str, str]) -> dict[str, float]:
    return scores.get(key) or scores.get(("", key[1])) or {}


def _without_texts(found: Judgements, source: Path, scores: Ratings) -> list[str]:
    pairs, there = set(found.lang_pairs) | {""}, set(_keys(found))
    names = {name for _, name in there}
    absent = [
        name
        for pair, name in scores
        if pair in pairs and (pair, name) not in there and (pair or name not in names)
    ]
    return [f"{source.name} also rates {', '.join(absent)}, without texts here"] if absent else []


def _read(source: Path) -> Ratings:
    scores: Ratings = {}
    textual = is_table(source) and not is_typed(source)
    for number, row in enumerate(_objects(source), 1):
        if not isinstance(row, dict) or not isinstance(row.get("system"), str):
            raise InvalidInput(f"entry {number} of {source} names no system; it is {row!r}")
        key = str(row.get("lang_pair") or ""), row["system"]
        if key in scores:
            raise InvalidInput(f"{source} rates {' '.join(key).strip()} twice")
        scores[key] = _criteria(row, f"entry {number} of {source}", textual)
    return scores


def _objects(source: Path) -> Iterable[Any]:
    if is_table(source) and is_wmt_table(source):
        table = (row for _, row in wmt_rows(source))
        return (
            {"lang_pair": r["LP"], "system": r.get("SYSTEM"), "human": r.get("HUMAN")}
            for r in table
        )
    if is_table(source):
        return rows(source)
    try:
        found = json.loads("".join(lines(source)))
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{source} is not JSON ({error.msg}, line {error.lineno})") from None
    if not isinstance(found, list):
        raise InvalidInput(f"{source} is no JSON list of objects with system and ratings")
    return found


def _criteria(row: Mapping[str, Any], where: str, textual: bool) -> dict[str, float]:
    found = {
        name: rating(value, f"{where}: {name}", textual)
        for name, value in row.items()
        if name not in ("system", "lang_pair")
    }
    return {name: value for name, value in found.items() if not math.isnan(value)}
