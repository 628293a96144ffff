"""Figures as SVG that takes its colours from the page, so that one drawing suits light and dark.

Figures are drawn in stand-in colours, for each of which the page has a name.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from freight.errors import MissingPart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

INK, MUTED, LINE, ACCENT, WARN = "#010203", "#020304", "#030405", "#040506", "#050607"
_PAGE_COLOURS = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    ACCENT: "var(--accent)",
    WARN: "var(--warm)",
}
_METADATA = ("Creator", "Date", "Format", "Type")
_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "grid.color": LINE,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8.5,
    "lines.solid_capstyle": "round",
}
_UNWANTED = re.compile(
    r"<defs>\s*<style.*?</style>\s*</defs>|<metadata>.*?</metadata>"
    r'|\s(?:xmlns(?::\w+)?|version)="[^"]*"|\sid="[\w.]+_\d+"|\stransform="rotate\(-?0 [^"]*"'
    r'|(?<=")font-family: [^;"]*(?=")|font-family: [^;"]*; ',
    re.DOTALL,
)


def picture(label: str, width: float, height: float, draw: Callable[[Axes], None]) -> str:
    """What `draw` draws on axes of a size in inches, as an element of a page read out as `label`.

    No element but clips and marks keeps an id, and theirs differ from picture to picture.
    """
    matplotlib, figure_class = _matplotlib()
    salt = f"{label} {width} {height}"
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        # The page's fonts draw the text, not ours that measure it.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")
        figure = figure_class(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        stream = io.StringIO()
        figure.savefig(stream, format="svg", dpi=144, metadata=dict.fromkeys(_METADATA))
    return _for_page(stream.getvalue(), label)


def _for_page(drawing: str, label: str) -> str:
    drawing = re.sub(r"\s+", " ", _UNWANTED.sub("", drawing[drawing.index("<svg") :]))
    for stand_in, colour in _PAGE_COLOURS.items():
        drawing = drawing.replace(f": {stand_in}", f": {colour}")
    return drawing.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def _matplotlib() -> tuple[Any, Any]:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPart.extra("matplotlib", "report") from error
    return matplotlib, Figure


_FIRST = "DejaVu Sans"  # comes with matplotlib
_BOX = "\u25a1"
_PLACEHOLDER = "last resort"  # such a font has a box for everything


@dataclass(frozen=True)
class Lettering:
    """Families that have the characters of some texts between them, and what none of them has."""

    families: tuple[str, ...]
    absent: frozenset[str]

    def drawn(self, text: str) -> str:
        """The text on one line, with boxes for characters that cannot be drawn."""
        shown = (_stand_in(c) if c in self.absent else c for c in text)
        return "".join(" " if c.isspace() else c for c in shown)


def lettering(texts: Iterable[str]) -> Lettering:
    """Look through fonts until every character is found; most texts need none but the first."""
    families = [_FIRST]
    missing = {c for text in texts for c in text if not c.isspace()} - _first_characters()
    for family, path in _others() if missing else ():
        there = missing & _characters(path)
        if there:
            families.append(family)
            missing -= there
        if not missing:
            break
    return Lettering(tuple(families), frozenset(missing))


def _stand_in(character: str) -> str:
    """Nothing for what is not seen anyway: joiners, marks of direction, variants, accents."""
    return "" if unicodedata.category(character) in ("Cf", "Cc", "Mn", "Me") else _BOX


def _others() -> Iterator[tuple[str, str]]:
    """Upright fonts of normal weight, one file a family, by name."""
    from matplotlib.font_manager import fontManager

    plain = {f.name: f.fname for f in fontManager.ttflist if (f.style, f.weight) == ("normal", 400)}
    yield from ((k, v) for k, v in sorted(plain.items()) if _PLACEHOLDER not in k.lower())


def _first_characters() -> frozenset[str]:
    from matplotlib.font_manager import findfont

    return _characters(findfont(_FIRST))


@cache
def _characters(path: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(map(chr, get_font(path).get_charmap()))
    except (OSError, RuntimeError):  # a font that cannot be read has nothing
        return frozenset()
