"""`freight score -o FOLDER/`: a run into shards that can be cut off and resumed."""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from freight.cli.options import Wanted
from freight.cli.summary import print_table
from freight.data import Corpus
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.clouds import Tick
    from freight.run import Run

FORMATS = ("parquet", "jsonl", "csv", "tsv")

Resume = Annotated[bool, typer.Option("--resume", help="Go on with what is in the folder.")]
Format = Annotated[str | None, typer.Option("--format", help=f"In a folder: {', '.join(FORMATS)}.")]
Size = Annotated[
    int | None, typer.Option("--shard", min=1, help="Segments a file, in a folder: 20000.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes, for a folder. Default: one a GPU.")
]


@dataclass(frozen=True)
class Folder:
    """Where a run goes, and what was said about it."""

    path: Path
    resume: bool
    form: str
    shard: int | None
    workers: int | None


def folder(
    output: str | None, resume: bool, form: str | None, shard: int | None, workers: int | None
) -> Folder | None:
    """The folder that is meant by an output; nothing where it is a file, or none is given."""
    if output is None or not (output.endswith("/") or Path(output).is_dir()):
        said = {"--resume": resume, "--format": form, "--shard": shard, "--workers": workers}
        if any(said.values()):
            option = next(name for name, value in said.items() if value)
            raise InvalidInput(f"{option} is for runs into a folder; write -o {output or 'out'}/")
        return None
    if form is not None and form not in FORMATS:
        raise InvalidInput(f"--format {form}; there is {', '.join(FORMATS)}")
    return Folder(Path(output), resume, form or FORMATS[0], shard, workers)


def run(
    wanted: list[Wanted],
    corpus: Corpus,
    place: Folder,
    threads: int | None,
    as_json: bool,
    tick: "Tick | None",
) -> None:
    """Score into the folder, and say what came of it; Ctrl-C says how to go on."""
    from freight.run import local
    from freight.run.shards import SHARD

    try:
        done = local(
            [one.metric for one in wanted],
            corpus,
            place.path,
            resume=place.resume,
            shard=place.shard or SHARD,
            ending=f".{place.form}",
            columns=[one.columns for one in wanted],
            workers=place.workers,
            threads=threads,
            tick=tick,
        )
    except KeyboardInterrupt:
        _stopped(place.path)
    _show(wanted, done, as_json)


def _stopped(path: Path) -> None:
    from freight.run.durable import finished_shards

    ready, every = finished_shards(path)
    command = shlex.join(["freight", *(part for part in sys.argv[1:] if part != "--resume")])
    typer.echo(
        f"freight: stopped with {ready} of {every} shards in {path}/; go on with"
        f"  {command} --resume",
        err=True,
    )
    raise typer.Exit(130)


def _show(wanted: list[Wanted], done: "Run", as_json: bool) -> None:
    if as_json:
        print(json.dumps(json.loads(done.written())))
        return
    outcomes = [(one.system, one.flags, one.signature) for one in done.outcomes]
    print_table(done.segments, wanted, *zip(*outcomes, strict=True))
    Console().print(f"{len(done.files)} shards in {done.folder}/", highlight=False)
