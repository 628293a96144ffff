"""Numbers, texts and tables as people read them: rounding, shortening, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import category

import numpy as np

from freight.transport.types import Array

DIGITS = 4


def number(value: float, digits: int = DIGITS) -> str:
    """A number with this many decimals and a true minus sign, or a dash if it is not finite."""
    if not np.isfinite(value):
        return "–"
    text = f"{value:.{digits}f}"
    text = text.lstrip("-") if float(text) == 0 else text
    return text.replace("-", "\u2212")


def decimals(value: float) -> str:
    """Three decimals with a true minus sign, or a dash for nan."""
    return "–" if np.isnan(value) else f"{value:.3f}".replace("-", "−")


def brief(value: float) -> str:
    """Two decimals without a leading zero, for a cell."""
    text = number(value, 2)
    if "." not in text:
        return text
    whole, digits = text.split(".")
    return whole if digits == "00" else f"{whole.rstrip('0')}.{digits}"


def percent(share: float) -> str:
    """A share in percent with at most one decimal and an unbreakable space before the sign."""
    if not np.isfinite(share):
        return "–"
    return f"{100 * share:.1f}".removesuffix(".0") + "\u00a0%"


def flow_percent(value: float) -> str:
    """A percentage for a cell of a flow matrix, empty where it would round to zero."""
    return "" if not value > 0.05 else f"{value:.{1 if value < 9.95 else 0}f}"


def p_value(p: float) -> str:
    """A p-value with three decimals and no leading zero, or a dash for nan."""
    return "–" if np.isnan(p) else "< .001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)


def round_to_sum(parts: Array, total: float, digits: int = DIGITS) -> Array:
    """Round parts up or down so that they add up to the rounded total.

    The units in the last place that are missing go to the parts that lose most by rounding down.
    """
    unit = 10.0**-digits
    whole = float(np.round(total, digits))
    if not (np.isfinite(parts).all() and np.isfinite(whole)):
        return parts
    low = np.floor(parts / unit)
    missing = round(whole / unit - low.sum())
    raised = np.argsort(low - parts / unit, kind="stable")[: max(missing, 0)]
    low[raised] += 1
    return np.round(low * unit, digits)


def colour_level(share: Array | float, steps: int = 10) -> Array:
    """A level of a colour scale from 0 to `steps`, for a share between 0 and 1."""
    return np.rint(steps * np.clip(np.nan_to_num(share, nan=1.0), 0, 1)).astype(int)


def shorten(text: str, most: int = 32) -> str:
    """A label of at most this length, cut in the middle; control characters become a mark."""
    text = "".join("\ufffd" if category(one) in ("Cc", "Cs") else one for one in text)
    if len(text) <= most:
        return text
    return f"{text[: most - most // 2 - 1]}…{text[-(most // 2) :]}"


class Mark(NamedTuple):
    """A cell of a table; `place` is 1 for the best of a column, 2 for the second best."""

    text: str
    place: int = 0


Rows = Sequence[Sequence[Mark]]


def markdown(heading: Sequence[str], rows: Rows, names: int = 1) -> str:
    """A Markdown table; the first `names` columns are names, all others numbers."""
    rules = ["---"] * names + ["---:"] * (len(heading) - names)
    lines = [[_escape_markdown(name) for name in heading], rules]
    lines += [[_markdown_cell(cell) for cell in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex(heading: Sequence[str], rows: Rows, names: int = 1) -> str:
    r"""A tabular for \usepackage{booktabs}; the first `names` columns are names, others numbers."""
    columns = "l" * names + "r" * (len(heading) - names)
    lines = [" & ".join(map(_escape_latex, heading)), r"\midrule"]
    lines += [" & ".join(map(_latex_cell, row)) for row in rows]
    body = "".join(line + ("\n" if line == r"\midrule" else " \\\\\n") for line in lines)
    return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\\bottomrule\n\\end{{tabular}}\n"


_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "±": r"$\pm$", "−": "$-$", "–": "--",
    "ρ": r"$\rho$", "τ": r"$\tau$", "·": r"$\cdot$", "μ": r"$\mu$",
}  # fmt: skip


def _markdown_cell(cell: Mark) -> str:
    text = _escape_markdown(cell.text)
    return {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(cell.place, text)


def _escape_markdown(text: str) -> str:
    return re.sub(r"([|*_<\\])", r"\\\1", " ".join(text.split()))


def _latex_cell(cell: Mark) -> str:
    command = {1: "textbf", 2: "underline"}.get(cell.place)
    text = _escape_latex(cell.text)
    return f"\\{command}{{{text}}}" if command else text


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in " ".join(text.split()))
