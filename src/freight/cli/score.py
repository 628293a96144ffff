"""`freight score`: files in; a table, a file, JSON, a page or a folder of shards out.

`score` turns the options into a `ScoringInput`, a `MetricChoice` and `Outputs`, and `score_files`
goes from these to the printed table. `score_into_folder` is the same for a run into a folder.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from rich.console import Console

from freight.cli.completion import among
from freight.cli.groups import (
    PRINTED,
    SHARD_FORMATS,
    EncoderOptions,
    FolderOptions,
    FolderRun,
    IntervalOptions,
    MetricChoice,
    MetricOptions,
    PairedTestOptions,
    Presentation,
    PrintOptions,
    SettingOptions,
    TableOptions,
    files_of,
    grouped,
)
from freight.cli.options import (
    GateOptions,
    SelectedMetric,
    Threshold,
    given,
    missed_thresholds,
)
from freight.cli.results import (
    WMT_FORMATS,
    ScoreSummary,
    Stopwatch,
    WmtOptions,
    print_critical_note,
    print_notes,
    progress_bar,
    scores_table,
    without_references,
    write_wmt_files,
)
from freight.data import Corpus
from freight.data.corpus import RowOrigins
from freight.data.languages import vocabulary_note
from freight.data.output import check_inputs
from freight.data.tables import TableWriter, check_ending
from freight.data.wmt import WmtTask
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scorers import PipelineScorer
    from freight.run import Run


@dataclass(frozen=True)
class FileOptions:
    """Hypotheses and references."""

    panel: ClassVar = TableOptions.panel

    hyp: Annotated[
        str | None,
        typer.Argument(
            metavar="HYP",
            help="Hypotheses, one per line (- is standard input), or a table. With -i: REF.",
        ),
    ] = None
    refs: Annotated[
        list[str] | None, typer.Argument(metavar="REF", help="References, one per line.")
    ] = None
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "-i",
            "--input",
            metavar="HYP...",
            help="Hypotheses of one or more systems, or folders of them; the arguments are REFs.",
        ),
    ] = None
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="HYP", help="Hypotheses of another system; may be repeated."),
    ] = None

    def sides(self) -> tuple[list[str], list[str]]:
        """The files of hypotheses and of references, whichever are given first."""
        refs, against = self.refs or [], self.against or []
        if not self.inputs:
            if self.hyp is None:
                raise typer.BadParameter("give HYP and REF, or REF and -i HYP")
            return [self.hyp, *against], refs
        systems = [file for one in self.inputs for file in files_of(one)]
        return [*systems, *against], refs if self.hyp is None else [self.hyp, *refs]


@dataclass(frozen=True)
class OutputOptions:
    """Where scores are written."""

    panel: ClassVar = PrintOptions.panel

    output: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Scores: .jsonl .csv .tsv .parquet; a page: .html; shards: a folder/."
            " May be repeated.",
        ),
    ] = None
    form: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--format",
            metavar="NAME",
            help=f"Printed: {', '.join(PRINTED)}. In a folder: {', '.join(SHARD_FORMATS)};"
            f" or {', '.join(WMT_FORMATS)}.",
            autocompletion=among(*PRINTED, *SHARD_FORMATS, *WMT_FORMATS),
        ),
    ] = None
    keep: Annotated[
        bool, typer.Option("--keep", help="Write the texts too, and all columns of a table.")
    ] = False


@dataclass(frozen=True)
class ScoringInput:
    """Files of hypotheses, one per system, and of references."""

    hyps: list[str]
    refs: list[str]
    table: TableOptions
    language_pair: str | None = None
    keep: bool = False

    def open(self) -> Corpus:
        """The segments, which are checked; to be used as a context."""
        table = self.table
        columns = table.hyp_column, table.ref_column or ()
        others, keep = self.hyps[1:], self.keep
        return Corpus(self.hyps[0], self.refs, table.encoding, *columns, others, keep)


@dataclass(frozen=True)
class Outputs:
    """Files to write: tables, pages with explanations, or those of the WMT metrics task."""

    tables: list[Path] = field(default_factory=list)
    pages: list[Path] = field(default_factory=list)
    as_json: bool = False
    explain: int = 10
    escape: bool = False
    title: str = ""
    wmt: WmtTask | None = None
    wmt_folder: Path = Path()

    @classmethod
    def of(cls, paths: Sequence[str], printing: PrintOptions, inputs: "ScoringInput") -> "Outputs":
        """Tables and pages by their endings; they are checked before any work."""
        every = [Path(path) for path in paths]
        if every:
            check_inputs(every, [*inputs.hyps, *inputs.refs])
        pages = [path for path in every if path.suffix in (".html", ".htm")]
        tables = [path for path in every if path not in pages]
        for path in tables:
            check_ending(path)
        if pages:
            from freight.report.pages import check_page

            for path in pages:
                check_page(path)
        title = printing.page_title(paths)
        return cls(tables, pages, printing.as_json, printing.explain, printing.escape, title)

    @property
    def need_segments(self) -> bool:
        """Whether the scores of all segments have to be in memory."""
        return self.as_json or bool(self.pages) or self.wmt is not None


@grouped
def score_command(
    files: FileOptions,
    metrics: MetricOptions,
    settings: SettingOptions,
    encoder: EncoderOptions,
    table: TableOptions,
    output: OutputOptions,
    printing: PrintOptions,
    intervals: IntervalOptions,
    folder: FolderOptions,
    tests: PairedTestOptions,
    gate: GateOptions,
    wmt: WmtOptions,
) -> None:
    """Score each hypothesis against its reference, or the best of its references.

    Files are plain text or tables (.csv .tsv .jsonl .parquet), gzipped or not. A single table has
    both sides: the columns hyp, and ref or refs. `freight compare` compares several systems; as
    with sacrebleu, freight score REF -i A B ... does the same.
    """
    outputs = output.output or []
    printing.page_title(outputs)
    presentation = Presentation.of(output.form, printing, intervals, tests)
    hyps, refs = files.sides()
    choice = MetricChoice(metrics.names, settings, encoder)
    task = wmt.task(output.form, outputs, refs)
    if task is not None:
        systems = without_references(hyps, task) if files.inputs else hyps
        given_files = ScoringInput(systems, refs, table, wmt.language_pair)
        written = Outputs(as_json=printing.as_json, wmt=task, wmt_folder=Path(outputs[0]))
        score_files(given_files, choice, written, presentation)
        return
    given_files = ScoringInput(hyps, refs, table, wmt.language_pair, output.keep)
    thresholds = gate.thresholds()
    if output.keep and not outputs:
        raise InvalidInput("--keep is for scores that are written to files; give -o FILE too")
    run = folder.run(outputs, None if presentation.form else output.form)
    if run is None:
        written = Outputs.of(outputs, printing, given_files)
        score_files(given_files, choice, written, presentation, thresholds=thresholds)
        return
    if presentation.needs_scores or printing.critical:
        raise InvalidInput(f"{run.path}/ is a run into a folder, which keeps no scores in memory")
    if any(one.every_segment for one in thresholds):
        raise InvalidInput(f"{run.path}/ is a run into a folder; --fail-under is for whole systems")
    score_into_folder(given_files, choice, run, printing, thresholds)


def score_files(
    files: ScoringInput,
    choice: MetricChoice,
    outputs: Outputs,
    presentation: Presentation,
    several: bool = False,
    thresholds: Sequence[Threshold] = (),
) -> None:
    """Score files, write the outputs and print the summary; `several` refuses a single system.

    Exits with status 3 where a threshold is missed.
    """
    watch = Stopwatch()
    with files.open() as corpus:
        origins = corpus.places
        if presentation.test and origins is None:
            raise InvalidInput(
                f"--paired-{presentation.test} compares systems; give several, -i A -i B"
            )
        if several and (origins is None or len(origins.names) < 2):
            raise InvalidInput(
                "there is one system; give REF and the files of several, or a table with a column"
                " system"
            )
        watch.lap("read")
        primary_only = presentation.primary_only or outputs.wmt is not None
        requested = choice.load(corpus.references(), files.language_pair, not primary_only)
        watch.lap("load")
        metrics = [_fit(one.metric, corpus) for one in requested]
        watch.lap("fit")
        signatures = [metric.signature for metric in metrics]
        for one in thresholds:
            one.find(requested)
        needed = outputs.need_segments or any(one.every_segment for one in thresholds)
        summary = ScoreSummary(requested, signatures, presentation, origins, needed)
        compares_texts = presentation.critical or outputs.need_segments
        _score_corpus(requested, metrics, corpus, outputs, summary, compares_texts)
        watch.lap("score")
        if presentation.baseline:
            summary.score_baseline(metrics, corpus)
            watch.lap("baseline")
        for metric in summary.lacking_vocabulary:
            from freight.core.types import name_of

            encoder = metric.parts[0].encoder
            note = vocabulary_note(name_of(encoder) or encoder.identity, corpus.references())
            typer.echo(f"freight: {note}", err=True)
        if outputs.pages:
            _write_pages(requested, metrics, corpus, summary, outputs)
            watch.lap("report")
        written = outputs.pages
        if outputs.wmt is not None:
            rows = origins or RowOrigins.of_files(files.hyps[:1], len(corpus))
            target = outputs.wmt_folder
            written = write_wmt_files(target, outputs.wmt, requested, summary.results, rows)
        if outputs.as_json:
            summary.print_json(watch.laps)
        else:
            summary.show()
            if not presentation.primary_only:
                print_critical_note(corpus, presentation.critical)
                summary.print_meaning()
            for path in () if presentation.primary_only else written:
                typer.echo(f"written: {path}")
    _stop_if_missed(summary.missed(thresholds))


def _stop_if_missed(lines: Sequence[str]) -> None:
    for line in lines:
        typer.echo(f"freight: failed: {line}", err=True)
    if lines:
        raise typer.Exit(3)


def _fit(metric: "PipelineScorer", corpus: Corpus) -> "PipelineScorer":
    if not metric.needs_fitting:
        return metric
    return metric.fit(corpus.references(), (hyp for hyp, _ in corpus), "given texts")


def _score_corpus(
    requested: list[SelectedMetric],
    metrics: "list[PipelineScorer]",
    corpus: Corpus,
    outputs: Outputs,
    summary: ScoreSummary,
    compares_texts: bool,
) -> None:
    """Score chunk by chunk into the tables and the summary."""
    import freight

    columns = [one.columns for one in requested]
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar(len(corpus)))
        notes = {metric.name: metric.signature for metric in metrics}
        tables = [TableWriter(path, notes, outputs.escape) for path in outputs.tables]
        writers = [stack.enter_context(table) for table in tables]
        texts, named = iter(corpus), corpus.row_names()
        for scored in freight.score_stream(metrics, corpus, progress):
            results = scored
            if compares_texts:
                hyps, refs = zip(*islice(texts, len(scored[0])), strict=True)
                results = [result.with_differences(hyps, refs) for result in scored]
            if writers:
                from freight.run.shards import as_columns, table_columns

                names = as_columns(islice(named, len(results[0])))
                rows = table_columns(names, columns, results)
                for writer in writers:
                    writer.write(rows)
            summary.add(results)


def _write_pages(
    requested: list[SelectedMetric],
    metrics: "list[PipelineScorer]",
    corpus: Corpus,
    summary: ScoreSummary,
    outputs: Outputs,
) -> None:
    from freight.report.corpus import ScoredCorpus, write_corpus_report

    columns = [one.columns for one in requested]
    known = summary.rankings
    scored = ScoredCorpus(
        summary.results,
        corpus,
        corpus.places,
        metrics,
        columns,
        known,
        outputs.title,
        [name for name, _ in corpus.files],
        f"{date.today().day} {date.today():%B %Y}",
    )
    for path in outputs.pages:
        write_corpus_report(scored, path, outputs.explain)


def score_into_folder(
    files: ScoringInput,
    choice: MetricChoice,
    run: FolderRun,
    printing: PrintOptions,
    thresholds: Sequence[Threshold] = (),
) -> None:
    """Score into a folder of shards and print the summary; when stopped, how to continue."""
    from freight.run import local, on_ray

    engine: Any = {"local": local, "ray": on_ray}[run.engine]
    with files.open() as corpus:
        requested, origins = choice.load(corpus.references(), files.language_pair), corpus.places
        with progress_bar(len(corpus)) as progress:
            try:
                done = engine(
                    [one.metric for one in requested],
                    corpus,
                    run.path,
                    ending=f".{run.form}",
                    columns=[one.columns for one in requested],
                    progress=progress,
                    note=lambda line: typer.echo(f"freight: {line}", err=True),
                    escape=printing.escape,
                    **run.arguments,
                    **given(threads=choice.encoder.threads),
                )
            except (KeyboardInterrupt, SystemExit) as stop:
                _print_how_to_resume(run.path)
                raise typer.Exit(getattr(stop, "code", 130)) from None
    extent = f"{done.segments} segment{'s' * (done.segments != 1)}"
    if origins is not None:
        extent = f"{origins.extent}, together"
    _show_run(requested, done, extent, printing)
    systems = {"": [one.system for one in done.outcomes]}
    _stop_if_missed(missed_thresholds(thresholds, requested, systems))


def _print_how_to_resume(folder: Path) -> None:
    from freight.run.resume import scored_segments

    ready, every = scored_segments(folder)
    command = shlex.join(["freight", *(part for part in sys.argv[1:] if part != "--resume")])
    typer.echo(
        f"freight: stopped with {ready:,} of {every:,} segments in {folder}/; go on with"
        f"  {command} --resume",
        err=True,
    )


def _show_run(
    requested: list[SelectedMetric], run: "Run", extent: str, printing: PrintOptions
) -> None:
    presentation = Presentation(signature=printing.signature)
    if printing.as_json:
        print(json.dumps(run.summary()))
        return
    console, outcomes = Console(), run.outcomes
    systems = [one.system for one in outcomes]
    console.print(scores_table(extent, requested, systems, presentation))
    flags, signatures = [one.flags for one in outcomes], [one.signature for one in outcomes]
    print_notes(run.segments, requested, flags, signatures, presentation)
    console.print(f"{len(run.files)} shards in {run.folder}/", highlight=False)
