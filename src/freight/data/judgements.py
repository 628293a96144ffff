"""Judgement sets: texts with human ratings or preferences, and how one is assembled from rows."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from freight import moved
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.transport.types import Array


@dataclass(frozen=True, eq=False)
class Judgements:
    """Human judgements of texts; a row is the output of one system for one input.

    `segments` numbers the inputs and `systems` points into `system_names`, both separately for each
    language pair, so that a name may occur twice. `human` has for each criterion one rating per
    row, nan where nobody rated it; `preferences` are pairs of rows (pair, 2), the better one first;
    `system_human` has one rating per system, where whole systems were rated. Higher is better.
    `segment_names` is the name of each row's input in the data. `raters` has the ratings of single
    people where several rated the same, one per row as `human` has.
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
    raters: dict[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.hyps)

    def split(self) -> list[Judgements]:
        """One set per language pair, with the pair in its name; only itself if it has no pairs."""
        names = list(dict.fromkeys(self.lang_pairs))
        if not names or (len(names) == 1 and "-" not in names[0]):
            return [self]
        pairs: Array = np.array(self.lang_pairs)
        return [
            replace(self.only(pairs == pair), name=_name_with_pair(self.name, pair))
            for pair in names
        ]

    def only(self, rows: Array | Sequence[bool] | Sequence[int]) -> Judgements:
        """The rows of a mask or an index; a preference is kept if both of its rows are."""
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
            raters={name: values[index] for name, values in self.raters.items()},
            preferences=self._preferences(index),
            system_human={name: values[kept] for name, values in self.system_human.items()},
            lang_pairs=tuple(self.lang_pairs[k] for k in index) if self.lang_pairs else (),
            segment_names=tuple(self.segment_names[k] for k in index if self.segment_names),
        )

    def criterion(self, name: str | None = None) -> str:
        """The criterion of that name, or the only one: of rows, or else of systems."""
        known = self.human or self.system_human
        if name in known:
            return name
        if name is None and len(known) == 1:
            return next(iter(known))
        if not known:
            raise InvalidInput(f"{self.name} has no ratings, only preferences")
        what = "several criteria" if name is None else f"no criterion {name!r}"
        raise InvalidInput(f"{self.name} has {what}; name one of {', '.join(known)}")

    def with_criteria(self, names: Sequence[str] | None) -> Judgements:
        """A copy with these criteria only, of rows and of systems; None keeps all."""
        if names is None:
            return self
        for name in names:
            if name not in self.system_human:
                self.criterion(name)
        human, systems = (
            {name: known[name] for name in names if name in known}
            for known in (self.human, self.system_human)
        )
        return replace(self, human=human, system_human=systems)

    def _preferences(self, index: Array) -> Array | None:
        if self.preferences is None:
            return None
        new_rows = np.full(len(self), -1)
        new_rows[index] = np.arange(len(index))
        pairs = new_rows[self.preferences]
        return pairs[(pairs >= 0).all(axis=1)]


def _name_with_pair(name: str, pair: str) -> str:
    return name if name.endswith(pair) else f"{name} {pair}"


class Output(NamedTuple):
    """The output of one system for one input; `number` is its row in the file, from 1."""

    number: int
    lang_pair: str
    segment: Hashable
    system: str
    hyp: str
    refs: tuple[str, ...]
    ratings: Mapping[str, float] = {}
    raters: Mapping[str, float] = {}


def assemble(path: Path, outputs: Iterable[Output], in_pairs: bool = False) -> Judgements:
    """A set from outputs; if `in_pairs`, every better output is followed by its worse one.

    A repeated output becomes one row. In pairs repeats are normal; elsewhere they are noted, and an
    error if the texts or ratings differ.
    """
    kept, rows = _distinct_outputs(path, outputs, in_pairs)
    if not kept:
        raise InvalidInput(f"{path} has no rows")
    segments, _ = _number_keys((o.lang_pair, o.segment) for o in kept)
    systems, names = _number_keys((o.lang_pair, o.system) for o in kept)
    human, notes = _ratings(path, kept)
    preferences = np.array(rows).reshape(-1, 2) if in_pairs else None
    if preferences is not None:
        notes += _equal_texts(kept, preferences)
    elif len(rows) > len(kept):
        notes.insert(0, f"{len(rows) - len(kept)} rows are repeated and count once")
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
        raters=_columns([o.raters for o in kept]),
    )


def set_name(path: Path) -> str:
    """The name of a set: that of its file without the ending."""
    if path.is_dir():
        return path.name
    return Path(path.stem).stem if path.suffix == ".gz" else path.stem


_RATER = re.compile(
    r"(.*\W)?(rater|annotator|assessor|coder|evaluator|expert|judge)[ _.-]?(\d{1,3}|[A-Z])",
    re.IGNORECASE,
)


def raters_of(raters: Mapping[str, Any], criteria: Mapping[str, Any]) -> dict[str, Any]:
    """The ratings of single people: those given, or the criteria called expert1 and so on.

    One alone is none: such a column counts raters, or there is nobody to compare with.
    """
    several = dict(raters)
    if len(several) < 2:
        several = {name: value for name, value in criteria.items() if _RATER.fullmatch(name)}
    return several if len(several) > 1 else {}


def rating(value: Any, where: str, textual: bool = False) -> float:
    """The number in a cell, nan if it is empty; in `textual` tables numbers are written as text."""
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
    """Notes on criteria whose ratings are all equal; an error if there is no other criterion."""
    notes = []
    for name, values in human.items():
        finite = values[np.isfinite(values)]
        if finite.size and (finite != finite[0]).any():
            continue
        what = f"{name} is {finite[0]:g} everywhere" if finite.size else f"{name} has no ratings"
        if len(human) == 1:
            raise InvalidInput(f"{source}: {what}; there is nothing to agree with")
        notes.append(what)
    return notes


def check_leaks(train: Iterable[Judgements], tests: Iterable[Judgements]) -> None:
    """Refuse a test set that shares texts, by hypothesis and reference, with a training set."""
    rated = {pair: one.name for one in train for pair in _text_pairs(one)}
    for test in tests:
        shared = [pair for pair in _text_pairs(test) if pair in rated]
        if shared:
            raise InvalidInput(
                f"{len(shared):,} texts of the test set {test.name} are in {rated[shared[0]]} too,"
                f" which is trained on, the first one {shared[0][0][:60]!r}; test on other texts"
            )


def _text_pairs(judged: Judgements) -> Iterator[tuple[str, str]]:
    """Each hypothesis with each of its references, whatever their white space."""
    for hyp, refs in zip(judged.hyps, judged.refs, strict=True):
        for ref in refs:
            yield " ".join(hyp.split()), " ".join(ref.split())


def _distinct_outputs(
    path: Path, outputs: Iterable[Output], in_pairs: bool
) -> tuple[list[Output], list[int]]:
    """The distinct outputs, and for each given output the number of its distinct one."""
    numbers: dict[Hashable, int] = {}
    kept: list[Output] = []
    rows: list[int] = []
    for output in outputs:
        text = output.hyp if in_pairs else None
        row = numbers.setdefault((*output[1:4], text), len(kept))
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


def _number_keys(keys: Iterable[tuple[str, Any]]) -> tuple[Array, list[tuple[str, Any]]]:
    """The number of each key, in order of first occurrence, and the distinct keys."""
    numbers: dict[tuple[str, Any], int] = {}
    index: Array = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    return index, list(numbers)


def _ratings(path: Path, kept: list[Output]) -> tuple[dict[str, Array], list[str]]:
    """One array per criterion, nan where nobody rated, and notes on missing ratings."""
    human = _columns([output.ratings for output in kept])
    missing = defaultdict(list)
    for name, values in human.items():
        missing[int(np.isnan(values).sum())].append(name)
    notes = [
        f"{count} of {len(kept)} rows have no rating of {', '.join(names)}"
        for count, names in missing.items()
        if count
    ]
    return human, notes + check_spread(path, human)


def _columns(ratings: Sequence[Mapping[str, float]]) -> dict[str, Array]:
    """By name one number per row, nan where a row has none."""
    names = dict.fromkeys(name for one in ratings for name in one)
    return {name: np.array([one.get(name, np.nan) for one in ratings]) for name in names}


def _equal_texts(kept: list[Output], preferences: Array) -> list[str]:
    count = sum(kept[better].hyp == kept[worse].hyp for better, worse in preferences)
    if not count:
        return []
    return [f"in {count} of {len(preferences)} preferences the two texts are the same"]


__getattr__ = moved.old_names(__name__)
