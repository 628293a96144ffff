"""`freight tune`: settings chosen on some judgement sets, and what they are worth on others."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freight.cli import completion, options
from freight.cli.options import (
    encoder_setting,
    given,
    language_setting,
    parse_conditions,
    parse_scale,
    parse_settings,
    wanted_metrics,
)
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scoring import Scorer
    from freight.judge.tuning import Told, Tuned


def tune(
    metric: Annotated[
        str,
        typer.Argument(
            metavar="METRIC[:COLUMN]",
            help="From `freight metrics`.",
            autocompletion=completion.metrics,
        ),
    ],
    train: Annotated[
        list[Path], typer.Argument(metavar="TRAIN", help="Judgement sets to choose settings on.")
    ],
    test: Annotated[
        list[Path] | None, typer.Option(help="Judgement sets to report on; may be repeated.")
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="hyp=0.1:2 (7 values at equal ratios), hyp=0.1:2:12:linear, layer=3,4,5; "
            "may be repeated. Default: what is known to matter.",
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="So many settings by TPE, in place of all.")
    ] = None,
    folds: Annotated[
        str | None,
        typer.Option(metavar="lang_pair", help="Also hold out each pair, tuned on the others."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:COLUMN]",
            help="Another metric to test; may be repeated.",
            autocompletion=completion.metrics,
        ),
    ] = None,
    level: options.Level = None,
    statistic: options.Statistic = None,
    human: Annotated[str | None, typer.Option(metavar="NAME", help="The criterion.")] = None,
    where: options.Conditions = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Draw segments for tuning, up to so many rows.")
    ] = None,
    scale: options.Scale = None,
    output: Annotated[
        list[Path] | None, typer.Option("-o", "--output", help="A page, .html; a preset, .json.")
    ] = None,
    preset: Annotated[
        Path | None, typer.Option(help="Write the settings here, for `freight score --preset`.")
    ] = None,
    as_json: options.AsJson = False,
    encoder: options.EncoderName = None,
    layer: options.Layer = None,
    lang: options.Lang = None,
    settings: options.Settings = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    cache: options.Cache = False,
    encoding: options.Encoding = "utf-8",
    device: options.Device = None,
    dtype: options.Dtype = None,
    threads: options.Threads = None,
) -> None:
    """Choose a metric's settings on some sets, and say what they are worth on others.

    Every setting is tried on TRAIN, the mean over language pairs deciding; texts are encoded once.
    Interrupted (Ctrl-C), it goes on with the best found so far.
    """
    outputs = [*(output or []), *([preset] if preset else [])]
    for path in outputs:
        _check_output(path)
    if folds not in (None, "lang_pair"):
        raise InvalidInput(f"--folds {folds}; there is lang_pair")
    import freight
    from freight.judge.search import parse_space
    from freight.judge.tuning import tune as tuned_by

    name, _, column = metric.partition(":")
    space = parse_space(name, grid or [])
    conditions, bounds = parse_conditions(where or []), parse_scale(scale)
    criteria = [human] if human else None
    sets, tests = (
        [freight.read_judgements(path, criteria, conditions, encoding=encoding) for path in paths]
        for paths in (train, test or [])
    )
    if threads is not None:
        freight.set_threads(threads)
    every = (ref for one in sets for refs in one.refs for ref in refs)
    spoken = language_setting(lang, [name, *(against or [])], encoder, every)
    named = given(layer=layer) | spoken | parse_settings(settings or [])
    source = encoder, given(device=device, dtype=dtype), cache
    fixed = {**encoder_setting(name, *source), **_mine(name, named), **given(column=column or None)}
    with _progress() as progress:
        found = tuned_by(
            name,
            space,
            sets,
            tests,
            fixed,
            _rivals(name, against or [], source, named),
            level,
            statistic,
            human,
            bounds,
            trials,
            folds is not None,
            rows,
            resamples,
            seed,
            progress,
        )
    _present(found, outputs, as_json)


def _check_output(path: Path) -> None:
    from freight.metrics import check_preset
    from freight.report.html import check_page

    if path.suffix not in (".json", ".html", ".htm"):
        raise InvalidInput(f"{path} ends in neither .html nor .json")
    (check_preset if path.suffix == ".json" else check_page)(path)


def _mine(metric: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the tuned metric: those that name it, and those that name none."""
    import freight

    split = {setting: setting.rpartition(".") for setting in named}
    found = {split[x][2]: named[x] for x in named if split[x][0] in ("", metric)}
    if "lang" not in freight.parameters(metric):  # it is for the rivals
        found.pop("lang", None)
    return found


def _rivals(
    metric: str,
    names: list[str],
    source: tuple[str | None, dict[str, Any], bool],
    named: Mapping[str, Any],
) -> "dict[str, Scorer]":
    """Other metrics, on the same encoder and layer, with the settings that name them."""
    import freight

    found: dict[str, Scorer] = {}
    encoder, options, cache = source
    for wanted in names:
        name, _, column = wanted.partition(":")
        known = freight.parameters(name)
        shared = {x: named[x] for x in named if x in ("layer", "lang") and x in known}
        own = {x: named[x] for x in named if x.startswith(f"{name}.") and name != metric}
        chosen: dict[str, Any] = {**shared, **own, **given(column=column or None)}
        if name in found:
            raise InvalidInput(f"--against {name} is given twice; one column of it at a time")
        found[name] = wanted_metrics([name], encoder, options, chosen, cache)[0].metric
    return found


@contextmanager
def _progress() -> "Iterator[Told | None]":
    """A bar a stage on standard error, where that is a terminal."""
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


def _present(tuned: "Tuned", outputs: list[Path], as_json: bool) -> None:
    from rich.console import Console

    from freight.metrics import plain
    from freight.report.tuning import show_tuned, write_tune_report

    for path in outputs:
        if path.suffix == ".json":
            tuned.write_preset(path)
        else:
            write_tune_report(tuned, path)
    if as_json:
        tried = [{**one.settings, "value": one.value, "values": one.values} for one in tuned.trials]
        print(json.dumps(plain({**tuned.preset, "trials": tried})))
        return
    console = Console()
    show_tuned(tuned, console)
    for path in outputs:
        console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
