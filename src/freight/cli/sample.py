"""`freight sample`: draw texts for people to rate, and read their ratings back."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from freight.cli import completion, options
from freight.cli.groups import SettingOptions, grouped
from freight.cli.options import (
    given,
    parse_conditions,
    parse_scale,
    parse_settings,
    wanted_metrics,
)
from freight.data.output import check_inputs, check_path, write_whole

if TYPE_CHECKING:
    from freight.data.judgements import Judgements
    from freight.judge.annotation import RaterAgreement, Sample, Sheet, Stratum
    from freight.transport.types import Array


@dataclass(frozen=True)
class DrawOptions:
    """What is drawn from."""

    panel: ClassVar = "Drawing a sample"

    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="A judgement set, or a table with hyp and ref."),
    ] = None
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Number of texts.")] = 50
    stratum: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RANGE",
            help="random, '[0,0.2)', '[0.8,1] rouge-1<0.5'; may be repeated. Default: WRDScore's.",
        ),
    ] = None
    fill: Annotated[
        bool, typer.Option(help="Draw more from the rest where a stratum has too few.")
    ] = True
    where: options.Conditions = None
    seed: options.Seed = 0
    encoding: options.Encoding = "utf-8"


@dataclass(frozen=True)
class StratumMetric:
    """The metric whose scores make the strata."""

    panel: ClassVar = SettingOptions.panel

    metric: Annotated[
        str,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME[:COLUMN]",
            help="The metric whose ranges are the strata.",
            autocompletion=completion.metrics,
        ),
    ] = "wrd-score:f1"
    encoder: options.EncoderName = None
    adapter: options.AdapterPath = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the metric."),
    ] = None


@dataclass(frozen=True)
class SheetOptions:
    """The sheet for raters."""

    panel: ClassVar = "Sheet"

    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The sheet: .csv; with --read the set: .jsonl."
        ),
    ] = None
    raters: Annotated[int, typer.Option(min=1, help="Empty columns in the sheet.")] = 3
    escape: options.Escape = False
    instructions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write instructions for raters.")
    ] = None
    scale: Annotated[
        str | None, typer.Option(metavar="LOW:HIGH", help="Of the ratings; checked with --read.")
    ] = None
    read: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read this sheet, once rated, instead of drawing one."),
    ] = None


@grouped
def sample_command(draws: DrawOptions, strata: StratumMetric, sheet: SheetOptions) -> None:
    """Draw texts for people to rate, some from each range of a metric's score; or read them back.

    The sheet contains neither scores nor systems: they are in SHEET.key.csv beside it. With --read,
    raters are averaged and their agreement is shown; -o writes a judgement set.
    """
    if (draws.data is None) == (sheet.read is None):
        raise typer.BadParameter("give DATA to draw from, or --read SHEET")
    if sheet.read is not None:
        _read_back(sheet.read, sheet.output, parse_scale(sheet.scale), draws.encoding)
        return
    if draws.data is None or sheet.output is None:
        raise typer.BadParameter("say where the sheet goes, with -o sheet.csv")
    from freight.data.judgement_files import read_judgements
    from freight.judge.annotation import (
        INSTRUCTIONS,
        WRD_SCORE,
        Stratum,
        check_sheet,
        draw_sample,
        write_sheet,
    )

    check_sheet(sheet.output)
    instructions = sheet.instructions
    if instructions is not None:
        check_path(instructions)
        check_inputs([sheet.output, instructions], [draws.data])
    ranges = [Stratum.parse(text) for text in draws.stratum or ()] or list(WRD_SCORE)
    low, high = parse_scale(sheet.scale) or (0.0, 10.0)
    conditions = parse_conditions(draws.where or [])
    texts = read_judgements(draws.data, human=(), where=conditions, encoding=draws.encoding)
    scores, rouge = _scores(texts, strata, ranges)
    drawn = draw_sample(texts, scores, draws.count, ranges, rouge, draws.seed, draws.fill)
    write_sheet(sheet.output, texts, drawn, scores, sheet.raters, sheet.escape)
    if instructions is not None:
        text = INSTRUCTIONS.format(low=low, high=high, middle=(low + high) / 2)
        write_whole(instructions, text.encode())
    _show_sample(sheet.output, drawn, ranges)


def _scores(
    texts: "Judgements", strata: StratumMetric, ranges: "list[Stratum]"
) -> "tuple[Array, Array | None]":
    """The scores that make the strata, and ROUGE-1 where one of them asks for it."""
    import freight

    settings = given(adapter=strata.adapter) | parse_settings(strata.settings or [])
    requested = wanted_metrics([strata.metric], strata.encoder, {}, settings)[0]
    scorers = [requested.metric]
    if any(stratum.needs_rouge for stratum in ranges):
        scorers.append(freight.load("rouge-1"))
    first, *rouge = freight.score_together(scorers, texts.hyps, texts.refs)
    return first[requested.columns[0]], rouge[0]["score"] if rouge else None


def _show_sample(output: Path, drawn: "Sample", strata: "list[Stratum]") -> None:
    from rich.console import Console
    from rich.table import Table

    from freight.judge.annotation import REST, key_path

    console = Console()
    table = Table("stratum", title=f"{len(drawn.rows)} texts")
    table.add_column("texts", justify="right")
    for label in [*(stratum.label for stratum in strata), *({REST} & set(drawn.strata))]:
        table.add_row(_plain(label), str(drawn.strata.count(label)))
    console.print(table)
    for note in drawn.notes:
        console.print(note, markup=False, highlight=False)
    print(f"{output} is for the raters, {key_path(output)} is not")


def _read_back(
    path: Path, output: Path | None, scale: tuple[float, float] | None, encoding: str
) -> None:
    from freight.judge.annotation import key_path, rater_agreement, read_sheet, write_rated

    sheet = read_sheet(path, scale, encoding)
    if output is not None:
        check_inputs([output], [path, key_path(path)])
        write_rated(output, sheet)
    _show_raters(sheet, rater_agreement(sheet.ratings) if len(sheet.raters) > 1 else None)
    if output is not None:
        print(f"{output} is a judgement set")


def _show_raters(sheet: "Sheet", agreement: "RaterAgreement | None") -> None:
    from itertools import combinations

    from rich.console import Console
    from rich.table import Table

    console = Console()
    title = f"{len(sheet.hyps)} texts, {len(sheet.raters)} rater{'s' * (len(sheet.raters) > 1)}"
    table = Table("raters", "Pearson", "Spearman", title=title)
    if agreement is not None:
        for i, j in combinations(range(len(sheet.raters)), 2):
            values = agreement.pearson[i, j], agreement.spearman[i, j]
            table.add_row(
                _plain(f"{sheet.raters[i]}, {sheet.raters[j]}"), *(f"{x:.3f}" for x in values)
            )
        console.print(table)
        print(f"Krippendorff's alpha {agreement.alpha:.3f}, over intervals")
        print(f"ICC(2,k) {agreement.icc:.3f}, over {agreement.complete} texts that all have rated")
    else:
        print(f"{title}: nobody to agree with")
    for note in sheet.notes:
        console.print(note, markup=False, highlight=False)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
