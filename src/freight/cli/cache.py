"""`freight cache info` and `freight cache clear`: what is remembered on disk."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer(
    help="Look at the vectors and scores remembered on disk, or forget them.", no_args_is_help=True
)
_Folder = Annotated[
    str | None, typer.Option(help="Of vectors alone. Default: in the user's cache.")
]


@app.command()
def info(folder: _Folder = None) -> None:
    """Show how full the cache is."""
    from freight.encoding.cached import cache_info
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


@app.command()
def clear(
    folder: _Folder = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Forget all vectors and scores, or the vectors of a folder; what is running may go on."""
    from freight.encoding.cached import cache_info, clear_cache
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
