"""From solved plans to columns of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freight.types import Array, Plans


def transport(plans: Sequence[Plans]) -> dict[str, Array]:
    """What the plan costs to carry out, and with the price of what stays unmoved."""
    return {"transport": plans[0].transport, "objective": plans[0].objective}


def distance(plans: Sequence[Plans]) -> dict[str, Array]:
    """What the plan costs to carry out."""
    return {"distance": plans[0].transport}


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision from a plan that holds hyp, recall from one that holds ref, and their F.

    F = P R / (alpha P + (1 - alpha) R); alpha 0.5 is the harmonic mean, 1 is recall. Where P + R is
    not positive F is 0.
    """

    alpha: float = 0.5
    name: str = "f1"

    def __call__(self, plans: Sequence[Plans]) -> dict[str, Array]:
        """The three columns."""
        precision, recall = 1.0 - plans[0].transport, 1.0 - plans[1].transport
        below = self.alpha * precision + (1.0 - self.alpha) * recall
        positive = (precision + recall > 0) & (below != 0)
        score = np.where(positive, precision * recall / np.where(positive, below, 1.0), 0.0)
        return {self.name: score, "precision": precision, "recall": recall}
