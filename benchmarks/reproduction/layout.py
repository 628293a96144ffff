"""Markdown: numbers as the papers print them, tables that mark the best, checked sentences."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from published import Printed

Values = Mapping[str, float]
"""A column of a table: a number by row; or a row of one, by column."""

PUBLISHED = "published"


class Untrue(Exception):
    """A sentence of the page that its numbers no longer support."""


class Line(NamedTuple):
    """A row of a table: a metric, who computed it, and numbers by column."""

    metric: str
    source: str
    values: Values
    ranked: bool = True


def checked(holds: bool, sentence: str) -> str:
    """The sentence if it is true; sentences written by hand are checked against the numbers."""
    if not holds:
        raise Untrue(f"the scores no longer support this sentence; rewrite it: {sentence}")
    return sentence


def number(value: float, digits: int = 3) -> str:
    """Without a zero before the point, with a true minus sign; a dash for nan."""
    if math.isnan(value):
        return "–"
    value = round(value, digits) + 0.0  # the sum makes −0 a 0
    text = f"{value:.{digits}f}".replace("-", "−")
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def p_value(p: float) -> str:
    """A p-value with three digits, or a bound of it."""
    return "< .001" if p < 0.001 else "> .999" if p > 0.999 else number(p)


def table(
    corner: str,
    rows: Mapping[str, str],
    columns: Mapping[str, Values],
    digits: int = 3,
    lower: bool = False,
) -> str:
    """By label, how a row is called, and its numbers: the best bold, the second underlined.

    Rows of which no column has a number are left out.
    """
    there = [row for row in rows if any(row in values for values in columns.values())]
    cells = [
        _marked([values.get(row, math.nan) for row in there], digits, lower)
        for values in columns.values()
    ]
    body = [[rows[row], *(cell[k] for cell in cells)] for k, row in enumerate(there)]
    return plain_table([corner, *columns], body)


def printed_lines(paper: Printed, ranked: Collection[str] | None = None) -> dict[str, Line]:
    """The rows of a paper's table as lines; only some are ranked where these are given."""
    return {
        row: Line(row, PUBLISHED, values, ranked is None or row in ranked)
        for row, values in paper.rows.items()
    }


def side_by_side(
    lines: Iterable[Line],
    columns: Sequence[str],
    digits: int = 3,
    paper: Printed | None = None,
    lower: Collection[str] = (),
) -> str:
    """Published lines beside ours; the best of a column is marked for each source by itself.

    Cells of the paper that look damaged in print have a question mark, and those that it leaves
    empty are empty; a dash is what was not computed here.
    """
    every = list(lines)
    doubt = paper.doubt if paper else frozenset()
    cells: list[list[str]] = [[] for _ in every]
    for column in columns:
        marked = _by_source(every, column, digits, column in lower)
        for k, line in enumerate(every):
            mark = "?" if line.source == PUBLISHED and (line.metric, column) in doubt else ""
            cells[k].append(marked[k] + mark)
    body = [[line.metric, line.source, *row] for line, row in zip(every, cells, strict=True)]
    return plain_table(["metric", "scores", *columns], body)


def plain_table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Cells as they are."""
    lines = [list(header), ["---"] * len(header), *map(list, body)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def mean(columns: Sequence[Values]) -> dict[str, float]:
    """Row by row, of the rows that all columns have."""
    first, *others = columns
    shared = [row for row in first if all(row in other for other in others)]
    return {row: sum(column[row] for column in columns) / len(columns) for row in shared}


def listed(names: Iterable[str]) -> str:
    """One, two and three."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def bullets(sentences: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def as_printed(value: float, digits: int) -> str:
    """With so many digits, or with as many as it takes to say it."""
    text = number(value, digits)
    return text if round(value, digits) == value else f"{value:.10g}".replace("0.", ".", 1)


def _by_source(lines: Sequence[Line], column: str, digits: int, lower: bool) -> list[str]:
    marked = [""] * len(lines)
    for source in dict.fromkeys(line.source for line in lines):
        theirs = source == PUBLISHED
        own = [k for k, line in enumerate(lines) if line.source == source]
        ranked = [k for k in own if lines[k].ranked]
        order = _order([lines[k].values.get(column, math.nan) for k in ranked], digits, lower)
        for k in own:
            value = lines[k].values.get(column, math.nan)
            exact = theirs or column == "p-value"
            text = as_printed(value, digits) if exact else number(value, digits)
            text = "" if theirs and math.isnan(value) else text
            place = order.get(round(value, digits), 2) if k in ranked else 2
            marked[k] = _MARKS.get(place, "{}").format(text)
    return marked


_MARKS = {0: "**{}**", 1: "<u>{}</u>"}


def _order(values: Sequence[float], digits: int, lower: bool) -> dict[float, int]:
    """The place of each number as it is shown; none where there is but one."""
    shown = {round(value, digits) for value in values if not math.isnan(value)}
    order = sorted(shown, reverse=not lower)
    return {value: place for place, value in enumerate(order)} if len(order) > 1 else {}


def _marked(values: Sequence[float], digits: int, lower: bool) -> list[str]:
    """All that show the best number are bold, all that show the next are underlined."""
    order = _order(values, digits, lower)
    places = [order.get(round(value, digits), 2) for value in values]
    return [
        _MARKS.get(place, "{}").format(number(value, digits))
        for place, value in zip(places, values, strict=True)
    ]
