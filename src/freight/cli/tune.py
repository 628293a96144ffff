"""`freight tune`: settings chosen on some judgement sets, and their agreement on others."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from freight.cli import completion, options
from freight.cli.groups import AgreementOptions, EncoderOptions, grouped
from freight.cli.options import (
    encoder_setting,
    given,
    language_setting,
    parse_conditions,
    parse_scale,
    parse_settings,
    split_column,
    wanted_metrics,
)
from freight.data.output import check_inputs
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scorers import PipelineScorer
    from freight.judge.tuning import TuningProgress, TuningResult


@dataclass(frozen=True)
class TuningData:
    """The metric and the judgement sets."""

    panel: ClassVar = "Judgement sets"

    metric: Annotated[
        str,
        typer.Argument(
            metavar="METRIC[:COLUMN]",
            help="From `freight metrics`.",
            autocompletion=completion.metrics,
        ),
    ]
    train: Annotated[
        list[Path], typer.Argument(metavar="TRAIN", help="Judgement sets to choose settings on.")
    ]
    test: Annotated[
        list[Path] | None, typer.Option(help="Judgement sets to report on; may be repeated.")
    ] = None
    folds: Annotated[
        str | None,
        typer.Option(metavar="lang_pair", help="Also hold out each pair, tuned on the others."),
    ] = None
    human: Annotated[str | None, typer.Option(metavar="NAME", help="The criterion.")] = None
    where: options.Conditions = None
    rows: Annotated[
        int | None, typer.Option(min=1, help="Tune on a sample of at most so many rows.")
    ] = None
    encoding: options.Encoding = "utf-8"


@dataclass(frozen=True)
class SearchOptions:
    """The settings to search."""

    panel: ClassVar = "Search"

    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="hyp=0.1:2 (7 values at equal ratios), hyp=0.1:2:12:linear, layer=3,4,5;"
            " may be repeated. Default: the parameters that are known to matter.",
        ),
    ] = None
    trials: Annotated[
        int | None, typer.Option(min=1, help="Try so many settings by TPE instead of all.")
    ] = None
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:COLUMN]",
            help="Another metric to test against; may be repeated.",
            autocompletion=completion.metrics,
        ),
    ] = None
    layer: options.Layer = None
    lang: options.Lang = None
    settings: options.Settings = None


@dataclass(frozen=True)
class TuningOutput:
    """Where the settings and the report go."""

    panel: ClassVar = "Output"

    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A page: .html; a preset: .json. May be repeated.",
        ),
    ] = None
    preset: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the settings, for `freight score --preset`."),
    ] = None
    as_json: options.AsJson = False

    @property
    def paths(self) -> list[Path]:
        """All files to write."""
        return [*(self.output or []), *([self.preset] if self.preset else [])]


@grouped
def tune_command(
    data: TuningData,
    search: SearchOptions,
    statistic: AgreementOptions,
    encoder: EncoderOptions,
    output: TuningOutput,
) -> None:
    """Choose a metric's settings on some judgement sets, and report their agreement on others.

    Every setting is tried on TRAIN; the mean over language pairs decides. Texts are encoded once.
    Interrupted (Ctrl-C), it continues with the best setting so far.
    """
    for path in output.paths:
        _check_output(path)
    check_inputs(output.paths, [*data.train, *(data.test or [])])
    if data.folds not in (None, "lang_pair"):
        raise InvalidInput(f"--folds {data.folds}; there is lang_pair")
    import freight
    from freight.judge.search import parse_space
    from freight.judge.tuning import tune as tune_metric

    name, column = split_column(data.metric)
    space = parse_space(name, search.grid or [])
    conditions, bounds = parse_conditions(data.where or []), parse_scale(statistic.scale)
    criteria = [data.human] if data.human else None
    sets, tests = (
        [freight.read_judgements(x, criteria, conditions, encoding=data.encoding) for x in paths]
        for paths in (data.train, data.test or [])
    )
    encoder.set_threads()
    rivals = search.against or []
    every = (ref for one in sets for refs in one.refs for ref in refs)
    language = language_setting(search.lang, [name, *rivals], encoder.encoder, every)
    named = given(layer=search.layer) | language | parse_settings(search.settings or [])
    own = _own_settings(name, named)
    placement = encoder.encoder, encoder.placement, encoder.cache
    fixed = {
        **encoder_setting(name, *placement, own.get("lang")),
        **own,
        **given(column=column or None, adapter=encoder.adapter),
    }
    with _progress() as progress:
        tuned = tune_metric(
            name,
            space,
            sets,
            tests,
            fixed,
            _load_rivals(name, rivals, encoder, named),
            statistic.level,
            statistic.statistic,
            data.human,
            bounds,
            search.trials,
            data.folds is not None,
            data.rows,
            statistic.resamples,
            statistic.seed,
            progress,
        )
    _present(tuned, output.paths, output.as_json)


def _check_output(path: Path) -> None:
    from freight.metrics import check_preset
    from freight.report.pages import check_page

    if path.suffix not in (".json", ".html", ".htm"):
        raise InvalidInput(f"{path} ends in neither .html nor .json")
    (check_preset if path.suffix == ".json" else check_page)(path)


def _own_settings(metric: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the tuned metric: those that name it, and those that name none."""
    import freight

    split = {setting: setting.rpartition(".") for setting in named}
    own = {split[x][2]: named[x] for x in named if split[x][0] in ("", metric)}
    if "lang" not in freight.parameters(metric):  # it is for the other metrics
        own.pop("lang", None)
    return own


def _load_rivals(
    metric: str, names: list[str], encoder: EncoderOptions, named: Mapping[str, Any]
) -> "dict[str, PipelineScorer]":
    """Other metrics, on the same encoder and layer, with the settings that name them."""
    import freight

    rivals: dict[str, PipelineScorer] = {}
    for wanted in names:
        name, column = split_column(wanted)
        known = freight.parameters(name)
        shared = {x: named[x] for x in named if x in ("layer", "lang") and x in known}
        own = {x: named[x] for x in named if x.startswith(f"{name}.") and name != metric}
        settings: dict[str, Any] = {**shared, **own, **given(column=column or None)}
        if name in rivals:
            raise InvalidInput(f"--against {name} is given twice; one column of it at a time")
        placement = encoder.encoder, encoder.placement
        rivals[name] = wanted_metrics([name], *placement, settings, encoder.cache)[0].metric
    return rivals


@contextmanager
def _progress() -> "Iterator[TuningProgress | None]":
    """A progress bar per stage on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def progress(stage: str, share: float) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=1.0)
            bar.advance(tasks[stage], share)

        yield progress


def _present(tuned: "TuningResult", outputs: list[Path], as_json: bool) -> None:
    from rich.console import Console

    from freight.metrics import json_value
    from freight.report.tuning import show_tuned, write_tune_report

    for path in outputs:
        if path.suffix == ".json":
            tuned.write_preset(path)
        else:
            write_tune_report(tuned, path)
    if as_json:
        tried = [{**one.settings, "value": one.value, "values": one.values} for one in tuned.trials]
        print(json.dumps(json_value({**tuned.preset, "trials": tried})))
        return
    console = Console()
    show_tuned(tuned, console)
    for path in outputs:
        console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
