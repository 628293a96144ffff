"""Metrics for torchmetrics: updated batch by batch, reduced over all processes.

The state is a tally, numbers that add up, so each process scores its own texts and nothing else is
exchanged. Memory does not grow with the corpus unless scores of segments are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from freight.core.pipeline import adapt
from freight.core.scorers import PipelineScorer, Refs, Scorer, pair_up
from freight.errors import InvalidInput, MissingPart
from freight.metrics import load

try:
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat
except ImportError as error:
    raise MissingPart.extra("torchmetrics", "torchmetrics") from error

_NAMES = "preds", "target"
_OPTIONS_OF_TORCHMETRICS = (
    "compute_on_cpu",
    "compute_with_cache",
    "dist_sync_fn",
    "dist_sync_on_step",
    "distributed_available_fn",
    "process_group",
    "sync_on_compute",
)
"""Keywords of torchmetrics itself; all others are settings of the metric."""


class FreightScores(Metric):
    """Every column of a metric over all batches, by name, as tensors without dimensions.

    `metric` is a name or any scorer. `segments` adds one tensor per column, such as `f1_segments`,
    with one number per segment: in the order of the updates, those of the first process first.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self, metric: str | Scorer = "freight", segments: bool = False, **options: Any
    ) -> None:
        own = {name: options.pop(name) for name in _OPTIONS_OF_TORCHMETRICS if name in options}
        super().__init__(**own)
        self.scorer = _load_scorer(metric, options)
        self.blank = self.scorer.score([""], [""]).only(slice(0))
        # A collection lets metrics share states that are equal, which they may be by chance: the
        # names of the states tell them apart.
        digest = _digest(self.scorer)
        self._tally, self._rows = f"tally_{digest}", f"rows_{digest}" if segments else None
        self.add_state(self._tally, torch.zeros(self.blank.tally.shape), dist_reduce_fx="sum")
        if self._rows:
            self.add_state(self._rows, [], dist_reduce_fx="cat")

    @property
    def higher_is_better(self) -> bool:  # type: ignore[override]
        """Whether higher is better in the primary column."""
        return self.scorer.columns[0].higher

    @property
    def signature(self) -> str:
        """Every setting, one line."""
        return self.scorer.signature

    def update(self, preds: str | Sequence[str], target: str | Refs) -> None:
        """Score a batch: texts, and one reference or several for each."""
        hyps, refs = ([preds], [target]) if isinstance(preds, str) else (preds, target)
        segments = pair_up(hyps, cast(Refs, refs), _NAMES)
        result = self.scorer.score(*zip(*segments, strict=True))
        tally: Tensor = getattr(self, self._tally)
        setattr(self, self._tally, tally + torch.as_tensor(result.tally).to(tally))
        if self._rows:
            rows = [torch.as_tensor(result[column.name]) for column in self.scorer.columns]
            # flat, like the empty tensor that torchmetrics sends for a process without texts
            getattr(self, self._rows).append(torch.stack(rows, dim=1).flatten().to(tally))

    def compute(self) -> Any:
        """The score of the corpus in each column: the mean, or a corpus score as BLEU has one."""
        scores = self._system()
        if self._rows:
            kept = getattr(self, self._rows)
            names = [f"{column.name}_segments" for column in self.scorer.columns]
            rows = dim_zero_cat(kept) if len(kept) else torch.zeros(0)
            scores |= dict(zip(names, rows.reshape(-1, len(names)).unbind(dim=1), strict=True))
        return scores

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot what was computed, or a list of it, as points or a line."""
        return self._plot(val, ax)

    def _system(self) -> dict[str, Tensor]:
        tally: Tensor = getattr(self, self._tally)
        system = self.blank.system_of(tally.double().cpu().numpy())
        return {name: torch.tensor(value).to(tally) for name, value in system.items()}


class FreightScore(FreightScores):
    """The primary column of a metric over all batches, as one number to log and to compare by.

    `column="recall"` makes another column the primary one.
    """

    def __init__(self, metric: str | Scorer = "freight", **options: Any) -> None:
        super().__init__(metric, **options)

    def compute(self) -> Any:
        """The score of the corpus."""
        return self._system()[self.scorer.columns[0].name]


def _load_scorer(metric: str | Scorer, settings: dict[str, Any]) -> PipelineScorer:
    if not isinstance(metric, str) and settings:
        raise InvalidInput(f"{next(iter(settings))} is set when a metric is loaded; give its name")
    scorer = load(metric, **settings) if isinstance(metric, str) else adapt(metric)
    if scorer.needs_fitting:
        raise InvalidInput(
            f"{scorer.name} needs IDF before the first batch;"
            f" give freight.load({scorer.name!r}, ...).fit(refs), or set idf=None"
        )
    return scorer


def _digest(scorer: PipelineScorer) -> str:
    """Equal for metrics that score alike."""
    columns = ",".join(column.name for column in scorer.columns)
    return hashlib.sha256(f"{scorer.signature}|{columns}".encode()).hexdigest()[:16]
