"""Texts scored under many settings: encodings and costs that the settings share are kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from threading import Lock

import numpy as np

from freight.core.metric import Blend, Metric
from freight.core.pipeline import PairCosts, chunks, compute_costs, read_scores, weigh
from freight.core.scorers import PipelineScorer
from freight.core.types import Chunk, Encoder, PairScores, Progress, Segment
from freight.encoders.cache import MEMORY_LIMIT, MemoryCached
from freight.transport.types import Array

LIMIT = 2 * 2**30
"""Bytes of costs that are kept; those that came first make room."""

_Key = tuple[object, ...]


class SharedEncodings:
    """One remembering encoder for each encoder, whoever uses it; `limit` is its bytes."""

    def __init__(self, limit: int = MEMORY_LIMIT) -> None:
        self._limit = limit
        self._encoders: dict[Encoder, MemoryCached] = {}

    def wrap(self, scorer: PipelineScorer) -> PipelineScorer:
        """The same scorer, bit for bit, which encodes no text twice."""
        if isinstance(scorer, Metric):
            return self._of(scorer)
        if isinstance(scorer, Blend):
            return replace(scorer, parts=tuple(map(self._of, scorer.parts)))
        return scorer

    def _of(self, metric: Metric) -> Metric:
        encoder = metric.encoder
        if not isinstance(encoder, MemoryCached):
            encoder = self._encoders.setdefault(encoder, MemoryCached(encoder, self._limit))
        return replace(metric, encoder=encoder)


class SweepCache:
    """Segments to be scored under many settings.

    Metrics that differ in their problems and read-outs alone share one encoding and one cost; IDF
    is fitted on these references. The scores of the last problems are kept, in all columns.
    """

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = list(segments)
        self._chunks = list(chunks(self._segments))
        self._costs_of: dict[_Key, list[PairCosts]] = {}
        self._last: dict[_Key, list[PairScores]] = {}
        self._lock = Lock()  # of the costs, which one thread computes and all use

    def encode(self, metrics: Iterable[Metric], progress: Progress | None = None) -> None:
        """Let each encoder see every text once, for all the layers that these metrics need."""
        layers: dict[Encoder, set[int]] = {}
        for metric in metrics:
            layers.setdefault(metric.encoder, set()).update(metric.layers)
        parts = len(layers) * len(self._chunks)
        shared = (lambda part: progress(part / parts)) if progress else None
        for encoder, several in layers.items():
            for chunk in self._chunks:
                encoder.encode(chunk.texts, sorted(several), shared)

    def score(self, scorer: PipelineScorer) -> dict[str, Array]:
        """One score per segment in each column, as `scorer.score` gives them."""
        last, solved = self._last, dict[_Key, list[PairScores]]()
        for part in scorer.parts:
            key = _solved(part)
            solved[key] = last.get(key) or [read_scores(part, one) for one in self._costs(part)]
        self._last = solved
        scored = [solved[_solved(part)] for part in scorer.parts]
        parts = [
            scorer.read(chunk, [one[k] for one in scored]).segments
            for k, chunk in enumerate(self._chunks)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _costs(self, metric: Metric) -> list[PairCosts]:
        key = _source(metric)
        with self._lock:
            if key not in self._costs_of:
                if metric.needs_fitting:
                    refs = (ref for _, several in self._segments for ref in several)
                    metric = metric.fit(refs, (hyp for hyp, _ in self._segments), "given texts")
                self._costs_of[key] = [_kept(metric, chunk) for chunk in self._chunks]
                while len(self._costs_of) > 1 and sum(map(_size, self._costs_of.values())) > LIMIT:
                    del self._costs_of[next(iter(self._costs_of))]
            return self._costs_of[key]


def _source(metric: Metric) -> _Key:
    """What the costs of a metric depend on."""
    weightings = metric.weighting, metric.ref_weighting
    source = metric.encoder, metric.layers, metric.units, *weightings
    return (*source, metric.pairing, metric.cost)


def _solved(metric: Metric) -> _Key:
    """What its scores depend on, in whatever order its columns are."""
    return (*_source(metric), metric.problems, metric.readout, frozenset(metric.columns))


def _kept(metric: Metric, chunk: Chunk) -> PairCosts:
    """Pairs without the points, which only the costs need."""
    cloud = metric.encoder.encode(chunk.texts, metric.layers)
    costs = compute_costs(metric, *weigh(metric, cloud), chunk.index)
    batches = [(pairs.without_vectors(), cost.clone()) for pairs, cost in costs.batches]
    return replace(costs, batches=batches)


def _size(several: list[PairCosts]) -> int:
    return sum(cost.nbytes for costs in several for _, cost in costs.batches)
