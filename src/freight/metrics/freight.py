"""The default metric, `freight`: published ideas put together by how well they agree with people.

Not published elsewhere. From Lazy-EMD (Chen et al., IJCAI 2020) come KL-relaxed marginals and a
score read off the objective; from BERTScore (Zhang et al., ICLR 2020) greedy matching besides; from
BaryScore (Colombo et al., EMNLP 2021) several layers; from STD (Li et al., TASLP 2019) that
neighbouring words count. New are standardised vectors, and a cost that is the logarithm of the
cosine: exp(-cost) is the cosine, so the score is a kind of mean cosine in which one unmatched word
counts more than many slightly different ones.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

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
    presets={"recall": {"recall": 1.0, "hyp": 0.1}},
    other_languages={"recall": 0.8},
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
    recall: Annotated[
        Share,
        Field(
            description="Share of the reference's units in greedy matching; the rest is precision."
        ),
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
    from freight.encoders import layer_range
    from freight.metrics.parts import Column, Metric, Problem, costs, readouts, source
    from freight.metrics.parts import encoder as find_encoder

    chosen = find_encoder(encoder)
    layer = layer_range(chosen) if layer is None else layer
    return Metric(
        name="freight",
        **source(chosen, layer, unit, pooling, mass, idf, punctuation=punctuation).fields(),
        cost=costs.Neighbours(costs.LogCosine(floor), neighbours),
        problems=(Problem(hyp, ref, epsilon), Problem(math.inf, 0.0), Problem(0.0, math.inf)),
        readout=readouts.LazyAndGreedy(greedy, recall),
        columns=(Column("score", True, 1.0, 0.0, (0.0, 1.0)),),
        references=references,
    )


def _with_parameters_of(other: Any) -> "Callable[[Callable[..., Metric]], Callable[..., Metric]]":
    """Give a factory of keywords the parameters of another one."""
    parameters = inspect.signature(other).parameters.values()

    def change(factory: "Callable[..., Metric]") -> "Callable[..., Metric]":
        named = [one.replace(kind=one.KEYWORD_ONLY) for one in parameters]
        factory.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        return factory

    return change


@declare(
    "freight-da",
    columns={"score": HIGHER},
    presets=freight.presets,
    choose_when="you judge translations, with one of the four encoders that it was trained for",
)
@_with_parameters_of(freight.factory)
def freight_da(**settings: Any) -> "Metric":
    """`freight` trained on people's assessments of translations, by an adapter of its encoder.

    There is one for each encoder that comes in a package; vectors for tests stay untrained.
    """
    from freight.encoders.adapters import shipped_adapter
    from freight.metrics import load
    from freight.metrics.parts import Metric
    from freight.metrics.parts import encoder as find_encoder

    chosen = find_encoder(settings.pop("encoder", "embedded"))
    adapter = shipped_adapter("freight-da", chosen)
    trained = load("freight", encoder=chosen, adapter=adapter, **settings)
    assert isinstance(trained, Metric)
    return replace(trained, name="freight-da")
