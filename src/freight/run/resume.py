"""A run that can be cut off at any moment, and goes on to the same bytes.

A shard is written whole and only then noted in the journal, so that what is noted is there. The
journal's lines are sealed with the run's identity: a damaged line, or one of another run, counts
for nothing, and its shard is done again.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from freight.core.idf import Frequencies
from freight.core.metric import Blend, Metric
from freight.core.scoring import Scorer
from freight.core.types import Progress
from freight.data import Corpus
from freight.data.tables import FORMATS
from freight.errors import FreightError, InvalidInput
from freight.run.journal import MANIFEST, Manifest, RunFolder, Surroundings, opened, sealed
from freight.run.shards import (
    SHARD,
    SUMMARY,
    Finished,
    Record,
    Run,
    Shard,
    ShardTask,
    count_shards,
    cut,
    summed,
)

JOURNAL = "shards.jsonl"


class Engine(Protocol):
    """Whoever does the task to all shards."""

    def look(self, metrics: Sequence[Scorer]) -> Surroundings:
        """What the scores of these metrics depend on, there where they are made."""
        ...

    def work(
        self, task: ShardTask, shards: Iterator[Shard], progress: Progress | None
    ) -> Iterator[Finished]:
        """The finished shards, in whatever order."""
        ...


@dataclass(frozen=True)
class Request:
    """What is asked for: metrics, input, a folder, how the scores are cut up and written.

    `columns` are those wanted of each metric, all where nothing is said.
    """

    metrics: Sequence[Scorer]
    corpus: Corpus
    output: Path
    resume: bool = False
    shard: int = SHARD
    ending: str = ".parquet"
    columns: Sequence[Sequence[str]] | None = None

    def __post_init__(self) -> None:
        if self.shard < 1:
            raise InvalidInput(f"shard={self.shard}; a shard has at least one segment")
        if self.ending not in FORMATS:
            raise InvalidInput(f"{self.ending} is no format; there is {' '.join(FORMATS)}")
        if len({metric.name for metric in self.metrics}) < max(len(self.metrics), 1):
            raise InvalidInput("a run has at least one metric, and none of them twice")
        for metric, names in zip(self.metrics, self.wanted, strict=True):
            there = [column.name for column in metric.columns]
            for name in names:
                if name not in there:
                    raise InvalidInput(
                        f"{metric.name} has no column {name!r}; there is {', '.join(there)}"
                    )

    @property
    def wanted(self) -> list[tuple[str, ...]]:
        """The columns of each metric."""
        if self.columns is not None:
            return [tuple(names) for names in self.columns]
        return [tuple(column.name for column in metric.columns) for metric in self.metrics]


def carry_out(request: Request, engine: Engine, progress: Progress | None = None) -> Run:
    """Score what has not been scored yet, and sum everything up."""
    folder, corpus = RunFolder(request.output), request.corpus
    with folder.held():
        stamps = _stamps(corpus)
        chosen = request.metrics, request.wanted, request.shard, request.ending
        asked = Manifest.of(corpus, *chosen, engine.look(request.metrics))
        manifest = _begun(folder, asked, request.resume)
        metrics, manifest = _taught(folder, request, manifest)
        task = _task(request, metrics, engine.look(metrics).signatures)
        known = _verified(folder, manifest)
        folder.write(JOURNAL, b"".join(_line(manifest, one) for one in _sorted(known)))
        folder.write(MANIFEST, replace(manifest, complete=False).written())
        if progress:
            progress(sum(record.rows for record in known.values()))
        shards = cut(corpus, request.shard, known)
        for done in () if _whole(manifest, known) else engine.work(task, shards, progress):
            if _stamps(corpus) != stamps:
                raise FreightError("the input was changed while it was being scored; begin anew")
            folder.write(_name(manifest, done.record.number), done.content)
            folder.append(JOURNAL, _line(manifest, done.record))
            known[done.record.number] = done.record
        return _closed(folder, task, manifest, _sorted(known))


def finished_shards(output: Path) -> tuple[int, int]:
    """How many shards of a run there are, and how many there will be; it may be going on."""
    folder = RunFolder(output)
    manifest = Manifest.read(folder.read(MANIFEST))
    if manifest is None:
        return 0, 0
    return len(_records(folder, manifest)), count_shards(manifest.segments, manifest.shard)


def _begun(folder: RunFolder, manifest: Manifest, resume: bool) -> Manifest:
    """The manifest to go by: that of the folder, where it is the same run."""
    if not folder.names:
        return manifest
    if not resume:
        raise InvalidInput(
            f"{folder.path} is not empty; go on with what is there by --resume, or name another"
            " folder"
        )
    before = Manifest.read(folder.read(MANIFEST))
    if before is None:
        return _unknown(folder, manifest)
    difference = manifest.difference(before)
    if difference:
        raise InvalidInput(
            f"{folder.path} was begun {difference}; ask for the same, or name another folder"
        )
    for name in ("device", "libraries"):
        was, is_now = getattr(before, name), getattr(manifest, name)
        if was != is_now:
            warnings.warn(
                f"{folder.path} was begun with {was} and goes on with {is_now}: scores may differ"
                " in their last digits",
                stacklevel=4,
            )
    return before


def _unknown(folder: RunFolder, manifest: Manifest) -> Manifest:
    """A folder without a manifest that can be read: ours if it holds something of this run."""
    ours = {MANIFEST, JOURNAL, SUMMARY, LEARNT}
    shards = {_name(manifest, k) for k in range(count_shards(manifest.segments, manifest.shard))}
    foreign = sorted(folder.names - ours - shards)
    if foreign or (folder.names & shards and not _records(folder, manifest)):
        what = foreign[0] if foreign else f"a damaged {MANIFEST} and no shard of this run"
        raise InvalidInput(f"{folder.path} holds {what}; name another folder, or empty it")
    return manifest


def _taught(
    folder: RunFolder, request: Request, manifest: Manifest
) -> tuple[list[Scorer], Manifest]:
    """The metrics, having learnt what they need, now or before."""
    metrics = list(request.metrics)
    if not any(metric.needs_fitting for metric in metrics):
        return metrics, manifest
    content = folder.read(LEARNT)
    if content and manifest.learnt == _digest(content) and restorable(metrics):
        return restored(metrics, content), manifest
    metrics = fitted(metrics, request.corpus)
    content = written(metrics)
    folder.write(LEARNT, content)
    return metrics, replace(manifest, learnt=_digest(content))


def _task(request: Request, metrics: Sequence[Scorer], signatures: Sequence[str]) -> ShardTask:
    notes = {metric.name: line for metric, line in zip(metrics, signatures, strict=True)}
    return ShardTask(tuple(metrics), tuple(request.wanted), request.ending, notes)


def _verified(folder: RunFolder, manifest: Manifest) -> dict[int, Record]:
    """The shards that are noted, and still are what was noted."""
    return {
        record.number: record
        for record in _records(folder, manifest)
        if folder.digest(_name(manifest, record.number)) == record.sha256
    }


def _records(folder: RunFolder, manifest: Manifest) -> list[Record]:
    lines = (folder.read(JOURNAL) or b"").splitlines()
    found = [opened(line, manifest.identity) for line in lines]
    return [Record(**content) for content in found if content is not None]


def _closed(folder: RunFolder, task: ShardTask, manifest: Manifest, records: list[Record]) -> Run:
    """The journal in order, the summary, and the mark that all is there."""
    names = [_name(manifest, record.number) for record in records]
    if not _whole(manifest, names):
        raise FreightError(f"shards are missing in {folder.path}; go on with --resume")
    files = tuple(folder.path / name for name in names)
    run = Run(folder.path, files, manifest.segments, summed(task, records))
    folder.write(JOURNAL, b"".join(_line(manifest, record) for record in records))
    folder.write(SUMMARY, run.written())
    folder.write(MANIFEST, manifest.finished().written())
    return run


def _whole(manifest: Manifest, shards: Collection[Any]) -> bool:
    return len(shards) == count_shards(manifest.segments, manifest.shard)


def _line(manifest: Manifest, record: Record) -> bytes:
    return sealed(vars(record), manifest.identity)


def _sorted(known: dict[int, Record]) -> list[Record]:
    return [known[number] for number in sorted(known)]


def _name(manifest: Manifest, number: int) -> str:
    width = max(5, len(str(count_shards(manifest.segments, manifest.shard))))
    return f"shard-{number:0{width}d}.{manifest.format}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _stamps(corpus: Corpus) -> list[Any]:
    """What changes when a file is written to."""
    found = [path.stat() for _, path in corpus.files]
    return [(one.st_size, one.st_mtime_ns) for one in found]


LEARNT = "learnt.json"
SOURCE = "given texts"


def fitted(metrics: Sequence[Scorer], corpus: Corpus) -> list[Scorer]:
    """Each metric, having learnt from the input what it needs."""
    refs, hyps = _FittedSide(corpus, refs=True), _FittedSide(corpus, refs=False)
    return [one.fit(refs, hyps, SOURCE) if one.needs_fitting else one for one in metrics]


def written(metrics: Sequence[Scorer]) -> bytes:
    """The frequencies that these metrics know, as a file."""
    tables = [[_tables(part) for part in metric.parts] for metric in metrics]
    return json.dumps(tables).encode() + b"\n"


def restored(metrics: Sequence[Scorer], content: bytes) -> list[Scorer]:
    """Each metric, knowing what is in such a file; one that needs nothing stays as it is."""
    tables = json.loads(content)
    return [
        _fitted_part(one, found) if one.needs_fitting else one
        for one, found in zip(metrics, tables, strict=True)
    ]


def restorable(metrics: Sequence[Scorer]) -> bool:
    """Whether what they learn can be written down."""
    return all(isinstance(one, (Metric, Blend)) for one in metrics if one.needs_fitting)


@dataclass(frozen=True)
class _FittedSide:
    """All texts of one side, as often as they are wanted."""

    corpus: Corpus
    refs: bool

    def __iter__(self) -> Iterator[str]:
        if self.refs:
            return self.corpus.references()
        return (hyp for hyp, _ in self.corpus)


def _tables(part: Metric) -> list[dict[str, Any] | None]:
    idfs = [side.idf if side else None for side in (part.weighting, part.ref_weighting)]
    return [asdict(idf.table) if idf and idf.table else None for idf in idfs]


def _fitted_part(scorer: Scorer, tables: Sequence[Any]) -> Scorer:
    if isinstance(scorer, Blend):
        parts = [_part(*both) for both in zip(scorer.parts, tables, strict=True)]
        return replace(scorer, parts=tuple(parts))
    assert isinstance(scorer, Metric)
    return _part(scorer, tables[0])


def _part(metric: Metric, tables: Sequence[dict[str, Any] | None]) -> Metric:
    hyp, ref = (_frequencies(table) for table in tables)
    if hyp:
        metric = replace(metric, weighting=metric.weighting.fitted(hyp))
    if ref and metric.ref_weighting:
        metric = replace(metric, ref_weighting=metric.ref_weighting.fitted(ref))
    return metric


def _frequencies(table: dict[str, Any] | None) -> Frequencies | None:
    if table is None:
        return None
    counted = {name: tuple(table[name]) for name in ("ids", "counts")}
    return Frequencies(**{**table, **counted})
