"""A text cut where units begin and end, and what of it has no counterpart."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import numpy as np

from freight.explain.explanation import Side
from freight.report.formatting import level, number, percent
from freight.transport.types import Array

_MOST_NAMED = 12
_BANDS = np.array([0.25, 0.5, 0.75])
_WORDS = "without a counterpart", "poorly matched", "partly matched", "well matched"


@dataclass(frozen=True)
class TextPiece:
    """Characters that belong to the same units; `level` is -1 where they belong to none.

    `band` runs from 0, without a counterpart, to 3, well matched.
    """

    text: str
    level: int = -1
    band: int = 3
    alone: bool = False
    title: str = ""


@dataclass(frozen=True)
class Lacking:
    """What has no counterpart: phrases, and the share of the mass that they are part of."""

    phrases: tuple[str, ...]
    more: int
    share: str


def pieces(side: Side) -> list[TextPiece]:
    """The text in pieces, coloured by how well the units over each were matched."""
    units, spans = _spans(side)
    ends = np.unique(np.concatenate(([0, len(side.text)], spans.ravel())))
    found = []
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        over = (spans[:, 0] <= first) & (spans[:, 1] >= last)
        text = side.text[first:last]
        if text.isspace() or not over.any():
            found.append(TextPiece(text))
        else:
            found.append(_piece(side, text, np.unique(units[over])))
    return found


def lacking(side: Side) -> Lacking:
    """What most of the mass of found nothing, neighbours as one phrase."""
    phrases = tuple(dict.fromkeys(side.quoted(side.lost)))
    share = percent(float(np.nansum(side.excess)))
    return Lacking(phrases[:_MOST_NAMED], len(phrases[_MOST_NAMED:]), share)


def leftward(text: str) -> bool:
    """Whether a text is read from right to left: by its first strong character."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return kind != "L"
    return False


def _piece(side: Side, text: str, units: Array) -> TextPiece:
    weights = side.weights[units]
    weights = weights if weights.sum() > 0 else np.ones(len(units))
    matched = float(np.average(np.nan_to_num(side.matched[units]), weights=weights))
    share = float(np.nansum(side.shares[units]))
    title = f"{_WORDS[_band(matched)]} ({number(matched, 2)}); adds {number(share)}"
    return TextPiece(
        text, int(level(1 - matched)), _band(matched), bool(np.isin(units, side.lost).all()), title
    )


def _band(matched: float) -> int:
    return int(np.searchsorted(_BANDS, np.nan_to_num(matched), side="right"))


def _spans(side: Side) -> tuple[Array, Array]:
    """Units that cover characters of the text, as often as they do, and the spans of those."""
    units, starts, ends = side.places.T
    spans = np.clip(np.stack((starts, ends), axis=1), 0, len(side.text))
    there = ends > starts
    return units[there], spans[there]
