"""What the papers claim, one by one, and whether it holds here."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from layout import plain_table

HOLDS, FAILS, PARTLY, UNTESTED = "holds", "fails", "holds in part", "untested"


class Claim(NamedTuple):
    """A claim in our words, where the paper makes it, the verdict, and the figures behind it."""

    place: str
    claim: str
    verdict: str
    figure: str


class Outcome(NamedTuple):
    """Whether a claim holds in one case, and the figure."""

    holds: bool
    figure: str


def decide(place: str, claim: str, holds: bool, figure: str) -> Claim:
    """A claim that one figure decides."""
    return Claim(place, claim, HOLDS if holds else FAILS, figure)


def decide_cases(place: str, claim: str, cases: Mapping[str, Outcome], rest: str = "") -> Claim:
    """A claim about several cases (encoders, as a rule): it holds in all, in none or in part."""
    if not cases:
        return untested(place, claim, "not computed")
    true = [case.holds for case in cases.values()]
    verdict = HOLDS if all(true) else PARTLY if any(true) else FAILS
    figures = [f"{name} {case.figure}" for name, case in cases.items()]
    return Claim(place, claim, verdict, "; ".join([*figures, *filter(None, [rest])]))


def untested(place: str, claim: str, why: str) -> Claim:
    """A claim for which data or models are missing."""
    return Claim(place, claim, UNTESTED, why)


def cases_of(names: Iterable[str], judge: Callable[[str], Outcome | None]) -> dict[str, Outcome]:
    """The cases that can be judged."""
    judged = {name: judge(name) for name in names}
    return {name: outcome for name, outcome in judged.items() if outcome is not None}


def claims_table(claims: Iterable[Claim]) -> str:
    """All claims of a paper."""
    body = [[c.claim, c.place, f"**{c.verdict}**", c.figure] for c in claims]
    return plain_table(["claim", "where", "here", "figures"], body)
