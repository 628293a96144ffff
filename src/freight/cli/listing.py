"""`freight metrics`, `freight encoders`, `freight version`, `freight cache`, `freight export`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import freight
from freight.cli import completion
from freight.cli.options import split_column
from freight.metrics import find_metric
from freight.metrics.declaration import REQUIRED

if TYPE_CHECKING:
    from freight.metrics.declaration import Declaration


def metrics(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[METRIC]",
            help="Show the parameters of one metric, by name or as file.py:NAME.",
            autocompletion=completion.metrics,
        ),
    ] = None,
) -> None:
    """List the metrics with their columns, or the parameters of one."""
    if name is not None:
        _show_metric(split_column(name)[0])
        return
    table = Table("metric", "columns", "what it is", "presets", title="Metrics")
    for metric, summary in freight.list_metrics().items():
        try:
            declaration = find_metric(metric)
        except freight.FreightError as error:
            table.add_row(metric, "", Text(str(error), "yellow"), "")
            continue
        table.add_row(metric, _columns(declaration), summary, "  ".join(declaration.presets))
    console = Console()
    console.print(table)
    console.print("↑ higher is better, ↓ lower; `freight metrics METRIC` lists its parameters")


def _columns(declaration: "Declaration[..., Any]") -> str:
    columns = declaration.columns or {}
    return "  ".join(f"{column}{direction.value}" for column, direction in columns.items())


def _show_metric(name: str) -> None:
    """What one metric is, and what can be set of it."""
    declaration = find_metric(name)
    console = Console()
    heading = Text.assemble((name, "bold"), "  ", _columns(declaration))
    console.print(heading)
    for line in (declaration.summary, *declaration.notes, declaration.paper):
        if line:
            console.print(line, markup=False, highlight=False)
    table = Table("parameter", "default", "values", "what it does")
    for parameter in declaration.parameters.values():
        default = "required" if parameter.default is REQUIRED else str(parameter.default)
        if parameter.automatic != parameter.default:
            default = f"{parameter.automatic} (by language)"
        table.add_row(parameter.name, default, Text(parameter.expect()), parameter.description)
    if declaration.parameters:
        console.print(table)
    for preset, settings in declaration.presets.items():
        given = " ".join(f"{setting}={value}" for setting, value in settings.items())
        console.print(f"--preset {preset}: {given}", markup=False, highlight=False)


def encoders() -> None:
    """List the encoders: what they are, where they come from, their languages, their agreement."""
    table = Table("encoder", "what it is", "languages", "agreement with people", title="Encoders")
    notes = []
    for name, one in freight.list_encoders().items():
        spoken = one.languages
        languages = ", ".join(spoken) if len(spoken) < 5 else f"{len(spoken)}, such as de, zh, ar"
        about = f"{one.about} ({one.licence})" if one.licence else one.about
        table.add_row(name, about, languages, one.agreement)
        if one.installed is not None:
            here = f"installed, from {one.source[0]}" if one.installed else f"run  {one.install}"
            notes.append(f"{name}: {here}")
    console = Console()
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)


def version() -> None:
    """Print the version."""
    print(f"freight {freight.__version__}")


cache_app = typer.Typer(
    help="Show the vectors and scores cached on disk, or delete them.", no_args_is_help=True
)
_Folder = Annotated[
    str | None, typer.Option(help="A folder of vectors. Default: the user's cache.")
]


@cache_app.command()
def info(folder: _Folder = None) -> None:
    """Show how full the cache is."""
    from freight.encoders.cache.disk import cache_info
    from freight.judge import ScoreCache

    vectors = cache_info(folder)
    table = Table("what", "how much", title="Cache", show_header=False)
    table.add_row("folder", vectors.folder)
    table.add_row("texts", f"{vectors.texts:,}")
    table.add_row("used", f"{_mebibytes(vectors.used)} of {_mebibytes(vectors.limit)}")
    table.add_row("on disk", _mebibytes(vectors.disk))
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
    """Delete all cached vectors and scores, or the vectors of a folder; runs may go on."""
    from freight.encoders.cache.disk import cache_info, clear_cache
    from freight.judge import ScoreCache

    vectors = cache_info(folder)
    scores = ScoreCache() if folder is None else None
    if not yes:
        more = f", and {len(scores.files):,} files in {scores.folder}" if scores else ""
        typer.confirm(f"Delete {vectors.texts:,} texts in {vectors.folder}{more}?", abort=True)
    if scores:
        print(f"freed {_mebibytes(scores.clear())} in {scores.folder}")
    print(f"freed {_mebibytes(clear_cache(folder))} in {vectors.folder}")


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"


export_app = typer.Typer(help="Write metrics as modules of other libraries.", no_args_is_help=True)


@export_app.callback()
def _export() -> None:
    """Make the name of the library a command."""


@export_app.command()
def evaluate(
    output: Annotated[Path, typer.Option("-o", "--output", help="A folder for their folders.")],
    metric: Annotated[
        list[str] | None, typer.Option("-m", "--metric", metavar="NAME", help="Default: all.")
    ] = None,
) -> None:
    """Write one folder per metric for Hugging Face evaluate: a module, its card, requirements."""
    from freight.interop.evaluate import write_module

    for name in metric or freight.list_metrics():
        try:
            home = write_module(output, name)
        except freight.MissingPart as missing:
            if metric:
                raise
            typer.echo(f"{name} is left out: {missing}", err=True)
            continue
        print(f'evaluate.load("{home}")')
