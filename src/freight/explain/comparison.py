"""Two explanations side by side: the units that fared most differently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from freight.errors import InvalidInput
from freight.explain.explanation import Explanation, Pictured, plain

_TIE = 1e-12


@dataclass(frozen=True)
class Change:
    """A unit that two explanations have in common, and what became of it in each.

    `by` names the numbers that are compared: its shares, where both are of the same score, or how
    well it was matched. Printed, it says so in words.
    """

    side: str
    name: str
    span: tuple[int, int]
    shares: tuple[float, float]
    matched: tuple[float, float]
    counterparts: tuple[tuple[str, ...], tuple[str, ...]]
    labels: tuple[str, str]
    by: str

    @property
    def moved(self) -> bool:
        """Whether it was matched to something else."""
        return self.counterparts[0] != self.counterparts[1]

    @property
    def size(self) -> float:
        """How much the number has changed."""
        before, after = getattr(self, self.by)
        return float(abs(after - before))

    def __str__(self) -> str:
        pairs = zip(self.counterparts, self.labels, strict=True)
        said = ", ".join(f"to {_listed(found)} {label}" for found, label in pairs)
        if not self.moved:
            said = f"to {_listed(self.counterparts[0])} in both"
        told = {"shares": "it adds {:.4f} and {:.4f}", "matched": "how well: {:.2f} and {:.2f}"}
        return f"“{self.name}” is matched {said}; {told[self.by].format(*getattr(self, self.by))}"


@dataclass(frozen=True, eq=False)
class Comparison(Pictured):
    """Two explanations side by side, and the units that fared most differently."""

    one: Explanation
    other: Explanation
    changes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """In the words of JSON; a change is there as data and in words."""
        changes = [{**plain(change), "words": str(change)} for change in self.changes]
        return {"one": self.one.to_dict(), "other": self.other.to_dict(), "changes": changes}


def compare(one: Explanation, other: Explanation, most: int = 8) -> Comparison:
    """What differs: two hypotheses of one reference, or two metrics on one pair.

    Units of the texts that both have are compared. Where the score is the same one, those come
    first whose shares changed most; otherwise those that were matched to something else, and then
    those that were matched better or worse.
    """
    labels, by = ("in the first", "in the second"), "shares"
    if one.metric != other.metric:
        labels = f"under {one.metric}", f"under {other.metric}"
    if (one.metric, one.column.name) != (other.metric, other.column.name):
        by = "matched"
    found = [
        change for change in _changes(one, other, labels, by) if change.moved or change.size > _TIE
    ]
    found.sort(key=lambda change: (by == "matched" and not change.moved, -change.size))
    return Comparison(one, other, tuple(found[:most]))


def _changes(
    one: Explanation, other: Explanation, labels: tuple[str, str], by: str
) -> Iterator[Change]:
    """All units that are in both, out of the texts that are in both."""
    if not (one.views and other.views):
        return
    views = one.views[0], other.views[0]
    sides = {name: (getattr(views[0], name), getattr(views[1], name)) for name in ("hyp", "ref")}
    common = {name: both for name, both in sides.items() if both[0].text == both[1].text}
    if not common:
        raise InvalidInput(
            "the two explanations have no text in common;"
            " compare two hypotheses of one reference, or two metrics on one pair"
        )
    for name, (here, there) in common.items():
        places = {tuple(span): k for k, span in enumerate(there.spans.tolist())}
        for k, (start, end) in enumerate(here.spans.tolist()):
            if start >= 0 and (start, end) in places:
                twin = places[start, end]
                yield Change(
                    name,
                    here.names[k],
                    (start, end),
                    (float(here.shares[k]), float(there.shares[twin])),
                    (float(here.matched[k]), float(there.matched[twin])),
                    (views[0].counterparts(name, k), views[1].counterparts(name, twin)),
                    labels,
                    by,
                )


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(f"“{name}”" for name in names) or "nothing"
