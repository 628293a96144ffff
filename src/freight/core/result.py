"""What a person gets: a score a segment, what could not be scored, and every choice made."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from freight.errors import MissingPart
from freight.transport.types import Array

_SHARE = re.compile(r"\s*\d+%$")
_UNKNOWN = re.compile(r"unknown units (\d+)%")


def flag_kind(flag: str) -> str:
    """A flag without the percentage that it ends in, so that flags of a kind can be counted."""
    return _SHARE.sub("", flag)


@dataclass(frozen=True)
class Column:
    """A column of scores: which way is better, what identical texts get and what nothing gets."""

    name: str
    higher: bool
    perfect: float
    worst: float


@dataclass(frozen=True, eq=False)
class Result:
    """Scores in input order, the first column the primary one.

    `winners` is the reference that each segment's scores come from; `flags` says, by segment, what
    could not be scored normally. Where system scores are no means, `tallies` holds a row of numbers
    a segment that add up, and `total` makes system scores of their sum.
    """

    name: str
    columns: tuple[Column, ...]
    segments: dict[str, Array]
    winners: Array
    flags: tuple[tuple[str, ...], ...]
    signature: str
    tallies: Array | None = None
    total: Callable[[Array], dict[str, float]] | None = None

    @classmethod
    def joined(cls, parts: Sequence[Result]) -> Result:
        """Results of the same metric on consecutive segments, as one."""
        first = parts[0]
        columns = {
            name: np.concatenate([part.segments[name] for part in parts]) for name in first.segments
        }
        winners = np.concatenate([part.winners for part in parts])
        flags = tuple(found for part in parts for found in part.flags)
        found = [part.tallies for part in parts if part.tallies is not None]
        tallies = np.concatenate(found) if found else None
        return replace(first, segments=columns, winners=winners, flags=flags, tallies=tallies)

    def only(self, rows: Array | slice) -> Result:
        """The segments of a mask, an index or a slice, as if the others had not been scored."""
        index = np.arange(len(self))[rows]
        return replace(
            self,
            segments={name: values[index] for name, values in self.segments.items()},
            winners=self.winners[index],
            flags=tuple(self.flags[k] for k in index),
            tallies=None if self.tallies is None else self.tallies[index],
        )

    def __getitem__(self, column: str) -> Array:
        """One number a segment."""
        return self.segments[column]

    def __len__(self) -> int:
        return len(self.winners)

    @property
    def system(self) -> dict[str, float]:
        """Scores of all segments together: means over those that have one, where nothing else."""
        return self.system_of(self.tally)

    @property
    def tally(self) -> Array:
        """What system scores are made of: numbers that add up over parts of a corpus."""
        if self.tallies is not None:
            return self.tallies.sum(axis=0)
        values = list(self.segments.values())
        return np.array([[np.nansum(x) for x in values], [np.isfinite(x).sum() for x in values]])

    @property
    def row_tallies(self) -> Array:
        """What the tally is the sum of: numbers for each segment, (segment, ...)."""
        if self.tallies is not None:
            return self.tallies
        values = np.stack(list(self.segments.values()), axis=1)
        return np.stack((np.nan_to_num(values, nan=0.0), np.isfinite(values)), axis=1)

    def system_of(self, tally: Array) -> dict[str, float]:
        """System scores out of a tally, or a sum of several."""
        if self.total is not None:
            return self.total(tally)
        sums, counts = tally
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return dict(zip(self.segments, means.tolist(), strict=True))

    @property
    def unknown(self) -> float:
        """The share of units that the encoder does not know: a segment's worse side, on average."""
        flagged = [map(_UNKNOWN.fullmatch, flags) for flags in self.flags if flags]
        worst = [max((int(found[1]) for found in some if found), default=0) for some in flagged]
        return sum(worst) / 100 / max(len(self), 1)

    def to_arrow(self) -> Any:
        """A pyarrow table: a row a segment, with the winning reference and the flags."""
        import pyarrow

        flags = pyarrow.array([list(f) for f in self.flags], pyarrow.list_(pyarrow.string()))
        table = pyarrow.table({**self.segments, "reference": self.winners, "flags": flags})
        return table.replace_schema_metadata({"freight": self.signature})

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        if find_spec("pandas") is None:
            raise MissingPart.extra("pandas", "pandas")
        return self.to_arrow().to_pandas()
