"""The scores of several metrics on a set: each distinct text once, all metrics in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from freight.errors import FreightError, InvalidInput
from freight.judge.cache import ScoreCache, Scores, score_key
from freight.results import Column, Result, flag_kind
from freight.scoring import Scorer, score_stream
from freight.types import Array

if TYPE_CHECKING:
    from freight.clouds import Tick
    from freight.data.judgements import Judgements


@dataclass(frozen=True)
class Entrant:
    """One column of a metric, under the name that a study calls it by."""

    name: str
    scorer: Scorer
    column: Column

    def oriented(self, scores: Array) -> Array:
        """Scores that are higher for better; what is no finite number is nan."""
        finite = np.where(np.isfinite(scores), scores, np.nan)
        return finite if self.column.higher else -finite

    def scaled(self, oriented: Array) -> Array:
        """The same from 0, the worst there is, to 1 for identical texts."""
        sign = 1.0 if self.column.higher else -1.0
        worst, perfect = sign * self.column.worst, sign * self.column.perfect
        if not np.isfinite([worst, perfect]).all():
            raise InvalidInput(
                f"{self.name} has no scale from worst to best; an error needs one that has"
            )
        return (oriented - worst) / (perfect - worst)


def entrants(
    scorers: Sequence[Scorer] | Mapping[str, Scorer],
    columns: Mapping[str, Sequence[str]] | None = None,
) -> list[Entrant]:
    """The columns to judge, the primary one of a metric unless others are named.

    A metric that has several columns is called metric:column.
    """
    named = scorers if isinstance(scorers, Mapping) else _by_name(scorers)
    if not named:
        raise InvalidInput("there is no metric to judge; give at least one")
    for name in columns or {}:
        if name not in named:
            raise InvalidInput(f"columns name {name!r}; the metrics are {', '.join(named)}")
    return [entrant for name in named for entrant in _entrants(name, named[name], columns or {})]


def _by_name(scorers: Sequence[Scorer]) -> dict[str, Scorer]:
    found: dict[str, Scorer] = {}
    for scorer in scorers:
        if scorer.name in found:
            raise InvalidInput(f"two metrics are called {scorer.name}; give {{name: metric, ...}}")
        found[scorer.name] = scorer
    return found


def _entrants(name: str, scorer: Scorer, columns: Mapping[str, Sequence[str]]) -> Iterator[Entrant]:
    there = {column.name: column for column in scorer.columns}
    for column in dict.fromkeys(columns.get(name) or [scorer.columns[0].name]):
        if column not in there:
            raise InvalidInput(f"{name} has no column {column!r}; there is {', '.join(there)}")
        label = f"{name}:{column}" if len(there) > 1 else name
        yield Entrant(label, scorer, there[column])


class Scored(NamedTuple):
    """What each scorer gave, who of them was remembered, and what went wrong with remembering."""

    scores: list[Scores]
    remembered: list[bool]
    trouble: str = ""


def score_set(
    scorers: Sequence[Scorer],
    judged: Judgements,
    cache: ScoreCache | None = None,
    tick: Tick | None = None,
) -> Scored:
    """Score the texts of a set; IDF is learnt from its references, a text a row."""
    keys = [score_key(scorer.signature, judged.hyps, judged.refs) for scorer in scorers]
    known = [cache.read(key, len(judged)) if cache else None for key in keys]
    wanted = [k for k, found in enumerate(known) if found is None]
    trouble = ""
    fresh = _score([scorers[k] for k in wanted], judged, tick) if wanted else []
    for k, scores in zip(wanted, fresh, strict=True):
        known[k] = scores
        try:
            if cache and not trouble:
                cache.write(keys[k], scores)
        except FreightError as error:
            trouble = str(error)
    if tick and not wanted:
        tick(len(judged))
    remembered = [k not in wanted for k in range(len(scorers))]
    return Scored([found for found in known if found is not None], remembered, trouble)


def _score(scorers: Sequence[Scorer], judged: Judgements, tick: Tick | None) -> list[Scores]:
    rows = list(zip(judged.hyps, judged.refs, strict=True))
    distinct = {row: k for k, row in enumerate(dict.fromkeys(rows))}
    place = np.array([distinct[row] for row in rows])
    share = len(rows) / len(distinct)
    ready = [
        scorer.fit((ref for refs in judged.refs for ref in refs), judged.hyps, "given texts")
        if scorer.needs_fitting
        else scorer
        for scorer in scorers
    ]
    told = (lambda count: tick(count * share)) if tick else None
    parts = list(score_stream(ready, distinct, told))
    return [_spread(Result.joined(one), place) for one in zip(*parts, strict=True)]


def _spread(result: Result, place: Array) -> Scores:
    columns = {name: values[place] for name, values in result.segments.items()}
    flags = Counter(flag_kind(flag) for k in place for flag in result.flags[k])
    return Scores(columns, dict(flags), result.total is None)
