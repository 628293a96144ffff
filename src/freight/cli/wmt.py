"""`freight score --format mtme`: scores as files of the WMT metrics task."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from freight.data.submissions import COLUMNS, Task, reference_names, write_scores
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.cli.options import Wanted
    from freight.data.places import Places
    from freight.results import Column, Result
    from freight.types import Array

FORMATS = tuple(COLUMNS)

LanguagePair = Annotated[
    str | None,
    typer.Option("-l", "--language-pair", metavar="SRC-TGT", help="en-de; --lang is its target."),
]
TestSet = Annotated[
    str | None, typer.Option("-t", "--test-set", metavar="NAME", help="For --format wmtNN.")
]


def wanted_task(
    form: str | None,
    pair: str | None,
    test_set: str | None,
    outputs: Sequence[str],
    refs: list[str],
) -> Task | None:
    """What is to be written for the task; nothing where the format is another."""
    if form not in FORMATS:
        return None
    if len(outputs) != 1 or Path(outputs[0]).is_file():
        raise InvalidInput(f"--format {form} writes several files; give one folder, -o out/")
    if pair is None:
        raise InvalidInput(f"--format {form} needs the language pair, such as -l en-de")
    if test_set is None and form != FORMATS[0]:
        raise InvalidInput(f"--format {form} needs the test set, such as -t newstest2021")
    return Task(form, pair, test_set or "", reference_names(refs) if refs else ("ref",))


def others(hyps: list[str], task: Task) -> list[str]:
    """The systems that are not the references themselves, which lie among them in this layout."""
    found = [hyp for hyp in hyps if Path(hyp).stem not in task.references]
    return found or hyps


def write(
    folder: Path,
    task: Task,
    wanted: "Sequence[Wanted]",
    results: "Sequence[Result]",
    places: "Places",
) -> list[Path]:
    """Scores that are higher for better, of each system and segment; what was written."""
    written = []
    _check_complete(places)
    for one, result in zip(wanted, results, strict=True):
        parts = [result.only(places.rows_of(k)) for k in range(len(places.names))]
        by_name = {column.name: column for column in result.columns}
        for name in one.columns:
            column = by_name[name]
            label = result.name if column == result.columns[0] else f"{result.name}_{name}"
            segments = np.stack([_oriented(part[name], column) for part in parts])
            whole = _oriented(np.array([part.system[name] for part in parts]), column)
            written += write_scores(folder, task, label, places.names, segments, whole)
    return written


def _oriented(scores: "Array", column: "Column") -> "Array":
    return scores if column.higher else -scores


def _check_complete(places: "Places") -> None:
    """Every system has every input, as the task wants it."""
    inputs = int(places.segments.max()) + 1
    for k, name in enumerate(places.names):
        found = len(np.unique(places.segments[places.systems == k]))
        if found != inputs:
            raise InvalidInput(f"{name} has {found} of {inputs} segments; the task wants them all")
