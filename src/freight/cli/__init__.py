"""The command line: one file a command, nothing heavy imported before it is needed."""

import os
import sys
from functools import partial
from typing import Annotated

import typer

import freight
from freight.cli import (
    compare,
    completion,
    doctor,
    explain,
    judge,
    listing,
    mbr,
    sample,
    score,
    serve,
    train,
    tune,
)
from freight.cli.groups import ListCommand
from freight.errors import FreightError

app = typer.Typer(
    help="Score generated text by optimal transport.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("score", cls=ListCommand)(score.score)
app.command("compare", cls=ListCommand)(compare.compare)
app.command("explain")(explain.explain)
app.command("mbr")(mbr.mbr)
app.command("judge")(judge.judge)
app.command("tune")(tune.tune)
app.command("sample")(sample.sample)
app.command("serve")(serve.serve)
app.command("doctor")(doctor.doctor)
app.command("metrics")(listing.metrics)
app.command("encoders")(listing.encoders)
app.command("version")(listing.version)
app.add_typer(listing.cache_app, name="cache")
app.add_typer(listing.export_app, name="export")
app.add_typer(train.app, name="train")


def main() -> None:
    """Run a command; what the user can mend is one line and exit status 1."""
    try:
        run = partial(app, prog_name="freight")
        if os.environ.get("_FREIGHT_COMPLETE") == "complete_bash":
            completion.in_bash(run)
        else:
            run()
    except FreightError as error:
        typer.echo(f"freight: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("freight: stopped", err=True)
        sys.exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"freight {freight.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Score generated text by optimal transport."""
