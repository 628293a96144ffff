"""`freight score`: files in, a table, a file or JSON out."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freight.cli import options, results, sacrebleu, shards
from freight.cli.options import (
    DEFAULT,
    RequestedMetric,
    given,
    language_setting,
    parse_settings,
    target_setting,
    wanted_metrics,
)
from freight.cli.results import Summary
from freight.cli.sacrebleu import Manner
from freight.data import Corpus
from freight.data.corpus import RowOrigins
from freight.data.languages import vocabulary_note
from freight.data.tables import TableWriter, check_ending
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scoring import Scorer
    from freight.core.types import Progress


def score(
    hyp: Annotated[
        str | None,
        typer.Argument(
            metavar="HYP",
            help="Hypotheses, one a line (- is standard input), or a table; a REF where -i is.",
        ),
    ] = None,
    refs: Annotated[
        list[str] | None, typer.Argument(metavar="REF", help="References, one a line.")
    ] = None,
    inputs: sacrebleu.Input = None,
    metric: options.MetricNames = None,
    encoder: options.EncoderName = None,
    layer: options.Layer = None,
    lang: options.Lang = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HYP", help="Another system's hypotheses for the same references; repeatable."
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "-o", "--output", help="Scores, .jsonl .csv .tsv .parquet; a folder/; a page, .html."
        ),
    ] = None,
    resume: shards.Resume = False,
    form: shards.Format = None,
    shard: shards.Size = None,
    workers: shards.Workers = None,
    engine: shards.Engine = None,
    address: shards.Address = None,
    explain: Annotated[
        int, typer.Option(min=0, help="On a page: so many of the worst and of the best segments.")
    ] = 10,
    confidence: sacrebleu.Confidence = False,
    confidence_n: sacrebleu.Samples = 1000,
    paired_bs: sacrebleu.ByBootstrap = False,
    paired_bs_n: sacrebleu.BootstrapTrials = None,
    paired_ar: sacrebleu.ByPermutation = False,
    paired_ar_n: sacrebleu.PermutationTrials = None,
    seed: options.Seed = 0,
    width: sacrebleu.Width = 4,
    score_only: sacrebleu.ScoreOnly = False,
    as_json: options.AsJson = False,
    language_pair: results.LanguagePair = None,
    test_set: results.TestSet = None,
    hyp_column: Annotated[str | None, typer.Option(help="In a table. Default: hyp.")] = None,
    ref_column: Annotated[
        list[str] | None, typer.Option(help="In a table; may be repeated. Default: refs or ref.")
    ] = None,
    encoding: options.Encoding = "utf-8",
    device: options.Device = None,
    dtype: options.Dtype = None,
    cache: options.Cache = False,
    threads: options.Threads = None,
) -> None:
    """Score each hypothesis against its reference, or the best of its references.

    Files are plain text, or tables (.csv .tsv .jsonl .parquet), gzipped or not. A single table has
    both sides: the columns hyp, and ref or refs. Several systems, from -i, from --against or by
    the column system of a table, are compared. As with sacrebleu, freight score REF -i HYP does it
    too.
    """
    tests, trials = {"bs": paired_bs, "ar": paired_ar}, {"bs": paired_bs_n, "ar": paired_ar_n}
    shown = {"form": form if form in sacrebleu.FORMS else None, "width": width, "bare": score_only}
    samples = confidence_n if confidence else 0
    said = Manner.of(tests, trials, samples, seed=seed, **shown)
    hyps, references = sacrebleu.sides(hyp, refs or [], inputs or [], against or [])
    task = results.wanted_task(form, language_pair, test_set, output or (), references)
    kept = {"resume": resume, "shard": shard, "workers": workers}
    stored = None if said.form or task else form
    folder = None if task else shards.folder(output or (), engine, stored, address, **kept)
    tables, pages = _outputs([] if folder or task else [Path(one) for one in output or ()])
    if folder and (said.brief or said.samples or said.test):
        raise InvalidInput(f"{folder.path}/ is a run into a folder, which keeps no scores at hand")
    if task and inputs:
        hyps = results.others(hyps, task)
    watch = Stopwatch()
    with ExitStack() as stack:
        corpus = stack.enter_context(
            Corpus(hyps[0], references, encoding, hyp_column, ref_column or (), hyps[1:])
        )
        if said.test and corpus.places is None:
            raise InvalidInput(f"--paired-{said.test} compares systems; give several, -i A -i B")
        watch.lap("read")
        names = metric or [DEFAULT]
        spoken = language_setting(lang, names, encoder, corpus.references())
        if lang is None and language_pair is not None:
            spoken = target_setting(language_pair, names)
        named = given(layer=layer, preset=preset) | spoken
        if threads is not None:
            import freight

            freight.set_threads(threads)
        wanted = wanted_metrics(
            names,
            encoder,
            given(device=device, dtype=dtype),
            {**named, **parse_settings(settings or [])},
            cache,
            every=not (said.brief or task),
        )
        watch.lap("load")
        progress = stack.enter_context(progress_bar(len(corpus)))
        if folder is not None:
            return shards.run(wanted, corpus, folder, threads, as_json, progress)
        metrics = [_fitted(one.metric, corpus) for one in wanted]
        watch.lap("learn")
        keep = as_json or bool(pages) or task is not None
        signatures = [one.signature for one in metrics]
        summary = Summary(wanted, signatures, keep, corpus.places, said)
        run(wanted, metrics, corpus, tables, summary, progress)
        watch.lap("score")
        for unfit in summary.unfit:
            note = vocabulary_note(unfit.parts[0].encoder.identity, corpus.references())
            typer.echo(f"freight: {note}", err=True)
        if pages:
            _write_pages(wanted, metrics, corpus, summary, pages, explain)
            watch.lap("report")
    if task:
        places = corpus.places or RowOrigins.of_files(hyps[:1], len(corpus))
        pages = results.write(Path((output or [""])[0]), task, wanted, summary.results, places)
    if as_json:
        summary.print_json(watch.laps)
        return
    summary.show()
    for path in () if said.brief else pages:
        typer.echo(f"written: {path}")


def run(
    wanted: list[RequestedMetric],
    metrics: "list[Scorer]",
    corpus: Corpus,
    tables: list[Path],
    summary: Summary,
    progress: "Progress | None",
) -> None:
    """Score chunk by chunk into the files and the summary."""
    import freight
    from freight.run.shards import row_names, table_columns

    columns = [one.columns for one in wanted]
    with ExitStack() as stack:
        notes = {metric.name: metric.signature for metric in metrics}
        writers = [stack.enter_context(TableWriter(path, notes)) for path in tables]
        for results in freight.score_stream(metrics, corpus, progress):
            names = row_names(corpus, len(summary), len(results[0]))
            for writer in writers:
                writer.write(table_columns(names, columns, results))
            summary.add(results)


def _outputs(paths: list[Path]) -> tuple[list[Path], list[Path]]:
    """Tables and pages, all of which can be written."""
    pages = [path for path in paths if path.suffix in (".html", ".htm")]
    tables = [path for path in paths if path not in pages]
    for path in tables:
        check_ending(path)
    if pages:
        from freight.report.html import check_page

        for path in pages:
            check_page(path)
    return tables, pages


def _write_pages(
    wanted: list[RequestedMetric],
    metrics: "list[Scorer]",
    corpus: Corpus,
    summary: Summary,
    pages: list[Path],
    explain: int,
) -> None:
    from freight.report.corpus import ScoredCorpus, write_corpus_report

    columns = [one.columns for one in wanted]
    known = summary.standings
    scored = ScoredCorpus(summary.results, corpus, corpus.places, metrics, columns, known)
    for path in pages:
        write_corpus_report(scored, path, explain)


def _fitted(metric: "Scorer", corpus: Corpus) -> "Scorer":
    if not metric.needs_fitting:
        return metric
    return metric.fit(corpus.references(), (hyp for hyp, _ in corpus), "given texts")


@contextmanager
def progress_bar(total: int | None, label: str = "scoring") -> "Iterator[Progress | None]":
    """A bar on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = label, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.advance(task, count)


class Stopwatch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """A stage has ended."""
        now = time.perf_counter()
        self.laps[name] = round(now - self._last, 3)
        self._last = now
