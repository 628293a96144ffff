"""Two explanations side by side, and the words whose match or contribution differs most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from freight.errors import InvalidInput
from freight.explain.explanation import Drawable, Explanation, Side, TextWord, to_json

_TIE = 1e-12


@dataclass(frozen=True)
class Change:
    """A word that two explanations have in common, and its match in each.

    `by` names the numbers that are compared: the contributions where both explain the same score,
    otherwise the match qualities. `str` puts the change in words.
    """

    side: str
    name: str
    span: tuple[int, int]
    contributions: tuple[float, float]
    match_quality: tuple[float, float]
    counterparts: tuple[tuple[str, ...], tuple[str, ...]]
    labels: tuple[str, str]
    by: Literal["contributions", "match_quality"]

    @property
    def rematched(self) -> bool:
        """Whether the word has different counterparts in the two."""
        return self.counterparts[0] != self.counterparts[1]

    @property
    def size(self) -> float:
        """The absolute difference between the two numbers."""
        first, second = self._numbers
        return float(abs(second - first))

    @property
    def _numbers(self) -> tuple[float, float]:
        return self.contributions if self.by == "contributions" else self.match_quality

    def __str__(self) -> str:
        matches = [
            f"to {_list_phrases(phrases)} {label}"
            for phrases, label in zip(self.counterparts, self.labels, strict=True)
        ]
        if not self.rematched:
            matches = [f"to {_list_phrases(self.counterparts[0])} in both"]
        first, second = self._numbers
        numbers = f"contribution {first:.4f} and {second:.4f}"
        if self.by == "match_quality":
            numbers = f"match quality {first:.2f} and {second:.2f}"
        return f"“{self.name}” is matched {', '.join(matches)}; {numbers}"


@dataclass(frozen=True, eq=False)
class Comparison(Drawable):
    """Two explanations, and the words that differ most between them."""

    one: Explanation
    other: Explanation
    changes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON types; each change is also there in words."""
        changes = [{**to_json(change), "words": str(change)} for change in self.changes]
        return {"one": self.one.to_dict(), "other": self.other.to_dict(), "changes": changes}


def compare(one: Explanation, other: Explanation, most: int = 8) -> Comparison:
    """Compare two hypotheses of one reference, or two metrics on one pair, word by word.

    Only words of a text that both explanations have are compared. Where both explain the same
    score, those come first whose contributions differ most; otherwise those with different
    counterparts, and then those whose match quality differs most.
    """
    labels = ("in the first", "in the second")
    if one.metric != other.metric:
        labels = (f"under {one.metric}", f"under {other.metric}")
    same_score = (one.metric, one.column.name) == (other.metric, other.column.name)
    by: Literal["contributions", "match_quality"] = (
        "contributions" if same_score else "match_quality"
    )
    changes = [
        change
        for change in _changes(one, other, labels, by)
        if change.rematched or change.size > _TIE
    ]
    changes.sort(key=lambda change: (not same_score and not change.rematched, -change.size))
    return Comparison(one, other, tuple(changes[:most]))


def _changes(
    one: Explanation,
    other: Explanation,
    labels: tuple[str, str],
    by: Literal["contributions", "match_quality"],
) -> Iterator[Change]:
    """Every word that both have, in the texts that both have."""
    if not (one.views and other.views):
        return
    first, second = one.views[0], other.views[0]
    sides: dict[str, tuple[Side, Side]] = {
        name: (here, there)
        for name, here, there in (("hyp", first.hyp, second.hyp), ("ref", first.ref, second.ref))
        if here.text == there.text
    }
    if not sides:
        raise InvalidInput(
            "the two explanations have no text in common;"
            " compare two hypotheses of one reference, or two metrics on one pair"
        )
    for name, (here, there) in sides.items():
        twins = {word[:2]: k for k, word in enumerate(there.words) if word.units}
        for k, word in enumerate(here.words):
            twin = twins.get(word[:2])
            if not word.units or twin is None:
                continue
            same = there.words[twin]
            yield Change(
                name,
                here.text[word.start : word.end],
                word[:2],
                (_contribution(here, word), _contribution(there, same)),
                (float(here.word_quality[k]), float(there.word_quality[twin])),
                (first.counterparts(name, *word.units), second.counterparts(name, *same.units)),
                labels,
                by,
            )


def _contribution(side: Side, word: TextWord) -> float:
    return float(side.contributions[list(word.units)].sum())


def _list_phrases(phrases: tuple[str, ...]) -> str:
    return " and ".join(f"“{phrase}”" for phrase in phrases) or "nothing"
