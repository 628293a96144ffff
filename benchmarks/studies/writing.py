"""What the studies share: tables of a page, claims that are checked, drawings that stand alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill

_COLOURS = "--muted:#5b6470;--line:#cdd3da;--accent:#1f6fb2;--warm:#b8540f;color:#14181d"


def claim(sentence: str, holds: bool) -> str:
    """The sentence, if it is true of the numbers; otherwise there is no page."""
    if not holds:
        raise SystemExit(f"the numbers do not bear out: {sentence}")
    return sentence


def bullets(sentences: Iterable[str]) -> str:
    """A Markdown list of lines that are not too long."""
    wrapped = (
        fill(f"- {sentence}", 100, subsequent_indent="  ", break_on_hyphens=False)
        for sentence in sentences
    )
    return "\n".join(wrapped)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its first column being names."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def standing_alone(element: str) -> str:
    """An element of a page as a file of its own, on white."""
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    style = f'style="background:#fff;font-family:sans-serif;{_COLOURS}"'
    return element.strip().replace("<svg", f"<svg {names} {style}", 1) + "\n"
