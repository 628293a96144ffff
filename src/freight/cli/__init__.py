"""The command line: one file a command, nothing heavy imported before it is needed."""

import sys

import typer

from freight.cli import cache, explain, judge, listing, sample, score, serve, train, tune
from freight.cli.manner import SacreCommand
from freight.errors import FreightError

app = typer.Typer(
    help="Score generated text by optimal transport.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("score", cls=SacreCommand)(score.score)
app.command("explain")(explain.explain)
app.command("judge")(judge.judge)
app.command("tune")(tune.tune)
app.command("sample")(sample.sample)
app.command("serve")(serve.serve)
app.command("metrics")(listing.metrics)
app.command("encoders")(listing.encoders)
app.command("version")(listing.version)
app.add_typer(cache.app, name="cache")
app.add_typer(train.app, name="train")


def main() -> None:
    """Run a command; what the user can mend is one line and exit status 1."""
    try:
        app()
    except FreightError as error:
        typer.echo(f"freight: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("freight: stopped", err=True)
        sys.exit(1)
