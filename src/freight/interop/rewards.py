"""A metric as a reward: what TRL's GRPO and RLOO trainers call on every batch of completions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freight.core.result import Column
from freight.core.scorers import PipelineScorer
from freight.errors import InvalidInput
from freight.metrics import with_primary_column
from freight.transport.types import Array


def reward(
    metric: str | PipelineScorer = "freight",
    column: str | None = None,
    reference: str = "reference",
    scale: tuple[float, float] | None = None,
    unscored: float | None = None,
) -> Reward:
    """A reward for TRL's trainers: how well a completion agrees with a column of the dataset.

    `reference` names that column: a text a row, or several of which the metric's own rule chooses.
    Higher is better: a distance is negated, unless `scale` says which scores are worth 0 and 1.
    `unscored` is given for what cannot be scored; None, TRL's word for that, moves nothing.
    """
    scorer = with_primary_column(metric, column)
    if scorer.needs_fitting:
        raise InvalidInput(
            f"{scorer.name} weighs units by IDF, which no single batch may teach it; fit it first:"
            f" reward(load({scorer.name!r}).fit(texts, texts))"
        )
    name = scorer.name if column is None else f"{scorer.name}-{column}"
    low, high = scale or _natural(scorer.columns[0])
    _check_scale(scorer, low, high)
    return Reward(scorer, reference, low, high, unscored, name)


@dataclass(frozen=True)
class Reward:
    """Called as TRL calls one; what it is called in the logs is its `__name__`."""

    scorer: PipelineScorer
    reference: str
    low: float
    high: float
    unscored: float | None
    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float | None]:
        """A reward a completion, texts or conversations; a row without a reference gets None."""
        refs = self._references(len(completions), columns)
        rows = [k for k, several in enumerate(refs) if several is not None]
        found: list[float | None] = [None] * len(completions)
        if rows:
            hyps = [_text(completions[k], f"completions[{k}]") for k in rows]
            scores = self.scorer.score(hyps, [refs[k] for k in rows])
            for k, value in zip(
                rows, self._scaled(scores[self.scorer.columns[0].name]), strict=True
            ):
                found[k] = self.unscored if math.isnan(value) else value
        return found

    def _references(self, count: int, columns: Mapping[str, Any]) -> list[Any]:
        """Of every completion its references, or None where there are none."""
        given = columns.get(self.reference)
        if given is None:
            there = ", ".join(name for name, x in columns.items() if isinstance(x, list)) or "none"
            raise InvalidInput(
                f"the dataset has no column {self.reference!r} to compare completions with; there"
                f" is {there}: name one by reference="
            )
        if len(given) != count:
            raise InvalidInput(f"there are {count} completions but {len(given)} {self.reference}s")
        return [_several(one, f"{self.reference}[{k}]") for k, one in enumerate(given)]

    def _scaled(self, scores: Array) -> list[float]:
        found: list[float] = ((scores - self.low) / (self.high - self.low)).tolist()
        return found


def _natural(column: Column) -> tuple[float, float]:
    return (0.0, 1.0) if column.higher else (0.0, -1.0)


def _check_scale(scorer: PipelineScorer, low: float, high: float) -> None:
    column = scorer.columns[0]
    if not (math.isfinite(low) and math.isfinite(high)) or low == high:
        raise InvalidInput(f"scale=({low}, {high}) are not two different numbers")
    if (high > low) != column.higher:
        better = "higher" if column.higher else "lower"
        raise InvalidInput(
            f"scale=({low}, {high}) rewards bad texts: {better} is better in {column.name} of"
            f" {scorer.name}; write scale=({high}, {low})"
        )


def _several(given: Any, where: str) -> list[str] | None:
    """One reference or several; a list of messages is a conversation, and so one."""
    if given is None or isinstance(given, str) or _is_conversation(given):
        return None if given is None else [_text(given, where)]
    if not isinstance(given, Sequence):
        raise InvalidInput(f"{where} is {given!r}, not a text or a list of texts")
    return [_text(one, where) for one in given] or None


def _is_conversation(given: Any) -> bool:
    return isinstance(given, Sequence) and len(given) > 0 and isinstance(given[0], Mapping)


def _text(given: Any, where: str) -> str:
    """A text as it is; of a conversation what was said last that is not a tool's answer."""
    if isinstance(given, str):
        return given
    if not _is_conversation(given):
        if isinstance(given, Sequence) and not given:
            return ""
        raise InvalidInput(f"{where} is {given!r}, neither a text nor a list of messages")
    said = [message.get("content") for message in given if message.get("role") != "tool"]
    last = said[-1] if said else None
    if last is None or isinstance(last, str):
        return last or ""
    return "".join(block.get("text", "") for block in last if isinstance(block, Mapping))
