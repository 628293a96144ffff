"""Small edits of a sentence that need no understanding; None where a sentence has no place for one.

With an equal generator, two edits are one edit and another: what a first one did stays done.
"""

from __future__ import annotations

import re

import numpy as np

from freight.metrics.wmd import english_stop_words

AUXILIARY = re.compile(
    "is|are|was|were|has|have|had|will|would|can|could|shall|should|must|may|might"
)
IDLE = ("also", "clearly", "indeed", "really")
"""Words that stand where "not" could, and change little."""

_NUMBER = re.compile(r"\d+")


def swap(text: str, rng: np.random.Generator, count: int = 1) -> str | None:
    """Neighbouring words change places; neither the first word nor one with a mark moves."""
    words = text.split()
    pairs: list[int] = []
    for k in range(1, len(words) - 2):
        apart = not pairs or k > pairs[-1] + 1
        if apart and _plain(words[k]) and _plain(words[k + 1]) and words[k] != words[k + 1]:
            pairs.append(k)
    if len(pairs) < count:
        return None
    for k in rng.permutation(pairs)[:count]:
        words[k], words[k + 1] = words[k + 1], words[k]
    return " ".join(words)


def delete(text: str, rng: np.random.Generator, count: int = 1) -> str | None:
    """Content words are left out; never the first word, nor one with a mark."""
    words = text.split()
    content = [k for k in range(1, len(words)) if _plain(words[k]) and not _empty(words[k])]
    if len(content) < count:
        return None
    gone = set(rng.permutation(content)[:count].tolist())
    return " ".join(word for k, word in enumerate(words) if k not in gone)


def renumber(text: str, rng: np.random.Generator) -> str | None:
    """One number becomes another with as many digits, its first digit being different."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    number = numbers[int(rng.integers(len(numbers)))]
    first = rng.choice([digit for digit in "123456789" if digit != number[0][0]])
    return f"{text[: number.start()]}{first}{text[number.start() + 1 :]}"


def insert(text: str, word: str) -> str | None:
    """The word stands behind the first auxiliary of a sentence that has no negation."""
    words = text.split()
    if any(known.lower() in {"not", "no", "never"} or "n't" in known for known in words):
        return None
    for k, known in enumerate(words[:-1]):
        if AUXILIARY.fullmatch(known):
            return " ".join([*words[: k + 1], word, *words[k + 1 :]])
    return None


def lower(text: str) -> str | None:
    """Without capitals."""
    return text.lower() if text.lower() != text else None


def unmark(text: str) -> str | None:
    """Without the mark at the end."""
    bare = re.sub(r"""[.!?]+(?=["”')]*$)""", "", text)
    return bare if bare != text else None


def _plain(word: str) -> bool:
    return word.isalpha()


def _empty(word: str) -> bool:
    return len(word) < 3 or word.lower() in english_stop_words()
