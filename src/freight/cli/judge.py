"""`freight judge`: how well metrics agree with people, as a table, a page or numbers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from freight.cli import completion, options
from freight.cli.groups import (
    AgreementOptions,
    EncoderOptions,
    MetricChoice,
    SettingOptions,
    grouped,
)
from freight.cli.options import DEFAULT, SelectedMetric, parse_conditions, parse_scale
from freight.cli.results import progress_bar
from freight.data.output import check_inputs, check_path
from freight.data.wmt import is_score_file
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.data.judgements import Judgements
    from freight.judge.study import Study


@dataclass(frozen=True)
class JudgementOptions:
    """The judgement sets."""

    panel: ClassVar = "Judgement sets"

    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA", help="Judgement sets: tables, or folders of WMT."),
    ]
    human: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A criterion; may be repeated. Default: all."),
    ] = None
    where: options.Conditions = None
    encoding: options.Encoding = "utf-8"


@dataclass(frozen=True)
class JudgedMetrics:
    """The metrics to judge."""

    panel: ClassVar = SettingOptions.panel

    metric: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME[:COLUMN]",
            help="By its primary column unless one is named; or a .seg.score file. May be"
            f" repeated. Default: {DEFAULT}.",
            autocompletion=completion.metrics,
        ),
    ] = None

    @property
    def stored(self) -> list[Path]:
        """Files of scores."""
        return [Path(name) for name in self.metric or () if is_score_file(name)]

    @property
    def names(self) -> list[str]:
        """Metrics that have to be loaded."""
        return [name for name in self.metric or [DEFAULT] if not is_score_file(name)]


@dataclass(frozen=True)
class StudyOutput:
    """Where the study goes."""

    panel: ClassVar = "Output"

    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A page: .html; a table: .md .csv .tex; all numbers: .json. May be repeated.",
        ),
    ] = None
    as_json: options.AsJson = False
    no_sentinels: Annotated[
        bool,
        typer.Option(
            "--no-sentinels",
            help="Leave out what a metric has to beat: length, chrF, shuffled references, chance.",
        ),
    ] = False
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither read nor keep scores on disk.")
    ] = False


@grouped
def judge_command(
    judgements: JudgementOptions,
    metrics: JudgedMetrics,
    settings: SettingOptions,
    encoder: EncoderOptions,
    study: AgreementOptions,
    output: StudyOutput,
) -> None:
    """Measure how well metrics agree with people, and test whether one is better than another.

    DATA has ratings, preferences (better, worse) or ratings of whole systems; language pairs are
    judged separately. Scores are kept on disk, so that another statistic needs no scoring.
    """
    for path in output.output or ():
        _check_output(path)
    check_inputs(output.output or (), [*judgements.data, *metrics.stored])
    import freight
    from freight.core.pipeline import adapt
    from freight.judge import ScoreCache
    from freight.judge import judge as judge_metrics
    from freight.judge.scores import load_stored_scores

    bounds, conditions = parse_scale(study.scale), parse_conditions(judgements.where or [])
    sets = [
        freight.read_judgements(path, judgements.human, conditions, encoding=judgements.encoding)
        for path in judgements.data
    ]
    requested: list[SelectedMetric] = []
    if metrics.names:
        choice = MetricChoice(metrics.names, settings, encoder)
        requested = choice.load(
            _references(sets, settings.lang, encoder.encoder), every_column=False
        )
    requested += [
        SelectedMetric(adapt(load_stored_scores(path, sets)), ("score",)) for path in metrics.stored
    ]
    with progress_bar(sum(map(len, sets))) as progress:
        judged = judge_metrics(
            [one.metric for one in requested],
            sets,
            study.level,
            study.statistic,
            columns={one.metric.name: one.columns for one in requested},
            scale=bounds,
            resamples=study.resamples,
            seed=study.seed,
            cache=None if output.no_cache else ScoreCache(),
            notes=[f"only rows where {name} is {value}" for name, value in conditions.items()],
            progress=progress,
            sentinels=not output.no_sentinels,
        )
    _present(judged, output.output or [], output.as_json)


def _references(sets: "list[Judgements]", lang: str | None, encoder: str | None) -> Iterator[str]:
    """All references; where their language chooses the settings, it has to be one of all sets."""
    from freight.data.languages import AUTO, ENGLISH, detect, detect_surely, language_name

    parts = {part.name: part for one in sets for part in one.split()}
    texts = {name: [ref for refs in part.refs for ref in refs] for name, part in parts.items()}
    look = detect if lang == AUTO else lambda several: detect_surely(several) or ENGLISH
    asked = lang == AUTO or (lang is None and encoder is None)
    languages = {look(several): name for name, several in texts.items()} if asked else {}
    if len(languages) > 1:
        (one, first), (other, second) = list(languages.items())[:2]
        raise InvalidInput(
            f"{first} is in {language_name(one or 'no language')}, {second} in"
            f" {language_name(other or 'no language')}: judge them apart, --where lang_pair=..., or"
            " name an encoder for all, --encoder multilingual"
        )
    return (ref for several in texts.values() for ref in several)


def _check_output(path: Path) -> None:
    from freight.report.pages import check_page
    from freight.report.tables import ENDINGS

    if path.suffix in (".html", ".htm"):
        check_page(path)
    else:
        check_path(path, (".html", ".json", *ENDINGS))


def _present(study: "Study", outputs: list[Path], as_json: bool) -> None:
    from freight.report.judge import write_judge_report
    from freight.report.tables import (
        ENDINGS,
        show_study,
        study_record,
        write_leaderboard,
        write_record,
    )

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
