"""`freight judge`: how well metrics agree with people, as a table, a page or numbers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freight.cli import completion, options
from freight.cli.options import (
    DEFAULT,
    RequestedMetric,
    given,
    language_setting,
    parse_conditions,
    parse_scale,
    parse_settings,
    wanted_metrics,
)
from freight.cli.score import progress_bar
from freight.data.wmt import is_score_file
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.data.judgements import Judgements
    from freight.judge.study import Study


def judge(
    data: Annotated[
        list[Path], typer.Argument(metavar="DATA", help="Judgement sets: tables, WMT's folders.")
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME[:COLUMN]",
            help=f"By its primary column unless one is named; or a .seg.score file."
            f" May be repeated. Default: {DEFAULT}.",
            autocompletion=completion.metrics,
        ),
    ] = None,
    level: options.Level = None,
    statistic: options.Statistic = None,
    human: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A criterion; default: all.")
    ] = None,
    where: options.Conditions = None,
    scale: options.Scale = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o", "--output", help="A page, .html; a table, .md .csv .tex; all numbers, .json."
        ),
    ] = None,
    as_json: options.AsJson = False,
    encoder: options.EncoderName = None,
    layer: options.Layer = None,
    lang: options.Lang = None,
    settings: options.Settings = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither read nor keep scores on disk.")
    ] = False,
    cache: options.Cache = False,
    encoding: options.Encoding = "utf-8",
    device: options.Device = None,
    dtype: options.Dtype = None,
    threads: options.Threads = None,
) -> None:
    """Say how well metrics agree with people, and whether one is really better than another.

    DATA has ratings, preferences (better, worse) or ratings of whole systems; language pairs are
    judged apart. Scores are remembered on disk, so that another statistic costs nothing.
    """
    for path in output or ():
        _check_output(path)
    import freight
    from freight.judge import ScoreCache
    from freight.judge import judge as study_of
    from freight.judge.scores import stored as stored_scores

    bounds, conditions = parse_scale(scale), parse_conditions(where or [])
    sets = [freight.read_judgements(path, human, conditions, encoding=encoding) for path in data]
    if threads is not None:
        freight.set_threads(threads)
    stored = [Path(name) for name in metric or () if is_score_file(name)]
    names = [name for name in metric or [DEFAULT] if not is_score_file(name)]
    spoken = language_setting(lang, names, encoder, _references(sets, lang)) if names else {}
    named = given(layer=layer) | spoken | parse_settings(settings or [])
    chosen = given(device=device, dtype=dtype)
    wanted = wanted_metrics(names, encoder, chosen, named, cache, every=False)
    wanted += [RequestedMetric(stored_scores(path, sets), ("score",)) for path in stored]
    with progress_bar(sum(map(len, sets))) as progress:
        study = study_of(
            [one.metric for one in wanted],
            sets,
            level,
            statistic,
            columns={one.metric.name: one.columns for one in wanted},
            scale=bounds,
            resamples=resamples,
            seed=seed,
            cache=None if no_cache else ScoreCache(),
            notes=[f"only rows where {name} is {value}" for name, value in conditions.items()],
            progress=progress,
        )
    _present(study, output or [], as_json)


def _references(sets: "list[Judgements]", lang: str | None) -> Iterator[str]:
    """All references; where the language is to be found, of sets in one language."""
    from freight.data.languages import AUTO, detect

    parts = {part.name: part for one in sets for part in one.split()}
    texts = {name: [ref for refs in part.refs for ref in refs] for name, part in parts.items()}
    found = {detect(several): name for name, several in texts.items()} if lang == AUTO else {}
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise InvalidInput(
            f"--lang auto: {first} looks like {one}, {second} like {other}; judge them apart,"
            " --where lang_pair=..."
        )
    return (ref for several in texts.values() for ref in several)


def _check_output(path: Path) -> None:
    from freight.report.export import ENDINGS, check_leaderboard, check_record
    from freight.report.html import check_page

    if path.suffix == ".json":
        check_record(path)
    elif path.suffix in (".html", ".htm"):
        check_page(path)
    elif path.suffix in ENDINGS:
        check_leaderboard(path)
    else:
        raise InvalidInput(f"{path} ends in none of .html .json {' '.join(ENDINGS)}")


def _present(study: "Study", outputs: list[Path], as_json: bool) -> None:
    from freight.report.export import ENDINGS, study_record, write_leaderboard, write_record
    from freight.report.judge import write_judge_report
    from freight.report.tables import show_study

    writers = {".json": write_record, **dict.fromkeys(ENDINGS, write_leaderboard)}
    for path in outputs:
        writers.get(path.suffix, write_judge_report)(study, path)
    if as_json:
        print(json.dumps(study_record(study)))
        return
    from rich.console import Console

    console = Console()
    show_study(study, console)
    for path in outputs:
        console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
