"""`freight train`: a metric on human ratings, or word vectors on your own texts."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from rich.console import Console
from rich.table import Table

from freight.cli import completion, options
from freight.cli.completion import among
from freight.cli.groups import grouped
from freight.cli.options import (
    DEFAULT,
    encoder_setting,
    given,
    parse_conditions,
    parse_settings,
)
from freight.cli.results import progress_bar
from freight.data.output import check_inputs
from freight.errors import FreightError, InvalidInput

if TYPE_CHECKING:
    from freight.core.metric import Metric
    from freight.data.judgements import Judgements
    from freight.judge.study import Study
    from freight.learn import PackedCorpus, WordVectors
    from freight.learn.fitting import Fit, TrainingEvent
    from freight.report.training import Training
    from freight.transport.types import Array


train_app = typer.Typer(
    help="Train a metric on ratings, or word vectors on texts of your own.", no_args_is_help=True
)

_SHOWN_WORDS, _SHOWN_NEAREST = 5, 4


@dataclass(frozen=True)
class CorpusOptions:
    """The texts, and how they become words."""

    panel: ClassVar = "Corpus"

    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS",
            help="Files, gzipped or not, folders, zip archives; - is standard input.",
        ),
    ]
    take: Annotated[
        str,
        typer.Option(
            help="What one text is: lines, files, or FILE.py:FUNCTION, a function that returns the"
            " texts in the content of a file.",
            autocompletion=among("lines", "files"),
        ),
    ] = "lines"
    lang: Annotated[str, typer.Option(help="How texts become words: en, zh, code, ...")] = "en"
    glob: Annotated[str, typer.Option(help="Which files of folders and archives.")] = "*"
    min_count: Annotated[int, typer.Option(min=1, help="Leave out rarer words.")] = 1
    cased: Annotated[bool, typer.Option("--cased", help="Keep upper case.")] = False
    encoding: options.Encoding = "utf-8"


@dataclass(frozen=True)
class VectorOutput:
    """Where the vectors go."""

    panel: ClassVar = "Output"

    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help=".kv (gensim) .npz .bin .vec or .txt (word2vec)"
        ),
    ]


@dataclass(frozen=True)
class CooccurrenceOptions:
    """The settings of co-occurrence vectors."""

    panel: ClassVar = "Vectors"

    dim: Annotated[int, typer.Option(min=1, help="Dimensions.")] = 50
    window: Annotated[
        int | None, typer.Option(min=1, help="Largest distance of two words. Default: any.")
    ] = None


@dataclass(frozen=True)
class Word2VecOptions:
    """The settings of Word2Vec."""

    panel: ClassVar = "Vectors"

    dim: Annotated[int, typer.Option(min=1, help="Dimensions.")] = 100
    window: Annotated[int, typer.Option(min=1, help="Words of context on each side.")] = 2
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the corpus.")] = 5
    seed: options.Seed = 0
    threads: Annotated[int, typer.Option(min=1, help="With one, the same vectors every time.")] = 1
    skip_gram: Annotated[bool, typer.Option("--skip-gram", help="Skip-gram instead of CBOW.")] = (
        False
    )


@train_app.command()
@grouped
def cooccurrence(texts: CorpusOptions, vectors: CooccurrenceOptions, output: VectorOutput) -> None:
    """Count which words occur in the same text, and take the truncated SVD of the counts."""
    from freight import learn

    corpus = _read_corpus(texts, output.output)
    with progress_bar(corpus.tokens, "counting") as progress:
        trained = learn.cooccurrence(corpus, vectors.dim, vectors.window, progress)
    _save_vectors(corpus, trained, output.output)


@train_app.command()
@grouped
def word2vec(texts: CorpusOptions, vectors: Word2VecOptions, output: VectorOutput) -> None:
    """Train Word2Vec, through gensim."""
    from freight import learn
    from freight.learn.word_vectors import gensim_models

    gensim_models()
    corpus = _read_corpus(texts, output.output)
    with progress_bar(corpus.tokens * vectors.epochs, "training") as progress:
        trained = learn.word2vec(corpus, **vars(vectors), progress=progress)
    _save_vectors(corpus, trained, output.output)


def _read_corpus(texts: CorpusOptions, output: Path) -> "PackedCorpus":
    from freight.learn import read_corpus
    from freight.learn.word_vectors import check_ending

    check_ending(output)
    provenance = output.with_name(f"{output.name}.json")
    check_inputs([output, provenance], _named_files(texts.paths, texts.glob))
    with progress_bar(None, "reading") as progress:
        return read_corpus(
            texts.paths,
            take=texts.take,
            lang=texts.lang,
            lower=not texts.cased,
            glob=texts.glob,
            min_count=texts.min_count,
            encoding=texts.encoding,
            progress=progress,
        )


def _named_files(paths: list[str], glob: str) -> Iterator[Path]:
    """The files that are named, and those of a folder that are read."""
    for path in (Path(name).expanduser() for name in paths):
        yield from path.rglob(glob) if path.is_dir() else [path]


def _save_vectors(corpus: "PackedCorpus", vectors: "WordVectors", output: Path) -> None:
    """Save the vectors, and show their size and the neighbours of the most frequent words."""
    vectors.save(output)
    table = Table(
        "what", "how much", title=f"{vectors.provenance['method']} vectors", show_header=False
    )
    table.add_row("texts", f"{corpus.texts:,}")
    table.add_row("tokens", f"{corpus.tokens:,}")
    table.add_row("words", f"{len(vectors.words):,} with a vector, of {len(corpus.words):,}")
    table.add_row("dimensions", str(vectors.vectors.shape[1]))
    table.add_section()
    for word in vectors.words[:_SHOWN_WORDS]:
        near = (f"{other} {cosine:.2f}" for other, cosine in vectors.nearest(word, _SHOWN_NEAREST))
        table.add_row(f"near {word}", "  ".join(near))
    console = Console()
    console.print(table)
    console.print(f"wrote {output}", soft_wrap=True)


@dataclass(frozen=True)
class RatingOptions:
    """The ratings to train on and to test on."""

    panel: ClassVar = "Judgement sets"

    ratings: Annotated[
        list[Path],
        typer.Argument(
            metavar="RATINGS", help="Judgement sets with ratings or preferences: see `judge`."
        ),
    ]
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DATA", help="Compare trained and untrained on this set; may be repeated."
        ),
    ] = None
    human: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A criterion; may be repeated. Default: all."),
    ] = None
    raters: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column with the number of raters of a row. Default: ratings, if there is one.",
        ),
    ] = None
    where: options.Conditions = None
    encoding: options.Encoding = "utf-8"


@dataclass(frozen=True)
class TrainedMetric:
    """The metric and its encoder."""

    panel: ClassVar = "Metric"

    metric: Annotated[
        str,
        typer.Option("-m", "--metric", metavar="NAME", autocompletion=completion.metrics),
    ] = DEFAULT
    encoder: options.EncoderName = None
    layer: options.Layer = None
    settings: options.Settings = None
    device: options.Device = None
    threads: options.Threads = None


@dataclass(frozen=True)
class FitOptions:
    """How to train."""

    panel: ClassVar = "Training"

    epochs: Annotated[
        float | None, typer.Option(min=0.01, help="Passes over the ratings, at most.")
    ] = None
    strength: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Scales the adapter. Default: the least with 90 % of the best gain."
        ),
    ] = None
    hold_out: Annotated[
        str, typer.Option(help="Held out whole for the test: segments, (language) pairs, systems.")
    ] = "segments"
    resamples: options.Resamples = 1000
    seed: options.Seed = 0


@dataclass(frozen=True)
class AdapterOutput:
    """Where the adapter goes."""

    panel: ClassVar = "Output"

    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="For the adapter and a page on the training; continues what was interrupted.",
        ),
    ]
    as_json: options.AsJson = False


@train_app.command("metric")
@grouped
def train_metric(
    data: RatingOptions, metric: TrainedMetric, fitting: FitOptions, output: AdapterOutput
) -> None:
    """Fit a metric to human ratings: an adapter for `--adapter` of the other commands.

    A part of RATINGS is held out; where the trained metric does not agree better with it than the
    untrained one, nothing is written.
    """
    folder = output.output
    _check_folder(folder)
    untrained, settings = _load_untrained(metric)
    from freight.data.judgement_files import RATERS, read_ratings
    from freight.data.judgements import check_leaks
    from freight.learn.fitting import CHECKPOINT, fit

    counting = data.raters or RATERS
    asked = data.human, data.raters, parse_conditions(data.where or []), data.encoding
    sets, tests = (
        [read_ratings(x, *asked) for x in some] for some in (data.ratings, data.test or ())
    )
    tests = [replace(one, human=_without(one.human, counting)) for one in tests]
    check_leaks(sets, tests)

    if (folder / CHECKPOINT).exists():
        typer.echo(f"continuing in {folder}", err=True)
    try:
        with _training_progress() as progress:
            fitted = fit(
                sets,
                untrained,
                weights=counting,
                seed=fitting.seed,
                epochs=fitting.epochs,
                strength=fitting.strength,
                hold_out=fitting.hold_out,
                folder=folder,
                progress=progress,
            )
    except KeyboardInterrupt:
        raise FreightError(f"stopped; the same command continues in {folder}") from None
    finally:
        with suppress(OSError):  # it is not empty: something was begun
            folder.rmdir()
    if fitted.adapter is not None:
        named = replace(fitted.adapter, parameters={**settings, **fitted.adapter.parameters})
        fitted = replace(fitted, adapter=named)
    training = _tested(metric, fitted, untrained, tests, fitting)
    _write_adapter(training, folder)
    _present_training(training, folder, output.as_json)


_PAGE = "training.html"


def _without(human: "dict[str, Array]", name: str) -> "dict[str, Array]":
    return {one: values for one, values in human.items() if one != name}


def _check_folder(folder: Path) -> None:
    from freight.learn.fitting import CHECKPOINT

    if folder.is_file() or folder.suffix == ".safetensors":
        raise InvalidInput(f"{folder} is no folder; name one for the adapter, as in -o my-adapter/")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CHECKPOINT).exists():
        raise InvalidInput(f"the folder {folder} is not empty; name another, or empty it")


def _load_untrained(wanted: TrainedMetric) -> "tuple[Metric, dict[str, Any]]":
    """The metric as it is, and the settings that it has other than by default."""
    import freight
    from freight.core.metric import Metric
    from freight.metrics import LOADED

    if wanted.threads is not None:
        freight.set_threads(wanted.threads)
    settings = given(layer=wanted.layer) | parse_settings(wanted.settings or [])
    for name in (*LOADED, "preset", "column"):
        if name in settings:
            raise InvalidInput(f"--set {name} is not for training; leave it out")
    placement = given(device=wanted.device)
    encoder = encoder_setting(wanted.metric, wanted.encoder, placement, cache=False)
    metric = freight.load(wanted.metric, **encoder, **settings)
    if not isinstance(metric, Metric):
        raise InvalidInput(f"{wanted.metric} has no encoder to train; take {DEFAULT}")
    return metric, settings


@contextmanager
def _training_progress() -> "Iterator[Any]":
    """A progress bar with the held-out agreement on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=None)

        def progress(event: "TrainingEvent") -> None:
            bar.update(task, total=event.steps, completed=event.step)
            if event.agreement is not None:
                both = f"{event.agreement:.3f}, untrained {event.untrained:.3f}"
                bar.update(task, description=f"training (held out {both})")

        yield progress


def _tested(
    wanted: TrainedMetric,
    fitted: "Fit",
    untrained: "Metric",
    tests: "list[Judgements]",
    fitting: FitOptions,
) -> "Training":
    """The training with what the tests say of trained and untrained, where something was gained."""
    import freight
    from freight.judge import judge
    from freight.report.training import Training

    encoder = untrained.encoder.identity
    if fitted.adapter is None:
        return Training(wanted.metric, encoder, fitted, (untrained.signature,))
    trained = freight.load(wanted.metric, encoder=untrained.encoder, adapter=fitted.adapter)
    both = {"trained": trained, "untrained": untrained}
    preferred = [one for one in tests if one.preferences is not None]
    rated = [one for one in tests if one.preferences is None]
    studies: list[Study] = []
    with progress_bar(sum(map(len, tests)) or None, "testing") as progress:
        for sets in (rated, preferred):
            if sets:
                size, seed = fitting.resamples, fitting.seed
                study = judge(
                    both, sets, resamples=size, seed=seed, progress=progress, sentinels=False
                )
                studies.append(study)
    signatures = trained.signature, untrained.signature
    return Training(wanted.metric, encoder, fitted, signatures, tuple(studies))


def _write_adapter(training: "Training", folder: Path) -> None:
    """The adapter, what the tests say in its provenance, and the page."""
    from freight.errors import MissingPart
    from freight.report.training import write_training_page

    adapter = training.fit.adapter
    if adapter is None:
        return
    tested = {"tests": training.records()} if training.tests else {}
    replace(adapter, provenance={**adapter.provenance, **tested}).save(folder)
    try:
        write_training_page(training, folder / _PAGE)
    except MissingPart as missing:
        typer.echo(f"no page is written: {missing}", err=True)


def _present_training(training: "Training", folder: Path, as_json: bool) -> None:
    from freight.report.training import show_training

    adapter = training.fit.adapter
    if as_json:
        print(json.dumps(training.record(None if adapter is None else str(folder))))
        return
    console = Console()
    show_training(training, console)
    if adapter is None:
        end = f"no gain on the rows held out ({training.gain}): nothing is written"
    else:
        end = f"agreement on the rows held out: {training.gain}\nwritten: {folder}"
    console.print(end, markup=False, highlight=False, soft_wrap=True)
