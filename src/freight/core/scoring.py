"""From texts to results, by one metric or several in one pass, all at once or as they come."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from freight.core.overlap import scored_chunks
from freight.core.pipeline import UNFLAGGED, Chunk, Scored, Segment, reduce_references
from freight.core.result import Column, Result
from freight.core.types import Progress
from freight.data.languages import UNKNOWN, vocabulary_note
from freight.errors import InvalidInput, UnknownVocabulary
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.core.metric import Metric
    from freight.explain.explanation import Explanation


Refs = Sequence[str] | Sequence[Sequence[str]]
REFERENCES = ("best", "each", "mean")


class Scorer(Protocol):
    """Whatever scores texts: a metric of ours, a blend of several, a lexical one."""

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
        """What of it goes through the pipeline."""
        ...

    @property
    def signature(self) -> str:
        """Every choice, one line."""
        ...

    @property
    def needs_fitting(self) -> bool:
        """Whether something has to be learnt before it can score."""
        ...

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Scorer:
        """A copy that has learnt it from these texts."""
        ...

    def read(self, chunk: Chunk, scored: Sequence[Scored]) -> Result:
        """The result of a chunk, given the scores of its parts for each pair."""
        ...

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """Score each hypothesis against its reference, or its references."""
        ...

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Explanation:
        """Why a hypothesis scores as it does; refused by what moves nothing."""
        ...


def check_references(how: str) -> None:
    """Refuse what is no way to make one score of several references."""
    if how not in REFERENCES:
        raise InvalidInput(f"references={how!r}; there is {', '.join(REFERENCES)}")


def result_of(scorer: Scorer, scored: Scored, segments: Array) -> Result:
    """From scores and flags a pair to a result a segment."""
    scores, flags = scored
    chosen = reduce_references(scorer.columns, scores, segments, scorer.references)
    kept = [UNFLAGGED] * (int(segments[-1]) + 1)
    for segment, found in zip(segments, flags, strict=True):
        if found:
            kept[segment] |= found
    shown = tuple(tuple(sorted(found)) if found else () for found in kept)
    values = chosen.scores, chosen.winners, shown
    return Result(scorer.name, scorer.columns, values[0], values[1], values[2], scorer.signature)


def score_together(
    metrics: Sequence[Scorer],
    hyps: Sequence[str],
    refs: Refs,
) -> list[Result]:
    """Score by several metrics in one pass; those that share an encoder share one encoding.

    A metric that needs IDF and has none learns it from these references.
    """
    segments = pair_up(hyps, refs)
    ready = [
        metric.fit((ref for _, several in segments for ref in several), hyps, "given texts")
        if metric.needs_fitting
        else metric
        for metric in metrics
    ]
    parts = list(score_stream(ready, segments))
    found = [Result.joined(one) for one in zip(*parts, strict=True)]
    for metric, result in zip(ready, found, strict=True):
        if result.unknown > UNKNOWN:
            every = (ref for _, several in segments for ref in several)
            note = vocabulary_note(metric.parts[0].encoder.identity, every)
            warnings.warn(note, UnknownVocabulary, stacklevel=3)
    return found


def score_stream(
    metrics: Sequence[Scorer], segments: Iterable[Segment], progress: Progress | None = None
) -> Iterator[list[Result]]:
    """Score segments (hyp, refs) as they come, chunk by chunk: a result a metric for each chunk.

    Memory follows the chunk, however long the stream. Metrics have their IDF by now. `progress` is
    told how many segments' worth of work has been done since the last time.
    """
    parts = [part for metric in metrics for part in metric.parts]
    ends = list(accumulate(len(metric.parts) for metric in metrics))
    meter = _Meter(progress)
    for chunk, scored in scored_chunks(parts, segments, meter.of):
        meter.finish(chunk)
        yield [
            metric.read(chunk, scored[end - len(metric.parts) : end])
            for metric, end in zip(metrics, ends, strict=True)
        ]


class _Meter:
    """Tells of segments, whatever the encoders tell, and of the rest of a chunk when it is done."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done: dict[int, float] = {}

    def of(self, chunk: Chunk) -> Progress:
        """What the encoders of a chunk tell."""
        return lambda part: self._tell(chunk, part)

    def finish(self, chunk: Chunk) -> None:
        """Nothing is left of it."""
        self._tell(chunk, 1.0 - self._done.get(id(chunk), 0.0))
        self._done.pop(id(chunk), None)

    def _tell(self, chunk: Chunk, part: float) -> None:
        self._done[id(chunk)] = self._done.get(id(chunk), 0.0) + part
        if self._progress:
            self._progress(part * (int(chunk.segments[-1]) + 1))


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
