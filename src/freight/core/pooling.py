"""Layer pooling: how a unit's vectors in several layers (unit, layer, dim) become one.

The standardised pooling also removes the mean and scale of each dimension, as measured on
sentences that come with the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from freight.core.types import Encoder
from freight.core.units import tokens

_SHORTEST = 1e-12
"""What `normalize` divides shorter vectors by."""


def mean(layers: Tensor) -> Tensor:
    """The mean over the layers; a single layer is unchanged."""
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


SENTENCES = "sentences.txt"
_LEAST = 1e-4


@dataclass(frozen=True)
class Standardised:
    """Layers end to end, each with its mean taken off, divided by its spread, all equally long.

    The cosine of two such vectors is the mean of the layers' cosines, the length of one is
    proportional to the mean of the layers' lengths. Mean and spread of every
    dimension come from the bundled sentences, so that they are the encoder's own and a score
    depends on nothing but its two texts. The sentences are dense in names: an origin among names
    sets other words apart best.
    """

    encoder: Encoder
    layers: tuple[int, ...]

    @property
    def identity(self) -> str:
        """What it is computed from; the encoder and the layers are named elsewhere."""
        return f"standardised on {len(sentences())} sentences"

    def __getstate__(self) -> dict[str, Any]:
        """Only the specification is pickled; the statistics are computed again where needed."""
        return {"encoder": self.encoder, "layers": self.layers}

    def __call__(self, layers: Tensor) -> Tensor:
        """One vector (unit, layer * dim) out of (unit, layer, dim)."""
        mean, spread = (part.to(layers.device) for part in self._moments)
        precise = layers if layers.dtype == torch.float64 else layers.float()
        return end_to_end((precise - mean) / spread)

    @cached_property
    def _moments(self) -> tuple[Tensor, Tensor]:
        points = tokens(self.encoder.encode(sentences(), self.layers)).layers.double()
        spread = points.std(dim=0, correction=0)
        floor = _LEAST * spread.mean(dim=-1, keepdim=True).clamp(min=torch.finfo(spread.dtype).tiny)
        return points.mean(dim=0).float(), torch.maximum(spread, floor).float()


def sentences() -> list[str]:
    """English sentences that came with the library."""
    return files("freight.core").joinpath(SENTENCES).read_text("utf-8").splitlines()
