"""The default metric, `freight`: published ideas put together by how well they agree with people.

Not published elsewhere. From Lazy-EMD (Chen et al., IJCAI 2020) come KL-relaxed marginals and a
score read off the objective; from BERTScore (Zhang et al., ICLR 2020) greedy matching besides; from
BaryScore (Colombo et al., EMNLP 2021) several layers; from STD (Li et al., TASLP 2019) that
neighbouring words count. New are standardised vectors, and a cost that is the logarithm of the
cosine: exp(-cost) is the cosine, so the score is a kind of mean cosine in which one unmatched word
counts more than many slightly different ones.
"""

import math
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from freight.metrics.declaration import HIGHER, Slider, declare
from freight.metrics.parameter_types import (
    EncoderName,
    Epsilon,
    HypPenalty,
    Idf,
    LayerChoice,
    MassName,
    NotNegative,
    PoolingName,
    Punctuation,
    ReferencesRule,
    RefPenalty,
    Share,
    UnitName,
)

if TYPE_CHECKING:
    from freight.core.metric import Metric


@declare(
    "freight",
    columns={"score": HIGHER},
    choose_when="you want agreement with people; the default",
)
def freight(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    hyp: HypPenalty = 1.0,
    ref: RefPenalty = 1.0,
    epsilon: Epsilon = 0.005,
    greedy: Annotated[
        Share, Field(description="Share of greedy matching in the score; the rest is transport.")
    ] = 0.5,
    neighbours: Annotated[
        NotNegative, Field(description="Weight of the neighbouring units in the cost of a unit.")
    ] = 0.05,
    floor: Annotated[
        float,
        Field(gt=0.0, lt=1.0, description="Cosines below this count as this in the logarithm."),
        Slider(0.001, 0.999),
    ] = 0.05,
    mass: MassName = "uniform",
    idf: Idf = None,
    unit: UnitName = "tokens",
    pooling: PoolingName = "standardised",
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Unbalanced transport and greedy matching of standardised tokens, over the upper layers."""
    from freight.metrics.parts import Column, Metric, Problem, costs, readouts, source
    from freight.metrics.parts import encoder as find_encoder

    chosen = find_encoder(encoder)
    layer = f"{-(chosen.depth // 2) - 1}:" if layer is None else layer
    return Metric(
        name="freight",
        **source(chosen, layer, unit, pooling, mass, idf, punctuation=punctuation).fields(),
        cost=costs.Neighbours(costs.LogCosine(floor), neighbours),
        problems=(Problem(hyp, ref, epsilon), Problem(math.inf, 0.0), Problem(0.0, math.inf)),
        readout=readouts.LazyAndGreedy(greedy),
        columns=(Column("score", True, 1.0, 0.0, (0.0, 1.0)),),
        references=references,
    )
