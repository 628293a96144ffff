"""Which system each row of a corpus is of, and which input it is for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freight.data.rows import Row
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.types import Array

UNNAMED = "unnamed"
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Places:
    """The systems by name, and per row its system and its input, both numbered from 0."""

    names: tuple[str, ...]
    systems: Array
    segments: Array

    @classmethod
    def of_files(cls, files: Sequence[str], count: int) -> Places:
        """Several files of `count` hypotheses each, taking turns."""
        names = [Path(Path(file).name.removesuffix(".gz")).stem for file in files]
        if len(set(names)) < len(names):
            names = list(files)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"{twice} is given twice; a system is compared with others")
        size = len(names)
        return cls(tuple(names), np.tile(np.arange(size), count), np.repeat(np.arange(count), size))

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> Places:
        """A table with the column `system`.

        Rows of two systems are for one input where `segment` (and `lang_pair`) are the same, or,
        where there is none, where as many rows of their own system come before them.
        """
        names: dict[str, int] = {}
        inputs: dict[Hashable, int] = {}
        seen: Counter[Hashable] = Counter()
        found: list[tuple[int, int]] = []
        for row in rows:
            name = _UNPRINTABLE.sub("\ufffd", str(row.get("system") or UNNAMED))
            system = names.setdefault(name, len(names))
            said = str(row.get("lang_pair")), str(row.get("segment"))
            seen[system, said] += 1
            key = said, seen[system, said]
            found.append((system, inputs.setdefault(key, len(inputs))))
        systems, segments = np.array(found).T
        return cls(tuple(names), systems, segments)

    def columns(self, first: int, last: int) -> dict[str, list[Any]]:
        """What tells some rows apart, as columns of a table."""
        return {
            "segment": (self.segments[first:last] + 1).tolist(),
            "system": [self.names[k] for k in self.systems[first:last]],
        }

    def __len__(self) -> int:
        return len(self.systems)

    def rows_of(self, system: int) -> Array:
        """The rows of a system, by their inputs."""
        rows = np.flatnonzero(self.systems == system)
        return rows[np.argsort(self.segments[rows], kind="stable")]
