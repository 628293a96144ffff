"""`freight mbr`: lists of candidates in, the best of each out."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freight.cli import completion, options
from freight.cli.options import DEFAULT, given, language_setting, parse_settings, wanted_metrics
from freight.cli.score import progress_bar
from freight.data.tables import TableWriter, check_ending
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.decoding import Choice
    from freight.core.scoring import Scorer
    from freight.transport.types import Array


_AT_A_TIME = 256
_LOOKED_AT = 64
"""Lists that tell the language."""


def mbr(
    candidates: Annotated[
        str,
        typer.Argument(
            metavar="CANDIDATES", help="A list a line, .jsonl; or blocks of lines; - is stdin."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Choices, .jsonl .csv .tsv .parquet."),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME[:COLUMN]",
            help="The utility.",
            autocompletion=completion.metrics,
        ),
    ] = DEFAULT,
    encoder: options.EncoderName = None,
    layer: options.Layer = None,
    lang: options.Lang = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    itself: Annotated[
        bool, typer.Option(help="Compare each candidate with its own sample too.")
    ] = True,
    utilities: Annotated[
        bool, typer.Option("--utilities", help="In .jsonl: also what every candidate is worth.")
    ] = False,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="In .jsonl: also every pair of candidates.")
    ] = False,
    encoding: options.Encoding = "utf-8",
    device: options.Device = None,
    dtype: options.Dtype = None,
    cache: options.Cache = False,
    threads: options.Threads = None,
) -> None:
    """Of each list of candidates choose the one that the others agree with most.

    A line of JSON is a list of texts, or an object with candidates and, if need be, references to
    compare them with and weights of these; in plain text a candidate is a line, and an empty line
    ends a list. Without -o the chosen texts are printed, one a line.
    """
    _check(output, utilities or matrix)
    if threads is not None:
        import freight

        freight.set_threads(threads)
    from freight.core.decoding import decode, fitted
    from freight.data.candidates import CandidateFile

    lists = CandidateFile(candidates, encoding)
    texts = (text for one in islice(lists, _LOOKED_AT) for text in one.references)
    named = given(layer=layer, preset=preset) | language_setting(lang, [metric], encoder, texts)
    scorer = _scorer(
        metric,
        encoder,
        given(device=device, dtype=dtype),
        {**named, **parse_settings(settings or [])},
        cache,
    )
    ready = fitted(scorer, lists)
    with progress_bar(len(lists), "choosing") as progress:
        found = decode(ready, lists, itself, matrix, progress)
        if output is None:
            _print(found)
            return
        with TableWriter(output, {ready.name: ready.signature}) as writer:
            while part := list(islice(found, _AT_A_TIME)):
                writer.write(_columns(part, utilities, matrix))


def _check(output: Path | None, lists_within: bool) -> None:
    if output is not None:
        check_ending(output)
    if lists_within and (output is None or output.suffix != ".jsonl"):
        raise InvalidInput(
            "--utilities and --matrix need a file that holds lists; write -o out.jsonl"
        )


def _scorer(
    metric: str,
    encoder: str | None,
    encoding: dict[str, Any],
    settings: dict[str, Any],
    cache: bool,
) -> "Scorer":
    name, _, column = metric.partition(":")
    leading = {"column": column} if column else {}
    return wanted_metrics([name], encoder, encoding, {**settings, **leading}, cache)[0].metric


def _print(found: "Iterable[Choice]") -> None:
    for choice in found:
        if "\n" in choice.text or "\r" in choice.text:
            raise InvalidInput(
                f"{choice.text[:40]!r} has a line break in it, which a line cannot hold; write"
                " -o out.jsonl"
            )
        print(choice.text)


def _columns(part: "list[Choice]", utilities: bool, matrix: bool) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {
        "index": [choice.index for choice in part],
        "text": [choice.text for choice in part],
        "utility": [choice.utility for choice in part],
        "flags": [list(choice.flags) for choice in part],
    }
    if utilities:
        found["utilities"] = [_plain(choice.utilities) for choice in part]
    if matrix:
        found["matrix"] = [_plain(choice.matrix) for choice in part]
    return found


def _plain(array: "Array | None") -> Any:
    """Lists of numbers, and null for nan, which JSON lacks."""
    import numpy as np

    values = np.asarray(array).astype(object)
    values[values != values] = None
    return values.tolist()
