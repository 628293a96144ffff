"""`freight sample`: texts for people to rate, and their ratings back again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freight.cli import completion, options
from freight.cli.options import parse_conditions, parse_scale, parse_settings, wanted_metrics
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.data.judgements import Judgements
    from freight.judge.annotation import RaterAgreement, Sample, Sheet, Stratum
    from freight.transport.types import Array


def sample(
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="A judgement set, or hyp and ref.")
    ] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many texts.")] = 50,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The sheet, .csv; with --read the set, .jsonl."),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME[:COLUMN]",
            help="Makes the strata.",
            autocompletion=completion.metrics,
        ),
    ] = "wrd-score:f1",
    encoder: options.EncoderName = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Of the metric.")
    ] = None,
    stratum: Annotated[
        list[str] | None,
        typer.Option(
            help="random, '[0,0.2)', '[0.8,1] rouge-1<0.5'; may be repeated. Default: WRDScore's."
        ),
    ] = None,
    fill: Annotated[bool, typer.Option(help="Make up for a stratum that is short.")] = True,
    where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Draw from these rows only.")
    ] = None,
    raters: Annotated[int, typer.Option(min=1, help="Empty columns in the sheet.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The same seed draws the same.")] = 0,
    instructions: Annotated[
        Path | None, typer.Option(help="Also write instructions for raters to this file.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="LOW:HIGH", help="Of ratings; checked with --read.")
    ] = None,
    read: Annotated[
        Path | None, typer.Option(help="Read this sheet, once rated, in place of drawing one.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the file.")] = "utf-8",
) -> None:
    """Draw texts for people to rate, some from each range of a metric's score; or read them back.

    The sheet tells neither scores nor systems: they are in SHEET.key.csv beside it. With --read,
    raters are averaged and their agreement is shown; -o writes a judgement set.
    """
    if (data is None) == (read is None):
        raise typer.BadParameter("give DATA to draw from, or --read SHEET")
    if read is not None:
        _read_back(read, output, parse_scale(scale), encoding)
        return
    if data is None or output is None:
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

    check_sheet(output)
    if instructions is not None and not instructions.parent.is_dir():
        raise InvalidInput(f"there is no folder {instructions.parent} for {instructions.name}")
    strata = [Stratum.parse(text) for text in stratum or ()] or list(WRD_SCORE)
    low, high = parse_scale(scale) or (0.0, 10.0)
    texts = read_judgements(data, human=(), where=parse_conditions(where or []), encoding=encoding)
    scores, rouge = _scores(texts, metric, encoder, parse_settings(settings or []), strata)
    drawn = draw_sample(texts, scores, count, strata, rouge, seed, fill)
    write_sheet(output, texts, drawn, scores, raters)
    if instructions is not None:
        said = INSTRUCTIONS.format(low=low, high=high, middle=(low + high) / 2)
        instructions.write_text(said, encoding="utf-8")
    _show_sample(output, drawn, strata)


def _scores(
    texts: "Judgements",
    metric: str,
    encoder: str | None,
    settings: dict[str, Any],
    strata: "list[Stratum]",
) -> "tuple[Array, Array | None]":
    """The column that makes the strata, and ROUGE-1 where one of them asks for it."""
    import freight

    wanted = wanted_metrics([metric], encoder, {}, settings)[0]
    scorers = [wanted.metric]
    if any(stratum.needs_rouge for stratum in strata):
        scorers.append(freight.load("rouge-1"))
    found = freight.score_together(scorers, texts.hyps, texts.refs)
    return found[0][wanted.columns[0]], found[1]["score"] if len(found) > 1 else None


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
    from freight.judge.annotation import rater_agreement, read_sheet, write_rated

    sheet = read_sheet(path, scale, encoding)
    if output is not None:
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
