"""What requests and answers look like."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from freight.pipeline import Segment
from freight.serve.limits import METRICS
from freight.serve.offer import Offer, Wanted

HOUSE = "freight"
Scalar = bool | int | float | str | None
Refs = Annotated[list[str], Field(min_length=1)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Metric(_Message):
    """A metric by name, and what is to be set of it: GET /api/metrics says what can be."""

    name: Annotated[str, Field(examples=["lazy-emd"])] = HOUSE
    encoder: Annotated[str | None, Field(examples=["embedded"])] = None
    layer: Annotated[int | str | list[int] | None, Field(examples=[4])] = None
    preset: str | None = None
    column: Annotated[str | None, Field(description="The primary one.")] = None
    settings: Annotated[dict[str, Scalar], Field(max_length=32, examples=[{"hyp": 0.5}])] = {}

    def wanted(self, offer: Offer) -> Wanted:
        """The same, checked."""
        layer = {} if self.layer is None else {"layer": self.layer}
        settings = {**self.settings, **layer}
        return offer.wanted(self.name, self.encoder, settings, self.preset, self.column)


class Pair(_Message):
    """A hypothesis and its references."""

    hyp: str = Field(examples=["The boy in a coat."])
    refs: Refs = Field(examples=[["The young man in a slicker."]])

    @property
    def segment(self) -> Segment:
        """As the scoring takes it."""
        return self.hyp, self.refs


Metrics = Annotated[list[Metric], Field(min_length=1, max_length=METRICS)]


class ScoreRequest(_Message):
    """Pairs, and the metrics to score them by."""

    pairs: list[Pair] = Field(min_length=1)
    metrics: Metrics = [Metric()]


class ExplainRequest(Pair):
    """One pair, and the metric whose score is to be explained."""

    metric: Metric = Metric()


class Other(_Message):
    """What is compared: another hypothesis, another metric, or both."""

    hyp: str | None = None
    metric: Metric | None = None


class FragmentRequest(ExplainRequest):
    """The same, and what it is to be compared with."""

    other: Other | None = None


class Column(BaseModel):
    """A column of scores."""

    name: str
    higher: bool = Field(description="Whether higher is better.")


class Parameter(BaseModel):
    """What may be set of a metric; by its kind: bounds, choices, a scale for sliders."""

    model_config = ConfigDict(extra="allow")

    name: str
    kind: str = Field(description="number, whole, choice, switch or layer")
    default: Scalar
    optional: bool = Field(description="Whether it may be null.")


class OfferedMetric(BaseModel):
    """A metric, and what may be set of it."""

    name: str
    about: str
    columns: list[Column]
    encoder: str | None = Field(description="Where the request names none.")
    explained: bool = Field(description="Whether it has a plan to show.")
    unlearnt: bool = Field(description="Whether it takes idf: null here, or cannot be had.")
    parameters: list[Parameter]
    presets: list[str]


class MetricsAnswer(BaseModel):
    """The metrics there are."""

    metrics: list[OfferedMetric]


class OfferedEncoder(BaseModel):
    """An encoder: its name, its layers besides the embeddings, whether its units are words."""

    name: str
    depth: int
    words: bool


class EncodersAnswer(BaseModel):
    """The encoders that may be named."""

    encoders: list[OfferedEncoder]


class ExplainAnswer(BaseModel):
    """What a score is made of: `base` and the shares of all units of all views add up to it."""

    model_config = ConfigDict(extra="allow")

    metric: str
    scores: dict[str, float | None]
    base: float | None
    views: list[dict[str, Any]]
    winner: int
    flags: list[str]
    signature: str


class ScoredMetric(BaseModel):
    """What a metric says: a number a pair in each column, null where there is none."""

    metric: str
    columns: list[Column]
    scores: dict[str, list[float | None]]
    system: dict[str, float | None]
    references: list[int] = Field(description="Which reference each pair's scores come from.")
    flags: list[list[str]] = Field(description="What could not be scored normally, by pair.")
    signature: str


class ScoreAnswer(BaseModel):
    """One entry a metric, in the order of the request."""

    metrics: list[ScoredMetric]


class FileAnswer(ScoreAnswer):
    """The same, with the texts that were found in the file."""

    pairs: list[dict[str, Any]]


class Failure(BaseModel):
    """What went wrong, in one line that says what to change."""

    error: str
