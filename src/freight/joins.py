"""How a unit's vectors in several layers (unit, layer, dim) become one."""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def mean(layers: Tensor) -> Tensor:
    """Their mean; a single layer stays as it is."""
    return layers[:, 0] if layers.shape[1] == 1 else layers.mean(dim=1)


def unit_mean(layers: Tensor) -> Tensor:
    """The mean of the layers scaled to unit length, so that no layer outweighs another."""
    return mean(normalize(layers, dim=-1))


def power_means(layers: Tensor) -> Tensor:
    """Minimum, mean and maximum over the layers scaled to unit length, end to end."""
    scaled = normalize(layers, dim=-1)
    return torch.cat((scaled.amin(dim=1), scaled.mean(dim=1), scaled.amax(dim=1)), dim=-1)
