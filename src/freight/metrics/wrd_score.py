"""WRDScore: Mussabayev, "WRDScore: New Metric for Evaluation of Natural Language Generation
Models", 2024; after word rotator's distance (Yokoi et al., EMNLP 2020).

The paper's equations 4 and 5 index the flow against its equation 3; here rows are the hypothesis
throughout. The released code computes something else, `wrd-score-code`: recall 1 - WRD, and a
precision off the nearest words. Neither minds where words stand; `order` is the share of the cost
that does, as in STD.
"""

import math
from dataclasses import replace

from freight.core import costs, readouts
from freight.core.metric import Metric
from freight.core.result import Column
from freight.encoders import DISTILLED
from freight.metrics.sources import Chosen, Layer, word_source
from freight.transport.types import Problem


def wrd_score(
    encoder: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    idf: str | None = None,
    clip: bool = False,
    order: float = 0.0,
    references: str = "best",
) -> Metric:
    """Words weighed by the length of their vectors; precision and recall of what flows."""
    similarities = (Column(column, True, 1.0, 0.0) for column in ("f1", "precision", "recall"))
    return Metric(
        "wrd-score",
        *word_source(encoder, layer, lang, "norm", idf),
        cost=costs.with_order(costs.clipped_cosine if clip else costs.cosine, order),
        problems=(Problem(),),
        readout=readouts.FlowAverages(),
        columns=(*similarities, Column("wrd", False, 0.0, 1.0 if clip else 2.0)),
        references=references,
    )


def wrd_score_code(
    encoder: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    idf: str | None = None,
    clip: bool = False,
    order: float = 0.0,
    references: str = "best",
) -> Metric:
    """WRDScore as its released code has it: recall 1 - WRD, precision off the nearest words."""
    return replace(
        wrd_score(encoder, layer, lang, idf, clip, order, references),
        name="wrd-score-code",
        problems=(Problem(), Problem(hyp=math.inf, ref=0.0)),
        readout=readouts.greedy_precision,
    )
