"""`freight compare`: which of several systems is better, and whether the difference is significant.

The systems' hypotheses are scored against the same references by the code of `freight score`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from rich.table import Table
from rich.text import Text

from freight.cli.completion import among
from freight.cli.groups import (
    PRINTED,
    EncoderOptions,
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
from freight.cli.options import GateOptions
from freight.cli.results import json_number
from freight.cli.score import Outputs, ScoringInput, score_files
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scale import AgreementRate
    from freight.judge.systems import SystemRanking


@dataclass(frozen=True)
class ComparedFiles:
    """References and the systems to compare."""

    panel: ClassVar = TableOptions.panel

    ref: Annotated[
        str,
        typer.Argument(
            metavar="REF",
            help="References, one per line; or a single table with the columns hyp, ref, system.",
        ),
    ]
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM",
            help="Hypotheses of each system, one per line, or folders of such files.",
        ),
    ] = None
    more_refs: Annotated[
        list[str] | None,
        typer.Option("-r", "--ref", metavar="REF", help="More references; may be repeated."),
    ] = None

    def sides(self) -> tuple[list[str], list[str]]:
        """The files of hypotheses and of references."""
        more = self.more_refs or []
        if not self.systems:
            return [self.ref], more
        return [file for one in self.systems for file in files_of(one)], [self.ref, *more]


@dataclass(frozen=True)
class ComparisonOutput:
    """Where the comparison is written."""

    panel: ClassVar = PrintOptions.panel

    output: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A page: .html; scores: .jsonl .csv .tsv .parquet. May be repeated.",
        ),
    ] = None
    form: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--format",
            metavar="NAME",
            help=f"{', '.join(PRINTED)}. Default: a table.",
            autocompletion=among(*PRINTED),
        ),
    ] = None


@grouped
def compare_command(
    files: ComparedFiles,
    metrics: MetricOptions,
    settings: SettingOptions,
    encoder: EncoderOptions,
    table: TableOptions,
    output: ComparisonOutput,
    printing: PrintOptions,
    intervals: IntervalOptions,
    tests: PairedTestOptions,
    gate: GateOptions,
) -> None:
    """Compare several systems by their scores, with confidence intervals and significance tests.

    Without a paired test the systems are ordered from best to worst, and each is tested against
    the next, one-sided, by swapping their outputs at random. With --paired-bs or --paired-ar each
    is tested against the first, two-sided, as sacrebleu does it.
    """
    if output.form is not None and output.form not in PRINTED:
        raise InvalidInput(f"--format {output.form}; there is {', '.join(PRINTED)}")
    given_files = ScoringInput(*files.sides(), table)
    score_files(
        given_files,
        MetricChoice(metrics.names, settings, encoder),
        Outputs.of(output.output or [], printing, given_files),
        Presentation.of(output.form, printing, intervals, tests),
        several=True,
        thresholds=gate.thresholds(),
    )


def systems_table(title: str) -> Table:
    """A table of systems that are to be added; their names and intervals stay on one line."""
    table = Table(title=title)
    table.add_column("system", no_wrap=True)
    for name in ("score", "95 % interval", "p against next", "people agree"):
        table.add_column(name, justify="right", no_wrap=name == "95 % interval")
    return table


def add_systems(
    table: Table,
    heading: str,
    ranking: "SystemRanking",
    agree: "Callable[[int, int], AgreementRate | None]",
    number: Callable[[float], str],
) -> None:
    """Add the systems from best to worst, each beside the next: its p-value, and people's view."""
    table.add_row(Text(heading, "bold"))
    for rank, system in enumerate(ranking.order):
        score = ranking.scores[system]
        following = ranking.order[rank + 1 : rank + 2]
        p = "".join(f"{ranking.p_values[system, other]:.3f}" for other in following)
        people = "".join(str(agree(system, other) or "") for other in following)
        interval = f"{number(score.low)} – {number(score.high)}"
        table.add_row(Text(ranking.names[system]), number(score.value), interval, p, people)


def ranking_record(
    ranking: "SystemRanking", agree: "Callable[[int, int], AgreementRate | None]"
) -> dict[str, Any]:
    """Each system's score, interval, and one-sided p-values of being better than the others.

    And where it is known: how often people agree that it is better than those that come after it.
    """
    record: dict[str, dict[str, Any]] = {}
    order = ranking.order
    for k, name in enumerate(ranking.names):
        score = ranking.scores[k]
        p_values = {
            other: json_number(p)
            for other, p in zip(ranking.names, ranking.p_values[k], strict=True)
            if other != name
        }
        bounds = {"low": json_number(score.low), "high": json_number(score.high)}
        record[name] = {"score": json_number(score.value), **bounds, "p": p_values}
        after = {ranking.names[j]: agree(k, j) for j in order[order.index(k) + 1 :]}
        if any(after.values()):
            record[name]["people_agree"] = {x: list(rate) for x, rate in after.items() if rate}
    return record
