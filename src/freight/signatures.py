"""Every choice that made a score, in one line, read off the data that made it."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

from freight.results import Column


def signed(name: str, choices: Mapping[str, Any]) -> str:
    """A signature: the name, each choice, and the version."""
    from freight import __version__

    parts = [f"{choice}:{describe(value)}" for choice, value in choices.items()]
    return "|".join([name, *parts, f"version:{__version__}"])


def describe(value: Any) -> str:
    """A value as a signature shows it: functions by name, data by its fields."""
    if hasattr(value, "identity"):
        return str(value.identity)
    if isinstance(value, tuple):
        return ",".join(describe(item) for item in value)
    if isinstance(value, Column):
        return value.name
    if isinstance(value, partial):
        return f"{describe(value.func)}({value.keywords})"
    if is_dataclass(value) and not isinstance(value, type):
        inner = ",".join(f"{f.name}={describe(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    return getattr(value, "__name__", str(value))
