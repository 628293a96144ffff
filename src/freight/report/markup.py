"""Tables as text that others set: Markdown and LaTeX, the best bold, the second best underlined."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

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
