"""From outputs as files have them to a set: numbered, checked, with notes of what was odd."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from freight.data.judgements.sets import Judgements
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.types import Array


class Output(NamedTuple):
    """One system's text for one input, and the row of the file that has it, counted from 1."""

    number: int
    lang_pair: str
    segment: Hashable
    system: str
    hyp: str
    refs: tuple[str, ...]
    ratings: Mapping[str, float] = {}


def assemble(path: Path, outputs: Iterable[Output], in_pairs: bool = False) -> Judgements:
    """A set out of outputs; in pairs, each is a better one with a worse one after it.

    An output that is there again is one row: in pairs that is to be expected, elsewhere it is
    noted, and an error where text or rating differ.
    """
    kept, rows = _distinct(path, outputs, in_pairs)
    if not kept:
        raise InvalidInput(f"{path} has no rows")
    segments, _ = _numbered((o.lang_pair, o.segment) for o in kept)
    systems, names = _numbered((o.lang_pair, o.system) for o in kept)
    human, notes = _ratings(path, kept)
    preferences = np.array(rows).reshape(-1, 2) if in_pairs else None
    if preferences is not None:
        notes += _same_texts(kept, preferences)
    elif len(rows) > len(kept):
        notes.insert(0, f"{len(rows) - len(kept)} rows are there twice and count once")
    return Judgements(
        set_name(path),
        tuple(o.hyp for o in kept),
        tuple(o.refs for o in kept),
        segments,
        systems,
        tuple(name for _, name in names),
        human,
        preferences,
        lang_pairs=tuple(o.lang_pair for o in kept) if any(o.lang_pair for o in kept) else (),
        segment_names=tuple(str(o.segment) for o in kept),
        notes=tuple(notes),
    )


def set_name(path: Path) -> str:
    """The file's name without its ending."""
    if path.is_dir():
        return path.name
    return Path(path.stem).stem if path.suffix == ".gz" else path.stem


def rating(value: Any, where: str, textual: bool = False) -> float:
    """A number, math.nan where nobody rated; a text is read as one where cells are texts."""
    if value is None or value == "":
        return math.nan
    if isinstance(value, str) and textual:
        try:
            value = float(value)
        except ValueError:
            raise InvalidInput(f"{where} is {value!r}, not a number") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{where} is {value!r}, not a number")
    if not math.isfinite(value):
        raise InvalidInput(f"{where} is {value}; leave it empty where nobody rated")
    return float(value)


def check_spread(source: Path, human: Mapping[str, Array]) -> list[str]:
    """A criterion that says the same of everything judges nothing: an error where it is alone."""
    notes = []
    for name, values in human.items():
        found = values[np.isfinite(values)]
        if found.size and (found != found[0]).any():
            continue
        said = f"{name} is {found[0]:g} everywhere" if found.size else f"{name} has no ratings"
        if len(human) == 1:
            raise InvalidInput(f"{source}: {said}; there is nothing to agree with")
        notes.append(said)
    return notes


def _distinct(
    path: Path, outputs: Iterable[Output], in_pairs: bool
) -> tuple[list[Output], list[int]]:
    """The outputs that differ, and which of them each one is."""
    places: dict[Hashable, int] = {}
    kept: list[Output] = []
    rows: list[int] = []
    for output in outputs:
        text = output.hyp if in_pairs else None
        row = places.setdefault((*output[1:4], text), len(kept))
        if row == len(kept):
            kept.append(output)
        elif not in_pairs:
            _check_same(path, kept[row], output)
        rows.append(row)
    return kept, rows


def _check_same(path: Path, first: Output, again: Output) -> None:
    if (first.hyp, first.ratings) != (again.hyp, again.ratings):
        what = "texts" if first.hyp != again.hyp else "ratings"
        whose = f" of system {first.system}" if first.system else ""
        raise InvalidInput(
            f"rows {first.number} and {again.number} of {path} are both for segment"
            f" {first.segment}{whose}, with different {what}; keep one, or name their systems"
        )


def _numbered(keys: Iterable[tuple[str, Any]]) -> tuple[Array, list[tuple[str, Any]]]:
    numbers: dict[tuple[str, Any], int] = {}
    found: Array = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    return found, list(numbers)


def _ratings(path: Path, kept: list[Output]) -> tuple[dict[str, Array], list[str]]:
    """A column a criterion, with nan where nobody rated, which is noted."""
    names = dict.fromkeys(name for output in kept for name in output.ratings)
    human: dict[str, Array] = {
        name: np.array([output.ratings.get(name, np.nan) for output in kept]) for name in names
    }
    missing = defaultdict(list)
    for name, values in human.items():
        missing[int(np.isnan(values).sum())].append(name)
    notes = [
        f"{count} of {len(kept)} rows have no rating of {', '.join(names)}"
        for count, names in missing.items()
        if count
    ]
    return human, notes + check_spread(path, human)


def _same_texts(kept: list[Output], preferences: Array) -> list[str]:
    count = sum(kept[better].hyp == kept[worse].hyp for better, worse in preferences)
    if not count:
        return []
    return [f"in {count} of {len(preferences)} preferences the two texts are the same"]
