"""MoverScore: Zhao et al., "MoverScore: Text Generation Evaluating with Contextualized Embeddings
and Earth Mover Distance", EMNLP 2019, in its two released versions. Departures from the authors'
code are described at the factory.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from freight.metrics.declaration import HIGHER, LOWER, Slider, declare
from freight.metrics.parameter_types import (
    EncoderName,
    Idf,
    LayerChoice,
    ReferencesRule,
)

if TYPE_CHECKING:
    from freight.core.metric import Metric


@declare(
    "mover-score",
    columns={"similarity": HIGHER, "distance": LOWER},
    presets={"v1": {"version": 1}, "v2": {"version": 2}},
    paper='Zhao et al., "MoverScore: Text Generation Evaluating with Contextualized Embeddings and'
    ' Earth Mover Distance", EMNLP 2019.',
    choose_when="you compare with published figures",
)
def mover_score(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    version: Annotated[
        int, Field(ge=1, le=2, description="Which of the two released versions."), Slider(1, 2)
    ] = 2,
    ngram: Annotated[
        int, Field(ge=1, description="Move n-grams of so many words."), Slider(1, 9)
    ] = 1,
    idf: Idf = "own",
    references: ReferencesRule = "best",
) -> "Metric":
    """Earth mover's distance between words, or n-grams of them, weighed by IDF.

    The second version of the authors' code ignores its n-gram argument; ours does not. It fits IDF
    on each side's own texts, and so do we. Both versions drop continuations of words and ASCII
    punctuation, and keep typographic quotes. Transport is exact here: identical texts score 1.
    """
    from freight.metrics.parts import (
        Column,
        Mass,
        Metric,
        Problem,
        Windows,
        costs,
        readouts,
        source,
        units,
    )
    from freight.metrics.parts import encoder as find_encoder

    chosen = find_encoder(encoder)
    first = version == 1
    layer = (f"-{min(5, chosen.depth + 1)}:" if first else -1) if layer is None else layer
    pooling = "power-means" if first else "unit-mean"
    text = source(chosen, layer, pooling_name=pooling, idf=idf, special=True, weigh_special=True)
    weighting = text.weighting
    if ngram > 1 and isinstance(weighting, Mass):
        weighting = Windows(weighting, ngram)
    own = weighting if text.ref_weighting else None
    words = replace(text, units=units.heads, weighting=weighting, ref_weighting=own)
    return Metric(
        name="mover-score",
        **words.fields(),
        cost=costs.squared_euclidean if first else costs.euclidean,
        problems=(Problem(),),
        readout=readouts.Similarity("complement" if first else "inverse"),
        columns=(
            Column("similarity", True, 1.0, 0.0, (-math.inf, 1.0)),
            Column("distance", False, 0.0, 2.0 if first else math.sqrt(2.0), (0.0, math.inf)),
        ),
        references=references,
    )
