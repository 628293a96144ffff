"""A lexical metric as a scorer: what a library measures, chunk by chunk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Never

import numpy as np

from freight.core.flags import NO_FLAGS, SIDES, Flag, Flags, empty_flags
from freight.core.pipeline import score_together
from freight.core.result import Column, Result, check_references, result_of, signed
from freight.core.scorers import Refs
from freight.core.types import Chunk, PairScores
from freight.errors import InvalidInput, MissingPart
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.core.metric import Metric


class LexicalReading(NamedTuple):
    """One score per segment; where system scores are not means, their tallies and `total`."""

    scores: Array
    tallies: Array | None = None
    total: Callable[[Array], dict[str, float]] | None = None


@dataclass(frozen=True)
class Measure(ABC):
    """A library's metric and its settings; the library's own objects are built when needed."""

    package: ClassVar[str]
    together: ClassVar[bool] = False
    """Whether several references count together rather than one by one."""

    def __post_init__(self) -> None:
        self.build()

    @property
    def symmetric(self) -> bool:
        """Whether two texts score the same, to the bit, whichever of them is the hypothesis."""
        return False

    @abstractmethod
    def build(self) -> Any:
        """What the library scores with; raises where the library or its data is missing."""

    @abstractmethod
    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Score each hypothesis against its references; a side may be empty, its score is not used.

        There are several references only where they count together.
        """

    def total(self, tally: Array) -> dict[str, float]:
        """System scores out of the sum of the tallies, where `__call__` gives any."""
        raise NotImplementedError(f"{type(self).__name__} has no tallies")

    def notes(self, text: str) -> set[str]:
        """Why this text cannot be scored normally."""
        return set()

    @property
    def origin(self) -> str:
        """Which library in which version, for the signature."""
        return f"{self.package} {version(self.package)}"


@dataclass(frozen=True)
class Lexical:
    """A measure that satisfies the scorer protocol: nothing to encode, nothing to learn."""

    name: str
    columns: tuple[Column, ...]
    measure: Measure
    references: str = "best"

    def __post_init__(self) -> None:
        check_references(self.references)

    @property
    def parts(self) -> tuple[Metric, ...]:
        """Nothing goes through the pipeline."""
        return ()

    @property
    def symmetric(self) -> bool:
        """Whether the two sides may change places."""
        return self.measure.symmetric

    @property
    def needs_fitting(self) -> bool:
        """There is nothing to learn."""
        return False

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Lexical:
        """The metric itself: it learns nothing from texts."""
        return self

    @property
    def signature(self) -> str:
        """Every choice, one line, with the library's version."""
        choices = {"measure": self.measure, "library": self.measure.origin}
        return signed(self.name, {**choices, "references": self.references})

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Never:
        """Refused."""
        raise InvalidInput(
            f"{self.name} moves nothing, so there is no plan to show; explain a transport metric,"
            " such as lazy-emd"
        )

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """Score each hypothesis against its reference, or its references."""
        return score_together([self], hyps, refs)[0]

    def read(self, chunk: Chunk, scored: Sequence[PairScores]) -> Result:
        """The result of a chunk out of its texts; an empty side gets what the column declares."""
        column, empty = self.columns[0], _empty(chunk)
        hyps, refs = ([chunk.texts[k] for k in side] for side in chunk.index.T)
        alone = self.measure(hyps, [[ref] for ref in refs])
        scores = np.where(empty.any(axis=1), column.worst, alone.scores)
        scores[empty.all(axis=1)] = column.perfect
        pairs = PairScores({column.name: scores}, self._flags(chunk, empty))
        result = result_of(self, pairs, chunk.segments)
        if alone.tallies is not None:
            tallies = self._reduced(alone.tallies, chunk.segments, result.winners)
            result = replace(result, tallies=tallies, total=alone.total)
        if self.measure.together and self.references != "mean":
            return self._together(result, chunk, empty)
        return result

    def system_of(self, tally: Array) -> dict[str, float]:
        """System scores out of the sum of the tallies, as the library computes them."""
        return self.measure.total(tally)

    def _flags(self, chunk: Chunk, empty: Array) -> list[Flags]:
        notes = [{Flag(note) for note in self.measure.notes(text)} for text in chunk.texts]
        flags = [
            NO_FLAGS.union(
                note.on(side) for side, k in zip(SIDES, pair, strict=True) for note in notes[k]
            )
            for pair in chunk.index
        ]
        for k in np.flatnonzero(empty.any(axis=1)):
            flags[k] = empty_flags(empty[k])
        return flags

    def _reduced(self, tallies: Array, segments: Array, winners: Array) -> Array:
        starts, counts = _groups(segments)
        if self.references == "mean":
            means: Array = np.add.reduceat(tallies, starts, axis=0) / counts[:, None]
            return means
        return tallies[starts + winners]

    def _together(self, result: Result, chunk: Chunk, empty: Array) -> Result:
        """Segments with several references once more, as the library takes them: all at once."""
        starts, counts = _groups(chunk.segments)
        several = np.flatnonzero(counts > 1)
        if not several.size:
            return result
        groups = [chunk.index[starts[k] : starts[k] + counts[k]] for k in several]
        hyps = [chunk.texts[group[0, 0]] for group in groups]
        scores, tallies, _ = self.measure(hyps, [[chunk.texts[r] for r in g[:, 1]] for g in groups])
        name = self.columns[0].name
        values, usable = result[name].copy(), np.logical_or.reduceat(~empty.any(axis=1), starts)
        values[several] = np.where(usable[several], scores, values[several])
        sums = None if result.tallies is None else result.tallies.copy()
        if sums is not None and tallies is not None:
            sums[several] = tallies
        return replace(result, segments={name: values}, tallies=sums)


def import_library(module: str, package: str) -> Any:
    """A module of a library that scores, imported when it is needed."""
    try:
        import_module(module.partition(".")[0])
        return import_module(module)
    except ImportError as error:
        raise MissingPart.extra(package, "lexical") from error


def _empty(chunk: Chunk) -> Array:
    """Which side of which pair has nothing but white space."""
    every: Array = np.array([not text.strip() for text in chunk.texts])
    return every[chunk.index]


def _groups(segments: Array) -> tuple[Array, Array]:
    """Where the pairs of each segment start, and how many they are."""
    starts = np.flatnonzero(np.diff(segments, prepend=-1))
    return starts, np.diff(starts, append=len(segments))
