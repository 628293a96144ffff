"""Metrics for torchmetrics: batches in, one number or all columns out, over all processes.

What is kept between batches is a tally, numbers that add up, so that each process scores its own
texts and nothing else is exchanged. Memory does not grow with the corpus unless segments are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from freight.core.pipeline import pair_up
from freight.core.scorers import PipelineScorer, Refs
from freight.errors import InvalidInput, MissingPart
from freight.metrics import load

try:
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat
except ImportError as error:
    raise MissingPart.extra("torchmetrics", "torchmetrics") from error

_NAMES = "preds", "target"
_THEIRS = (
    "compute_on_cpu",
    "compute_with_cache",
    "dist_sync_fn",
    "dist_sync_on_step",
    "distributed_available_fn",
    "process_group",
    "sync_on_compute",
)
"""Keywords that are for torchmetrics; all others are settings of the metric."""


class FreightScores(Metric):
    """Every column of a metric over all batches, by name, as tensors without dimensions.

    `segments` adds a tensor a column, such as `f1_segments`, with one number a segment: in the
    order of the updates, those of the first process first.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self, metric: str | PipelineScorer = "freight", segments: bool = False, **options: Any
    ) -> None:
        theirs = {name: options.pop(name) for name in _THEIRS if name in options}
        super().__init__(**theirs)
        self.scorer = _scorer(metric, options)
        self.blank = self.scorer.score([""], [""]).only(slice(0))
        # A collection lets metrics share their states where these are equal, which they may be by
        # chance: the names tell them apart.
        mark = _mark(self.scorer)
        self._tally, self._rows = f"tally_{mark}", f"rows_{mark}" if segments else None
        self.add_state(self._tally, torch.zeros(self.blank.tally.shape), dist_reduce_fx="sum")
        if self._rows:
            self.add_state(self._rows, [], dist_reduce_fx="cat")

    @property
    def higher_is_better(self) -> bool:  # type: ignore[override]
        """Whether more of the primary column is better."""
        return self.scorer.columns[0].higher

    @property
    def signature(self) -> str:
        """Every choice, one line."""
        return self.scorer.signature

    def update(self, preds: str | Sequence[str], target: str | Refs) -> None:
        """Score a batch: a text each, and a reference or several for each."""
        hyps, refs = ([preds], [target]) if isinstance(preds, str) else (preds, target)
        segments = pair_up(hyps, cast(Refs, refs), _NAMES)
        result = self.scorer.score(*zip(*segments, strict=True))
        tally: Tensor = getattr(self, self._tally)
        setattr(self, self._tally, tally + torch.as_tensor(result.tally).to(tally))
        if self._rows:
            rows = [torch.as_tensor(result[column.name]) for column in self.scorer.columns]
            # flat, as the nothing is that torchmetrics sends for a process without texts
            getattr(self, self._rows).append(torch.stack(rows, dim=1).flatten().to(tally))

    def compute(self) -> Any:
        """What a corpus gets by each column: mostly the mean, for BLEU and the like their own."""
        found = self._system()
        if self._rows:
            kept = getattr(self, self._rows)
            names = [f"{column.name}_segments" for column in self.scorer.columns]
            rows = dim_zero_cat(kept) if len(kept) else torch.zeros(0)
            found |= dict(zip(names, rows.reshape(-1, len(names)).unbind(dim=1), strict=True))
        return found

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """What has been computed, or a list of it, as points or a line."""
        return self._plot(val, ax)

    def _system(self) -> dict[str, Tensor]:
        tally: Tensor = getattr(self, self._tally)
        system = self.blank.system_of(tally.double().cpu().numpy())
        return {name: torch.tensor(value).to(tally) for name, value in system.items()}


class FreightScore(FreightScores):
    """The primary column of a metric over all batches, as one number to log and to compare by.

    `column="recall"` makes another column the primary one.
    """

    def __init__(self, metric: str | PipelineScorer = "freight", **options: Any) -> None:
        super().__init__(metric, **options)

    def compute(self) -> Any:
        """What a corpus gets."""
        return self._system()[self.scorer.columns[0].name]


def _scorer(metric: str | PipelineScorer, settings: dict[str, Any]) -> PipelineScorer:
    if not isinstance(metric, str) and settings:
        raise InvalidInput(f"{next(iter(settings))} is set when a metric is loaded; give its name")
    scorer = load(metric, **settings) if isinstance(metric, str) else metric
    if scorer.needs_fitting:
        raise InvalidInput(
            f"{scorer.name} has to learn IDF before the first batch;"
            f" give freight.load({scorer.name!r}, ...).fit(refs), or set idf=None"
        )
    return scorer


def _mark(scorer: PipelineScorer) -> str:
    """A name that metrics share where they score alike."""
    columns = ",".join(column.name for column in scorer.columns)
    return hashlib.sha256(f"{scorer.signature}|{columns}".encode()).hexdigest()[:16]
