"""What requests and answers look like."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from freight.core.types import Segment
from freight.errors import FreightError
from freight.serve.jobs import METRICS, Busy, Late, Stopping
from freight.serve.models import RequestedMetric, ServedModels

if TYPE_CHECKING:
    from freight.core.result import Result
    from freight.serve.models import ServedModels


HOUSE = "freight"
Scalar = bool | int | float | str | None
Refs = Annotated[list[str], Field(min_length=1)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class MetricRequest(_Message):
    """A metric by name, and what is to be set of it: GET /api/metrics says what can be."""

    name: Annotated[str, Field(examples=["lazy-emd"])] = HOUSE
    encoder: Annotated[str | None, Field(examples=["embedded"])] = None
    layer: Annotated[int | str | list[int] | None, Field(examples=[4])] = None
    preset: str | None = None
    column: Annotated[str | None, Field(description="The primary one.")] = None
    settings: Annotated[dict[str, Scalar], Field(max_length=32, examples=[{"hyp": 0.5}])] = {}

    def wanted(self, models: ServedModels) -> RequestedMetric:
        """The same, checked."""
        layer = {} if self.layer is None else {"layer": self.layer}
        settings = {**self.settings, **layer}
        return models.requested_metric(self.name, self.encoder, settings, self.preset, self.column)


class PairRequest(_Message):
    """A hypothesis and its references."""

    hyp: str = Field(examples=["The boy in a coat."])
    refs: Refs = Field(examples=[["The young man in a slicker."]])

    @property
    def segment(self) -> Segment:
        """As the scoring takes it."""
        return self.hyp, self.refs


Metrics = Annotated[list[MetricRequest], Field(min_length=1, max_length=METRICS)]


class ScoreRequest(_Message):
    """Pairs, and the metrics to score them by."""

    pairs: list[PairRequest] = Field(min_length=1)
    metrics: Metrics = [MetricRequest()]


class ExplainRequest(PairRequest):
    """One pair, and the metric whose score is to be explained."""

    metric: MetricRequest = MetricRequest()


class Other(_Message):
    """What is compared: another hypothesis, another metric, or both."""

    hyp: str | None = None
    metric: MetricRequest | None = None


class FragmentRequest(ExplainRequest):
    """The same, and what it is to be compared with."""

    other: Other | None = None


class ColumnAnswer(BaseModel):
    """A column of scores."""

    name: str
    higher: bool = Field(description="Whether higher is better.")


class ParameterAnswer(BaseModel):
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
    columns: list[ColumnAnswer]
    encoder: str | None = Field(description="Where the request names none.")
    explained: bool = Field(description="Whether it has a plan to show.")
    needs_idf_texts: bool = Field(description="Whether it takes idf: null here, or cannot be had.")
    parameters: list[ParameterAnswer]
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
    columns: list[ColumnAnswer]
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


_LONGEST = 500


class Json(JSONResponse):
    """In ASCII, since half a character of Unicode has no bytes of its own."""

    def render(self, content: Any) -> bytes:
        """Nothing that is no number may have come this far."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def scored(result: Result, models: ServedModels) -> dict[str, Any]:
    """What a metric says, in the words of JSON."""
    columns = [{"name": column.name, "higher": column.higher} for column in result.columns]
    return {
        "metric": result.name,
        "columns": columns,
        "scores": {c["name"]: [_number(x) for x in result[str(c["name"])]] for c in columns},
        "system": {name: _number(value) for name, value in result.system.items()},
        "references": [int(winner) for winner in result.winners],
        "flags": [list(flags) for flags in result.flags],
        "signature": models.public_signature(result.signature),
    }


def failure(status: int, message: str, headers: dict[str, str] | None = None) -> Json:
    """An error of one line."""
    line = " ".join(message.split())
    short = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
    return Json({"error": short}, status, headers)


async def on_refusal(request: Request, error: Exception) -> Json:
    """What the caller can mend, or has to wait for."""
    if isinstance(error, Busy):
        return failure(429, str(error), {"Retry-After": str(error.seconds)})
    if isinstance(error, Late):
        headers = None if error.begun else {"Retry-After": "1"}
        return failure(504 if error.begun else 503, str(error), headers)
    if isinstance(error, Stopping):
        return failure(503, str(error), {"Retry-After": "5"})
    return failure(422, str(error))


async def on_invalid(request: Request, error: Exception) -> Json:
    """The first thing that is wrong with a request, and where; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return failure(400, "the body is not JSON")
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
    shown = f"{where[:100]}: " if where else ""
    return failure(422, f"{shown}{first['msg']}")


async def on_http(request: Request, error: Exception) -> Json:
    """No such path, no such method, no JSON."""
    assert isinstance(error, HTTPException)
    return failure(error.status_code, str(error.detail), dict(error.headers or {}))


HANDLERS: dict[int | type[Exception], Any] = {
    FreightError: on_refusal,
    RequestValidationError: on_invalid,
    HTTPException: on_http,
}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
