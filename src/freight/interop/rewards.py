"""A metric as a reward function, as TRL's GRPO and RLOO trainers call it on every batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freight.core.result import Column
from freight.core.scorers import PipelineScorer, Scorer
from freight.errors import InvalidInput
from freight.metrics import scorer_of, with_primary_column
from freight.transport.types import Array


def reward(
    metric: str | Scorer = "freight",
    column: str | None = None,
    reference: str = "reference",
    scale: tuple[float, float] | None = None,
    unscored: float | None = None,
) -> Reward:
    """A reward for TRL's trainers: how well a completion agrees with a column of the dataset.

    `metric` is a name or any scorer. `reference` names the column, which has one text per row, or
    several, combined by the metric's own rule. Higher is better: a distance is negated, unless
    `scale` gives the scores that are worth 0 and 1. A completion that cannot be scored gets
    `unscored`; None is TRL's value for a row that the reward does not apply to.
    """
    scorer = with_primary_column(scorer_of(metric), column)
    if scorer.needs_fitting:
        raise InvalidInput(
            f"{scorer.name} weights units by IDF, which cannot be fitted on a batch; fit it first:"
            f" reward(load({scorer.name!r}).fit(texts, texts))"
        )
    name = scorer.name if column is None else f"{scorer.name}-{column}"
    low, high = scale or _default_scale(scorer.columns[0])
    _check_scale(scorer, low, high)
    return Reward(scorer, reference, low, high, unscored, name)


@dataclass(frozen=True)
class Reward:
    """A function as TRL calls it; its `__name__` is its name in the logs."""

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
        """One reward per completion (text or conversation); None for a row without a reference."""
        refs = self._references(len(completions), columns)
        rows = [k for k, several in enumerate(refs) if several is not None]
        rewards: list[float | None] = [None] * len(completions)
        if rows:
            hyps = [_text(completions[k], f"completions[{k}]") for k in rows]
            scores = self.scorer.score(hyps, [refs[k] for k in rows])
            values = self._scale(scores[self.scorer.columns[0].name])
            for k, value in zip(rows, values, strict=True):
                rewards[k] = self.unscored if math.isnan(value) else value
        return rewards

    def _references(self, count: int, columns: Mapping[str, Any]) -> list[Any]:
        """The references of every completion, or None if there are none."""
        column = columns.get(self.reference)
        if column is None:
            known = ", ".join(name for name, x in columns.items() if isinstance(x, list)) or "none"
            raise InvalidInput(
                f"the dataset has no column {self.reference!r} to compare completions with; there"
                f" is {known}: name one by reference="
            )
        if len(column) != count:
            raise InvalidInput(f"there are {count} completions but {len(column)} {self.reference}s")
        return [_reference_list(one, f"{self.reference}[{k}]") for k, one in enumerate(column)]

    def _scale(self, scores: Array) -> list[float]:
        scaled: list[float] = ((scores - self.low) / (self.high - self.low)).tolist()
        return scaled


def _default_scale(column: Column) -> tuple[float, float]:
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


def _reference_list(value: Any, where: str) -> list[str] | None:
    """One reference or several; a list of messages is a conversation, and so one."""
    if value is None or isinstance(value, str) or _is_conversation(value):
        return None if value is None else [_text(value, where)]
    if not isinstance(value, Sequence):
        raise InvalidInput(f"{where} is {value!r}, not a text or a list of texts")
    return [_text(one, where) for one in value] or None


def _is_conversation(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) > 0 and isinstance(value[0], Mapping)


def _text(value: Any, where: str) -> str:
    """A text as it is; of a conversation the last message that is not a tool's answer."""
    if isinstance(value, str):
        return value
    if not _is_conversation(value):
        if isinstance(value, Sequence) and not value:
            return ""
        raise InvalidInput(f"{where} is {value!r}, neither a text nor a list of messages")
    contents = [message.get("content") for message in value if message.get("role") != "tool"]
    last = contents[-1] if contents else None
    if last is None or isinstance(last, str):
        return last or ""
    return "".join(block.get("text", "") for block in last if isinstance(block, Mapping))
