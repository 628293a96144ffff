"""`freight score`: files in, a table, a file or JSON out."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freight.cli import options, running
from freight.cli.options import (
    DEFAULT,
    Wanted,
    given,
    language_setting,
    parse_settings,
    wanted_metrics,
)
from freight.cli.summary import Summary
from freight.data import Corpus
from freight.data.tables import TableWriter, check_ending

if TYPE_CHECKING:
    from freight.clouds import Tick
    from freight.scoring import Scorer


def score(
    hyp: Annotated[
        str,
        typer.Argument(
            metavar="HYP", help="Hypotheses, one a line (- is standard input), or a table."
        ),
    ],
    refs: Annotated[
        list[str] | None, typer.Argument(metavar="REF", help="References, one a line.")
    ] = None,
    metric: options.MetricNames = None,
    encoder: options.EncoderName = None,
    layer: options.Layer = None,
    lang: options.Lang = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help=".jsonl .csv .tsv or .parquet; or a folder/"),
    ] = None,
    resume: running.Resume = False,
    form: running.Format = None,
    shard: running.Size = None,
    workers: running.Workers = None,
    engine: running.Engine = None,
    address: running.Address = None,
    as_json: options.AsJson = False,
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
    both sides: the columns hyp, and ref or refs.
    """
    said = {"resume": resume, "shard": shard, "workers": workers}
    folder = running.folder(output, engine, form, address, **said)
    path = Path(output) if output is not None and folder is None else None
    if path is not None:
        check_ending(path)
    watch = Stopwatch()
    with ExitStack() as stack:
        corpus = stack.enter_context(
            Corpus(hyp, refs or (), encoding, hyp_column, ref_column or ())
        )
        watch.lap("read")
        names = metric or [DEFAULT]
        named = given(layer=layer, preset=preset) | language_setting(lang, names)
        if threads is not None:
            import freight

            freight.set_threads(threads)
        wanted = wanted_metrics(
            names,
            encoder,
            given(device=device, dtype=dtype),
            {**named, **parse_settings(settings or [])},
            cache,
        )
        watch.lap("load")
        tick = stack.enter_context(progress(len(corpus)))
        if folder is not None:
            return running.run(wanted, corpus, folder, threads, as_json, tick)
        summary = run(wanted, corpus, path, keep=as_json, tick=tick, watch=watch)
    if as_json:
        summary.print_json(watch.laps)
    else:
        summary.show()


def run(
    wanted: list[Wanted],
    corpus: Corpus,
    output: Path | None,
    keep: bool,
    tick: "Tick | None",
    watch: "Stopwatch",
) -> Summary:
    """Learn what has to be learnt, then score chunk by chunk into the file and the summary."""
    import freight
    from freight.run.shards import table_columns

    columns = [one.columns for one in wanted]
    metrics = [_fitted(one.metric, corpus) for one in wanted]
    watch.lap("learn")
    summary = Summary(wanted, [metric.signature for metric in metrics], keep)
    with ExitStack() as stack:
        writer = None
        if output is not None:
            notes = {metric.name: metric.signature for metric in metrics}
            writer = stack.enter_context(TableWriter(output, notes))
        for results in freight.score_stream(metrics, corpus, tick):
            if writer:
                writer.write(table_columns(columns, results, len(summary)))
            summary.add(results)
    watch.lap("score")
    return summary


def _fitted(metric: "Scorer", corpus: Corpus) -> "Scorer":
    if not metric.needs_fitting:
        return metric
    refs = (ref for _, several in corpus for ref in several)
    return metric.fit(refs, (hyp for hyp, _ in corpus), "given texts")


@contextmanager
def progress(total: int | None, label: str = "scoring") -> "Iterator[Tick | None]":
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
