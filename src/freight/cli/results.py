"""What a scoring run prints and writes at its end: a table, JSON, or files of the WMT metrics task.

`ScoreSummary` adds up the results of the chunks; the scores of segments are kept in memory only
where something needs them. Progress bars are here too.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.cli.groups import DEFAULT_SAMPLES, Presentation
from freight.cli.options import SelectedMetric, Threshold, missed_thresholds
from freight.cli.sacrebleu import (
    ScoreLine,
    format_lines,
    line_record,
    lines_table,
    score_lines,
)
from freight.data.wmt import COLUMNS, WmtTask, reference_names, write_scores
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.flags import CriticalDifference
    from freight.core.result import Column, Result
    from freight.core.scorers import PipelineScorer
    from freight.core.types import Progress
    from freight.data.corpus import Corpus, RowOrigins
    from freight.judge.systems import SystemRanking
    from freight.transport.types import Array


class ScoreSummary:
    """System scores, flags and signatures of a run, added up chunk by chunk.

    Where `origins` names several systems they are compared, which needs the scores of all
    segments; `keep_segments` keeps them for other purposes.
    """

    def __init__(
        self,
        requested: Sequence[SelectedMetric],
        signatures: Sequence[str],
        presentation: Presentation,
        origins: "RowOrigins | None" = None,
        keep_segments: bool = False,
    ) -> None:
        self._requested, self._signatures = requested, signatures
        self._presentation, self._origins = presentation, origins
        self._several = origins is not None and len(origins.names) > 1
        self._tallies: list[Any] = [0.0] * len(requested)
        self._last: Sequence[Result] = ()
        self._flags: list[Counter[str]] = [Counter() for _ in requested]
        self._keeps = keep_segments or self._several or presentation.needs_scores
        self._chunks: list[list[Result]] = [[] for _ in requested]
        self._count = 0
        self._unknown = [0.0] * len(requested)
        self._differences: list[tuple[int, CriticalDifference]] = []

    def __len__(self) -> int:
        return self._count

    def add(self, results: "Sequence[Result]") -> None:
        """Add the results of the next chunk, one per metric."""
        from freight.core.flags import differences_among
        from freight.core.result import count_segments

        for k, result in enumerate(results):
            self._tallies[k] = self._tallies[k] + result.tally
            self._flags[k].update(count_segments(result.flags))
            self._unknown[k] += result.unknown * len(result)
            if self._keeps:
                self._chunks[k].append(result)
        if self._presentation.critical:
            flags = enumerate(results[0].flags, self._count)
            self._differences += [(k, x) for k, one in flags for x in differences_among(one)]
        self._last = results
        self._count += len(results[0])

    @property
    def lacking_vocabulary(self) -> "list[PipelineScorer]":
        """The metrics whose encoder does not know many units of the texts."""
        from freight.data.languages import UNKNOWN

        shares = zip(self._requested, self._unknown, strict=True)
        return [one.metric for one, total in shares if total > UNKNOWN * self._count]

    @cached_property
    def results(self) -> "list[Result]":
        """The result of each metric for all segments."""
        from freight.core.result import Result

        return [Result.joined(parts) for parts in self._chunks]

    def show(self) -> None:
        """Print a table, the flags and the signatures; or the lines of the format asked for."""
        if self._presentation.primary_only:
            print(format_lines(self._lines(), self._presentation))
            return
        Console().print(self._table())
        if self._presentation.critical:
            Console().print(self._differences_table())
        asked = self._presentation
        print_notes(self._count, self._requested, self._flags, self._signatures, asked)

    def _differences_table(self) -> Table:
        """Every critical difference, with the words of both texts."""
        table = Table("segment", title="Critical differences", title_justify="left")
        for name in (
            *(["system"] if self._several else []),
            "difference",
            "hypothesis",
            "reference",
        ):
            table.add_column(name, overflow="fold")
        for row, difference in self._differences:
            segment, system = row + 1, []
            if self._origins is not None:
                segment = int(self._origins.segments[row]) + 1
                system = [Text(self._origins.names[self._origins.systems[row]])]
            words = [Text(word) for word in difference.words]
            names = system if self._several else []
            table.add_row(str(segment), *names, difference.kind, *words)
        return table

    def _lines(self) -> list[ScoreLine]:
        origins = self._origins if self._several else None
        return score_lines(self._requested, self.results, origins, self._presentation)

    def _table(self) -> Table:
        asked = self._presentation
        if asked.test or (asked.samples and not self._several):
            return lines_table(self._lines(), self._extent, asked)
        if self._several:
            return self._systems_table()
        systems = [self._system_scores(k) for k in range(len(self._requested))]
        return scores_table(self._extent, self._requested, systems, asked)

    @property
    def _extent(self) -> str:
        """How much was scored."""
        if self._origins is not None and self._several:
            return self._origins.extent
        return f"{self._count} segments"

    def _systems_table(self) -> Table:
        """By column, the systems from best to worst, each tested against the next."""
        table = Table("metric", "column", "system", title=self._extent)
        for name in ("score", "95 % interval", "p against next"):
            table.add_column(name, justify="right")
        number = self._presentation.number
        for one, rankings in zip(self._requested, self.rankings, strict=True):
            for ranking in rankings:
                names = one.metric.name, ranking.column + _arrows(one)[ranking.column]
                for rank, system in enumerate(ranking.order):
                    score = ranking.scores[system]
                    following = ranking.order[rank + 1 : rank + 2]
                    p = "".join(f"{ranking.p_values[system, other]:.3f}" for other in following)
                    label = names if rank == 0 else ("", "")
                    interval = f"{number(score.low)} – {number(score.high)}"
                    shown = Text(ranking.names[system])
                    table.add_row(*label, shown, number(score.value), interval, p)
                table.add_section()
        return table

    @cached_property
    def rankings(self) -> "list[list[SystemRanking]]":
        """The comparison of systems by metric and requested column; empty for a single system."""
        from freight.judge.systems import rank_systems

        if self._origins is None or not self._several:
            return []
        samples, seed = self._presentation.samples or DEFAULT_SAMPLES, self._presentation.seed
        by_metric = []
        for one, result in zip(self._requested, self.results, strict=True):
            every = rank_systems(result, self._origins, samples, seed)
            by_column = {ranking.column: ranking for ranking in every}
            by_metric.append([by_column[name] for name in one.columns])
        return by_metric

    def print_json(self, timings: Mapping[str, float]) -> None:
        """Print one object: the scores of segments and systems, flags, signatures, timings."""
        records = [self._record(k) for k in range(len(self._requested))]
        for one, rankings in zip(records, self.rankings, strict=False):
            one["systems"] = {ranking.column: _compared(ranking) for ranking in rankings}
        rows: dict[str, Any] = {}
        if self._origins is not None:
            from freight.run.shards import as_columns

            rows = as_columns(map(self._origins.names_of, range(self._count)))
        if self._presentation.samples or self._presentation.test:
            rows["confidence"] = [line_record(line, self._presentation) for line in self._lines()]
        print(json.dumps({"segments": self._count, "metrics": records, **rows, "timings": timings}))

    def missed(self, thresholds: Sequence[Threshold]) -> list[str]:
        """A line for each threshold that the scores miss."""
        count = range(len(self._requested))
        if self._origins is None or not self._several:
            every = [self._last[k].system_of(self._tallies[k]) for k in count]
            systems = {"": every}
        else:
            of = self._origins.rows_of
            systems = {
                name: [self.results[k].only(of(system)).system for k in count]
                for system, name in enumerate(self._origins.names)
            }
        segments = self.results if any(one.every_segment for one in thresholds) else ()
        return missed_thresholds(thresholds, self._requested, systems, segments)

    def _system_scores(self, k: int) -> dict[str, float]:
        every = self._last[k].system_of(self._tallies[k])
        return {name: every[name] for name in self._requested[k].columns}

    def _record(self, k: int) -> dict[str, Any]:
        from freight.core.result import cite

        chunks, names = self._chunks[k], self._requested[k].columns
        return {
            "metric": self._requested[k].metric.name,
            "system": {name: _number(value) for name, value in self._system_scores(k).items()},
            "scores": {n: [_number(x) for part in chunks for x in part[n]] for n in names},
            "references": [int(x) for part in chunks for x in part.winners],
            "flags": [[flag.record for flag in one] for part in chunks for one in part.flags],
            "citation": cite(self._signatures[k]),
            "signature": self._signatures[k],
        }


def scores_table(
    extent: str,
    requested: Sequence[SelectedMetric],
    systems: Sequence[Mapping[str, float]],
    presentation: Presentation,
) -> Table:
    """System scores by metric and column; they are means, or what else the metric makes of all."""
    table = Table("metric", "column", title=extent)
    table.add_column("score", justify="right")
    for one, system in zip(requested, systems, strict=True):
        for name in one.columns:
            score = presentation.number(system[name])
            table.add_row(one.metric.name, name + _arrows(one)[name], score)
    return table


def print_notes(
    count: int,
    requested: Sequence[SelectedMetric],
    flags: Sequence[Mapping[str, int]],
    signatures: Sequence[str],
    presentation: Presentation,
) -> None:
    """Print how many segments have each flag, on which side, and the signatures to cite."""
    console = Console()
    for one, counts in zip(requested, flags, strict=True):
        for flag, times in counts.items():
            line = f"{one.metric.name}: {times} of {count} segments: {flag}"
            console.print(line, style="yellow", highlight=False)
    for signature in map(presentation.cited, signatures):
        console.print(Text(signature, "dim"), soft_wrap=True)


def print_critical_note(corpus: "Corpus", most: int = 5000) -> None:
    """Print how many of the first segments have critical differences, which no score shows."""
    from freight.core.critical import critical_differences

    every = [
        {one.kind for one in critical_differences(hyp, refs)} for hyp, refs in islice(corpus, most)
    ]
    if not any(every):
        return
    kinds = Counter(kind for one in every for kind in one)
    listed = ", ".join(f"{kind} ({times})" for kind, times in kinds.most_common())
    first = "the first " if len(corpus) > most else ""
    count = sum(map(bool, every))
    line = f"critical differences in {count} of {first}{len(every)} segments: {listed}; --critical"
    Console().print(f"{line} lists them", style="yellow", highlight=False)


def _compared(ranking: "SystemRanking") -> dict[str, Any]:
    """Each system's score, interval, and one-sided p-values of being better than the others."""
    record = {}
    for k, name in enumerate(ranking.names):
        score = ranking.scores[k]
        p_values = {
            other: _number(p)
            for other, p in zip(ranking.names, ranking.p_values[k], strict=True)
            if other != name
        }
        bounds = {"low": _number(score.low), "high": _number(score.high)}
        record[name] = {"score": _number(score.value), **bounds, "p": p_values}
    return record


def _arrows(one: SelectedMetric) -> dict[str, str]:
    return {column.name: "↑" if column.higher else "↓" for column in one.metric.columns}


def _number(value: float) -> float | None:
    return float(value) if value == value else None


def progress_bar(
    total: int | None, label: str = "scoring"
) -> "AbstractContextManager[Progress | None]":
    """A progress bar on standard error, where that is a terminal."""
    from freight.core import pipeline

    return pipeline.progress_bar(total, label) if sys.stderr.isatty() else nullcontext()


class Stopwatch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Note that a stage has ended."""
        now = time.perf_counter()
        self.laps[stage] = round(now - self._last, 3)
        self._last = now


WMT_FORMATS = tuple(COLUMNS)


@dataclass(frozen=True)
class WmtOptions:
    """What the files of the WMT metrics task are named after."""

    panel: ClassVar = "Files of the WMT metrics task"

    language_pair: Annotated[
        str | None,
        typer.Option(
            "-l",
            "--language-pair",
            metavar="SRC-TGT",
            help="Such as en-de; TGT is the default of --lang.",
        ),
    ] = None
    test_set: Annotated[
        str | None,
        typer.Option("-t", "--test-set", metavar="NAME", help="Test set, for --format wmtNN."),
    ] = None

    def task(self, form: str | None, outputs: Sequence[str], refs: list[str]) -> WmtTask | None:
        """The files to write; nothing where the format is not one of the task's."""
        if form not in WMT_FORMATS:
            return None
        if len(outputs) != 1 or Path(outputs[0]).is_file():
            raise InvalidInput(f"--format {form} writes several files; give one folder, -o out/")
        if self.language_pair is None:
            raise InvalidInput(f"--format {form} needs the language pair, such as -l en-de")
        if self.test_set is None and form != WMT_FORMATS[0]:
            raise InvalidInput(f"--format {form} needs the test set, such as -t newstest2021")
        names = reference_names(refs) if refs else ("ref",)
        return WmtTask(form, self.language_pair, self.test_set or "", names)


def without_references(hyps: list[str], task: WmtTask) -> list[str]:
    """The systems but for the references, which are in the same folder in this layout."""
    systems = [hyp for hyp in hyps if Path(hyp).stem not in task.references]
    return systems or hyps


def write_wmt_files(
    folder: Path,
    task: WmtTask,
    requested: Sequence[SelectedMetric],
    results: "Sequence[Result]",
    origins: "RowOrigins",
) -> list[Path]:
    """Write segment and system scores, negated where lower is better; the files written."""
    written = []
    _check_complete(origins)
    for one, result in zip(requested, results, strict=True):
        parts = [result.only(origins.rows_of(k)) for k in range(len(origins.names))]
        by_name = {column.name: column for column in result.columns}
        for name in one.columns:
            column = by_name[name]
            label = result.name if column == result.columns[0] else f"{result.name}_{name}"
            segments = np.stack([_higher_is_better(part[name], column) for part in parts])
            whole = np.array([part.system[name] for part in parts])
            systems = _higher_is_better(whole, column)
            written += write_scores(folder, task, label, origins.names, segments, systems)
    return written


def _higher_is_better(scores: "Array", column: "Column") -> "Array":
    return scores if column.higher else -scores


def _check_complete(origins: "RowOrigins") -> None:
    """Every system has to have every segment."""
    inputs = int(origins.segments.max()) + 1
    for k, name in enumerate(origins.names):
        count = len(np.unique(origins.segments[origins.systems == k]))
        if count != inputs:
            raise InvalidInput(f"{name} has {count} of {inputs} segments; the task wants them all")
