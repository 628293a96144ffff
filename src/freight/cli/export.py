"""`freight export evaluate`: metrics as modules of other libraries, in folders."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Write metrics as modules of other libraries.", no_args_is_help=True)


@app.callback()
def _export() -> None:
    """Keep the name of the library a command of its own."""


@app.command()
def evaluate(
    output: Annotated[Path, typer.Option("-o", "--output", help="A folder for their folders.")],
    metric: Annotated[
        list[str] | None, typer.Option("-m", "--metric", metavar="NAME", help="Default: all.")
    ] = None,
) -> None:
    """Write a folder a metric for Hugging Face evaluate: a module, its card, its requirements."""
    import freight
    from freight.interop.cards import write_module

    for name in metric or freight.metrics():
        try:
            home = write_module(output, name)
        except freight.MissingPart as missing:
            if metric:
                raise
            typer.echo(f"{name} is left out: {missing}", err=True)
            continue
        print(f'evaluate.load("{home}")')
