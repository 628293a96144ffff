"""The noun of judging: texts, and what people said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.types import Array


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
