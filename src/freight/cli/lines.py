"""Scores one by one, and how they are printed: bare, as sacrebleu's lines or JSON, as a table."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from freight.cli.manner import Manner
from freight.cli.options import Wanted

if TYPE_CHECKING:
    from freight.data.places import Places
    from freight.judge.significance import Interval
    from freight.report.markup import Mark
    from freight.results import Column, Result


@dataclass(frozen=True)
class Line:
    """A score of one system by one column, with what was asked for besides."""

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
        """Which way is better."""
        return "↑" if self.column.higher else "↓"


def lines(
    wanted: Sequence[Wanted], results: "Sequence[Result]", places: "Places | None", manner: Manner
) -> list[Line]:
    """Metrics by columns by systems, in the order in which they were given."""
    return [
        line
        for one, result in zip(wanted, results, strict=True)
        for line in _lines(one, result, places, manner)
    ]


def printed(found: Sequence[Line], manner: Manner) -> str:
    """As the manner has it; for people it is a table, which is drawn elsewhere."""
    if manner.bare:
        return "\n".join(manner.number(line.score) for line in found)
    if manner.form == "json":
        records = [record(line, manner) for line in found]
        return json.dumps(records if len(records) > 1 else records[0], indent=1, ensure_ascii=False)
    if manner.form == "text":
        return "\n".join(_said(line, manner) for line in found)
    from freight.report.markup import FORMS

    return FORMS[str(manner.form)](*_grid(found, manner)).rstrip()


def drawn(found: Sequence[Line], title: str, manner: Manner) -> Table:
    """A table for people: intervals where there are some, p where systems were tested."""
    systems = list(dict.fromkeys(line.system for line in found))
    several = ["system"] if len(systems) > 1 else []
    table = Table("metric", "column", *several, title=title)
    for name in ("score", "95 % interval", *([f"p against {systems[0]}"] if manner.test else [])):
        table.add_column(name, justify="right")
    for line in found:
        names = line.metric, line.column.name + line.arrow
        system = [Text(line.system)] if several else []
        low, high = (line.interval.low, line.interval.high) if line.interval else (math.nan,) * 2
        cells = manner.number(line.score), f"{manner.number(low)} – {manner.number(high)}"
        tested = [_chance(line.p)] if manner.test else []
        table.add_row(*names, *system, *cells, *tested, end_section=line.system == systems[-1])
    return table


def record(line: Line, manner: Manner) -> dict[str, Any]:
    """With sacrebleu's keys, and the system where there are several."""
    found: dict[str, Any] = {"name": line.name}
    if line.system:
        found["system"] = line.system
    found |= {"score": _rounded(line.score, manner), "signature": line.signature}
    if line.interval is not None:
        mean, half = line.interval.mean, _half(line.interval)
        found |= {"confidence_mean": _rounded(mean, manner)}
        found |= {"confidence_var": _rounded(half, manner)}
        found["confidence"] = _around(line.interval, manner)
    if not math.isnan(line.p):
        found["p_value"] = line.p
    return found


def _lines(
    one: Wanted, result: "Result", places: "Places | None", manner: Manner
) -> Iterator[Line]:
    there = {column.name: column for column in result.columns}
    parts: list[Result] = [result]
    names: tuple[str, ...] = ("",)
    if places is not None:
        names = places.names
        parts = [result.only(places.rows_of(k)) for k in range(len(names))]
    intervals, chances = _resampled(result, parts, places, manner)
    for name in one.columns:
        for k, (system, part) in enumerate(zip(names, parts, strict=True)):
            values = there[name], name == result.columns[0].name, system, part.system[name]
            known = intervals[k].get(name), chances.get((name, k), math.nan)
            yield Line(one.metric.name, *values, *known, result.signature)


def _resampled(
    result: "Result", parts: "Sequence[Result]", places: "Places | None", manner: Manner
) -> "tuple[list[dict[str, Interval]], dict[tuple[str, int], float]]":
    """A system's intervals by column, and by column and system the p that it is as the first."""
    from freight.judge.paired import against_first
    from freight.judge.standings import system_scores

    if manner.test and places is not None:
        asked = manner.test, manner.trials, manner.seed, manner.samples or 1000
        tested = against_first(result, places, *asked)
        several = [{one.column: one.scores[k] for one in tested} for k in range(len(parts))]
        return several, {(x.column, k): float(p) for x in tested for k, p in enumerate(x.p)}
    if not manner.samples:
        return [{} for _ in parts], {}
    return [system_scores(part, manner.samples, manner.seed) for part in parts], {}


def _said(line: Line, manner: Manner) -> str:
    """One line: which system, the signature, the score."""
    named = "" if line.primary else f":{line.column.name}"
    around = f" ({_around(line.interval, manner)})" if line.interval else ""
    chance = "" if math.isnan(line.p) else f" (p = {_chance(line.p)})"
    shown = f"{line.signature}{named} = {manner.number(line.score)}{around}{chance}"
    return f"{line.system}\t{shown}" if line.system else shown


def _grid(found: Sequence[Line], manner: Manner) -> "tuple[list[str], list[list[Mark]]]":
    """Systems by metrics, the best of each bold, a star where one differs from the first."""
    from freight.report.markup import Mark

    systems = list(dict.fromkeys(line.system for line in found))
    columns = list(dict.fromkeys(line.name + line.arrow for line in found))
    rows = [[Mark(system or "system")] for system in systems]
    for k in range(0, len(found), len(systems)):
        group = found[k : k + len(systems)]
        values = [line.score if line.column.higher else -line.score for line in group]
        best = max(round(value, manner.width) for value in values)
        for row, line, value in zip(rows, group, values, strict=True):
            place = int(len(systems) > 1 and round(value, manner.width) == best)
            row.append(Mark(_cell(line, manner), place))
    return ["system", *columns], rows


def _cell(line: Line, manner: Manner) -> str:
    half = f" ± {manner.number(_half(line.interval))}" if line.interval else ""
    return f"{manner.number(line.score)}{half}{'*' if line.p < 0.05 else ''}"


def _half(interval: "Interval") -> float:
    return (interval.high - interval.low) / 2


def _around(interval: "Interval", manner: Manner) -> str:
    return f"μ = {manner.number(interval.mean)} ± {manner.number(_half(interval))}"


def _rounded(value: float, manner: Manner) -> float | None:
    return None if math.isnan(value) else float(manner.number(value))


def _chance(p: float) -> str:
    return "" if math.isnan(p) else f"{p:.4f}"
