"""Texts as vectors of one length, for classifiers: the points of a metric's measure, pooled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from freight.core.metric import Metric
from freight.core.scorers import Scorer
from freight.errors import InvalidInput
from freight.transport.types import Array

_TEXTS = 512


def features(scorer: Scorer, texts: Sequence[str], pool: str = "mean") -> Array:
    """One row per text (text, feature): the points of its measure, weighted by their masses.

    `pool` is "mean", "deviation" (the mean, and the standard deviation of the points in each
    dimension) or "power-means" (minimum, mean and maximum). A text without units is all zeros. The
    mean of a barycenter is the mean of all layers' units, so `bary-score` needs another pool.
    """
    if pool not in POOLS:
        raise InvalidInput(f"pool={pool!r}; there is {', '.join(POOLS)}")
    if not isinstance(scorer, Metric) or scorer.needs_fitting:
        raise InvalidInput(f"{scorer.name} gives no points; take a fitted metric, as in bary-score")
    if isinstance(texts, str) or not len(texts):
        raise InvalidInput("give a list of texts, one or more")
    parts = (list(texts[at : at + _TEXTS]) for at in range(0, len(texts), _TEXTS))
    return np.concatenate([_pool_texts(scorer, part, pool) for part in parts])


def _pool_texts(metric: Metric, texts: list[str], pool: str) -> Array:
    with torch.inference_mode():
        measures = metric.weighting(metric.units(metric.encoder.encode(texts, metric.layers)))
        points = measures.points.double().cpu()
    rows = []
    for first, last in zip(measures.offsets[:-1], measures.offsets[1:], strict=True):
        weights = torch.as_tensor(measures.weights[first:last])[:, None]
        here = points[first:last] if first < last else points.new_zeros((1, points.shape[1]))
        rows.append(POOLS[pool](here, weights if first < last else torch.ones(1, 1)))
    stacked: Array = torch.stack(rows).numpy()
    return stacked


def _mean(points: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return (points * weights).sum(dim=0)


def _deviation(points: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    centre = _mean(points, weights)
    return torch.cat((centre, _mean((points - centre).square(), weights).sqrt()))


def _power_means(points: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return torch.cat((points.amin(dim=0), _mean(points, weights), points.amax(dim=0)))


POOLS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mean": _mean,
    "deviation": _deviation,
    "power-means": _power_means,
}
"""How the points of a text become one vector."""
