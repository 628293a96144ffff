"""BaryScore: Colombo et al., "Automatic Text Evaluation through the Lens of Wasserstein
Barycenters", EMNLP 2021. Departures from the authors' code are described at the factory.
"""

import math
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from freight.metrics.declaration import LOWER, Slider, declare
from freight.metrics.parameter_types import (
    EncoderName,
    Idf,
    LayerChoice,
    Punctuation,
    ReferencesRule,
)

if TYPE_CHECKING:
    from freight.core.metric import Metric


@declare(
    "bary-score",
    columns={"distance": LOWER},
    presets={
        "authors": {"layer": "-5:"},
        "paper": {"layer": "all", "idf": "ref", "root": True},
        "last-three-idf": {"layer": "-3:", "idf": "ref"},
    },
    former_presets={"plus": {"preset": "last-three-idf"}},
    paper='Colombo et al., "Automatic Text Evaluation through the Lens of Wasserstein Barycenters",'
    " EMNLP 2021.",
    choose_when="you do not want to choose a layer",
)
def bary_score(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    idf: Idf = None,
    epsilon: Annotated[
        float,
        Field(
            ge=0.0,
            allow_inf_nan=False,
            description="Entropic regularisation between the barycenters; 0 solves exactly.",
        ),
        Slider(0.02, 4.0),
    ] = 0.0,
    root: Annotated[
        bool,
        Field(
            description="Whether the distance is the root of W2², as in the paper, rather than W2²,"
            " as in the authors' code."
        ),
    ] = False,
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Transport between the Wasserstein barycenters of an encoder's last five layers.

    The authors' code takes the last five hidden states, keeps special tokens, and scores the
    squared distance; so do we. It starts the barycenter at zero, where the first plan depends on
    how the solver breaks ties; ours starts at the unit-wise mean of the layers. Its IDF is looked
    up with keys that never match; ours weighs. The paper takes all layers, masses by IDF, and the
    root: `preset="paper"`.
    """
    from freight.metrics.parts import Column, Metric, Problem, costs, readouts, source
    from freight.metrics.parts import encoder as find_encoder

    chosen = find_encoder(encoder)
    layer = f"-{min(5, chosen.depth + 1)}:" if layer is None else layer
    text = source(
        chosen,
        layer,
        pooling_name="barycenter",
        idf=idf,
        special=True,
        weigh_special=True,
        punctuation=punctuation,
    )
    unrelated = math.sqrt(2.0) if root else 2.0
    bounds = 0.0, math.inf  # 4 between texts, but vectors of one's own may be longer
    return Metric(
        name="bary-score",
        **text.fields(),
        cost=costs.squared_euclidean,
        problems=(Problem(epsilon=epsilon),),
        readout=readouts.Distance(root),
        columns=(Column("distance", False, 0.0, unrelated, bounds),),
        references=references,
    )
