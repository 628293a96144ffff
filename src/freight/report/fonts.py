"""Fonts for texts of any script, out of those that are installed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

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
