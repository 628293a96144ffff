"""What each unit adds to a score, in a table that adds up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freight.explanations import Side
from freight.report.numbers import level, number, percent, rounded
from freight.report.plots import shorten
from freight.report.ribbons import heaviest

MOST = 40
_NAME = 40


@dataclass(frozen=True)
class Share:
    """A unit's row; `length` is that of its bar in percent."""

    name: str
    own: bool
    mass: str
    matched: str
    level: int
    alone: str
    adds: str
    length: str


@dataclass(frozen=True)
class Total:
    """A side's rows, the largest first, and what they come to."""

    side: str
    rows: tuple[Share, ...]
    others: str
    left_out: int
    total: str

    @property
    def signed(self) -> str:
        """The total as a term of a sum."""
        sign = "" if self.total.startswith("\u2212") else "+"
        return f"{sign}{self.total}"


def shares(name: str, side: Side, total: float) -> Total:
    """Rows that add up to a rounded total, with what is left out on a line of its own."""
    units = heaviest(side, len(side.names))
    adds = np.nan_to_num(side.shares[units])
    order = np.argsort(-np.abs(adds), kind="stable")
    shown, rest = order[:MOST], order[MOST:]
    *values, others = rounded(np.append(adds[shown], adds[rest].sum()), total).tolist()
    longest = float(np.abs(adds).max(initial=0.0)) or 1.0
    rows = tuple(
        _row(side, int(units[k]), value, abs(float(adds[k])) / longest)
        for k, value in zip(shown.tolist(), values, strict=True)
    )
    return Total(name, rows, number(others), len(rest), number(total))


def _row(side: Side, unit: int, value: float, length: float) -> Share:
    excess = float(np.nan_to_num(side.excess[unit]))
    return Share(
        name=shorten(side.names[unit], _NAME),
        own=bool(side.spans[unit, 0] >= 0),
        mass=percent(side.weights[unit]),
        matched=number(side.matched[unit], 2),
        level=int(level(1 - side.matched[unit])),
        alone=percent(excess) if excess > 5e-4 else "",
        adds=number(value),
        length=f"{100 * length:.1f}",
    )
