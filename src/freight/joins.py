"""How a unit's vectors in several layers (unit, layer, dim) become one."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

_SHORTEST = 1e-12
"""What `normalize` divides shorter vectors by."""


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


def end_to_end(layers: Tensor) -> Tensor:
    """One layer after the other, all equally long: cosines are the mean of the layers' cosines.

    The length is proportional to the mean of the layers' lengths.
    """
    lengths = layers.norm(dim=-1, keepdim=True).mean(dim=1, keepdim=True)
    return (normalize(pointing(layers), dim=-1) * lengths).flatten(1)


def pointing(vectors: Tensor) -> Tensor:
    """The same vectors; those too short to have a direction are 0, and get no gradient."""
    return vectors.where(vectors.detach().norm(dim=-1, keepdim=True) > _SHORTEST, 0.0)
