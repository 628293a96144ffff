"""The types of metrics' parameters: range or choices, and the sentence that describes each.

A type that several metrics share is written here once, so that it reads the same everywhere. A
default belongs to the metric and stands in its signature. `Slider` and `Menu` say what the
service's form offers; a number without a slider cannot be set through the service.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from freight.metrics.declaration import Expected, Menu, Served, Slider

if TYPE_CHECKING:
    from freight.core.types import Encoder
else:
    Encoder = Any

# Numbers, without a description.
Share = Annotated[float, Field(ge=0.0, le=1.0), Slider(0.0, 1.0)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False), Slider(0.0, 1.0)]
Penalty = Annotated[float, Field(ge=0.0), Slider(0.01, 100.0)]
Entropy = Annotated[float, Field(ge=0.0, allow_inf_nan=False), Slider(0.001, 1.0)]
ReadoutName = Literal["transport", "objective"]

# How texts become vectors.
EncoderName = Annotated[
    str | Encoder,
    Field(description="What turns texts into vectors: a name, a folder, or an encoder object."),
]

_LAYERS = re.compile(r"all|-?[0-9]{0,3}:-?[0-9]{0,3}|-?[0-9]{1,3}", re.ASCII)
_MOST_LAYERS = 64


def check_layers(value: Any) -> Any:
    """Refuse what is no form of a layer; whether the encoder has it is known only later."""
    if isinstance(value, str):
        fits = _LAYERS.fullmatch(value) is not None
    else:
        several = [0 if value is None else value] if not isinstance(value, Sequence) else value
        fits = 0 < len(several) <= _MOST_LAYERS and all(abs(one) <= 999 for one in several)
    if not fits:
        raise ValueError("not a layer")
    return value


LayerChoice = Annotated[
    int | str | Sequence[int] | None,
    AfterValidator(check_layers),
    Expected(f'a number, a list of 1 to {_MOST_LAYERS} numbers, "all" or a range such as "-5:"'),
    Served.AS_LAYERS,
    Field(
        description="Hidden states, 0 being the embeddings: 4, -1 (the last), [2, 4], -5: (the last"
        " five), all (all but the embeddings); by default the metric's own rule, then the best"
        " known layer of the encoder."
    ),
]
PoolingName = Annotated[
    Literal["mean", "unit-mean", "power-means", "barycenter", "standardised"],
    Field(description="How the vectors of several layers become one vector per unit."),
]
UnitName = Annotated[
    Literal["tokens", "words"],
    Field(description="What is matched: tokens, or words (each the mean of its tokens)."),
]
Punctuation = Annotated[
    bool, Field(description="Whether punctuation marks are units too, rather than dropped.")
]
TagPipeline = Annotated[
    str | None, Field(description="A spaCy pipeline whose tags take a share of the cost.")
]
TagKind = Annotated[
    Literal["pos", "dep"],
    Served.NEVER,
    Field(description="Which tags: parts of speech, or dependency labels."),
]
TagShare = Annotated[float, Field(ge=0.0, le=1.0, description="Share of the tags in the cost.")]
Language = Annotated[
    str | None,
    Field(description="Target language, such as en, zh or de."),
]

# How much mass a unit has.
MassName = Annotated[
    Literal["uniform", "norm", "count"],
    Field(description="Mass of a unit: equal, by the norm of its vector, or by its tokens."),
]
IdfTable = Annotated[
    Literal["ref", "own"],
    Field(
        description="Multiply masses by inverse document frequency, fitted on the references for"
        " both sides (ref) or on each side's own texts (own)."
    ),
]
Idf = IdfTable | None

# What is solved and what is read off the plan.
HypPenalty = Annotated[
    Penalty,
    Field(
        description="Penalty of the hypothesis' KL-relaxed marginal: 0 leaves it free, inf makes it"
        " hard."
    ),
]
RefPenalty = Annotated[
    Penalty,
    Field(
        description="Penalty of the reference's KL-relaxed marginal: 0 leaves it free, inf makes it"
        " hard."
    ),
]
Epsilon = Annotated[
    Entropy, Field(description="Entropic regularisation; 0 solves the problem exactly.")
]
Alpha = Annotated[Share, Field(description="Weight of recall against precision.")]
OrderShare = Annotated[
    Share, Field(description="Share of the cost that compares positions in the text.")
]
Readout = Annotated[
    ReadoutName, Field(description="Primary column: the transport cost, or the whole objective.")
]
ReferencesRule = Annotated[
    Literal["best", "each", "mean"],
    Field(
        description="Of several references: all columns from the best one, each column from its own"
        " best one, or the mean."
    ),
]

# Lexical metrics.
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
SacrebleuTokenizer = Annotated[
    str | None,
    Menu(("13a", "intl", "char", "none")),
    Field(description="sacrebleu's tokenizer; by default the one for the language, mostly 13a."),
]
NltkTokenizer = Annotated[
    Literal["nltk", "none"],
    Field(description="nltk's word tokenizer, or none for texts that are tokenized already."),
]
Smoothing = Annotated[
    Literal["none", "floor", "add-k", "exp"],
    Field(description="How n-gram orders without a match are smoothed."),
]
SmoothValue = Annotated[
    Annotated[Positive, Slider(1e-6, 10.0)] | None,
    Field(description="Value of the smoothing methods floor and add-k."),
]
Lowercase = Annotated[bool, Field(description="Whether upper and lower case are the same.")]
FBeta = Annotated[
    Positive,
    Slider(0.01, 10.0),
    Field(description="Weight of recall in the F-score; 1 weighs precision and recall equally."),
]
CharacterOrder = Annotated[
    int, Field(ge=1, description="Longest character n-grams."), Slider(1, 10)
]
EpsSmoothing = Annotated[
    bool,
    Field(
        description="Whether the F-score is the mean over all orders, as in Popović's chrF++.py,"
        " rather than that of the mean precision and recall of the orders both texts have."
    ),
]
WordOrder = Annotated[int, Field(ge=1, description="Longest word n-grams."), Slider(1, 6)]
Stem = Annotated[bool, Field(description="Whether words are reduced to their stems.")]
RougeReadout = Annotated[
    Literal["f1", "precision", "recall"],
    Field(description="The score: F1, the share of the hypothesis, or that of the reference."),
]
