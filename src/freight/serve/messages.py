"""Requests, answers and errors of the API, and the limits that a request has to keep."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from freight.core.types import Segment
from freight.errors import FreightError, InvalidInput
from freight.serve.models import RequestedMetric, ServedModels

if TYPE_CHECKING:
    from freight.core.result import Result

DEFAULT_METRIC = "freight"
MAX_METRICS = 8
"""The most metrics in one request."""

Scalar = bool | int | float | str | None
References = Annotated[list[str], Field(min_length=1)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class MetricRequest(_Message):
    """A metric by name, with its settings: GET /api/metrics lists what can be set."""

    name: Annotated[str, Field(examples=["lazy-emd"])] = DEFAULT_METRIC
    encoder: Annotated[str | None, Field(examples=["embedded"])] = None
    layer: Annotated[int | str | list[int] | None, Field(examples=[4])] = None
    preset: str | None = None
    column: Annotated[str | None, Field(description="Which column is the primary one.")] = None
    adapter: Annotated[str | None, Field(description="Fitted to ratings, by its name.")] = None
    settings: Annotated[dict[str, Scalar], Field(max_length=32, examples=[{"hyp": 0.5}])] = {}

    def resolve(self, models: ServedModels) -> RequestedMetric:
        """The same, with every setting checked."""
        layer = {} if self.layer is None else {"layer": self.layer}
        settings = {**self.settings, **layer}
        return models.requested_metric(
            self.name, self.encoder, settings, self.preset, self.column, self.adapter
        )


class PairRequest(_Message):
    """A hypothesis and its references."""

    hyp: str = Field(examples=["The boy in a coat."])
    refs: References = Field(examples=[["The young man in a slicker."]])

    @property
    def segment(self) -> Segment:
        """The pair as the scoring takes it."""
        return self.hyp, self.refs


class ScoreRequest(_Message):
    """Pairs, and the metrics to score them with."""

    pairs: list[PairRequest] = Field(min_length=1)
    metrics: Annotated[list[MetricRequest], Field(min_length=1, max_length=MAX_METRICS)] = [
        MetricRequest()
    ]


class ExplainRequest(PairRequest):
    """One pair, and the metric whose score is to be explained."""

    metric: MetricRequest = MetricRequest()


class OtherRequest(_Message):
    """What to compare with: another hypothesis, another metric, or both."""

    hyp: str | None = None
    metric: MetricRequest | None = None


class FragmentRequest(ExplainRequest):
    """One pair and a metric, and optionally what to compare them with."""

    other: OtherRequest | None = None


class ColumnAnswer(BaseModel):
    """A column of scores."""

    name: str
    higher: bool = Field(description="Whether higher is better.")


class ParameterAnswer(BaseModel):
    """A parameter of a metric; by its kind also bounds, choices, and a scale for sliders."""

    model_config = ConfigDict(extra="allow")

    name: str
    kind: str = Field(description="number, whole, choice, switch or layer")
    default: Scalar
    optional: bool = Field(description="Whether it may be null.")


class AdapterAnswer(BaseModel):
    """An adapter: its encoder, and the settings that it brings along."""

    name: str
    encoder: str
    settings: dict[str, Any]


class MetricAnswer(BaseModel):
    """A metric, its columns and its parameters."""

    name: str
    about: str
    columns: list[ColumnAnswer]
    encoder: str | None = Field(description="The encoder if the request names none.")
    explained: bool = Field(description="Whether it has a transport plan to show.")
    needs_idf_texts: bool = Field(
        description="Whether it weights units by IDF, which this service has no texts to fit on:"
        " send idf: null if the metric has that parameter."
    )
    parameters: list[ParameterAnswer]
    presets: list[str]
    adapters: list[AdapterAnswer]


class MetricsAnswer(BaseModel):
    """The available metrics."""

    metrics: list[MetricAnswer]


class EncoderAnswer(BaseModel):
    """An encoder: its name, its layers besides the embeddings, whether its units are words."""

    name: str
    depth: int
    words: bool


class EncodersAnswer(BaseModel):
    """The encoders that a request may name."""

    encoders: list[EncoderAnswer]


class FlagAnswer(BaseModel):
    """Why a pair could not be scored normally: on which side, and for which share of its units.

    A critical difference, such as another number, has its characters in both texts instead.
    """

    kind: str
    side: Literal["hyp", "ref"] | None
    share: float | None
    hyp: list[int] | None = None
    ref: list[int] | None = None


class ExplainAnswer(BaseModel):
    """A score and its parts: `base` plus the shares of all units in all views is the score."""

    model_config = ConfigDict(extra="allow")

    metric: str
    scores: dict[str, float | None]
    base: float | None
    views: list[dict[str, Any]]
    winner: int
    flags: list[FlagAnswer]
    signature: str


class MetricScores(BaseModel):
    """The scores of one metric: one number per pair in each column, null where there is none."""

    metric: str
    columns: list[ColumnAnswer]
    scores: dict[str, list[float | None]]
    system: dict[str, float | None]
    references: list[int] = Field(description="Which reference each pair's scores come from.")
    flags: list[list[FlagAnswer]] = Field(
        description="Per pair; a flag about both texts has no side."
    )
    signature: str


class ScoreAnswer(BaseModel):
    """One entry per metric, in the order of the request."""

    metrics: list[MetricScores]


class FileAnswer(ScoreAnswer):
    """One entry per metric, and the texts that were read from the file."""

    pairs: list[dict[str, Any]]


class HealthAnswer(BaseModel):
    """Live while the process answers at all, ready once it scores."""

    live: bool
    ready: bool


class ErrorAnswer(BaseModel):
    """What went wrong, in one line that says what to change."""

    error: str


_ERROR_MEANINGS = {
    400: "The body is not JSON.",
    401: "No token, or a wrong one.",
    403: "Sent by a page of another site.",
    408: "The body did not arrive in time.",
    413: "Too many bytes, or too much work.",
    421: "The Host header is not a name of this service.",
    422: "Something in the request cannot be used; the error names it.",
    429: "Too much at once; try again after Retry-After seconds.",
    503: "Not started in time, or the service is stopping.",
    504: "Not finished in time.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": meaning}
    for status, meaning in _ERROR_MEANINGS.items()
}
_LONGEST_ERROR = 500


class Json(JSONResponse):
    """JSON in ASCII, because a lone surrogate has no UTF-8 bytes; nan is an error."""

    def render(self, content: Any) -> bytes:
        """The bytes of an answer."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def score_answer(result: Result, models: ServedModels) -> dict[str, Any]:
    """The scores of one metric as JSON, in the form of `MetricScores`."""
    columns = [{"name": column.name, "higher": column.higher} for column in result.columns]
    return {
        "metric": result.name,
        "columns": columns,
        "scores": {
            column.name: [_json_number(x) for x in result[column.name]] for column in result.columns
        },
        "system": {name: _json_number(value) for name, value in result.system.items()},
        "references": [int(winner) for winner in result.winners],
        "flags": [[flag.record for flag in flags] for flags in result.flags],
        "signature": models.public_signature(result.signature),
    }


def _json_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


class Refusal(FreightError):
    """A request that is not answered, with its HTTP status and headers."""

    def __init__(self, message: str, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers

    @property
    def response(self) -> Json:
        """The error as the client sees it."""
        return error_response(self.status, str(self), self.headers)


class QueueFull(Refusal):
    """Too many pairs wait already; `seconds` says when to try again."""

    def __init__(self, message: str, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(message, 429, {"Retry-After": str(self.seconds)})


class DeadlinePassed(Refusal):
    """The time that a request may take has passed; `started` if it was being worked on."""

    def __init__(self, message: str, started: bool) -> None:
        self.started = started
        super().__init__(
            message, 504 if started else 503, None if started else {"Retry-After": "1"}
        )


class ShuttingDown(Refusal):
    """The service is being stopped and accepts nothing new."""

    def __init__(self) -> None:
        super().__init__(
            "the service is stopping; try another one, or later", 503, {"Retry-After": "5"}
        )


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Json:
    """An error of one line."""
    line = " ".join(message.split())
    short = line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}…"
    return Json({"error": short}, status, headers)


async def _on_freight_error(request: Request, error: Exception) -> Json:
    """What the client can correct (422), or has to wait for."""
    return error.response if isinstance(error, Refusal) else error_response(422, str(error))


async def _on_invalid_request(request: Request, error: Exception) -> Json:
    """The first thing that is wrong with a request, and where; its content is not repeated."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return error_response(400, "the body is not JSON")
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
    return error_response(422, f"{where[:100]}: {first['msg']}" if where else first["msg"])


async def _on_http_error(request: Request, error: Exception) -> Json:
    """No such path, no such method, no JSON."""
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, str(error.detail), error.headers)


EXCEPTION_HANDLERS: dict[int | type[Exception], Any] = {
    FreightError: _on_freight_error,
    RequestValidationError: _on_invalid_request,
    HTTPException: _on_http_error,
}


def work_of(hyp: str, ref: str) -> int:
    """What a pair costs a metric, in characters: their product to match, their sum to encode."""
    return len(hyp) * len(ref) + _ENCODING * (len(hyp) + len(ref))


def segment_work(segment: Segment) -> int:
    """What a hypothesis and its references cost a metric."""
    hyp, refs = segment
    return sum(work_of(hyp, ref) for ref in refs)


_ENCODING = 256
UNCUT = 24_000_000
"""The most work of what cannot be cut: four references of 2,000 characters."""


@dataclass(frozen=True)
class Limits:
    """The largest request in bytes, texts, characters of a text and seconds, and the longest queue.

    `work` is that of all pairs with all metrics, `units` are those of a text for which a plan is
    computed. `queue` counts pairs that wait to be scored, `concurrency` requests that are being
    read, waited for or answered.
    """

    body: int = 2**20
    texts: int = 512
    characters: int = 2000
    units: int = 512
    work: int = 128_000_000
    seconds: float = 30.0
    concurrency: int = 256
    queue: int = 512

    def check(self, segments: Sequence[Segment], metrics: int = 1) -> None:
        """Refuse too many texts, texts that are too long, too much work, and what is no text."""
        count = sum(1 + len(refs) for _, refs in segments)
        if count > self.texts:
            raise InvalidInput(
                f"there are {count:,} texts; send at most {self.texts:,} at once, in several"
                " requests, or start the service with a larger --texts"
            )
        for k, (hyp, refs) in enumerate(segments):
            self._check_text(hyp, f"pairs.{k}.hyp")
            for r, ref in enumerate(refs):
                self._check_text(ref, f"pairs.{k}.refs.{r}")
        work = metrics * sum(map(segment_work, segments))
        if work > self.work:
            raise Refusal(
                f"this is {work / 1e6:,.0f} million characters squared of work for {metrics}"
                f" metric{'s' * (metrics > 1)}; send at most {self.work / 1e6:,.0f} at once, in"
                " several requests, or start the service with a larger --work",
                413,
            )

    def check_uncut(self, segments: Sequence[Segment], what: str) -> None:
        """Refuse a segment that is too much for work that is not cut between its references."""
        for hyp, refs in segments:
            work = segment_work((hyp, refs))
            if work > UNCUT:
                raise Refusal(
                    f"{what} of {len(refs)} references is {work / 1e6:,.0f} million characters"
                    f" squared of work; send at most {UNCUT / 1e6:,.0f}: fewer references at once,"
                    " or shorter texts",
                    413,
                )

    def long_texts(self, texts: Sequence[str]) -> list[str]:
        """Those that may have too many units; a character may be several."""
        return [text for text in texts if 4 * len(text) > self.units]

    def check_units(self, units: Mapping[str, int]) -> None:
        """Refuse a text of too many units."""
        for text, count in units.items():
            if count > self.units:
                raise Refusal(
                    f"a text of {len(text):,} characters has {count:,} units; a text has at most"
                    f" {self.units:,}: cut it, or start the service with a larger --units",
                    413,
                )

    def _check_text(self, text: str, where: str) -> None:
        if len(text) > self.characters:
            raise InvalidInput(
                f"{where} has {len(text):,} characters; a text has at most {self.characters:,}, or"
                " start the service with a larger --characters"
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput(
                f"{where} has half a character (a lone surrogate); send whole characters"
            ) from None
