"""Scores that others have computed, out of a file, as a metric that can be judged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Never

import numpy as np

from freight.data.judgements import Judgements
from freight.data.submissions import Submission, read_scores
from freight.errors import InvalidInput
from freight.metric import Metric
from freight.pipeline import Chunk, Scored
from freight.results import Column, Result
from freight.scoring import Refs, score_together
from freight.types import Array

_NUMBER = re.compile(r"\d+$")
_Texts = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Stored:
    """A metric that knows the scores of some texts, and none of any others; higher is better."""

    name: str
    signature: str
    known: dict[_Texts, float]
    columns: tuple[Column, ...] = (Column("score", True, np.nan, np.nan),)
    references: str = "best"
    parts: tuple[Metric, ...] = ()
    needs_fitting: bool = False

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Stored:
        """The metric itself: it learns nothing from texts."""
        return self

    def read(self, chunk: Chunk, scored: Sequence[Scored]) -> Result:
        """What the file says of each segment."""
        starts = np.flatnonzero(np.diff(chunk.segments, prepend=-1))
        groups = np.split(chunk.index, starts[1:])
        texts = [(chunk.texts[g[0, 0]], tuple(chunk.texts[k] for k in g[:, 1])) for g in groups]
        values: Array = np.array([self.known.get(one, np.nan) for one in texts])
        flags = tuple(("no score in the file",) if x else () for x in np.isnan(values))
        winners = np.zeros(len(texts), np.int64)
        return Result(self.name, self.columns, {"score": values}, winners, flags, self.signature)

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """What the file says of each hypothesis."""
        return score_together([self], hyps, refs)[0]

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Never:
        """Refused."""
        raise InvalidInput(f"{self.name} is scores out of a file, which do not say why")


def stored(path: Path, sets: Sequence[Judgements]) -> Stored:
    """The scores of a .seg.score file, by system and segment, for the texts of these sets.

    A set's segment is the one that its name ends in the number of, counted from 1.
    """
    found = read_scores(path)
    scores: dict[_Texts, list[float]] = {}
    for judged in sets:
        for texts, score in _matched(found, judged):
            scores.setdefault(texts, []).append(score)
    if not scores:
        systems = ", ".join(dict.fromkeys(system for _, system in found.scores))
        raise InvalidInput(f"{path} has no system and segment of the set; it has {systems}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    known = {texts: float(np.mean(several)) for texts, several in scores.items()}
    return Stored(found.metric, f"{found.metric}|scores:{path.name}@sha256-{digest}", known)


def _matched(found: Submission, judged: Judgements) -> Iterable[tuple[_Texts, float]]:
    pairs = judged.lang_pairs or ("",) * len(judged)
    only = next(iter(found.scores))[0] if not judged.lang_pairs else None
    rows = zip(judged.hyps, judged.refs, judged.systems, judged.segment_names, pairs, strict=True)
    for hyp, refs, system, segment, pair in rows:
        number = _NUMBER.search(segment)
        mine = found.scores.get((only or pair, judged.system_names[system]), {})
        if number and int(number[0]) in mine:
            yield (hyp, refs), mine[int(number[0])]
