"""The noun of judging: texts, and what people said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.transport.types import Array
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple


@dataclass(frozen=True, eq=False)
class Judgements:
    """What people said of texts: a row is one system's text for one input.

    `segments` numbers the inputs, `systems` points into `system_names`; both are apart for each
    language pair, so that a name may be there twice. `human` holds a number a row for each
    criterion, nan where nobody rated; `preferences` rows in pairs, the better one first;
    `system_human` a number a system, where systems were judged as wholes. Higher is better.
    `segment_names` has for each row what the data calls its input.
    """

    name: str
    hyps: tuple[str, ...]
    refs: tuple[tuple[str, ...], ...]
    segments: Array
    systems: Array
    system_names: tuple[str, ...]
    human: dict[str, Array]
    preferences: Array | None = None
    system_human: dict[str, Array] = field(default_factory=dict)
    lang_pairs: tuple[str, ...] = ()
    segment_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.hyps)

    def split(self) -> list[Judgements]:
        """One set a language pair, named after it; the set itself where all is in one language."""
        there = list(dict.fromkeys(self.lang_pairs))
        if not there or (len(there) == 1 and "-" not in there[0]):
            return [self]
        pairs: Array = np.array(self.lang_pairs)
        return [replace(self.only(pairs == pair), name=_joined(self.name, pair)) for pair in there]

    def only(self, rows: Array | Sequence[bool] | Sequence[int]) -> Judgements:
        """The rows of a mask or an index; preferences stay where both of their rows do."""
        index = np.arange(len(self))[np.asarray(rows)]
        kept, systems = np.unique(self.systems[index], return_inverse=True)
        return replace(
            self,
            hyps=tuple(self.hyps[k] for k in index),
            refs=tuple(self.refs[k] for k in index),
            segments=np.unique(self.segments[index], return_inverse=True)[1],
            systems=systems,
            system_names=tuple(self.system_names[k] for k in kept),
            human={name: values[index] for name, values in self.human.items()},
            preferences=self._preferences(index),
            system_human={name: values[kept] for name, values in self.system_human.items()},
            lang_pairs=tuple(self.lang_pairs[k] for k in index) if self.lang_pairs else (),
            segment_names=tuple(self.segment_names[k] for k in index if self.segment_names),
        )

    def criterion(self, name: str | None = None) -> str:
        """The criterion of that name, or the only one there is: of rows, or else of systems."""
        there = self.human or self.system_human
        if name in there:
            return name
        if name is None and len(there) == 1:
            return next(iter(there))
        if not there:
            raise InvalidInput(f"{self.name} has no ratings, only preferences")
        said = "several criteria" if name is None else f"no criterion {name!r}"
        raise InvalidInput(f"{self.name} has {said}; name one of {', '.join(there)}")

    def with_criteria(self, names: Sequence[str] | None) -> Judgements:
        """These criteria alone, of rows and of systems; None is all of them."""
        if names is None:
            return self
        for name in names:
            if name not in self.system_human:
                self.criterion(name)
        human, systems = (
            {name: there[name] for name in names if name in there}
            for there in (self.human, self.system_human)
        )
        return replace(self, human=human, system_human=systems)

    def _preferences(self, index: Array) -> Array | None:
        if self.preferences is None:
            return None
        places = np.full(len(self), -1)
        places[index] = np.arange(len(index))
        found = places[self.preferences]
        return found[(found >= 0).all(axis=1)]


def _joined(name: str, pair: str) -> str:
    return name if name.endswith(pair) else f"{name} {pair}"


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
