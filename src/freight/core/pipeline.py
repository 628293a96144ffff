"""From texts to results: chunks, encodings, measures, costs, plans, scores, results.

`score_together` scores lists, `score_stream` whatever comes, chunk by chunk; both go one way:

    segments -> chunks -> encode_chunk -> weigh -> compute_costs -> solve_pairs -> read_scores
             -> results

Distinct texts of a chunk are encoded once, batches have fixed shapes, and memory follows the chunk.
What needs torch is imported where it is used: lexical metrics come this way too, without it.
On a GPU `overlap` runs these same functions concurrently.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from freight.core.flags import NO_FLAGS, SIDES, Flag, FlagKind, Flags, empty_flags
from freight.core.result import Column, Result
from freight.core.scorers import (
    AdaptedScorer,
    PipelineScorer,
    Refs,
    Scorer,
    pair_up,
    warn_of_language,
)
from freight.core.types import (
    Chunk,
    Cloud,
    Encoder,
    Measures,
    Pairs,
    PairScores,
    Progress,
    Segment,
    device_of,
    name_of,
)
from freight.data.languages import UNKNOWN, pair_flags, vocabulary_note
from freight.encoders import languages_of
from freight.errors import InvalidInput, UnknownVocabulary
from freight.transport.types import Array, Plans, fetch_array

if TYPE_CHECKING:
    import torch

    from freight.core.metric import Metric
    from freight.core.readouts import Reading

Spoken: TypeAlias = Mapping[Encoder, Mapping[int, Flags]]
"""By encoder, and by the number of a pair, the flags of the languages of its texts."""


def score_together(
    metrics: Sequence[Scorer],
    hyps: Sequence[str],
    refs: Refs,
    progress: Progress | None = None,
    size: ChunkSize | None = None,
) -> list[Result]:
    """Score by several metrics in one pass; those that share an encoder share one encoding.

    A metric that needs IDF and has none is fitted on these references.
    """
    segments = pair_up(hyps, refs)
    every = [ref for _, several in segments for ref in several]
    ready = [
        metric.fit(every, hyps, "given texts") if metric.needs_fitting else metric
        for metric in map(adapt, metrics)
    ]
    parts = list(score_stream(ready, segments, progress, size))
    results = [Result.joined(one) for one in zip(*parts, strict=True)]
    for metric, result in zip(ready, results, strict=True):
        if not warn_of_language(metric, every) and result.unknown > UNKNOWN and metric.parts:
            encoder = metric.parts[0].encoder
            note = vocabulary_note(name_of(encoder) or encoder.identity, every)
            warnings.warn(note, UnknownVocabulary, stacklevel=3)
    return results


def score_stream(
    metrics: Sequence[Scorer],
    segments: Iterable[Segment],
    progress: Progress | None = None,
    size: ChunkSize | None = None,
) -> Iterator[list[Result]]:
    """Score segments (hyp, refs) as they come, chunk by chunk: one result per metric and chunk.

    Memory follows the chunk, however long the stream. Metrics are fitted by now. `progress` is
    called with the number of segments' worth of work done since the last call.
    """
    scorers = [adapt(metric) for metric in metrics]
    parts = [part for scorer in scorers for part in scorer.parts]
    ends = list(accumulate(len(scorer.parts) for scorer in scorers))
    meter = _ProgressMeter(progress)
    for chunk, scored in score_chunks(parts, segments, size or ChunkSize(), meter.of):
        meter.finish(chunk)
        yield [
            scorer.read(chunk, scored[end - len(scorer.parts) : end])
            for scorer, end in zip(scorers, ends, strict=True)
        ]


def adapt(scorer: Scorer) -> PipelineScorer:
    """The scorer as a pipeline scorer: itself where it is one, else wrapped."""
    if _offers(scorer, PipelineScorer):
        return cast(PipelineScorer, scorer)
    lacking = [name for name in ("name", "columns", "score") if not hasattr(scorer, name)]
    if lacking:
        raise InvalidInput(
            f"{scorer!r} is not a scorer: it has no {' and no '.join(lacking)}; a scorer has a"
            " name, columns and score(hyps, refs)"
        )
    columns = tuple(scorer.columns)
    if not columns or not all(isinstance(column, Column) for column in columns):
        raise InvalidInput(f"the columns of {scorer.name} are not a tuple of freight.Column")
    return AdaptedScorer(scorer, columns)


def _offers(thing: object, protocol: type) -> bool:
    """Whether an object has all members of a protocol, without computing any: some hash files."""
    members = [name for base in protocol.__mro__ for name in vars(base) if name[0] != "_"]
    if hasattr(type(thing), "__getattr__"):  # it hands some of them on
        return all(hasattr(thing, name) for name in members)
    own = getattr(thing, "__dict__", {})
    return all(hasattr(type(thing), name) or name in own for name in members)


def score_chunks(
    metrics: Sequence[Metric],
    segments: Iterable[Segment],
    size: ChunkSize,
    progress_of: Callable[[Chunk], Progress],
) -> Iterator[tuple[Chunk, list[PairScores]]]:
    """Each chunk with its scores and flags by each metric."""
    gpus = [d for d in dict.fromkeys(map(device_of, encoders_of(metrics))) if d.type == "cuda"]
    if gpus:
        from freight.core.overlap import overlapped_chunks

        yield from overlapped_chunks(metrics, segments, size, progress_of, gpus)
        return
    for chunk in chunks(segments, size):
        yield chunk, score_chunk(metrics, chunk, progress_of(chunk))


@contextmanager
def progress_bar(total: int | None, label: str = "scoring") -> Iterator[Progress]:
    """A progress bar on standard error; rich draws none in a notebook without widgets."""
    from rich import progress as rich
    from rich.console import Console

    columns = label, rich.BarColumn(), rich.MofNCompleteColumn(), rich.TimeRemainingColumn()
    console = Console(stderr=True, force_jupyter=None if find_spec("ipywidgets") else False)
    with rich.Progress(*columns, console=console, transient=console.is_terminal) as bar:
        yield partial(bar.advance, bar.add_task(label, total=total))


class _ProgressMeter:
    """Reports segments, whatever the encoders report, and the rest of a chunk when it is done."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done: dict[int, float] = {}

    def of(self, chunk: Chunk) -> Progress:
        """What the encoders of a chunk call."""
        return lambda share: self._report(chunk, share)

    def finish(self, chunk: Chunk) -> None:
        """Report what is left of it."""
        self._report(chunk, 1.0 - self._done.get(id(chunk), 0.0))
        self._done.pop(id(chunk), None)

    def _report(self, chunk: Chunk, share: float) -> None:
        self._done[id(chunk)] = self._done.get(id(chunk), 0.0) + share
        if self._progress:
            self._progress(share * (int(chunk.segments[-1]) + 1))


@dataclass(frozen=True)
class ChunkSize:
    """A chunk ends once it has this many pairs, or texts of this many characters in all."""

    pairs: int = 2048
    characters: int = 2**19


def chunks(
    segments: Iterable[Segment], size: ChunkSize | None = None, growth: int = 1
) -> Iterator[Chunk]:
    """Cut a stream of segments into chunks, each twice as large as the last, up to `growth` times.

    Work begins soon that way. Where it is cut depends only on the stream and these sizes; no score
    depends on either. Texts are composed (NFC): how letters and marks are coded changes no score.
    """
    size = size or ChunkSize()
    place: dict[str, int] = {}
    index: list[int] = []
    owner: list[int] = []
    characters = count = 0
    times = 1
    for hyp, refs in segments:
        hyp = compose(hyp)
        for ref in map(compose, refs):
            index.append(place.setdefault(hyp, len(place)))
            index.append(place.setdefault(ref, len(place)))
            owner.append(count)
            characters += len(ref)
        characters += len(hyp)
        count += 1
        if len(owner) >= times * size.pairs or characters >= times * size.characters:
            yield Chunk(list(place), np.array(index).reshape(-1, 2), np.array(owner))
            place, index, owner, characters, count = {}, [], [], 0, 0
            times = min(2 * times, growth)
    if owner:
        yield Chunk(list(place), np.array(index).reshape(-1, 2), np.array(owner))


def compose(text: str) -> str:
    """The text in Unicode's form NFC, in which it is scored: a letter and its marks are one."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def score_chunk(
    metrics: Sequence[Metric], chunk: Chunk, progress: Progress | None = None
) -> list[PairScores]:
    """Scores and flags by each metric for every pair of a chunk."""
    spoken = language_flags(metrics, chunk.texts, chunk.index)
    return score_encoded(metrics, chunk, encode_chunk(metrics, chunk, {}, progress), spoken)


def encoders_of(metrics: Iterable[Metric]) -> list[Encoder]:
    """The encoders of some metrics, each once."""
    return list(dict.fromkeys(metric.encoder for metric in metrics))


def language_flags(metrics: Iterable[Metric], texts: Sequence[str], index: Array) -> Spoken:
    """The language flags of an index (pair, 2) of texts, by encoder: languages differ."""
    return {
        encoder: dict(pair_flags(texts, index, languages_of(encoder)))
        for encoder in encoders_of(metrics)
    }


class Encoded(NamedTuple):
    """A chunk's texts through one encoder: which metrics share it, and the layers they need."""

    sharing: list[int]
    layers: list[int]
    cloud: Cloud

    def clouds(self, metrics: Sequence[Metric]) -> Iterator[tuple[int, Cloud]]:
        """The cloud of each metric that shares it, by the metric's number."""
        for k in self.sharing:
            yield k, self.cloud.at([self.layers.index(layer) for layer in metrics[k].layers])


def encode_chunk(
    metrics: Sequence[Metric],
    chunk: Chunk,
    prepared: Mapping[Encoder, Any],
    progress: Progress | None = None,
) -> Iterator[Encoded]:
    """Metrics that share an encoder share one encoding, of all the layers they need together.

    `prepared` has what an encoder has already made of the texts, such as tokens.
    """
    encoders = encoders_of(metrics)
    for encoder in encoders:
        sharing = [k for k, metric in enumerate(metrics) if metric.encoder == encoder]
        layers = sorted({layer for k in sharing for layer in metrics[k].layers})
        shared = (lambda share: progress(share / len(encoders))) if progress else None
        texts = prepared.get(encoder, chunk.texts)
        cloud = metrics[sharing[0]].encode(texts, layers, shared)
        yield Encoded(sharing, layers, cloud)


def score_encoded(
    metrics: Sequence[Metric], chunk: Chunk, encoded: Iterable[Encoded], spoken: Spoken
) -> list[PairScores]:
    """Scores and flags by each metric, from what the encoders made of the chunk's texts."""
    results = [PairScores({}, [])] * len(metrics)
    for one in encoded:
        for k, cloud in one.clouds(metrics):
            costs = compute_costs(metrics[k], *weigh(metrics[k], cloud), chunk.index)
            flagged = add_text_flags(metrics[k], costs, cloud, chunk.index, spoken)
            results[k] = read_scores(metrics[k], flagged)
    return results


def weigh(metric: Metric, cloud: Cloud) -> tuple[Measures, Measures]:
    """Every text as a hypothesis and as a reference: the metric's units, and their masses."""
    units = metric.select_units(cloud)
    hyp = metric.measure(metric.weighting, units)
    return hyp, metric.measure(metric.ref_weighting, units) if metric.ref_weighting else hyp


@dataclass(frozen=True, eq=False)
class PairCosts:
    """Pairs of measures, and batch by batch their costs: all that the problems depend on.

    `perfect` and `worst` are the pairs that get these scores without a plan; `flags` says what is
    known of each pair already. `batches` are of the pairs that can be compared, and can be iterated
    once unless they are a list; the remaining pairs cannot be scored.
    """

    perfect: Array  # (pair,)
    worst: Array  # (pair,)
    flags: Sequence[Flags]
    device: torch.device
    batches: Iterable[tuple[Pairs, torch.Tensor]]


def compute_costs(metric: Metric, hyp: Measures, ref: Measures, index: Array) -> PairCosts:
    """The costs of the pairs of an index (pair, 2) of measures.

    A pair with one empty side gets each column's worst score. A text that is not empty but has no
    known unit can be compared with itself only; its other pairs have no score.
    """
    empty = np.stack((hyp.empty[index[:, 0]], ref.empty[index[:, 1]]), axis=1)
    lost = np.stack((hyp.unknown[index[:, 0]], ref.unknown[index[:, 1]]), axis=1) == 1.0
    flags = _add_flags([NO_FLAGS] * len(index), index, hyp.flags, ref.flags)
    for k in np.flatnonzero((empty | lost).any(axis=1)):
        flags[k] |= empty_flags(empty[k])
        flags[k] |= {Flag(FlagKind.NO_KNOWN_UNITS, side=SIDES[i]) for i in np.flatnonzero(lost[k])}
    perfect = empty.all(axis=1) | (lost.any(axis=1) & (index[:, 0] == index[:, 1]))
    worst = empty.any(axis=1) & ~lost.any(axis=1) & ~perfect
    whole = np.flatnonzero(~(empty | lost).any(axis=1))
    gathered = metric.pairing(hyp, ref, index[whole]) if len(whole) else ()
    batches = (replace(pairs, which=whole[pairs.which]) for pairs in gathered)
    costs = ((pairs, metric.compute_cost(pairs)) for pairs in batches)
    return PairCosts(perfect, worst, flags, hyp.points.device, costs)


def score_measures(metric: Metric, hyp: Measures, ref: Measures, index: Array) -> PairScores:
    """Scores and flags for pairs of measures."""
    return read_scores(metric, compute_costs(metric, hyp, ref, index))


def read_scores(metric: Metric, costs: PairCosts) -> PairScores:
    """Solve the metric's problems and read its columns; an empty side gets the declared score."""
    flags = list(costs.flags)
    scores = {column.name: np.full(len(flags), np.nan) for column in metric.columns}
    for column in metric.columns:
        scores[column.name][costs.worst] = column.worst
        scores[column.name][costs.perfect] = column.perfect
    for pairs, reading, converged in _readings(metric, costs):
        for name, values in reading.columns.items():
            scores[name][pairs.which] = values
        for kind, raised in reading.flags.items():
            for k in pairs.which[raised]:
                flags[k] |= {Flag(kind)}
        for k in pairs.which[~converged]:
            flags[k] |= {Flag(FlagKind.NOT_CONVERGED)}
            for values in scores.values():
                values[k] = np.nan
    return PairScores(scores, flags)


def _readings(metric: Metric, costs: PairCosts) -> Iterable[tuple[Pairs, Reading, Array]]:
    if costs.device.type == "cuda":
        from freight.core.overlap import overlapped_readings

        return overlapped_readings(metric, costs)
    return ((pairs, *solve_and_read(metric, pairs, cost)) for pairs, cost in costs.batches)


def solve_and_read(metric: Metric, pairs: Pairs, cost: torch.Tensor) -> tuple[Reading, Array]:
    """The columns of a batch, and which of its pairs have converged."""
    plans = solve_pairs(metric, pairs, cost)
    converged = np.logical_and.reduce([plan.converged for plan in plans])
    return metric.read_plans(plans, pairs), converged


def solve_pairs(metric: Metric, pairs: Pairs, cost: torch.Tensor) -> list[Plans]:
    """A plan for each of the metric's problems between these pairs, in arrays.

    A pair whose cost could not be computed has not converged. On a GPU, problems that a kernel
    solves there never leave it: only what their plans cost does.
    """
    from freight.transport.solvers import solve_in_arrays, solve_on_device, solves_on_device

    there = [solves_on_device(problem, cost) for problem in metric.problems]
    kept, rest = (
        [problem for problem, stays in zip(metric.problems, there, strict=True) if stays == wanted]
        for wanted in (True, False)
    )
    data = pairs.masses, pairs.sizes
    done = iter(solve_on_device(kept, cost, *data) if kept else ())
    other = iter(solve_in_arrays(rest, fetch_array(cost), *data, cost.is_cuda) if rest else ())
    return [next(done if stays else other) for stays in there]


def add_text_flags(
    metric: Metric, costs: PairCosts, cloud: Cloud, index: Array, spoken: Spoken
) -> PairCosts:
    """Add the flags of a pair's texts, and those of their languages, `spoken`.

    A hypothesis in another language than its reference is scored as if unrelated (every cosine 0),
    whatever vectors a multilingual encoder gives them, unless the metric is `cross_lingual`.
    """
    from freight.core.costs import separated

    every = _add_flags(costs.flags, index, cloud.flags, cloud.flags)
    other = np.zeros(len(index), bool)
    for k, raised in spoken[metric.encoder].items():
        every[k] |= raised
        other[k] = any(flag.kind == FlagKind.OTHER_LANGUAGE for flag in raised)
    if metric.cross_lingual or not other.any():
        return replace(costs, flags=every)
    batches = ((pairs, separated(metric.cost, pairs, c, other)) for pairs, c in costs.batches)
    return replace(costs, flags=every, batches=batches)


def _add_flags(
    flags: Sequence[Flags], index: Array, *of_texts: Sequence[tuple[Flag, ...]]
) -> list[Flags]:
    """Flags of pairs with those of both texts, which hardly any has."""
    every = list(flags)
    for side, texts, raised in zip(SIDES, index.T, of_texts, strict=True):
        flagged = np.fromiter(map(bool, raised), bool, len(raised))
        for k in np.flatnonzero(flagged[texts]):
            every[k] |= {flag.on(side) for flag in raised[texts[k]]}
    return every
