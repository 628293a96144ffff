"""A metric of one's own, with its own cost, weighting and encoder: see docs/own-metric.md."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from pydantic import Field

import freight
from freight.core import readouts, units
from freight.core.types import Cloud, Encoder, Measures, Pairs, Progress
from freight.core.weightings import measures
from freight.metrics.parameter_types import EncoderName


def by_length(cloud: Cloud) -> Measures:
    """A weighting: the mass of a word is its number of characters."""
    return measures(cloud, (cloud.end - cloud.start).astype(float))


def angle(pairs: Pairs) -> torch.Tensor:
    """A cost: the angle between two vectors, from 0 to 1."""
    return pairs.similarity().clamp(-1.0, 1.0).arccos() / math.pi


@dataclass(frozen=True)
class Truncated:
    """An encoder: the first dimensions of the vectors of another one."""

    encoder: Encoder
    dim: int

    @property
    def depth(self) -> int:
        """How many layers there are besides the embedding layer."""
        return self.encoder.depth

    @property
    def identity(self) -> str:
        """What the signature shows."""
        return f"{self.encoder.identity}[:{self.dim}]"

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """The vectors of these layers for all units of all texts."""
        cloud = self.encoder.encode(texts, layers, progress)
        return replace(cloud, layers=cloud.layers[..., : self.dim])


def reach(
    encoder: EncoderName = "embedded",
    layer: int = 4,
    dim: Annotated[int, Field(ge=1, description="How many dimensions are kept.")] = 256,
    penalty: Annotated[float, Field(ge=0, description="Penalty of reusing a word.")] = 0.3,
) -> freight.Metric:
    """The cost of matching every word of the reference, with a penalty for reusing words."""
    return freight.Metric(
        name="reach",
        encoder=Truncated(freight.encoder(encoder), dim),
        layers=(layer,),
        units=units.words,
        weighting=by_length,
        ref_weighting=None,
        cost=angle,
        problems=(freight.Problem(hyp=penalty, ref=math.inf),),
        readout=readouts.Transport(),
        columns=(
            freight.Column("objective", higher=False, perfect=0.0, worst=1.0),
            freight.Column("transport", higher=False, perfect=0.0, worst=1.0),
        ),
    )
