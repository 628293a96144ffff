"""What is said at the end of a run: scores, flags, signatures; as a table or as JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.cli.options import RequestedMetric
from freight.cli.sacrebleu import Line, Manner, drawn, lines, printed, record

if TYPE_CHECKING:
    from freight.core.result import Result
    from freight.core.scoring import Scorer
    from freight.data.corpus import RowOrigins
    from freight.judge.systems import Standing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from freight.data.wmt import COLUMNS, WmtTask, reference_names, write_scores
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.cli.options import RequestedMetric
    from freight.core.result import Column, Result
    from freight.transport.types import Array


class Summary:
    """Sums over the chunks of a run; the scores of segments are kept only where asked for.

    Systems are compared with each other where `places` has several of them, which takes all scores.
    """

    def __init__(
        self,
        wanted: Sequence[RequestedMetric],
        signatures: Sequence[str],
        keep: bool,
        places: "RowOrigins | None" = None,
        manner: Manner | None = None,
    ) -> None:
        self._wanted, self._signatures, self._places = wanted, signatures, places
        self._manner = manner or Manner()
        self._several = places is not None and len(places.names) > 1
        self._tallies: list[Any] = [0.0] * len(wanted)
        self._last: Sequence[Result] = ()
        self._flags: list[Counter[str]] = [Counter() for _ in wanted]
        self._kept: list[list[Result]] | None = None
        if keep or self._several or self._manner.samples or self._manner.brief:
            self._kept = [[] for _ in wanted]
        self._count = 0
        self._unknown = [0.0] * len(wanted)

    def __len__(self) -> int:
        return self._count

    def add(self, results: "Sequence[Result]") -> None:
        """The results of the next chunk, one a metric."""
        from freight.core.result import flag_kind

        for k, result in enumerate(results):
            self._tallies[k] = self._tallies[k] + result.tally
            for flags in result.flags:
                self._flags[k].update(flag_kind(flag) for flag in flags)
            self._unknown[k] += result.unknown * len(result)
            if self._kept is not None:
                self._kept[k].append(result)
        self._last = results
        self._count += len(results[0])

    @property
    def unfit(self) -> "list[Scorer]":
        """The metrics whose encoder does not know much of the texts."""
        from freight.data.languages import UNKNOWN

        shares = zip(self._wanted, self._unknown, strict=True)
        return [one.metric for one, sum_ in shares if sum_ > UNKNOWN * self._count]

    @property
    def results(self) -> "list[Result]":
        """What was kept, a result a metric."""
        from freight.core.result import Result

        return [Result.joined(parts) for parts in self._kept or ()]

    def show(self) -> None:
        """A table for people, what was flagged, and the signatures; or the form asked for."""
        if self._manner.brief:
            print(printed(self.lines, self._manner))
            return
        Console().print(self._drawn())
        print_notes(self._count, self._wanted, self._flags, self._signatures)

    @property
    def lines(self) -> list[Line]:
        """The scores of systems one by one; out of what was kept."""
        places = self._places if self._several else None
        return lines(self._wanted, self.results, places, self._manner)

    def _drawn(self) -> Table:
        if self._manner.test or (self._manner.samples and not self._several):
            return drawn(self.lines, f"{self._count} segments", self._manner)
        return self._systems_table() if self._several else self._table()

    def _table(self) -> Table:
        systems = [self._system(k) for k in range(len(self._wanted))]
        return means_table(self._count, self._wanted, systems, self._manner)

    def _systems_table(self) -> Table:
        """Every column's systems, the best first, and whether each beats the next."""
        table = Table("metric", "column", "system", title=f"{self._count} segments")
        for name in ("score", "95 % interval", "p over the next"):
            table.add_column(name, justify="right")
        for one, standings in zip(self._wanted, self.standings, strict=True):
            for standing in standings:
                names = one.metric.name, standing.column + _arrows(one)[standing.column]
                for rank, system in enumerate(standing.order):
                    value, _, low, high, _ = standing.scores[system]
                    following = standing.order[rank + 1 : rank + 2]
                    p = "".join(f"{standing.beats[system, other]:.3f}" for other in following)
                    shown = self._manner.number
                    numbers = shown(value), f"{shown(low)} – {shown(high)}", p
                    label = names if rank == 0 else ("", "")
                    table.add_row(*label, Text(standing.names[system]), *numbers)
                table.add_section()
        return table

    @cached_property
    def standings(self) -> "list[list[Standing]]":
        """By metric, the columns asked for; nothing where there are not several systems."""
        from freight.judge.systems import standings

        if self._places is None or not self._several:
            return []
        found = []
        for one, result in zip(self._wanted, self.results, strict=True):
            every = standings(result, self._places, self._manner.samples or 1000, self._manner.seed)
            by_column = {standing.column: standing for standing in every}
            found.append([by_column[name] for name in one.columns])
        return found

    def print_json(self, timings: dict[str, float]) -> None:
        """One object on standard output."""
        records = [self._record(k) for k in range(len(self._wanted))]
        for one, standings in zip(records, self.standings, strict=False):
            one["systems"] = {standing.column: _compared(standing) for standing in standings}
        rows: dict[str, Any] = {}
        if self._places is not None:
            rows = self._places.columns(0, self._count)
        if self._manner.samples or self._manner.test:
            rows["confidence"] = [record(line, self._manner) for line in self.lines]
        print(json.dumps({"segments": self._count, "metrics": records, **rows, "timings": timings}))

    def _system(self, k: int) -> dict[str, float]:
        every = self._last[k].system_of(self._tallies[k])
        return {name: every[name] for name in self._wanted[k].columns}

    def _record(self, k: int) -> dict[str, Any]:
        kept = self._kept[k] if self._kept is not None else []
        names = self._wanted[k].columns
        return {
            "metric": self._wanted[k].metric.name,
            "system": {name: _number(value) for name, value in self._system(k).items()},
            "scores": {n: [_number(x) for part in kept for x in part[n]] for n in names},
            "references": [int(x) for part in kept for x in part.winners],
            "flags": [list(flags) for part in kept for flags in part.flags],
            "signature": self._signatures[k],
        }


def means_table(
    count: int,
    wanted: Sequence[RequestedMetric],
    systems: Sequence[Mapping[str, float]],
    manner: Manner = Manner(),  # noqa: B008
) -> Table:
    """System scores by metric and column."""
    table = Table("metric", "column", title=f"{count} segments")
    table.add_column("mean", justify="right")
    for one, system in zip(wanted, systems, strict=True):
        for name in one.columns:
            table.add_row(one.metric.name, name + _arrows(one)[name], manner.number(system[name]))
    return table


def print_notes(
    count: int,
    wanted: Sequence[RequestedMetric],
    flags: Sequence[Mapping[str, int]],
    signatures: Sequence[str],
) -> None:
    """What was flagged, and the signatures."""
    console = Console()
    for one, found in zip(wanted, flags, strict=True):
        for flag, times in found.items():
            line = f"{one.metric.name}: {times} of {count} segments: {flag}"
            console.print(line, style="yellow", highlight=False)
    for signature in signatures:
        console.print(signature, style="dim", soft_wrap=True, highlight=False)


def _compared(standing: "Standing") -> dict[str, Any]:
    """Each system with its interval, and the p that it beats each of the others."""
    found = {}
    for k, name in enumerate(standing.names):
        value, _, low, high, _ = map(_number, standing.scores[k])
        beats = {
            other: _number(p)
            for other, p in zip(standing.names, standing.beats[k], strict=True)
            if other != name
        }
        found[name] = {"score": value, "low": low, "high": high, "p": beats}
    return found


def _arrows(one: RequestedMetric) -> dict[str, str]:
    return {column.name: "↑" if column.higher else "↓" for column in one.metric.columns}


def _number(value: float) -> float | None:
    return float(value) if value == value else None


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
) -> WmtTask | None:
    """What is to be written for the task; nothing where the format is another."""
    if form not in FORMATS:
        return None
    if len(outputs) != 1 or Path(outputs[0]).is_file():
        raise InvalidInput(f"--format {form} writes several files; give one folder, -o out/")
    if pair is None:
        raise InvalidInput(f"--format {form} needs the language pair, such as -l en-de")
    if test_set is None and form != FORMATS[0]:
        raise InvalidInput(f"--format {form} needs the test set, such as -t newstest2021")
    return WmtTask(form, pair, test_set or "", reference_names(refs) if refs else ("ref",))


def others(hyps: list[str], task: WmtTask) -> list[str]:
    """The systems that are not the references themselves, which lie among them in this layout."""
    found = [hyp for hyp in hyps if Path(hyp).stem not in task.references]
    return found or hyps


def write(
    folder: Path,
    task: WmtTask,
    wanted: "Sequence[RequestedMetric]",
    results: "Sequence[Result]",
    places: "RowOrigins",
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


def _check_complete(places: "RowOrigins") -> None:
    """Every system has every input, as the task wants it."""
    inputs = int(places.segments.max()) + 1
    for k, name in enumerate(places.names):
        found = len(np.unique(places.segments[places.systems == k]))
        if found != inputs:
            raise InvalidInput(f"{name} has {found} of {inputs} segments; the task wants them all")
