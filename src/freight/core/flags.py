"""Flags, as data: what could not be scored in the normal way, and what differs critically."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Literal

SideName = Literal["hyp", "ref"]
SIDES: tuple[SideName, SideName] = ("hyp", "ref")


Span = tuple[int, int]
"""Where characters of a text start and end."""


class FlagKind(StrEnum):
    """Why a segment could not be scored in the normal way, or what differs critically in it."""

    BOTH_EMPTY = "both sides empty"
    EMPTY_SIDE = "empty side"
    NO_KNOWN_UNITS = "no known units"
    UNKNOWN_UNITS = "unknown units"
    OTHER_LANGUAGE = "other language than the reference"
    UNREAD_LANGUAGE = "language unknown to the encoder"
    WINDOWED = "windowed"
    HALVED_BATCH = "halved batch"
    IDF_EMPTY = "IDF empty"
    BARYCENTER_NOT_CONVERGED = "barycenter not converged"
    NO_SIMILARITY = "no similarity"
    NOT_CONVERGED = "not converged"
    NUMBER = "number differs"
    NEGATION = "negation differs"
    NAME = "name differs"
    UNTRANSLATED = "untranslated"
    TRUNCATED = "truncated"
    REPEATED = "repeated"


CRITICAL = frozenset(
    {
        FlagKind.NUMBER,
        FlagKind.NEGATION,
        FlagKind.NAME,
        FlagKind.UNTRANSLATED,
        FlagKind.TRUNCATED,
        FlagKind.REPEATED,
    }
)
"""The kinds of what differs critically."""


class Flag(str):
    """A flag of a segment: its kind, the side it is about, and which share of that side's units.

    It is a text for whoever prints it ("unknown units 37% (ref)"); programs read `kind`, `side` and
    `share`. The kind is a `FlagKind`, or any text of a scorer's own; a flag that is about both
    texts has no side, and one that is about a whole text no share.
    """

    kind: str
    side: SideName | None
    share: float | None

    def __new__(cls, kind: str, share: float | None = None, side: SideName | None = None) -> Flag:
        """Write the text once."""
        text = kind if share is None else f"{kind} {share:.0%}"
        flag = super().__new__(cls, text if side is None else f"{text} ({side})")
        flag.kind, flag.share, flag.side = str(kind), share, side
        return flag

    def __getnewargs__(self) -> tuple[str, float | None, SideName | None]:  # type: ignore[override]
        return self.kind, self.share, self.side

    def on(self, side: SideName) -> Flag:
        """The same flag of a text, said of the side that the text is."""
        return Flag(self.kind, self.share, side)

    @property
    def label(self) -> str:
        """Kind and side: what segments are counted by."""
        return Flag(self.kind, side=self.side)

    @property
    def record(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": self.kind, "side": self.side, "share": self.share}


class CriticalDifference(Flag):
    """A critical difference: its kind, and the characters of either text that show it.

    A span is empty where its text has nothing to show; it then says where something would stand.
    """

    hyp: Span
    ref: Span
    words: tuple[str, str]

    def __new__(cls, kind: str, words: tuple[str, str], hyp: Span, ref: Span) -> CriticalDifference:
        """Write the text once."""
        quoted = [f"“{word}”" if word else "nothing" for word in words]
        difference = str.__new__(cls, f"{kind}: {quoted[0]} for {quoted[1]}")
        difference.kind, difference.share, difference.side = str(kind), None, None
        difference.words, difference.hyp, difference.ref = words, hyp, ref
        return difference

    @classmethod
    def between(cls, kind: str, hyp: str, own: Span, ref: str, other: Span) -> CriticalDifference:
        """The difference between these characters of two texts."""
        return cls(kind, (hyp[slice(*own)], ref[slice(*other)]), own, other)

    def __getnewargs__(self) -> tuple[str, tuple[str, str], Span, Span]:  # type: ignore[override]
        return self.kind, self.words, self.hyp, self.ref

    @property
    def record(self) -> dict[str, Any]:
        """Plain data for JSON, with both spans."""
        return {**super().record, "hyp": list(self.hyp), "ref": list(self.ref)}


def differences_among(flags: Iterable[str]) -> tuple[CriticalDifference, ...]:
    """The critical differences among some flags."""
    return tuple(flag for flag in flags if isinstance(flag, CriticalDifference))


Flags = frozenset[Flag]
NO_FLAGS: Flags = frozenset()


def empty_flags(empty: Iterable[bool]) -> Flags:
    """The flag of a pair of which these sides, hyp and ref, are empty; none where neither is."""
    sides = [side for side, is_empty in zip(SIDES, empty, strict=True) if is_empty]
    if len(sides) == len(SIDES):
        return frozenset([Flag(FlagKind.BOTH_EMPTY)])
    return frozenset(Flag(FlagKind.EMPTY_SIDE, side=side) for side in sides)
