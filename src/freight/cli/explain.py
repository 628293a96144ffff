"""`freight explain`: why one text scores as it does, at the terminal or in a file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freight.cli import completing, options
from freight.cli.options import DEFAULT, detected, given, parse_settings, wanted_metrics
from freight.errors import InvalidInput
from freight.languages import AUTO

if TYPE_CHECKING:
    from freight.comparing import Comparison
    from freight.explanations import Explanation
    from freight.scoring import Scorer


def explain(
    hyp: Annotated[str, typer.Argument(metavar="HYP", help="The hypothesis: a text.")],
    refs: Annotated[list[str], typer.Argument(metavar="REF", help="Its references: texts.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME[:COLUMN]",
            help=f"One or two; default: {DEFAULT}.",
            autocompletion=completing.metrics,
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="HYP", help="A second hypothesis, to compare with.")
    ] = None,
    encoder: options.EncoderName = None,
    layer: options.Layer = None,
    lang: options.Lang = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help=".html .json .png .svg or .pdf")
    ] = None,
    as_json: options.AsJson = False,
    device: options.Device = None,
    dtype: options.Dtype = None,
    threads: options.Threads = None,
) -> None:
    """Show what moved where, and what each word adds to the score.

    Two metrics, or --against a second hypothesis, are compared side by side.
    """
    if output is not None:
        from freight.pictures import check_place

        check_place(output)
    if threads is not None:
        import freight

        freight.set_threads(threads)
    lang = detected(refs) if lang == AUTO else lang
    named = {**given(layer=layer, lang=lang, preset=preset), **parse_settings(settings or [])}
    scorers = _scorers(metric or [DEFAULT], encoder, given(device=device, dtype=dtype), named)
    found = _explained(scorers, hyp, against, refs)
    if output is not None:
        found.save(output)
    if as_json:
        print(json.dumps(found.to_dict(), allow_nan=False))
        return
    from freight.cli.drawing import show

    show(found)


def _scorers(
    names: list[str], encoder: str | None, options: dict[str, str], settings: dict[str, object]
) -> "list[Scorer]":
    """The metrics, each led by the column that is asked for."""
    parted = [name.partition(":") for name in names]
    leading = {f"{name}.column": column for name, _, column in parted if column}
    if len({name for name, _, _ in parted}) < len(parted) or len(parted) > 2:
        raise InvalidInput("name one metric, or two different ones to compare them")
    wanted = wanted_metrics([n for n, _, _ in parted], encoder, options, {**settings, **leading})
    return [one.metric for one in wanted]


def _explained(
    scorers: "list[Scorer]", hyp: str, against: str | None, refs: list[str]
) -> "Explanation | Comparison":
    from freight.comparing import compare

    if against is None:
        found = [scorer.explain(hyp, refs) for scorer in scorers]
    elif len(scorers) == 1:
        found = [scorers[0].explain(text, refs) for text in (hyp, against)]
    else:
        raise InvalidInput("--against compares two hypotheses by one metric; name one with -m")
    return found[0] if len(found) == 1 else compare(found[0], found[1])
