"""A sample for people to rate, drawn so that all ranges of a metric's score are in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.transport.types import Array

RANDOM, REST = "random", "rest"
_NUMBER = r"([+-]?(?:\d+\.?\d*|\.\d+|inf))"
_FORM = re.compile(rf"([\[(]){_NUMBER},{_NUMBER}([\])])(?:rouge-1<{_NUMBER})?")
_ROUNDING = 1e-6  # the score of identical texts may be a little above 1


@dataclass(frozen=True)
class Stratum:
    """Texts with a score in a range and, perhaps, little overlap with their references."""

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
        found = _FORM.fullmatch(re.sub(r"\s", "", text))
        if found is None:
            raise InvalidInput(
                f"stratum {text!r} is not of the form random, [0,0.2) or '[0.8,1] rouge-1<0.5'"
            )
        opening, low, high, closing, rouge = found.groups()
        if float(low) >= float(high):
            raise InvalidInput(f"stratum {text!r} is empty: {low} is not below {high}")
        ends = opening == "[", closing == "]"
        return cls(text.strip(), float(low), float(high), *ends, float(rouge or "inf"))

    @property
    def needs_rouge(self) -> bool:
        """Whether ROUGE-1 has a say."""
        return bool(np.isfinite(self.rouge))

    def holds(self, scores: Array, rouge: Array | None = None) -> Array:
        """Which of the texts are in it; one without a score is in "random" alone."""
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
"""The five strata of WRDScore's human study."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a set in the order in which people see them, each with its stratum."""

    rows: Array
    strata: tuple[str, ...]
    notes: tuple[str, ...] = ()


def draw(
    judgements: Judgements,
    scores: Array,
    count: int,
    strata: Sequence[Stratum] = WRD_SCORE,
    rouge: Array | None = None,
    seed: int = 0,
    fill: bool = True,
) -> Sample:
    """Draw texts, as many from each stratum as can be, none twice, in random order.

    Where a stratum is short of texts that is noted, and made up for from the rest if `fill`.
    """
    free = _firsts(judgements)
    if not 0 < count <= free.sum():
        raise InvalidInput(
            f"{judgements.name} has {free.sum()} different texts; {count} cannot be drawn"
        )
    generator, rows, labels, notes = np.random.default_rng(seed), [], [], []
    for k, stratum in enumerate(strata):
        wanted = count // len(strata) + (k < count % len(strata))
        there = np.flatnonzero(free & stratum.holds(scores, rouge))
        taken = generator.choice(there, min(wanted, len(there)), replace=False)
        free[taken] = False
        rows += taken.tolist()
        labels += [stratum.label] * len(taken)
        if len(taken) < wanted:
            what = "filled up from the rest" if fill else "left short"
            notes.append(f"stratum {stratum.label} has {len(taken)} of {wanted} texts; {what}")
    if fill and len(rows) < count:
        rows += generator.choice(np.flatnonzero(free), count - len(rows), replace=False).tolist()
        labels += [REST] * (count - len(labels))
    order = generator.permutation(len(rows))
    return Sample(np.array(rows, int)[order], tuple(labels[k] for k in order), tuple(notes))


def _firsts(judgements: Judgements) -> Array:
    """The first row of each hypothesis with its references: nobody need rate a thing twice."""
    places: dict[object, int] = {}
    for row, key in enumerate(zip(judgements.hyps, judgements.refs, strict=True)):
        places.setdefault(key, row)
    found: Array = np.zeros(len(judgements), dtype=bool)
    found[list(places.values())] = True
    return found
