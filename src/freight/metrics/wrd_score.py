"""WRDScore: Mussabayev, "WRDScore: New Metric for Evaluation of Natural Language Generation
Models", 2024; after word rotator's distance (Yokoi et al., EMNLP 2020). Departures from the paper
are described at the factories; `wrd-score-code` is what the released code computes.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from freight.metrics.declaration import HIGHER, LOWER, declare
from freight.metrics.parameter_types import (
    EncoderName,
    Idf,
    Language,
    LayerChoice,
    OrderShare,
    Punctuation,
    ReferencesRule,
)

if TYPE_CHECKING:
    from freight.core.metric import Metric

_PAPER = (
    'Mussabayev, "WRDScore: New Metric for Evaluation of Natural Language Generation Models", 2024;'
    " after word rotator's distance (Yokoi et al., EMNLP 2020)."
)
_COLUMNS = {"f1": HIGHER, "precision": HIGHER, "recall": HIGHER, "wrd": LOWER}
Clip = Annotated[bool, Field(description="Whether negative cosines count as 0.")]


@declare(
    "wrd-score",
    columns=_COLUMNS,
    presets={"paper": {"readout": "flow"}, "authors": {"readout": "code"}},
    paper=_PAPER,
    choose_when="texts are short and their wording is free: names, headings",
)
def wrd_score(
    encoder: EncoderName = "distilled",
    layer: LayerChoice = None,
    lang: Language = None,
    idf: Idf = None,
    clip: Clip = False,
    order: OrderShare = 0.0,
    readout: Annotated[
        Literal["flow", "code"],
        Field(
            description="Precision and recall: averages over the flow, as in the paper, or greedy"
            " matching and 1 - WRD, as in the released code."
        ),
    ] = "flow",
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Words with mass by the norm of their vectors: precision and recall averaged over the flow.

    The paper's equations 4 and 5 index the flow the other way round than its equation 3; here rows
    are the hypothesis throughout. `readout="code"` (`preset="authors"`) is what the released code
    computes, also as the metric `wrd-score-code`. The paper ignores word order; `order` is the
    share of the cost that compares positions, as in STD.
    """
    from freight.metrics.parts import Column, Metric, Problem, costs, readouts, word_source

    code = readout == "code"
    similarities = (
        Column(column, True, 1.0, 0.0, (-1.0, 1.0)) for column in ("f1", "precision", "recall")
    )
    return Metric(
        name="wrd-score",
        **word_source(encoder, layer, lang, "norm", idf, punctuation=punctuation).fields(),
        cost=costs.with_order(costs.clipped_cosine if clip else costs.cosine, order),
        problems=(Problem(), Problem(hyp=math.inf, ref=0.0)) if code else (Problem(),),
        readout=readouts.greedy_precision if code else readouts.FlowAverages(),
        columns=(*similarities, Column("wrd", False, 0.0, 1.0, (0.0, 2.0))),
        references=references,
    )


@declare(
    "wrd-score-code",
    columns=_COLUMNS,
    paper=_PAPER,
    page="wrd-score",
    choose_when="you compare with figures of the released code",
)
def wrd_score_code(
    encoder: EncoderName = "distilled",
    layer: LayerChoice = None,
    lang: Language = None,
    idf: Idf = None,
    clip: Clip = False,
    order: OrderShare = 0.0,
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """WRDScore as its released code computes it: recall is 1 - WRD, precision greedy matching."""
    same = wrd_score(encoder, layer, lang, idf, clip, order, "code", punctuation, references)
    return replace(same, name="wrd-score-code")
