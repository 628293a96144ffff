"""What it costs to move a unit of mass between two units, for padded batches of pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from freight.pairings import Pairs

Cost = Callable[[Pairs], Tensor]


def cosine(pairs: Pairs) -> Tensor:
    """1 - cosine similarity; a zero vector is as far as an orthogonal one."""
    return 1.0 - _similarity(pairs)


def clipped_cosine(pairs: Pairs) -> Tensor:
    """The same, nothing being farther than an orthogonal vector."""
    return 1.0 - _similarity(pairs).clamp(min=0.0)


def squared_euclidean(pairs: Pairs) -> Tensor:
    """The squared distance between the points."""
    hyp, ref = pairs.hyp_points, pairs.ref_points
    squares = hyp.square().sum(-1)[..., None] + ref.square().sum(-1)[..., None, :]
    return (squares - 2.0 * hyp @ ref.mT).clamp(min=0.0)


def euclidean(pairs: Pairs) -> Tensor:
    """The distance between the points; in double precision, or equal ones would be apart."""
    points = pairs.hyp_points.double(), pairs.ref_points.double()
    return squared_euclidean(pairs._replace(hyp_points=points[0], ref_points=points[1])).sqrt()


def order(pairs: Pairs) -> Tensor:
    """How far apart two units stand in their texts: STD's Algorithm 1.

    Where the unit of the hypothesis is not in it, or that of the reference is not, the places of
    the two the other way round count, and where those are missing too, nothing.
    """
    if pairs.places is None:
        raise TypeError("this pairing keeps no places")
    hyp, ref = pairs.places
    far = np.abs(hyp[0][:, :, None] - ref[1][:, None, :])
    back = np.abs(hyp[1][:, :, None] - ref[0][:, None, :])
    far = np.where(far > 0.0, far, back)  # nan is not above 0
    far[np.isnan(far)] = 0.0
    return torch.as_tensor(far, device=pairs.hyp_points.device)


@dataclass(frozen=True)
class Mix:
    """A weighted sum of costs."""

    parts: tuple[tuple[float, Cost], ...]

    def __call__(self, pairs: Pairs) -> Tensor:
        """The sum."""
        mixed = [weight * cost(pairs)[: len(pairs.which)] for weight, cost in self.parts]
        return torch.stack([part.double() for part in mixed]).sum(dim=0)


def _similarity(pairs: Pairs) -> Tensor:
    if pairs.lengths is not None:
        hyp, ref = (torch.as_tensor(side) for side in pairs.lengths)
        inner = pairs.hyp_points.double() @ pairs.ref_points.double().mT
        return inner[: len(hyp)] / (hyp[:, :, None] * ref[:, None, :])
    return normalize(pairs.hyp_points, dim=-1) @ normalize(pairs.ref_points, dim=-1).mT
