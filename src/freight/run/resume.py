"""A run that can be interrupted at any moment, and is continued to the same bytes.

A shard is written whole and only then noted in the journal, so that every shard in the journal is
in the folder. The lines of the journal are sealed with the run's identity: a damaged line, or one
of another run, is ignored, and its shard is scored again. Frequencies that metrics fit on the
input (IDF) are kept in a file, so that they are counted once.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from freight.core.idf import FittableWeighting, Frequencies
from freight.core.metric import Blend, Metric
from freight.core.pipeline import ChunkSize
from freight.core.result import Result
from freight.core.scorers import PipelineScorer
from freight.core.types import Progress
from freight.data import Corpus
from freight.data.tables import FORMATS
from freight.errors import FreightError, InvalidInput
from freight.run.journal import (
    MANIFEST,
    Environment,
    Manifest,
    RunFolder,
    open_record,
    seal_record,
)
from freight.run.shards import (
    CHECKPOINT,
    SHARD_SIZE,
    SUMMARY,
    FinishedShard,
    PartialShard,
    Run,
    Shard,
    ShardRecord,
    ShardTask,
    cut_shards,
    sum_records,
)

JOURNAL = "shards.jsonl"
FITTED = "fitted.json"


class Engine(Protocol):
    """What scores the shards: this process, several processes, or a cluster."""

    def environment(self, metrics: Sequence[PipelineScorer]) -> Environment:
        """What the scores depend on in the processes that compute them."""
        ...

    def score_shards(
        self, task: ShardTask, shards: Iterator[Shard], progress: Progress | None
    ) -> Iterator[FinishedShard | PartialShard]:
        """The finished shards in any order, and now and then a part of an unfinished one."""
        ...


@dataclass(frozen=True)
class RunRequest:
    """What to score and where to: metrics, input, folder, size and format of the shards.

    `columns` are those wanted of each metric, all of them by default; `chunk` is how much is scored
    at a time. The other fields are arguments of `local`.
    """

    metrics: Sequence[PipelineScorer]
    corpus: Corpus
    output: Path
    resume: bool = False
    shard: int = SHARD_SIZE
    checkpoint: float = CHECKPOINT
    ending: str = ".parquet"
    columns: Sequence[Sequence[str]] | None = None
    chunk: ChunkSize | None = None
    escape: bool = False

    def __post_init__(self) -> None:
        if self.shard < 1:
            raise InvalidInput(f"shard={self.shard}; a shard has at least one segment")
        if not self.checkpoint >= 0:
            raise InvalidInput(f"checkpoint={self.checkpoint}; give a number of seconds, 30")
        if self.ending not in FORMATS:
            raise InvalidInput(f"{self.ending} is no format; there is {' '.join(FORMATS)}")
        if len({metric.name for metric in self.metrics}) < max(len(self.metrics), 1):
            raise InvalidInput("a run has at least one metric, and none of them twice")
        for metric, names in zip(self.metrics, self.wanted_columns, strict=True):
            there = [column.name for column in metric.columns]
            for name in names:
                if name not in there:
                    raise InvalidInput(
                        f"{metric.name} has no column {name!r}; there is {', '.join(there)}"
                    )

    @property
    def wanted_columns(self) -> list[tuple[str, ...]]:
        """The columns to write of each metric."""
        if self.columns is not None:
            return [tuple(names) for names in self.columns]
        return [tuple(column.name for column in metric.columns) for metric in self.metrics]


def score_to_folder(
    request: RunRequest,
    engine: Engine,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> Run:
    """Score what is not in the folder yet, and write the summary."""
    folder, corpus = RunFolder(request.output), request.corpus
    with folder.lock():
        stamps = _file_stamps(corpus)
        manifest = _check_manifest(folder, request, engine.environment(request.metrics))
        folder.remove_files(folder.unfinished(_own_names(manifest)))
        is_new = not folder.names
        metrics, manifest = _fit_metrics(folder, request, manifest)
        signatures = engine.environment(metrics).signatures
        notes = {metric.name: line for metric, line in zip(metrics, signatures, strict=True)}
        columns = tuple(request.wanted_columns)
        how = request.chunk, request.checkpoint, request.escape
        task = ShardTask(tuple(metrics), columns, request.ending, notes, *how)
        done = _intact_shards(folder, manifest)
        kept = _kept_results(folder, manifest, set(done), metrics)
        if note and request.resume:
            note(_describe_state(folder, manifest, is_new, done, kept))
        _write_journal(folder, manifest, done)
        folder.write_file(MANIFEST, replace(manifest, complete=False).to_bytes())
        folder.remove_files(manifest.partial_name(number) for number in done)
        if progress:
            progress(_count_rows(done, kept))
        if len(done) < manifest.shard_count:
            pending = cut_shards(corpus, request.shard, set(done), kept)
            for shard in engine.score_shards(task, pending, progress):
                if _file_stamps(corpus) != stamps:
                    raise FreightError(
                        "the input was changed while it was being scored; begin anew"
                    )
                if isinstance(shard, PartialShard):
                    line = seal_record(shard.to_record(), manifest.identity)
                    folder.append_line(manifest.partial_name(shard.number), line)
                    continue
                number = shard.record.number
                folder.write_file(manifest.shard_name(number), shard.content)
                folder.append_line(JOURNAL, _journal_line(manifest, shard.record))
                folder.remove_files([manifest.partial_name(number)])
                done[number] = shard.record
        return _finish_run(folder, task, manifest, done)


def scored_segments(output: Path) -> tuple[int, int]:
    """How many segments of a run are scored and kept, and how many it has."""
    folder = RunFolder(output)
    manifest = Manifest.from_bytes(folder.read_file(MANIFEST))
    if manifest is None:
        return 0, 0
    done = {record.number: record.rows for record in _read_journal(folder, manifest)}
    partial = (
        _last_row(_read_partial(folder, manifest, number))
        for number in range(manifest.shard_count)
        if number not in done
    )
    return sum(done.values()) + sum(partial), manifest.segments


def _check_manifest(folder: RunFolder, request: RunRequest, environment: Environment) -> Manifest:
    """The manifest of this run; where the folder has one already, it has to be the same run."""
    metrics = [
        (metric.name, columns)
        for metric, columns in zip(request.metrics, request.wanted_columns, strict=True)
    ]
    manifest = Manifest.describe(
        request.corpus, metrics, request.shard, request.ending, request.escape, environment
    )
    if not folder.names - folder.unfinished(_own_names(manifest)):
        return manifest
    if not request.resume:
        raise InvalidInput(
            f"{folder.path} is not empty; go on with what is there by --resume, or name another"
            " folder"
        )
    before = Manifest.from_bytes(folder.read_file(MANIFEST))
    if before is None:
        _check_files(folder, manifest)
        return manifest
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


def _check_files(folder: RunFolder, manifest: Manifest) -> None:
    """Refuse a folder without a readable manifest, unless all its files are of this run."""
    ours = _own_names(manifest)
    shards = {manifest.shard_name(number) for number in range(manifest.shard_count)}
    foreign = sorted(folder.names - ours - folder.unfinished(ours))
    if foreign or (folder.names & shards and not _read_journal(folder, manifest)):
        what = foreign[0] if foreign else f"a damaged {MANIFEST} and no shard of this run"
        raise InvalidInput(f"{folder.path} holds {what}; name another folder, or empty it")


def _own_names(manifest: Manifest) -> set[str]:
    """The names of all files that a run may have."""
    numbers = range(manifest.shard_count)
    shards = (manifest.shard_name(number) for number in numbers)
    partial = (manifest.partial_name(number) for number in numbers)
    return {MANIFEST, JOURNAL, SUMMARY, FITTED, *shards, *partial}


def _read_journal(folder: RunFolder, manifest: Manifest) -> list[ShardRecord]:
    lines = (folder.read_file(JOURNAL) or b"").splitlines()
    contents = [open_record(line, manifest.identity) for line in lines]
    return [ShardRecord(**content) for content in contents if content is not None]


def _write_journal(folder: RunFolder, manifest: Manifest, done: dict[int, ShardRecord]) -> None:
    lines = [_journal_line(manifest, done[number]) for number in sorted(done)]
    folder.write_file(JOURNAL, b"".join(lines))


def _journal_line(manifest: Manifest, record: ShardRecord) -> bytes:
    return seal_record(vars(record), manifest.identity)


def _intact_shards(folder: RunFolder, manifest: Manifest) -> dict[int, ShardRecord]:
    """The shards in the journal whose files have not changed."""
    return {
        record.number: record
        for record in _read_journal(folder, manifest)
        if folder.file_digest(manifest.shard_name(record.number)) == record.sha256
    }


def _read_partial(folder: RunFolder, manifest: Manifest, number: int) -> list[dict[str, Any]]:
    """What was kept of an unfinished shard: records that follow each other from the first row."""
    records: list[dict[str, Any]] = []
    for line in (folder.read_file(manifest.partial_name(number)) or b"").splitlines():
        record = open_record(line, manifest.identity)
        if record is None:
            continue
        before = [one for one in records if one["first"] < record["first"]]
        if record["first"] == _last_row(before):  # a worker that begins again repeats rows
            records = [*before, record]
    return records


def _last_row(records: Sequence[dict[str, Any]]) -> int:
    return records[-1]["first"] + len(records[-1]["results"][0]["flags"]) if records else 0


def _kept_results(
    folder: RunFolder, manifest: Manifest, done: set[int], metrics: Sequence[PipelineScorer]
) -> dict[int, tuple[Result, ...]]:
    """The results that are kept of each unfinished shard; damaged ones are scored again."""
    kept = {}
    for number in set(range(manifest.shard_count)) - done:
        records = _read_partial(folder, manifest, number)
        parts = [PartialShard.from_record(number, one, metrics).results for one in records]
        if parts:
            kept[number] = tuple(Result.joined(several) for several in zip(*parts, strict=True))
    return kept


def _count_rows(done: dict[int, ShardRecord], kept: dict[int, tuple[Result, ...]]) -> int:
    finished = sum(record.rows for record in done.values())
    return finished + sum(len(results[0]) for results in kept.values())


def _describe_state(
    folder: RunFolder,
    manifest: Manifest,
    is_new: bool,
    done: dict[int, ShardRecord],
    kept: dict[int, tuple[Result, ...]],
) -> str:
    """What a run that is resumed finds in its folder."""
    if is_new:
        return f"{folder.path} holds no earlier run; a new one begins"
    rows, damaged = _count_rows(done, kept), len(_read_journal(folder, manifest)) - len(done)
    going = "going on" if rows < manifest.segments else "nothing is left to score"
    several = "shards are" if damaged > 1 else "shard is"
    again = f"; {damaged} damaged or missing {several} scored again" if damaged else ""
    return f"{folder.path} holds {rows:,} of {manifest.segments:,} segments; {going}{again}"


def _finish_run(
    folder: RunFolder, task: ShardTask, manifest: Manifest, done: dict[int, ShardRecord]
) -> Run:
    """Write the journal in order, the summary, and the mark that the run is complete."""
    if len(done) < manifest.shard_count:
        raise FreightError(f"shards are missing in {folder.path}; go on with --resume")
    records = [done[number] for number in sorted(done)]
    files = tuple(folder.path / manifest.shard_name(record.number) for record in records)
    run = Run(folder.path, files, manifest.segments, sum_records(task, records))
    _write_journal(folder, manifest, done)
    folder.write_file(SUMMARY, run.summary_file())
    folder.write_file(MANIFEST, manifest.completed().to_bytes())
    return run


def _file_stamps(corpus: Corpus) -> list[Any]:
    """Size and modification time of each input file, which tell whether it was written to."""
    stats = [path.stat() for _, path in corpus.files]
    return [(one.st_size, one.st_mtime_ns) for one in stats]


def _fit_metrics(
    folder: RunFolder, request: RunRequest, manifest: Manifest
) -> tuple[list[PipelineScorer], Manifest]:
    """The metrics with the frequencies that they need, read from the folder or fitted now."""
    metrics = list(request.metrics)
    if not any(metric.needs_fitting for metric in metrics):
        return metrics, manifest
    content = folder.read_file(FITTED)
    if content and manifest.fitted == _sha256(content) and _can_be_stored(metrics):
        return _with_stored_tables(metrics, content), manifest
    refs, hyps = _CorpusTexts(request.corpus, refs=True), _CorpusTexts(request.corpus, refs=False)
    metrics = [one.fit(refs, hyps, "given texts") if one.needs_fitting else one for one in metrics]
    content = _tables_file(metrics)
    folder.write_file(FITTED, content)
    return metrics, replace(manifest, fitted=_sha256(content))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class _CorpusTexts:
    """All texts of one side, which can be iterated several times."""

    corpus: Corpus
    refs: bool

    def __iter__(self) -> Iterator[str]:
        if self.refs:
            return self.corpus.references()
        return (hyp for hyp, _ in self.corpus)


def _can_be_stored(metrics: Sequence[PipelineScorer]) -> bool:
    return all(isinstance(one, (Metric, Blend)) for one in metrics if one.needs_fitting)


def _tables_file(metrics: Sequence[PipelineScorer]) -> bytes:
    """The frequencies of these metrics as a file."""
    tables = [[_tables(part) for part in metric.parts] for metric in metrics]
    return json.dumps(tables).encode() + b"\n"


def _with_stored_tables(metrics: Sequence[PipelineScorer], content: bytes) -> list[PipelineScorer]:
    """Each metric with the frequencies in the file; one that needs none is left as it is."""
    return [
        _with_tables(one, tables) if one.needs_fitting else one
        for one, tables in zip(metrics, json.loads(content), strict=True)
    ]


def _tables(part: Metric) -> list[dict[str, Any] | None]:
    both = part.weighting, part.ref_weighting
    idfs = [side.idf if isinstance(side, FittableWeighting) else None for side in both]
    return [asdict(idf.table) if idf and idf.table else None for idf in idfs]


def _with_tables(scorer: PipelineScorer, tables: Sequence[Any]) -> PipelineScorer:
    if isinstance(scorer, Blend):
        parts = [_part_with_tables(*both) for both in zip(scorer.parts, tables, strict=True)]
        return replace(scorer, parts=tuple(parts))
    assert isinstance(scorer, Metric)
    return _part_with_tables(scorer, tables[0])


def _part_with_tables(metric: Metric, tables: Sequence[dict[str, Any] | None]) -> Metric:
    hyp, ref = (_frequencies(table) for table in tables)
    if hyp and isinstance(metric.weighting, FittableWeighting):
        metric = replace(metric, weighting=metric.weighting.fitted(hyp))
    if ref and isinstance(metric.ref_weighting, FittableWeighting):
        metric = replace(metric, ref_weighting=metric.ref_weighting.fitted(ref))
    return metric


def _frequencies(table: dict[str, Any] | None) -> Frequencies | None:
    if table is None:
        return None
    counted = {name: tuple(table[name]) for name in ("ids", "counts")}
    return Frequencies(**{**table, **counted})
