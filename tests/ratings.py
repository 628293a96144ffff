"""Made-up judgements: people and metrics see the same quality, each with noise of their own."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]


class Ratings(NamedTuple):
    """Rows of a grid of inputs and systems, shuffled, some of them missing."""

    human: Floats
    metrics: Floats
    segments: Floats
    systems: Floats


def ratings(
    seed: int = 0,
    segments: int = 12,
    systems: int = 6,
    noise: tuple[float, ...] = (0.5, 1.0),
    steps: int = 4,
    missing: float = 0.15,
) -> Ratings:
    """Human scores on a scale of few steps, so that they tie, and one metric for each noise."""
    rng = np.random.default_rng(seed)
    places = np.indices((segments, systems)).reshape(2, -1)
    places = rng.permutation(places, axis=1)[:, int(missing * segments * systems) :]
    quality = rng.normal(size=segments)[places[0]] + rng.normal(size=systems)[places[1]]
    human = np.round(steps * (quality + rng.normal(size=len(quality)))) / steps
    metrics = [quality + size * rng.normal(size=len(quality)) for size in noise]
    metrics = [np.round(metric, 1) for metric in metrics]
    return Ratings(human, np.stack(metrics), places[0], places[1])
