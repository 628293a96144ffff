"""Function words of English that say little of what a text is about, and punctuation."""

from functools import cache
from importlib.resources import files


@cache
def english() -> frozenset[str]:
    """The list that lies beside this module."""
    return frozenset((files(__package__) / "stop_words.txt").read_text(encoding="utf-8").split())
