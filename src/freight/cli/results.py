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
from functools import cached_property, partial
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
from freight.core.flags import CRITICAL, CriticalDifference, differences_among
from freight.data.wmt import COLUMNS, WmtTask, reference_names, write_scores
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.result import Column, Result
    from freight.core.scale import AgreementRate, Scale
    from freight.core.scorers import PipelineScorer
    from freight.core.types import Progress
    from freight.data.corpus import Corpus, RowOrigins
    from freight.judge.systems import SystemRanking
    from freight.transport.types import Array


SHUFFLED = "shuffled references"


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
        self._fits_scale = True
        self.baseline: Sequence[Result] = ()

    def __len__(self) -> int:
        return self._count

    def add(self, results: "Sequence[Result]") -> None:
        """Add the results of the next chunk, one per metric."""
        from freight.core.result import count_segments

        self._fits_scale &= all(result.fits_scale for result in results)
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

    def score_baseline(self, metrics: "Sequence[PipelineScorer]", corpus: "Corpus") -> None:
        """Score the first segments against references of other segments."""
        from freight.core.scale import score_shuffled

        segments = None if self._origins is None else self._origins.segments
        self.baseline = score_shuffled(metrics, corpus, segments, self._presentation.seed)

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
            cells = *self._place(row), difference.kind, *difference.words
            table.add_row(*map(Text, cells))
        return table

    def _place(self, row: int) -> list[str]:
        """The number of a row's segment and, where there are several, its system."""
        origin = {} if self._origins is None else self._origins.names_of(row)
        place = [*map(str, origin.values())] or [str(row + 1)]
        return place if self._several else place[:1]

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
        baseline = [one.system for one in self.baseline]
        return scores_table(self._extent, self._requested, systems, asked, baseline)

    @property
    def _extent(self) -> str:
        """How much was scored."""
        if self._origins is not None and self._several:
            return self._origins.extent
        return f"{self._count} segment{'s' * (self._count != 1)}"

    def _systems_table(self) -> Table:
        """By column, the systems from best to worst, each tested against the next."""
        from freight.cli.compare import add_systems, systems_table

        table = systems_table(self._extent)
        for k, (one, rankings) in enumerate(zip(self._requested, self.rankings, strict=True)):
            for ranking in rankings:
                heading = f"{one.metric.name} {ranking.column}{_arrows(one)[ranking.column]}"
                agree = partial(self._agreement, k, ranking)
                add_systems(table, heading, ranking, agree, self._presentation.number)
                if self.baseline:
                    chance = self._presentation.number(self.baseline[k].system[ranking.column])
                    table.add_row(Text(SHUFFLED, "dim"), chance)
                table.add_section()
        if not any(map(str, table.columns[-1].cells)):  # nothing is known of people
            table.columns.pop()
        return table

    def _agreement(
        self, k: int, ranking: "SystemRanking", one: int, other: int
    ) -> "AgreementRate | None":
        """How often people prefer the better of two systems that differ so much."""
        from freight.core.scale import find_scale

        scale = find_scale(self._signatures[k], ranking.column) if self._fits_scale else None
        difference = ranking.scores[one].value - ranking.scores[other].value
        return scale.agree(difference, int(ranking.common[one, other])) if scale else None

    def print_meaning(self) -> None:
        """Print where each metric's first score stands among those of real texts, if measured."""
        for k, one in enumerate(self._requested):
            for name, scale in islice(self._scales(k).items(), 1):
                placed = scale.describe(self._system_scores(k)[name], self._count)
                _print_note(f"{one.metric.name} {name} {placed}")

    def _scales(self, k: int) -> "dict[str, Scale]":
        """The scales of the columns of a single system, where these can be used."""
        from freight.core.scale import find_scale

        if self._several or not self._fits_scale:
            return {}
        scores = self._system_scores(k)
        scales = {name: find_scale(self._signatures[k], name) for name in scores}
        return {name: x for name, x in scales.items() if x and scores[name] == scores[name]}

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
        for k, rankings in enumerate(self.rankings):
            from freight.cli.compare import ranking_record

            records[k]["systems"] = {
                x.column: ranking_record(x, partial(self._agreement, k, x)) for x in rankings
            }
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
            systems = {"": [self._last[k].system_of(self._tallies[k]) for k in count]}
        else:
            of = self._origins.rows_of
            systems = {
                name: [self.results[k].only(of(system)).system for k in count]
                for system, name in enumerate(self._origins.names)
            }
        segments = self.results if any(one.every_segment for one in thresholds) else ()
        rows = [" ".join(self._place(row)[::-1]) for row in range(self._count)] if segments else []
        return missed_thresholds(thresholds, self._requested, systems, segments, rows)

    def _system_scores(self, k: int) -> dict[str, float]:
        every = self._last[k].system_of(self._tallies[k])
        return {name: every[name] for name in self._requested[k].columns}

    def _record(self, k: int) -> dict[str, Any]:
        from freight.core.result import cite

        system = self._system_scores(k)
        scales = {name: x.record(system[name]) for name, x in self._scales(k).items()}
        chunks, names = self._chunks[k], self._requested[k].columns
        return {
            "metric": self._requested[k].metric.name,
            "system": {name: json_number(value) for name, value in system.items()},
            "scores": {n: [json_number(x) for part in chunks for x in part[n]] for n in names},
            "references": [int(x) for part in chunks for x in part.winners],
            "flags": [[flag.record for flag in one] for part in chunks for one in part.flags],
            **({"scale": scales} if scales else {}),
            **({"baseline": {"shuffled": self.baseline[k].system}} if self.baseline else {}),
            "citation": cite(self._signatures[k]),
            "signature": self._signatures[k],
        }


def scores_table(
    extent: str,
    requested: Sequence[SelectedMetric],
    systems: Sequence[Mapping[str, float]],
    presentation: Presentation,
    baseline: Sequence[Mapping[str, float]] = (),
) -> Table:
    """System scores by metric and column; they are means, or what else the metric makes of all.

    The baseline, where there is one, has those of the same metrics with shuffled references.
    """
    table = Table("metric", "column", title=extent)
    table.add_column("score", justify="right")
    if baseline:
        table.add_column(SHUFFLED, justify="right")
    for k, (one, system) in enumerate(zip(requested, systems, strict=True)):
        for name in one.columns:
            scores = [presentation.number(x[name]) for x in (system, *baseline[k : k + 1])]
            table.add_row(one.metric.name, name + _arrows(one)[name], *scores)
    return table


def print_notes(
    count: int,
    requested: Sequence[SelectedMetric],
    flags: Sequence[Mapping[str, int]],
    signatures: Sequence[str],
    presentation: Presentation,
) -> None:
    """Print how many segments have each flag, on which side, and the signatures to cite."""
    for one, counts in zip(requested, flags, strict=True):
        for flag in [flag for flag in counts if flag not in CRITICAL]:  # which have a line below
            _print_note(f"{one.metric.name}: {counts[flag]} of {count} segments: {flag}", "yellow")
    for signature in map(presentation.cited, signatures):
        Console().print(Text(signature, "dim"), soft_wrap=True)


def _print_note(line: str, style: str = "") -> None:
    """Print a line, broken between words at a terminal alone."""
    console = Console()
    console.print(line, style=style, highlight=False, soft_wrap=not console.is_terminal)


def print_critical_note(corpus: "Corpus", are_listed: bool, most: int = 5000) -> None:
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
    more = "" if are_listed else "; --critical lists them"
    where = f"{sum(map(bool, every))} of {first}{len(every)} segments"
    _print_note(f"critical differences in {where}: {listed}{more}", "yellow")


def _arrows(one: SelectedMetric) -> dict[str, str]:
    return {column.name: "↑" if column.higher else "↓" for column in one.metric.columns}


def json_number(value: float) -> float | None:
    """The number as JSON has it: nan is null."""
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
    origins.check_complete()
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
