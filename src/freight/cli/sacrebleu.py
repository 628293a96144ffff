"""Scores printed as sacrebleu prints them: with intervals and paired tests, in four formats.

A `ScoreLine` is the score of one system by one column, with its confidence interval and p-value
where they were asked for. Lines are printed as plain text, JSON, Markdown or LaTeX, or as a table.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from freight.cli.groups import DEFAULT_SAMPLES, PRINTED, Presentation
from freight.cli.options import SelectedMetric

if TYPE_CHECKING:
    from freight.core.result import Column, Result
    from freight.data.corpus import RowOrigins
    from freight.judge.significance import Interval
    from freight.report.formatting import Mark


@dataclass(frozen=True)
class ScoreLine:
    """The score of one system by one column, with its interval and its p-value where asked for."""

    metric: str
    column: "Column"
    primary: bool
    system: str
    score: float
    interval: "Interval | None"
    p: float
    signature: str

    @property
    def name(self) -> str:
        """The metric, and the column where it is not the primary one."""
        return self.metric if self.primary else f"{self.metric}:{self.column.name}"

    @property
    def arrow(self) -> str:
        """Whether higher or lower is better."""
        return "↑" if self.column.higher else "↓"


def score_lines(
    requested: Sequence[SelectedMetric],
    results: "Sequence[Result]",
    origins: "RowOrigins | None",
    presentation: Presentation,
) -> list[ScoreLine]:
    """A line for each metric, column and system, in the order in which they were given."""
    return [
        line
        for one, result in zip(requested, results, strict=True)
        for line in _metric_lines(one, result, origins, presentation)
    ]


def _metric_lines(
    one: SelectedMetric,
    result: "Result",
    origins: "RowOrigins | None",
    presentation: Presentation,
) -> Iterator[ScoreLine]:
    columns = {column.name: column for column in result.columns}
    parts: list[Result] = [result]
    names: tuple[str, ...] = ("",)
    if origins is not None:
        names = origins.names
        parts = [result.only(origins.rows_of(k)) for k in range(len(names))]
    intervals, p_values = _resample(result, parts, origins, presentation)
    for name in one.columns:
        for k, (system, part) in enumerate(zip(names, parts, strict=True)):
            yield ScoreLine(
                metric=one.metric.name,
                column=columns[name],
                primary=name == result.columns[0].name,
                system=system,
                score=part.system[name],
                interval=intervals[k].get(name),
                p=p_values.get((name, k), math.nan),
                signature=result.signature,
            )


def _resample(
    result: "Result",
    parts: "Sequence[Result]",
    origins: "RowOrigins | None",
    asked: Presentation,
) -> "tuple[list[dict[str, Interval]], dict[tuple[str, int], float]]":
    """Intervals by system and column, and p-values by column and system."""
    from freight.judge.systems import compare_with_baseline, system_scores

    if asked.test and origins is not None:
        samples = asked.samples or DEFAULT_SAMPLES
        tested = compare_with_baseline(
            result, origins, asked.test, asked.resamples, asked.seed, samples
        )
        intervals = [{one.column: one.scores[k] for one in tested} for k in range(len(parts))]
        return intervals, {
            (x.column, k): float(p) for x in tested for k, p in enumerate(x.p_values)
        }
    if not asked.samples:
        return [{} for _ in parts], {}
    return [system_scores(part, asked.samples, asked.seed) for part in parts], {}


def format_lines(lines: Sequence[ScoreLine], presentation: Presentation) -> str:
    """The lines in the format of the presentation, or the scores alone."""
    if presentation.score_only:
        return "\n".join(presentation.number(line.score) for line in lines)
    return _FORMATS[str(presentation.form)](lines, presentation)


def lines_table(lines: Sequence[ScoreLine], title: str, presentation: Presentation) -> Table:
    """A table for people, with intervals, and p-values where systems were tested."""
    systems = list(dict.fromkeys(line.system for line in lines))
    several = ["system"] if len(systems) > 1 else []
    tested = [f"p against {systems[0]}"] if presentation.test else []
    table = Table("metric", "column", *several, title=title)
    for name in ("score", "95 % interval", *tested):
        table.add_column(name, justify="right")
    number = presentation.number
    for line in lines:
        low, high = (line.interval.low, line.interval.high) if line.interval else (math.nan,) * 2
        cells = [Text(line.metric), Text(line.column.name + line.arrow)]
        cells += [Text(line.system)] * len(several)
        cells += [Text(number(line.score)), Text(f"{number(low)} – {number(high)}")]
        cells += [Text(_p_value(line.p))] * len(tested)
        table.add_row(*cells, end_section=line.system == systems[-1])
    return table


def line_record(line: ScoreLine, presentation: Presentation) -> dict[str, Any]:
    """A line with sacrebleu's keys, and the system where there are several."""
    from freight.core.result import cite

    record: dict[str, Any] = {"name": line.name}
    if line.system:
        record["system"] = line.system
    record["score"] = _rounded(line.score, presentation)
    record["citation"] = cite(line.signature)
    record["signature"] = line.signature
    if line.interval is not None:
        record["confidence_mean"] = _rounded(line.interval.mean, presentation)
        record["confidence_var"] = _rounded(_half_width(line.interval), presentation)
        record["confidence"] = _mean_and_half_width(line.interval, presentation)
    if not math.isnan(line.p):
        record["p_value"] = line.p
    return record


def _as_json(lines: Sequence[ScoreLine], presentation: Presentation) -> str:
    records = [line_record(line, presentation) for line in lines]
    return json.dumps(records if len(records) > 1 else records[0], indent=1, ensure_ascii=False)


def _as_text(lines: Sequence[ScoreLine], presentation: Presentation) -> str:
    return "\n".join(_text_line(line, presentation) for line in lines)


def _text_line(line: ScoreLine, presentation: Presentation) -> str:
    column = "" if line.primary else f":{line.column.name}"
    interval, p = "", "" if math.isnan(line.p) else f" (p = {_p_value(line.p)})"
    if line.interval:
        interval = f" ({_mean_and_half_width(line.interval, presentation)})"
    cited, score = presentation.cited(line.signature), presentation.number(line.score)
    text = f"{cited}{column} = {score}{interval}{p}"
    return f"{line.system}\t{text}" if line.system else text


def _as_markdown(lines: Sequence[ScoreLine], presentation: Presentation) -> str:
    from freight.report.formatting import markdown

    return markdown(*_grid(lines, presentation)).rstrip()


def _as_latex(lines: Sequence[ScoreLine], presentation: Presentation) -> str:
    from freight.report.formatting import latex

    return latex(*_grid(lines, presentation)).rstrip()


_FORMATS = dict(zip(PRINTED, (_as_text, _as_json, _as_markdown, _as_latex), strict=True))


def _grid(
    lines: Sequence[ScoreLine], presentation: Presentation
) -> "tuple[list[str], list[list[Mark]]]":
    """Systems by metrics: the best of a column is bold, a star is p < 0.05 against the first."""
    from freight.report.formatting import Mark

    systems = list(dict.fromkeys(line.system for line in lines))
    columns = list(dict.fromkeys(line.name + line.arrow for line in lines))
    rows = [[Mark(system or "system")] for system in systems]
    for k in range(0, len(lines), len(systems)):
        group = lines[k : k + len(systems)]
        values = [line.score if line.column.higher else -line.score for line in group]
        rounded = [round(value, presentation.width) for value in values]
        for row, line, value in zip(rows, group, rounded, strict=True):
            is_best = len(systems) > 1 and value == max(rounded)
            row.append(Mark(_grid_cell(line, presentation), int(is_best)))
    return ["system", *columns], rows


def _grid_cell(line: ScoreLine, presentation: Presentation) -> str:
    half = f" ± {presentation.number(_half_width(line.interval))}" if line.interval else ""
    return f"{presentation.number(line.score)}{half}{'*' if line.p < 0.05 else ''}"


def _half_width(interval: "Interval") -> float:
    return (interval.high - interval.low) / 2


def _mean_and_half_width(interval: "Interval", presentation: Presentation) -> str:
    number = presentation.number
    return f"μ = {number(interval.mean)} ± {number(_half_width(interval))}"


def _rounded(value: float, presentation: Presentation) -> float | None:
    return None if math.isnan(value) else float(presentation.number(value))


def _p_value(p: float) -> str:
    return "" if math.isnan(p) else f"{p:.4f}"
