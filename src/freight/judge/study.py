"""What a study of metrics against people found."""

from __future__ import annotations

from dataclasses import dataclass

from freight.data.judgements import Judgements
from freight.types import Array


@dataclass(frozen=True, eq=False)
class Agreement:
    """How well one metric agrees with people on one set, by one criterion.

    `human` is empty for preferences; `low` and `high` are a 95 % bootstrap interval.
    """

    metric: str
    set: str
    human: str
    value: float
    low: float
    high: float
    rows: int
    skipped: int


@dataclass(frozen=True, eq=False)
class Study:
    """Several metrics on several sets: scores that are higher for better, and what they are worth.

    `scores` are by metric and set, a number a row; `significance` by set and criterion: the
    one-sided p that the metric of the row beats that of the column. A note that starts with "!" is
    a warning.
    """

    level: str
    statistic: str
    metrics: tuple[str, ...]
    sets: tuple[Judgements, ...]
    humans: tuple[str, ...]
    scores: dict[tuple[str, str], Array]
    agreements: tuple[Agreement, ...]
    significance: dict[tuple[str, str], Array]
    between_metrics: dict[str, Array]
    between_humans: dict[str, Array]
    signatures: tuple[str, ...]
    notes: tuple[str, ...]
