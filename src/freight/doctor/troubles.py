"""What is wrong, with its cure; and how to look at something that may be broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from freight.errors import FreightError

T = TypeVar("T")


@dataclass(frozen=True)
class Trouble:
    """Something that is promised and does not hold, and what helps."""

    what: str
    cure: str


def tried(part: Callable[[], T], otherwise: T, troubles: list[Trouble]) -> T:
    """What a part finds; where that fails for whatever reason, the trouble is noted."""
    try:
        return part()
    except FreightError as error:  # says itself what helps, behind the semicolon
        what, _, cure = str(error).partition("; ")
        troubles.append(Trouble(what, cure.removeprefix("run").strip()))
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        troubles.append(Trouble(f"{type(error).__name__}: {first}", _REINSTALL))
    return otherwise


_REINSTALL = "pip install --force-reinstall freight, in a new environment if that does not help"
