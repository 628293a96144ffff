"""`freight score -o FOLDER/`: a run into shards that can be cut off and resumed."""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from freight.cli.completion import among
from freight.cli.options import RequestedMetric, given
from freight.cli.results import means_table, print_notes
from freight.cli.sacrebleu import FORMS
from freight.data import Corpus
from freight.data.wmt import COLUMNS
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.types import Progress
    from freight.run import Run


FORMATS = ("parquet", "jsonl", "csv", "tsv")
ENGINES = ("local", "ray")

Resume = Annotated[bool, typer.Option("--resume", help="Go on with what is in the folder.")]
Format = Annotated[
    str | None,
    typer.Option(
        "-f",
        "--format",
        help=f"What is printed: {', '.join(FORMS)}; in a folder: {', '.join(FORMATS)};"
        f" for the WMT metrics task: {', '.join(COLUMNS)}.",
        autocompletion=among(*FORMS, *FORMATS, *COLUMNS),
    ),
]
Size = Annotated[
    int | None, typer.Option("--shard", min=1, help="Segments a file, in a folder. Default: 20000.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes, for a folder. Default: one a GPU.")
]


Engine = Annotated[
    str | None,
    typer.Option(
        help=f"Who scores, for a folder: {', '.join(ENGINES)}.", autocompletion=among(*ENGINES)
    ),
]
Address = Annotated[str | None, typer.Option(help="Of a Ray cluster. Default: $RAY_ADDRESS.")]


@dataclass(frozen=True)
class RunOptions:
    """Where a run goes, and what was said about it."""

    path: Path
    engine: str
    form: str
    said: dict[str, Any]


def folder(
    outputs: Sequence[str],
    engine: str | None = None,
    form: str | None = None,
    address: str | None = None,
    **said: Any,
) -> RunOptions | None:
    """The folder that is meant by the outputs; nothing where they are files, or none is given."""
    if form is not None and form not in FORMATS:
        raise InvalidInput(f"--format {form}; there is {', '.join((*FORMATS, *FORMS, *COLUMNS))}")
    output = next((one for one in outputs if one.endswith("/") or Path(one).is_dir()), None)
    if output is None:
        every = {"engine": engine, "format": form, "address": address, **said}
        for name in (name for name, value in every.items() if value):
            wrong = next(iter(outputs), "out")
            raise InvalidInput(f"--{name} is for runs into a folder; write -o {wrong}/")
        return None
    if len(outputs) > 1:
        raise InvalidInput(f"{output} is a folder; a run into one writes nothing besides")
    found = RunOptions(Path(output), engine or ENGINES[0], form or FORMATS[0], given(**said))
    if found.engine not in ENGINES:
        raise InvalidInput(f"--engine {found.engine}; there is {', '.join(ENGINES)}")
    if address is None:
        return found
    if found.engine != "ray":
        raise InvalidInput("--address is that of a Ray cluster; say --engine ray too")
    return replace(found, said={**found.said, "address": address})


def run(
    wanted: list[RequestedMetric],
    corpus: Corpus,
    place: RunOptions,
    threads: int | None,
    as_json: bool,
    progress: "Progress | None",
) -> None:
    """Score into the folder, and say what came of it; Ctrl-C says how to go on."""
    from freight.run import local, on_ray

    engine: Any = {"local": local, "ray": on_ray}[place.engine]
    try:
        done = engine(
            [one.metric for one in wanted],
            corpus,
            place.path,
            ending=f".{place.form}",
            columns=[one.columns for one in wanted],
            progress=progress,
            **given(**place.said, threads=threads),
        )
    except KeyboardInterrupt:
        _stopped(place.path)
    _show(wanted, done, as_json)


def _stopped(path: Path) -> None:
    from freight.run.resume import finished_shards

    ready, every = finished_shards(path)
    command = shlex.join(["freight", *(part for part in sys.argv[1:] if part != "--resume")])
    typer.echo(
        f"freight: stopped with {ready} of {every} shards in {path}/; go on with"
        f"  {command} --resume",
        err=True,
    )
    raise typer.Exit(130)


def _show(wanted: list[RequestedMetric], done: "Run", as_json: bool) -> None:
    if as_json:
        print(json.dumps(json.loads(done.written())))
        return
    console, outcomes = Console(), done.outcomes
    console.print(means_table(done.segments, wanted, [one.system for one in outcomes]))
    flags, signatures = [one.flags for one in outcomes], [one.signature for one in outcomes]
    print_notes(done.segments, wanted, flags, signatures)
    console.print(f"{len(done.files)} shards in {done.folder}/", highlight=False)
