"""Barycentres that know their gradient: a linear map of the layers, found once and then held.

At the fixed point X = sum_l n P_l Y_l / L, where P_l moves X onto the layer Y_l. An optimal P_l is
a vertex of a polytope of plans that depends on the masses alone, so that almost everywhere it stays
the same while the layers move a little: dX = sum_l n P_l dY_l / L is the whole derivative.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from freight.errors import NotConverged
from freight.solvers.gram import mixtures
from freight.solvers.tensors import to_array
from freight.types import Array


def barycentres(layers: Tensor, masses: Tensor, sizes: Array) -> Tensor:
    """Points (row, unit, dim) of layers (row, unit, layer, dim); 0 in the padding."""
    shares = torch.as_tensor(_shares(layers, to_array(masses), sizes)).to(layers)
    return shares @ layers.transpose(1, 2).flatten(1, 2)


def _shares(layers: Tensor, masses: Array, sizes: Array) -> Array:
    """Which share (row, unit, layer * unit) of each unit of each layer a point consists of."""
    rows, width, depth, _ = layers.shape
    shares = np.zeros((rows, width, depth, width))
    stacked = layers.detach().double().transpose(1, 2)
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        flat = stacked[torch.as_tensor(same, device=layers.device), :, :size].flatten(1, 2)
        found, settled = mixtures(to_array(flat @ flat.mT), masses[same, :size].astype(np.float64))
        if not settled.all():
            raise NotConverged(f"the barycentre of row {same[~settled][0]} does not settle")
        shares[same[:, None], np.arange(size), :, :size] = found.reshape(
            len(same), size, depth, size
        )
    return shares.reshape(rows, width, depth * width)
