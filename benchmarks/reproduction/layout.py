"""Markdown: numbers as the papers print them, tables that mark the best, checked sentences."""

import math
from collections.abc import Iterable, Mapping, Sequence

Values = Mapping[str, float]
"""A column of a table: a number by row."""


class Untrue(Exception):
    """A sentence of the page that its numbers no longer support."""


def checked(holds: bool, sentence: str) -> str:
    """The sentence if it is true; sentences written by hand are checked against the numbers."""
    if not holds:
        raise Untrue(f"the scores no longer support this sentence; rewrite it: {sentence}")
    return sentence


def verdict(claim: str, holds: bool, significant: bool = True) -> str:
    """Whether a claim of a paper holds here, and whether the difference is significant."""
    doubt = "" if significant else ", but the difference is not significant"
    return f"{claim} **{'holds' if holds else 'does not hold'}**{doubt}"


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


def _marked(values: Sequence[float], digits: int, lower: bool) -> list[str]:
    """All that show the best number are bold, all that show the next are underlined."""
    shown = [round(value, digits) for value in values]
    order = sorted({v for v in shown if not math.isnan(v)}, reverse=not lower)
    marks = {0: "**{}**", 1: "<u>{}</u>"} if len(order) > 1 else {}
    return [
        marks.get(order.index(v) if v in order else 2, "{}").format(number(v, digits))
        for v in shown
    ]
