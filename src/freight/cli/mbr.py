"""`freight mbr`: minimum Bayes risk decoding, lists of candidates in, the best of each out."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from freight.cli import completion, options
from freight.cli.groups import EncoderOptions, SettingOptions, grouped
from freight.cli.options import (
    DEFAULT,
    given,
    language_setting,
    parse_settings,
    split_column,
    wanted_metrics,
)
from freight.cli.results import progress_bar
from freight.data.output import check_inputs
from freight.data.tables import TableWriter, check_ending
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scorers import PipelineScorer
    from freight.run.decoding import Choice
    from freight.transport.types import Array


_ROWS_PER_WRITE = 256
_LISTS_FOR_LANGUAGE = 64
"""The number of lists that --lang auto looks at."""


@dataclass(frozen=True)
class CandidateOptions:
    """The candidates and the utility."""

    panel: ClassVar = SettingOptions.panel

    candidates: Annotated[
        str,
        typer.Argument(
            metavar="CANDIDATES",
            help="A list per line, .jsonl; or blocks of lines; - is standard input.",
        ),
    ]
    metric: Annotated[
        str,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME[:COLUMN]",
            help="The utility.",
            autocompletion=completion.metrics,
        ),
    ] = DEFAULT
    itself: Annotated[
        bool, typer.Option(help="Compare each candidate with its own sample too.")
    ] = True
    encoding: options.Encoding = "utf-8"


@dataclass(frozen=True)
class ChoiceOutput:
    """Where the choices go."""

    panel: ClassVar = "Output"

    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Choices: .jsonl .csv .tsv .parquet."),
    ] = None
    utilities: Annotated[
        bool, typer.Option("--utilities", help="In .jsonl: also the utility of every candidate.")
    ] = False
    matrix: Annotated[
        bool, typer.Option("--matrix", help="In .jsonl: also the score of every pair.")
    ] = False
    escape: options.Escape = False


@grouped
def mbr_command(
    given_lists: CandidateOptions,
    settings: SettingOptions,
    encoder: EncoderOptions,
    output: ChoiceOutput,
) -> None:
    """Choose from each list of candidates the one that the others agree with most.

    A line of JSON is a list of texts, or an object with candidates and, if need be, references to
    compare them with and weights of these; in plain text a candidate is a line, and an empty line
    ends a list. Without -o the chosen texts are printed, one per line.
    """
    _check_output(output, given_lists.candidates)
    encoder.set_threads()
    from freight.run.decoding import CandidateFile, decode, fit_to_lists

    lists = CandidateFile(given_lists.candidates, given_lists.encoding)
    texts = (text for one in islice(lists, _LISTS_FOR_LANGUAGE) for text in one.references)
    scorer = fit_to_lists(_load_utility(given_lists.metric, settings, encoder, texts), lists)
    with progress_bar(len(lists), "choosing") as progress:
        choices = decode(scorer, lists, given_lists.itself, output.matrix, progress)
        if output.output is None:
            _print_texts(choices)
            return
        notes = {scorer.name: scorer.signature}
        with TableWriter(output.output, notes, output.escape) as writer:
            while part := list(islice(choices, _ROWS_PER_WRITE)):
                writer.write(_columns(part, output))


def _check_output(output: ChoiceOutput, candidates: str) -> None:
    path = output.output
    if path is not None:
        check_ending(path)
        check_inputs([path], [candidates])
    if (output.utilities or output.matrix) and (path is None or path.suffix != ".jsonl"):
        raise InvalidInput(
            "--utilities and --matrix need a file that holds lists; write -o out.jsonl"
        )


def _load_utility(
    metric: str, settings: SettingOptions, encoder: EncoderOptions, texts: Iterable[str]
) -> "PipelineScorer":
    """The metric, with the column that is asked for as its primary one."""
    name, column = split_column(metric)
    named = {
        **given(layer=settings.layer, preset=settings.preset, column=column or None),
        **given(adapter=encoder.adapter),
        **language_setting(settings.lang, [metric], encoder.encoder, texts),
        **parse_settings(settings.settings or []),
    }
    placement = encoder.encoder, encoder.placement
    return wanted_metrics([name], *placement, named, encoder.cache)[0].metric


def _print_texts(choices: "Iterable[Choice]") -> None:
    for choice in choices:
        if "\n" in choice.text or "\r" in choice.text:
            raise InvalidInput(
                f"{choice.text[:40]!r} has a line break in it, which a line cannot hold; write"
                " -o out.jsonl"
            )
        print(choice.text.encode("utf-8", "replace").decode())


def _columns(part: "list[Choice]", output: ChoiceOutput) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "index": [choice.index for choice in part],
        "text": [choice.text for choice in part],
        "utility": [choice.utility for choice in part],
        "flags": [list(choice.flags) for choice in part],
    }
    if output.utilities:
        columns["utilities"] = [_plain(choice.utilities) for choice in part]
    if output.matrix:
        columns["matrix"] = [_plain(choice.matrix) for choice in part]
    return columns


def _plain(array: "Array | None") -> Any:
    """Lists of numbers, with null for nan, which JSON does not have."""
    import numpy as np

    values = np.asarray(array).astype(object)
    values[values != values] = None
    return values.tolist()
