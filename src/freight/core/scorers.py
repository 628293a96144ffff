"""What can score: the protocol, the abilities that are optional, and how a bare scorer joins a run.

A scorer has a `name`, `columns` and `score`. Everything that judges, reports or runs accepts that
much: it calls `adapt` once, at its border, and then uses the full `PipelineScorer`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from freight.core.result import Column, Result
from freight.core.types import Chunk, PairScores, Segment
from freight.data.languages import detect_surely, language_name
from freight.encoders import languages_of
from freight.errors import InvalidInput, UnreadLanguage, call_part, source_digest, written_at
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.core.metric import Metric
    from freight.explain.explanation import Explanation

Refs = Sequence[str] | Sequence[Sequence[str]]
"""A reference, or a list of references, for each hypothesis."""


class Scorer(Protocol):
    """Whatever scores texts."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its results, the primary one first."""
        ...

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """Score each hypothesis against its reference, or its references."""
        ...


@runtime_checkable
class Signed(Protocol):
    """A scorer that names every choice behind its scores."""

    @property
    def signature(self) -> str:
        """Every choice, one line."""
        ...


@runtime_checkable
class Fittable(Protocol):
    """A scorer that may need document frequencies before it can score."""

    @property
    def needs_fitting(self) -> bool:
        """Whether it has to be fitted first."""
        ...

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Any:
        """A fitted copy; `source` goes into its signature."""
        ...


@runtime_checkable
class Explainable(Protocol):
    """A scorer that can say why a hypothesis scores as it does."""

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Explanation:
        """Explain one pair, or one hypothesis against several references."""
        ...


@runtime_checkable
class SystemScorer(Protocol):
    """A scorer whose system scores are no means: its results have tallies, which are added up."""

    def system_of(self, tally: Array) -> dict[str, float]:
        """System scores by column out of the sum of the tallies."""
        ...


@runtime_checkable
class PipelineScorer(Protocol):
    """A scorer whose parts share the encodings of a run: every metric here, and what `adapt` makes.

    `parts` are the metrics whose pairs are scored by the pipeline; `read` makes the result of a
    chunk out of their scores.
    """

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its results, the primary one first."""
        ...

    @property
    def references(self) -> str:
        """How several references become one score."""
        ...

    @property
    def parts(self) -> tuple[Metric, ...]:
        """The metrics that go through the pipeline."""
        ...

    @property
    def signature(self) -> str:
        """Every choice, one line."""
        ...

    @property
    def needs_fitting(self) -> bool:
        """Whether it has to be fitted before it can score."""
        ...

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> PipelineScorer:
        """A copy that is fitted on these texts."""
        ...

    def read(self, chunk: Chunk, scored: Sequence[PairScores]) -> Result:
        """The result of a chunk, given the scores of its parts for each pair."""
        ...

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """Score each hypothesis against its reference, or its references."""
        ...

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Explanation:
        """Why a hypothesis scores as it does; refused by what has no plan."""
        ...


@dataclass(frozen=True)
class AdaptedScorer:
    """A scorer with nothing but `name`, `columns` and `score`, as the pipeline needs it."""

    scorer: Scorer
    columns: tuple[Column, ...]
    references: str = "best"

    @property
    def name(self) -> str:
        """The name of the scorer."""
        return self.scorer.name

    @property
    def parts(self) -> tuple[Metric, ...]:
        """None: it scores texts by itself."""
        return ()

    @property
    def signature(self) -> str:
        """The scorer's signature, or its name and a digest of the file that it is written in."""
        if isinstance(self.scorer, Signed):
            return self.scorer.signature
        digest = source_digest(self.scorer)
        return f"{self.name}|source:{digest[:12]}" if digest else self.name

    @property
    def needs_fitting(self) -> bool:
        """Whether the scorer says so."""
        return isinstance(self.scorer, Fittable) and self.scorer.needs_fitting

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> AdaptedScorer:
        """The scorer fitted on these texts, where it can be."""
        if not isinstance(self.scorer, Fittable):
            return self
        return replace(self, scorer=self.scorer.fit(refs, hyps, source))

    def read(self, chunk: Chunk, scored: Sequence[PairScores]) -> Result:
        """What the scorer makes of the segments of a chunk."""
        hyps, refs = zip(*chunk, strict=True)
        return self.score(hyps, refs)

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """The scorer's own result, checked."""
        result = call_part(f"{self.name}.score", self.scorer.score, hyps, refs, returns=object)
        place = written_at(self.scorer.score)
        if not isinstance(result, Result):
            raise InvalidInput(
                f"{place}{self.name}.score returned {type(result).__name__}, not a freight.Result;"
                " make one with Result.of(self, {column: scores})"
            )
        lacking = [c.name for c in self.columns if c.name not in result.segments]
        if lacking or len(result) != len(hyps):
            raise InvalidInput(
                f"{place}{self.name}.score returned {len(result)} scores in"
                f" {', '.join(result.segments)} for {len(hyps)} hypotheses and the columns"
                f" {', '.join(c.name for c in self.columns)}"
            )
        segments = {column.name: result.segments[column.name] for column in self.columns}
        return replace(result, columns=self.columns, segments=segments)

    def system_of(self, tally: Array) -> dict[str, float]:
        """The scorer's system scores out of a tally, where its results have tallies."""
        if not isinstance(self.scorer, SystemScorer):
            raise InvalidInput(
                f"the results of {self.name} have tallies; give it a method system_of(tally)"
            )
        return self.scorer.system_of(tally)

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Explanation:
        """The scorer's explanation, where it can explain."""
        if not isinstance(self.scorer, Explainable):
            raise InvalidInput(f"{self.name} cannot explain its scores: it has no method explain")
        return self.scorer.explain(hyp, ref, column)


def warn_of_language(scorer: PipelineScorer, refs: Iterable[str]) -> bool:
    """Warn of references in a language that the scorer's encoder does not read; true if so."""
    known = [languages_of(encoder) for encoder in dict.fromkeys(p.encoder for p in scorer.parts)]
    read = [languages for languages in known if languages is not None]
    lang = detect_surely(refs) if read else None
    if lang is None or all(lang in languages for languages in read):
        return False
    warnings.warn(
        f"the references look like {language_name(lang)}, which the encoder of {scorer.name} does"
        f" not read, and its scores say little: load it with lang={lang!r}",
        UnreadLanguage,
        stacklevel=4,
    )
    return True


def pair_up(
    hyps: Sequence[str], refs: Refs, names: tuple[str, str] = ("hyps", "refs")
) -> list[Segment]:
    """Each hypothesis with its references; what is no text is named."""
    for name, given in zip(names, (hyps, refs), strict=True):
        if isinstance(given, (str, bytes)):
            raise InvalidInput(f"{name} is one text; give a list of texts, [{name.rstrip('s')}]")
        if given is None:
            raise InvalidInput(f"{name} is None; give a list of texts")
    if len(hyps) != len(refs):
        raise InvalidInput(f"there are {len(hyps)} hypotheses but {len(refs)} references")
    if not len(hyps):
        raise InvalidInput(f"there is nothing to score: {' and '.join(names)} are empty")
    segments: list[Segment] = []
    for k, (hyp, given) in enumerate(zip(hyps, refs, strict=True)):
        _check(hyp, f"{names[0]}[{k}]")
        several: Any = given
        if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
            several = (given,)
        if not len(several):
            raise InvalidInput(f"{names[1]}[{k}] is an empty list; give at least one reference")
        for r, ref in enumerate(several):
            _check(ref, f"{names[1]}[{k}]" + (f"[{r}]" if several is given else ""))
        segments.append((hyp, several))
    return segments


def _check(text: Any, where: str) -> None:
    if not isinstance(text, str):
        raise InvalidInput(f"{where} is {text!r}, not a text; an empty text is ''")
