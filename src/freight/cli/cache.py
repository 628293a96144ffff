"""`freight cache info` and `freight cache clear`: the vectors that are remembered on disk."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer(
    help="Look at the vectors remembered on disk, or forget them.", no_args_is_help=True
)
_Folder = Annotated[str | None, typer.Option(help="Default: freight/vectors in the user's cache.")]


@app.command()
def info(folder: _Folder = None) -> None:
    """Show how full the cache is."""
    from freight.encoding.cached import cache_info

    found = cache_info(folder)
    table = Table("what", "how much", title="Cache", show_header=False)
    table.add_row("folder", found.folder)
    table.add_row("texts", f"{found.texts:,}")
    table.add_row("used", f"{_mebibytes(found.used)} of {_mebibytes(found.limit)}")
    table.add_row("on disk", _mebibytes(found.disk))
    Console().print(table)


@app.command()
def clear(
    folder: _Folder = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Forget all vectors; what is running may go on."""
    from freight.encoding.cached import cache_info, clear_cache

    found = cache_info(folder)
    if not yes:
        typer.confirm(f"Forget {found.texts:,} texts in {found.folder}?", abort=True)
    print(f"freed {_mebibytes(clear_cache(folder))} in {found.folder}")


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"
