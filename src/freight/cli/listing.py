"""`freight metrics`, `freight encoders` and `freight version`: what there is."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import freight


def metrics() -> None:
    """List the metrics, with their columns and which way is better."""
    from freight.metrics import METRICS

    table = Table("metric", "columns", "what it is", "presets", title="Metrics")
    about = freight.list_metrics()
    for name in METRICS:
        table.add_row(name, _columns(name), about[name], "  ".join(freight.presets(name)))
    Console().print(table)


def _columns(name: str) -> str:
    light = {"encoder": "hashed"} if "encoder" in freight.parameters(name) else {}
    try:
        columns = freight.load(name, **light).columns
    except freight.MissingPart as missing:
        return f"[yellow]{missing}[/yellow]"
    return "  ".join(f"{c.name}{'↑' if c.higher else '↓'}" for c in columns)


def encoders() -> None:
    """List the encoders."""
    table = Table("encoder", "what it is", title="Encoders")
    for name, about in freight.list_encoders().items():
        table.add_row(name, about)
    Console().print(table)


def version() -> None:
    """Print the version."""
    print(f"freight {freight.__version__}")


cache_app = typer.Typer(
    help="Look at the vectors and scores remembered on disk, or forget them.", no_args_is_help=True
)
_Folder = Annotated[
    str | None, typer.Option(help="Of vectors alone. Default: in the user's cache.")
]


@cache_app.command()
def info(folder: _Folder = None) -> None:
    """Show how full the cache is."""
    from freight.encoders.cache.disk import cache_info
    from freight.judge import ScoreCache

    found = cache_info(folder)
    table = Table("what", "how much", title="Cache", show_header=False)
    table.add_row("folder", found.folder)
    table.add_row("texts", f"{found.texts:,}")
    table.add_row("used", f"{_mebibytes(found.used)} of {_mebibytes(found.limit)}")
    table.add_row("on disk", _mebibytes(found.disk))
    if folder is None:
        scores = ScoreCache()
        table.add_section()
        table.add_row("folder", str(scores.folder))
        table.add_row("scores", f"{len(scores.files):,}")
        table.add_row("on disk", _mebibytes(sum(path.stat().st_size for path in scores.files)))
    Console().print(table)


@cache_app.command()
def clear(
    folder: _Folder = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Forget all vectors and scores, or the vectors of a folder; what is running may go on."""
    from freight.encoders.cache.disk import cache_info, clear_cache
    from freight.judge import ScoreCache

    found = cache_info(folder)
    scores = ScoreCache() if folder is None else None
    if not yes:
        more = f", and {len(scores.files):,} files in {scores.folder}" if scores else ""
        typer.confirm(f"Forget {found.texts:,} texts in {found.folder}{more}?", abort=True)
    if scores:
        print(f"freed {_mebibytes(scores.clear())} in {scores.folder}")
    print(f"freed {_mebibytes(clear_cache(folder))} in {found.folder}")


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"


export_app = typer.Typer(help="Write metrics as modules of other libraries.", no_args_is_help=True)


@export_app.callback()
def _export() -> None:
    """Keep the name of the library a command of its own."""


@export_app.command()
def evaluate(
    output: Annotated[Path, typer.Option("-o", "--output", help="A folder for their folders.")],
    metric: Annotated[
        list[str] | None, typer.Option("-m", "--metric", metavar="NAME", help="Default: all.")
    ] = None,
) -> None:
    """Write a folder a metric for Hugging Face evaluate: a module, its card, its requirements."""
    import freight
    from freight.interop.evaluate_cards import write_module

    for name in metric or freight.list_metrics():
        try:
            home = write_module(output, name)
        except freight.MissingPart as missing:
            if metric:
                raise
            typer.echo(f"{name} is left out: {missing}", err=True)
            continue
        print(f'evaluate.load("{home}")')
