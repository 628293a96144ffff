"""Numbers as a page shows them, rounded so that what adds up is seen to add up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from freight.transport.types import Array

DIGITS = 4


def number(value: float, digits: int = DIGITS) -> str:
    """So many decimals with a real minus, or a dash for what could not be computed."""
    if not np.isfinite(value):
        return "–"
    text = f"{value:.{digits}f}"
    text = text.lstrip("-") if float(text) == 0 else text
    return text.replace("-", "\u2212")


def brief(value: float) -> str:
    """Two digits after a bare point, for a cell."""
    text = number(value, 2)
    if "." not in text:
        return text
    whole, digits = text.split(".")
    return whole if digits == "00" else f"{whole.rstrip('0')}.{digits}"


def percent(share: float) -> str:
    """A share in percent, with one decimal at most, on one line with its sign."""
    if not np.isfinite(share):
        return "–"
    return f"{100 * share:.1f}".removesuffix(".0") + "\u00a0%"


def moving(value: float) -> str:
    """A percentage for a cell; nothing for next to nothing."""
    return "" if not value > 0.05 else f"{value:.{1 if value < 9.95 else 0}f}"


def rounded(parts: Array, total: float, digits: int = DIGITS) -> Array:
    """The parts rounded up or down so that they add up to the rounded total.

    Those that lose most by rounding are given the units in the last place that are missing.
    """
    unit = 10.0**-digits
    whole = float(np.round(total, digits))
    if not (np.isfinite(parts).all() and np.isfinite(whole)):
        return parts
    low = np.floor(parts / unit)
    missing = round(whole / unit - low.sum())
    found = np.argsort(low - parts / unit, kind="stable")[: max(missing, 0)]
    low[found] += 1
    return np.round(low * unit, digits)


def level(share: Array | float, steps: int = 10) -> Array:
    """From 0 to `steps`, for a share between 0 and 1."""
    return np.rint(steps * np.clip(np.nan_to_num(share, nan=1.0), 0, 1)).astype(int)


_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_IN_MATHS = {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "±": r"$\pm$", "−": "$-$"}
_GREEK = {"ρ": r"$\rho$", "τ": r"$\tau$", "–": "--", "·": r"$\cdot$", "μ": r"$\mu$"}
_LATEX = {**{mark: f"\\{mark}" for mark in "&%$#_{}"}, **_SPECIAL, **_IN_MATHS, **_GREEK}


class Mark(NamedTuple):
    """What stands in a cell; `place` is 1 for the best of a column, 2 for the second."""

    text: str
    place: int = 0


Rows = Sequence[Sequence[Mark]]


def markdown(heading: Sequence[str], rows: Rows, names: int = 1) -> str:
    """A table with pipes; the first `names` columns are names, all others numbers."""
    rules = ["---"] * names + ["---:"] * (len(heading) - names)
    lines = [[_piped(name) for name in heading], rules]
    lines += [[_starred(cell) for cell in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex(heading: Sequence[str], rows: Rows, names: int = 1) -> str:
    r"""A tabular for \usepackage{booktabs}; the first `names` columns are names, others numbers."""
    columns = "l" * names + "r" * (len(heading) - names)
    lines = [" & ".join(map(_escaped, heading)), r"\midrule"]
    lines += [" & ".join(map(_commanded, row)) for row in rows]
    body = "".join(line + ("\n" if line == r"\midrule" else " \\\\\n") for line in lines)
    return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\\bottomrule\n\\end{{tabular}}\n"


FORMS = {"markdown": markdown, "latex": latex}


def _starred(cell: Mark) -> str:
    text = _piped(cell.text)
    return {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(cell.place, text)


def _piped(text: str) -> str:
    return re.sub(r"([|*_<\\])", r"\\\1", " ".join(text.split()))


def _commanded(cell: Mark) -> str:
    command = {1: "textbf", 2: "underline"}.get(cell.place)
    text = _escaped(cell.text)
    return f"\\{command}{{{text}}}" if command else text


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in " ".join(text.split()))
