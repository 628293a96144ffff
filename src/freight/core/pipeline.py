"""From texts to scores in chunks: distinct texts once, fixed shapes, memory by the chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from freight.core.pairings import GPU_CELLS, Pairs
from freight.core.readouts import Reading
from freight.core.result import Column
from freight.core.types import Cloud, Encoder, Progress
from freight.core.weightings import Measures
from freight.kernels import spare_threads, work_alone
from freight.transport.devices import fetch_array, on_own_stream, read_ahead, send_to_device
from freight.transport.solvers import solve, uses_fused_kernel
from freight.transport.types import Array, Plans, Problem

if TYPE_CHECKING:
    from freight.core.metric import Metric


PAIRS = 2048
CHARACTERS = 2**19
"""A chunk ends once it has this many pairs, or texts of this many characters in all."""

Segment = tuple[str, Sequence[str]]
"""A hypothesis and its references."""

Scored = tuple[dict[str, Array], list[frozenset[str]]]
"""Scores by column, and flags, of every pair."""

UNFLAGGED: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Chunk:
    """Segments in a row: their distinct texts, and per pair its texts (pair, 2) and its segment."""

    texts: list[str]
    index: Array
    segments: Array


def chunks(segments: Iterable[Segment], times: int = 1) -> Iterator[Chunk]:
    """Cut a stream of segments into chunks, each twice as large as the last, up to so many times.

    Work begins soon that way. Where it is cut depends on nothing but the stream and that number; no
    score depends on either.
    """
    place: dict[str, int] = {}
    index: list[int] = []
    owner: list[int] = []
    size = count = 0
    now = 1
    for hyp, refs in segments:
        for ref in refs:
            index.append(place.setdefault(hyp, len(place)))
            index.append(place.setdefault(ref, len(place)))
            owner.append(count)
            size += len(ref)
        size += len(hyp)
        count += 1
        if len(owner) >= now * PAIRS or size >= now * CHARACTERS:
            yield _chunk(place, index, owner)
            place, index, owner, size, count = {}, [], [], 0, 0
            now = min(2 * now, times)
    if owner:
        yield _chunk(place, index, owner)


def _chunk(place: dict[str, int], index: list[int], owner: list[int]) -> Chunk:
    return Chunk(list(place), np.array(index).reshape(-1, 2), np.array(owner))


class Encoded(NamedTuple):
    """A chunk's texts through one encoder: which metrics share it, and the layers they need."""

    sharing: list[int]
    layers: list[int]
    cloud: Cloud

    def clouds(self, metrics: Sequence[Metric]) -> Iterator[tuple[int, Cloud]]:
        """The texts as each of the metrics that share it wants them, by its place in the list."""
        for k in self.sharing:
            yield k, self.cloud.at([self.layers.index(layer) for layer in metrics[k].layers])


def score_chunk(
    metrics: Sequence[Metric], chunk: Chunk, progress: Progress | None = None
) -> list[Scored]:
    """Scores and flags by each metric for every pair of a chunk."""
    return read_chunk(metrics, chunk, encode_chunk(metrics, chunk, {}, progress))


def encoders_of(metrics: Iterable[Metric]) -> list[Encoder]:
    """The encoders of some metrics, each once."""
    return list(dict.fromkeys(metric.encoder for metric in metrics))


def encode_chunk(
    metrics: Sequence[Metric],
    chunk: Chunk,
    prepared: Mapping[Encoder, Any],
    progress: Progress | None = None,
) -> Iterator[Encoded]:
    """Metrics that share an encoder share one encoding, of all the layers they need together.

    What an encoder has prepared of the texts it need not do again.
    """
    encoders = encoders_of(metrics)
    for encoder in encoders:
        sharing = [k for k, metric in enumerate(metrics) if metric.encoder == encoder]
        layers = sorted({layer for k in sharing for layer in metrics[k].layers})
        shared = (lambda part: progress(part / len(encoders))) if progress else None
        texts = prepared.get(encoder, chunk.texts)
        yield Encoded(sharing, layers, encoder.encode(texts, layers, shared))


def read_chunk(metrics: Sequence[Metric], chunk: Chunk, encoded: Iterable[Encoded]) -> list[Scored]:
    """Scores and flags by each metric, from what the encoders made of the chunk's texts."""
    results: list[Scored] = [({}, [])] * len(metrics)
    for one in encoded:
        for k, cloud in one.clouds(metrics):
            priced = price(metrics[k], *measured(metrics[k], cloud), chunk.index)
            results[k] = noted(read(metrics[k], priced), cloud, chunk.index)
    return results


def noted(scored: Scored, cloud: Cloud, index: Array) -> Scored:
    """The same with what is worth knowing of the texts of each pair among its flags."""
    scores, flags = scored
    notes = cloud.notes
    return scores, _noting(flags, index, notes, notes)


def _noting(
    flags: Sequence[frozenset[str]], index: Array, *notes: Sequence[tuple[str, ...]]
) -> list[frozenset[str]]:
    """Flags of pairs with the notes of both texts, which hardly any has."""
    found = list(flags)
    for texts, said in zip(index.T, notes, strict=True):
        noticed = np.fromiter(map(bool, said), bool, len(said))
        for k in np.flatnonzero(noticed[texts]):
            found[k] |= set(said[texts[k]])
    return found


@dataclass(frozen=True, eq=False)
class Priced:
    """Pairs of measures, and batch by batch what moving costs: all that problems depend on.

    `empty` says which side of a pair has nothing to move, `flags` what is known of it already;
    `batches` are of the other pairs, and can be read once unless they are a list.
    """

    empty: Array  # (pair, 2)
    flags: Sequence[frozenset[str]]
    device: torch.device
    batches: Iterable[tuple[Pairs, torch.Tensor]]


def measured(metric: Metric, cloud: Cloud) -> tuple[Measures, Measures]:
    """Every text as a hypothesis and as a reference: the metric's units, and their masses."""
    units = metric.units(cloud)
    hyp = metric.weighting(units)
    return hyp, metric.ref_weighting(units) if metric.ref_weighting else hyp


def score_measures(metric: Metric, hyp: Measures, ref: Measures, index: Array) -> Scored:
    """Scores and flags for pairs of measures."""
    return read(metric, price(metric, hyp, ref, index))


def price(metric: Metric, hyp: Measures, ref: Measures, index: Array) -> Priced:
    """The pairs of an index (pair, 2) of measures, and what moving costs in each."""
    empty = np.stack((hyp.empty[index[:, 0]], ref.empty[index[:, 1]]), axis=1)
    flags = _noting([UNFLAGGED] * len(index), index, hyp.notes, ref.notes)
    for k in np.flatnonzero(empty.any(axis=1)):
        flags[k] |= {"both sides empty" if empty[k].all() else "empty side"}
    whole = np.flatnonzero(~empty.any(axis=1))
    gathered = metric.pairing(hyp, ref, index[whole]) if len(whole) else ()
    named = (pairs._replace(which=whole[pairs.which]) for pairs in gathered)
    return Priced(
        empty, flags, hyp.points.device, ((pairs, _cost(metric, pairs)) for pairs in named)
    )


def _cost(metric: Metric, pairs: Pairs) -> torch.Tensor:
    with torch.inference_mode():
        return metric.cost(pairs)[: len(pairs.which)]


def read(metric: Metric, priced: Priced) -> Scored:
    """Solve the metric's problems and read its columns; an empty side gets what they declare."""
    empty, flags = priced.empty, list(priced.flags)
    scores = {column.name: np.full(len(empty), np.nan) for column in metric.columns}
    for column in metric.columns:
        scores[column.name][empty.any(axis=1)] = column.worst
        scores[column.name][empty.all(axis=1)] = column.perfect
    for pairs, reading, converged in _readings(metric, priced):
        for name, values in reading.columns.items():
            scores[name][pairs.which] = values
        for flag, raised in reading.flags.items():
            for k in pairs.which[raised]:
                flags[k] |= {flag}
        for k in pairs.which[~converged]:
            flags[k] |= {"not converged"}
            for values in scores.values():
                values[k] = np.nan
    return scores, flags


def _readings(metric: Metric, priced: Priced) -> Iterator[tuple[Pairs, Reading, Array]]:
    """Batch by batch; while a GPU makes costs, each thread solves a batch of its own."""
    if priced.device.type != "cuda":
        for pairs, cost in priced.batches:
            yield pairs, *_read(metric, pairs, cost)
        return
    threads = spare_threads()
    with ThreadPoolExecutor(threads, initializer=work_alone) as pool:
        begun = (
            (pairs, pool.submit(on_own_stream(priced.device, _read), metric, pairs, cost))
            for pairs, cost in priced.batches
        )
        for pairs, work in read_ahead(begun, threads * GPU_CELLS, lambda one: one[0].cells):
            yield pairs, *work.result()


def _read(metric: Metric, pairs: Pairs, cost: torch.Tensor) -> tuple[Reading, Array]:
    plans = solved(metric, pairs, cost)
    converged = np.logical_and.reduce([plan.converged for plan in plans])
    return metric.readout(plans, pairs), converged


def solved(metric: Metric, pairs: Pairs, cost: torch.Tensor) -> list[Plans]:
    """A plan for each of the metric's problems between these pairs, in arrays.

    None has converged where the cost itself could not be found.
    """
    precise = cost.double()
    array = fetch_array(precise)
    unknown = np.asarray(np.isnan(array).any(axis=(1, 2)))
    if unknown.any():
        array = np.where(unknown[:, None, None], 0.0, array)
        precise = send_to_device(array, precise.device)
    plans = [
        _on_device(problem, pairs, precise, array)
        if uses_fused_kernel(problem, precise)
        else _solve(problem, pairs, array, pairs.masses)
        for problem in metric.problems
    ]
    return [replace(plan, converged=plan.converged & ~unknown) for plan in plans]


def _on_device(problem: Problem, pairs: Pairs, cost: torch.Tensor, array: Array) -> Plans:
    """Solved where the costs are."""
    plans = _solve(
        problem, pairs, cost, [send_to_device(mass, cost.device) for mass in pairs.masses]
    )
    found = (fetch_array(x) for x in (plans.flow, plans.gap, plans.converged))
    return Plans(problem, array, *pairs.masses, *pairs.sizes, *found)


def _solve(problem: Problem, pairs: Pairs, cost: Any, masses: Sequence[Any]) -> Plans:
    sizes = pairs.sizes
    return solve(problem, cost, masses[0], masses[1], sizes[0], sizes[1], strict=False)


class Chosen(NamedTuple):
    """One number a segment and column, and the reference that it comes from."""

    scores: dict[str, Array]
    winners: Array


def reduce_references(
    columns: tuple[Column, ...], scores: dict[str, Array], segments: Array, how: str
) -> Chosen:
    """From a score a reference to one a segment: the best, each column's best, or the mean."""
    starts = np.flatnonzero(np.diff(segments, prepend=-1))
    ends = np.append(starts[1:], len(segments))
    best = {c.name: _winners(scores[c.name], starts, ends, c.higher) for c in columns}
    primary = best[columns[0].name]
    if how == "mean":
        counts = ends - starts
        means = {name: np.add.reduceat(x, starts) / counts for name, x in scores.items()}
        return Chosen(means, primary - starts)
    picks = best if how == "each" else dict.fromkeys(scores, primary)
    return Chosen({name: x[picks[name]] for name, x in scores.items()}, primary - starts)


def _winners(values: Array, starts: Array, ends: Array, higher: bool) -> Array:
    """The first best of each segment's values; one that could not be scored never wins."""
    if len(starts) == len(values):
        return starts
    signed = np.where(np.isnan(values), -np.inf, values if higher else -values)
    return np.array([s + int(np.argmax(signed[s:e])) for s, e in zip(starts, ends, strict=True)])
