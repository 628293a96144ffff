"""What a user may set a lexical metric's parameters to."""

import math
from typing import Any

from freight.errors import InvalidInput


def switch(name: str, value: Any) -> bool:
    """True or false; a text such as 'no' would count as true."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name}={value!r}; give true or false")
    return value


def order(name: str, value: Any) -> int:
    """A length of n-grams."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput(f"{name}={value!r}; give a whole number from 1 up")
    return value


def number(name: str, value: Any, most: float = math.inf, *, zero: bool = True) -> float:
    """A finite number up to `most`, from 0 up or above it; it keeps its type, for the signature."""
    given: float = value if isinstance(value, (int, float)) else math.nan
    if isinstance(value, bool) or not (0 <= given <= most) or math.isinf(given):
        raise InvalidInput(f"{name}={value!r}; give a number from 0 {_top(most)}")
    if not zero and given == 0:
        raise InvalidInput(f"{name}={value!r}; give a number above 0")
    return given


def _top(most: float) -> str:
    return "up" if math.isinf(most) else f"to {most:g}"
