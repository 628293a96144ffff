"""Error spans: the words of a hypothesis that are wrong or added, and those of a reference missing.

A word that the other text has too is matched, and so is a function word. Any other word is an error
if the nearest units of the other text are far from its own; how far decides its severity.
`benchmarks/studies/spans.py` fitted both limits to expert annotations. What differs critically is a
major error in any case.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from freight.core.flags import SIDES, SideName, differences_among
from freight.data.languages import FUNCTION_WORDS
from freight.explain.explanation import Side, TextWord, View, plan_for_side
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.explain.explanation import Explanation

Severity = Literal["minor", "major"]
SpanKind = Literal["wrong", "added", "missing"]


@dataclass(frozen=True)
class ErrorSpan:
    """Characters of a text that are an error: `wrong` or `added` in hyp, `missing` in ref."""

    side: SideName
    start: int
    end: int
    severity: Severity
    kind: SpanKind
    text: str


MINOR, MAJOR = 0.066, 0.21
"""The costs from which on a word is an error of this severity, fitted for `freight`.

The cost of a word is the sum over its units of the cost to the nearest unit of the other text, as a
share of the cost between unrelated units.
"""


def word_costs(view: View, name: SideName) -> tuple[list[TextWord], Array, Array]:
    """The words of a side, whether each is absent from the other side, and its cost.

    The cost is 0 for a word that the other side has, a function word and a punctuation mark.
    """
    own, other = (view.hyp, view.ref) if name == "hyp" else (view.ref, view.hyp)
    known, texts = {*_folded_words(other)}, _folded_words(own)
    absent = np.array(
        [any(map(str.isalnum, text)) and not _is_among(text, known) for text in texts], bool
    )
    content = absent & np.array([text not in FUNCTION_WORDS for text in texts], bool)
    costs = [float(np.sum(own.nearest_cost[list(word.units)])) for word in own.words]
    return own.words, absent, np.where(content, costs, 0.0)


_SHORT_FORMS = {
    "'s": ("is", "has"), "'re": ("are",), "'ve": ("have",), "'ll": ("will",), "'m": ("am",),
    "'d": ("would", "had"), "n't": ("not",),
}  # fmt: skip
_SHORT_STEMS = {"ca": "can", "wo": "will"}  # can't, won't


def _folded_words(side: Side) -> list[str]:
    words = (side.text[word.start : word.end] for word in side.words)
    return [word.casefold().replace("\u2019", "'") for word in words]


def _is_among(text: str, known: Set[str]) -> bool:
    """Whether a word is among those of the other text, or both words that it is short for are."""
    if text in known:
        return True
    for ending, several in _SHORT_FORMS.items():
        if text.endswith(ending):
            stem = text.removesuffix(ending)
            return _SHORT_STEMS.get(stem, stem) in known and not known.isdisjoint(several)
    return False


def error_spans(explanation: Explanation) -> tuple[ErrorSpan, ...]:
    """The errors of a hypothesis and what it lacks, in the order of the texts.

    A word of the reference is missing if it is an error there and nothing that is wrong in the
    hypothesis stands for it. Where one text is empty, all of the other is added or missing.
    """
    if not explanation.views:
        return tuple(_whole_texts(explanation))
    view = explanation.views[0]
    absent, severity = {}, {}
    critical: dict[int, SpanKind] = {}
    for name in SIDES:
        words, absent[name], costs = word_costs(view, name)
        severity[name] = np.searchsorted((MINOR, MAJOR), costs, side="right")
        for difference in differences_among(explanation.flags):
            start, end = difference.hyp if name == "hyp" else difference.ref
            for k, word in enumerate(words):
                if start < word.end and word.start < end:
                    severity[name][k] = 2
                    if name == "hyp":
                        critical[k] = "wrong" if difference.words[1] else "added"
    counterparts = _counterparts(view)
    kinds: list[SpanKind] = [
        "wrong" if (absent["ref"] | (severity["ref"] > 0))[one].any() else "added"
        for one in counterparts
    ]
    for k, kind in critical.items():
        kinds[k] = kind
    replaced = [ref for k in np.flatnonzero(severity["hyp"]) for ref in counterparts[k]]
    severity["ref"][replaced] = 0
    missing: list[SpanKind] = ["missing"] * len(severity["ref"])
    wrong = _runs("hyp", view.hyp, severity["hyp"], kinds)
    return (*wrong, *_runs("ref", view.ref, severity["ref"], missing))


def _whole_texts(explanation: Explanation) -> Iterator[ErrorSpan]:
    """All of a text whose other side is empty."""
    hyp, ref = explanation.hyp, explanation.references[explanation.winner]
    for side, text, other in (("hyp", hyp, ref), ("ref", ref, hyp)):
        if text.strip() and not other.strip():
            start, end = len(text) - len(text.lstrip()), len(text.rstrip())
            if side == "hyp":
                yield ErrorSpan("hyp", start, end, "major", "added", text[start:end])
            else:
                yield ErrorSpan("ref", start, end, "major", "missing", text[start:end])


def _counterparts(view: View) -> list[list[int]]:
    """For each word of the hypothesis the word of the reference that it is matched to, if any."""
    flow = plan_for_side(view.plans, "hyp").flow
    word_of = {unit: k for k, word in enumerate(view.ref.words) for unit in word.units}
    counterparts = []
    for word in view.hyp.words:
        moved = flow[list(word.units)].sum(axis=0)
        nearest = int(moved.argmax()) if moved.any() else -1
        counterparts.append([word_of[nearest]] if nearest in word_of else [])
    return counterparts


def _runs(
    name: SideName, side: Side, severities: Array, kinds: Sequence[SpanKind]
) -> Iterator[ErrorSpan]:
    """Neighbouring errors of a kind as one span, of the worst severity among them."""
    run: list[int] = []
    for k in range(len(severities) + 1):
        ends = k == len(severities) or not severities[k]
        if run and (ends or kinds[k] != kinds[run[0]]):
            start, end = side.words[run[0]].start, side.words[run[-1]].end
            major = max(int(severities[j]) for j in run) == 2
            severity: Severity = "major" if major else "minor"
            yield ErrorSpan(name, start, end, severity, kinds[run[0]], side.text[start:end])
            run = []
        if not ends:
            run.append(k)


class SegmentErrors(NamedTuple):
    """The errors of a segment; `reference` is the number of the one that they are found by."""

    segment: str
    system: str
    reference: int
    spans: Sequence[ErrorSpan]


def json_lines(segments: Iterable[SegmentErrors]) -> Iterator[str]:
    """One JSON object per segment: its number, its system, its best reference and its spans."""
    for one in segments:
        record = {**one._asdict(), "spans": [asdict(span) for span in one.spans]}
        # A lone surrogate is no character that UTF-8 has.
        yield json.dumps(record, ensure_ascii=False).encode("utf-8", "replace").decode()


def tab_separated(segments: Iterable[SegmentErrors]) -> Iterator[str]:
    """The format of the WMT shared task: one row per span, first those of the hypothesis.

    The columns are segment, system, start, end, severity, and the side that the characters are in.
    """
    yield "\t".join(("segment", "system", "start", "end", "severity", "side"))
    for segment, system, _, spans in segments:
        for one in spans:
            yield f"{segment}\t{system}\t{one.start}\t{one.end}\t{one.severity}\t{one.side}"
