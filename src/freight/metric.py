"""A metric is data: one function an arrow from texts to scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from torch import Tensor

from freight.clouds import Cloud, Encoder, Tick
from freight.errors import InvalidInput
from freight.frequencies import Frequencies
from freight.pipeline import (
    Chosen,
    Scored,
    Segment,
    chunks,
    reduce_references,
    score_chunk,
    score_measures,
)
from freight.readouts import Readout
from freight.results import Column, Result
from freight.types import Array, Problem
from freight.weightings import Weighting, brought

REFERENCES = ("best", "each", "mean")
_PART = 4096


@dataclass(frozen=True)
class Metric:
    """The composition: what to encode with, which units, which mass, what cost, which problems."""

    name: str
    encoder: Encoder
    layers: tuple[int, ...]
    units: Callable[[Cloud], Cloud]
    weighting: Weighting
    ref_weighting: Weighting | None  # where each side has a table of its own
    cost: Callable[[Tensor, Tensor], Tensor]
    problems: tuple[Problem, ...]
    readout: Readout
    columns: tuple[Column, ...]
    references: str = "best"

    def __post_init__(self) -> None:
        if self.references not in REFERENCES:
            raise InvalidInput(f"references={self.references!r}; there is {', '.join(REFERENCES)}")

    def score(self, hyps: Sequence[str], refs: Sequence[str] | Sequence[Sequence[str]]) -> Result:
        """Score each hypothesis against its reference, or its references."""
        return score_together([self], hyps, refs)[0]

    def score_measures(self, hyp: Sequence[Any], ref: Sequence[Any]) -> Result:
        """Score vectors of your own: a side is a list of points (n, dim), or (points, masses).

        Masses are normalised, uniform where none are given; units, layers and IDF play no part.
        """
        if len(hyp) != len(ref):
            raise InvalidInput(f"there are {len(hyp)} hypotheses but {len(ref)} references")
        both = brought([*hyp, *ref])
        index = np.arange(2 * len(hyp)).reshape(2, -1).T
        scores, flags = score_measures(self, both, both, index)
        result = self._result((scores, flags), np.arange(len(hyp)))
        return replace(result, signature=f"{result.signature}|measures:brought")

    def _result(self, scored: Scored, segments: Array) -> Result:
        scores, flags = scored
        chosen: Chosen = reduce_references(self.columns, scores, segments, self.references)
        kept: list[set[str]] = [set() for _ in range(int(segments[-1]) + 1)]
        for segment, found in zip(segments, flags, strict=True):
            kept[segment].update(found)
        shown = tuple(tuple(sorted(found)) for found in kept)
        return Result(self.name, self.columns, chosen.scores, chosen.winners, shown, self.signature)

    @property
    def needs_fitting(self) -> bool:
        """Whether the masses come from frequencies that have not been learnt yet."""
        both = (self.weighting, self.ref_weighting)
        return any(w and w.idf and w.idf.table is None for w in both)

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Metric:
        """A copy that has learnt IDF from these texts, repeats counted; `source` is signed.

        One table from the references serves both sides, unless each side has its own: then the
        hypotheses are needed too.
        """
        if isinstance(refs, str) or isinstance(hyps, str):
            raise InvalidInput("fit learns from lists of texts, not from one text")
        if self.ref_weighting is None:
            return replace(self, weighting=self.weighting.fitted(self._learn(refs, source)))
        if hyps is None:
            raise InvalidInput("idf='own' learns a table a side; give fit the hypotheses too")
        return replace(
            self,
            weighting=self.weighting.fitted(self._learn(hyps, source)),
            ref_weighting=self.ref_weighting.fitted(self._learn(refs, source)),
        )

    def _learn(self, texts: Iterable[str], source: str) -> Frequencies:
        parts = _parts(texts)
        return Frequencies.of((self.units(self.encoder.encode(p, ())) for p in parts), source)

    @property
    def signature(self) -> str:
        """Every choice, one line, read off the fields."""
        from freight import __version__

        parts = [f"{f.name}:{describe(getattr(self, f.name))}" for f in fields(self)[1:]]
        return "|".join([self.name, *parts, f"version:{__version__}"])


def score_together(
    metrics: Sequence[Metric],
    hyps: Sequence[str],
    refs: Sequence[str] | Sequence[Sequence[str]],
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
    return [Result.joined(one) for one in zip(*parts, strict=True)]


def score_stream(
    metrics: Sequence[Metric], segments: Iterable[Segment], tick: Tick | None = None
) -> Iterator[list[Result]]:
    """Score segments (hyp, refs) as they come, chunk by chunk: a result a metric for each chunk.

    Memory follows the chunk, however long the stream. Metrics have their IDF by now. `tick` is told
    how many segments' worth of work has been done since the last time.
    """
    for chunk in chunks(segments):
        count, done = int(chunk.segments[-1]) + 1, 0.0

        def told(part: float, count: int = count) -> None:
            nonlocal done
            done += part * count
            if tick:
                tick(part * count)

        scored = score_chunk(metrics, chunk, told)
        told(1.0 - done / count)
        yield [m._result(found, chunk.segments) for m, found in zip(metrics, scored, strict=True)]


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while part := list(islice(stream, _PART)):
        yield part


def describe(value: Any) -> str:
    """A value as a signature shows it: functions by name, data by its fields."""
    if hasattr(value, "identity"):
        return str(value.identity)
    if isinstance(value, tuple):
        return ",".join(describe(item) for item in value)
    if isinstance(value, Column):
        return value.name
    if isinstance(value, partial):
        return f"{describe(value.func)}({value.keywords})"
    if is_dataclass(value) and not isinstance(value, type):
        inner = ",".join(f"{f.name}={describe(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    return getattr(value, "__name__", str(value))


def pair_up(hyps: Sequence[str], refs: Sequence[str] | Sequence[Sequence[str]]) -> list[Segment]:
    """Each hypothesis with its references; what is no text is named."""
    for name, given in (("hyps", hyps), ("refs", refs)):
        if isinstance(given, (str, bytes)):
            raise InvalidInput(f"{name} is one text; give a list of texts, [{name[:3]}]")
    if len(hyps) != len(refs):
        raise InvalidInput(f"there are {len(hyps)} hypotheses but {len(refs)} references")
    if not len(hyps):
        raise InvalidInput("there is nothing to score: hyps and refs are empty")
    segments: list[Segment] = []
    for k, (hyp, given) in enumerate(zip(hyps, refs, strict=True)):
        _check(hyp, f"hyps[{k}]")
        several: Any = given
        if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
            several = [given]
        if not len(several):
            raise InvalidInput(f"refs[{k}] is an empty list; give at least one reference")
        for r, ref in enumerate(several):
            _check(ref, f"refs[{k}][{r}]" if several is given else f"refs[{k}]")
        segments.append((hyp, several))
    return segments


def _check(text: Any, where: str) -> None:
    if not isinstance(text, str):
        raise InvalidInput(f"{where} is {text!r}, not a text; an empty text is ''")
