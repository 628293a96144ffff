"""What is searched: values and ranges of a metric's parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from freight.catalogue import is_continuous, parameters
from freight.errors import InvalidInput

Settings = dict[str, Any]
COUNT = 7
"""Values of a range in a grid, where nothing is said."""

SEARCHED = {
    "lazy-emd": ("hyp=0.05:4", "ref=0.05:4", "column=transport,objective"),
    "f-alpha": ("alpha=0.1:0.9:9:linear",),
    "yisi-1": ("alpha=0.1:0.9:9:linear",),
}
"""What is searched of a metric where nothing is said."""

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(\d+))?(?::(log|linear))?")


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, as many as `count` in a grid; `log` has them at equal ratios."""

    low: float
    high: float
    count: int = COUNT
    log: bool = True
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InvalidInput(f"the range {self.low:g}:{self.high:g} is empty")
        if self.log and self.low <= 0:
            raise InvalidInput(f"a range from {self.low:g} cannot be log; say linear")
        if self.count < 2:
            raise InvalidInput(f"a range has at least 2 values, not {self.count}")

    @property
    def values(self) -> tuple[Any, ...]:
        """Those of a grid: four digits of each, or every whole number where there are few."""
        few = self.whole and self.high - self.low < self.count
        spaced = np.geomspace if self.log and not few else np.linspace
        count = int(self.high - self.low) + 1 if few else self.count
        return tuple(dict.fromkeys(map(self.rounded, spaced(self.low, self.high, count))))

    def rounded(self, value: float) -> float | int:
        """A number that is easy to read and to set."""
        return round(value) if self.whole else float(f"{value:.4g}")


@dataclass(frozen=True)
class Choice:
    """These values, and no others."""

    values: tuple[Any, ...]


Dimension = Range | Choice
Space = Mapping[str, Dimension]


def parse_space(metric: str, items: Sequence[str]) -> dict[str, Dimension]:
    """From NAME=LOW:HIGH[:COUNT][:linear] and NAME=VALUE,VALUE,... to what is searched."""
    found: dict[str, Dimension] = {}
    for item in items or SEARCHED.get(metric, ()):
        name, equals, values = item.partition("=")
        if not equals or not values:
            raise InvalidInput(f"--grid {item} lacks values; write --grid {name}=0.1:2")
        if name in found:
            raise InvalidInput(f"--grid {name} is given twice; write all values in one")
        found[name] = _dimension(metric, name, values)
    check_space(metric, found)
    return found


def check_space(metric: str, space: Space) -> None:
    """Refuse what the metric does not have."""
    if not space:
        there = ", ".join(parameters(metric))
        raise InvalidInput(
            f"say what to search of {metric}, as in --grid layer=3,4; there is {there}"
        )
    known = parameters(metric)
    for name in space:
        if name not in known:
            raise InvalidInput(f"{metric} has no parameter {name!r}; there is {', '.join(known)}")


def every(space: Space) -> list[Settings]:
    """All settings of a grid; columns change fastest, since they come from the same plans."""
    names = sorted(space, key=lambda name: name == "column")
    several = product(*(space[name].values for name in names))
    return [dict(zip(names, one, strict=True)) for one in several]


def _dimension(metric: str, name: str, values: str) -> Dimension:
    found = _RANGE.fullmatch(values)
    if found is None:
        return Choice(tuple(_value(text) for text in dict.fromkeys(values.split(","))))
    low, high = float(found[1]), float(found[2])
    whole = not is_continuous(metric, name) and low.is_integer() and high.is_integer()
    log = found[4] == "log" or (found[4] is None and low > 0 and not whole)
    return Range(low, high, int(found[3] or COUNT), log, whole)


def _value(text: str) -> Any:
    """JSON where it is that, text otherwise."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return float(text) if text in ("inf", "-inf") else text
