"""The command line: one file per command; torch is imported only when a command needs it."""

import os
import signal
import sys
import warnings
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import freight
from freight.cli.compare import compare_command
from freight.cli.completion import in_bash
from freight.cli.doctor import doctor_command
from freight.cli.explain import explain_command
from freight.cli.judge import judge_command
from freight.cli.listing import cache_app, encoders, export_app, metrics, version
from freight.cli.mbr import mbr_command
from freight.cli.options import split_column
from freight.cli.sample import sample_command
from freight.cli.score import score_command
from freight.cli.serve import serve_command
from freight.cli.train import train_app
from freight.cli.tune import tune_command
from freight.errors import FreightError, UnknownVocabulary, UntunedLayer


class ListCommand(TyperCommand):
    """A command whose -i takes all words up to the next option, and whose -m all metric names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option in front of each of its words."""
        return super().parse_args(ctx, repeat_options(args))


def repeat_options(words: list[str]) -> list[str]:
    """From -i A B to -i A -i B, and the same for -m where a metric's name follows."""
    repeated: list[str] = []
    option, values = "", 0
    for place, word in enumerate(words):
        if word == "--":
            return [*repeated, *words[place:]]
        if word.startswith("-") and word != "-":
            option, values = word, 0
        elif values and _belongs_to(option, word):
            repeated.append(option)
        else:
            values += 1
        repeated.append(word)
    return repeated


def _belongs_to(option: str, word: str) -> bool:
    if option in ("-i", "--input"):
        return True
    if option not in ("-m", "--metric"):
        return False
    from freight.metrics import list_metrics
    from freight.metrics.extensions import is_in_file

    name = split_column(word)[0]
    return is_in_file(name) or name in list_metrics()


app = typer.Typer(
    help="Score generated text by optimal transport.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("score", cls=ListCommand)(score_command)
app.command("compare", cls=ListCommand)(compare_command)
app.command("explain")(explain_command)
app.command("mbr")(mbr_command)
app.command("judge")(judge_command)
app.command("tune")(tune_command)
app.command("sample")(sample_command)
app.command("serve")(serve_command)
app.command("doctor")(doctor_command)
app.command("metrics")(metrics)
app.command("encoders")(encoders)
app.command("version")(version)
app.add_typer(cache_app, name="cache")
app.add_typer(export_app, name="export")
app.add_typer(train_app, name="train")


def main() -> None:
    """Run a command; an error that the user can correct is one line and exit status 1."""
    warnings.formatwarning = _format_warning
    try:
        _run_command()
    except FreightError as error:
        typer.echo(f"freight: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:  # whoever reads what is printed has seen enough
        _discard_output()
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("freight: stopped", err=True)
        sys.exit(1)
    except Exception as error:
        from freight.metrics.extensions import blame

        mistake = blame(error)
        if mistake is None and isinstance(error, OSError):  # a full disk, for instance
            mistake = f"{error.filename or 'standard output'}: {error.strerror or error}"
            _discard_output()
        if mistake is None:
            raise
        typer.echo(f"freight: {mistake}", err=True)
        sys.exit(1)


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """What we have to say is one line, as errors are; other libraries' warnings are unchanged."""
    if issubclass(category, UnknownVocabulary | UntunedLayer | FutureWarning):
        return f"freight: {message}\n"
    return _DEFAULT_FORMAT(message, category, filename, lineno, line)


_DEFAULT_FORMAT = warnings.formatwarning


def _run_command() -> None:
    run = partial(app, prog_name="freight")
    with suppress(ValueError):  # only the main thread may take signals
        signal.signal(signal.SIGTERM, _stop)
    try:
        if os.environ.get("_FREIGHT_COMPLETE") == "complete_bash":
            in_bash(run)
        else:
            run()
    finally:
        with suppress(ValueError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdout.flush()  # here, where an error can still be reported


def _discard_output() -> None:
    """Let what is still to be printed go nowhere, so that ending does not fail again."""
    with suppress(OSError, ValueError):  # a test's standard output has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop(number: int, frame: object) -> None:
    """End as by Ctrl-C, so that unfinished files are removed; a second signal ends at once."""
    signal.signal(number, signal.SIG_DFL)
    sys.exit(128 + number)


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
