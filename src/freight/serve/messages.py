"""Requests, answers and errors of the API, as models that check what they are given."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import JSONResponse

from freight.core.scorers import pair_up
from freight.core.types import Segment
from freight.data.files import HYP, OTHER_NAMES, REF, REFS, name_texts
from freight.errors import InvalidInput
from freight.metrics.declaration import shorten
from freight.serve.models import DEFAULT_METRIC, RequestedMetric, ServedModels

if TYPE_CHECKING:
    from freight.core.result import Result

MAX_METRICS = 8
"""The most metrics in one request."""

Scalar = bool | int | float | str | None
References = Annotated[list[str], Field(min_length=1)]


Encoding = Literal[
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "cp1250", "cp1251", "cp1252", "iso-8859-1",
    "iso-8859-2", "koi8-r", "shift_jis", "euc-jp", "euc-kr", "gb18030", "big5",
]  # fmt: skip


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, given: Any) -> Any:
        named = cls._rename(given)
        for name in named if isinstance(named, dict) else ():
            if name not in cls.model_fields:
                there = ", ".join(cls.model_fields)
                raise InvalidInput(f"there is no field {shorten(name)}; there is {there}")
        return named

    @classmethod
    def _rename(cls, given: Any) -> Any:
        """The same under the names of the fields; what cannot be read stays as it is."""
        return given


class MetricRequest(_Message):
    """A metric by name, with its settings: GET /api/metrics lists what can be set.

    A text, NAME or NAME:COLUMN, stands for it.
    """

    name: Annotated[str, Field(examples=["lazy-emd"])] = DEFAULT_METRIC
    encoder: Annotated[str | None, Field(examples=["embedded"])] = None
    layer: Annotated[int | str | list[int] | None, Field(examples=[4])] = None
    preset: str | None = None
    column: Annotated[str | None, Field(description="Which column is the primary one.")] = None
    adapter: Annotated[str | None, Field(description="Fitted to ratings, by its name.")] = None
    settings: Annotated[dict[str, Scalar], Field(max_length=32, examples=[{"hyp": 0.5}])] = {}

    @classmethod
    def _rename(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        name, colon, column = given.partition(":")
        return {"name": name, "column": column} if colon else {"name": name}

    def resolve(self, models: ServedModels, lang: str | None = None) -> RequestedMetric:
        """The same, with every setting checked, for references of a language."""
        layer = {} if self.layer is None else {"layer": self.layer}
        settings = {**self.settings, **layer}
        return models.requested_metric(
            self.name, self.encoder, settings, self.preset, self.column, self.adapter, lang
        )


class PairRequest(_Message):
    """A hypothesis and its references; one reference may be a text, `ref`.

    The names that tables of other tools have for them are understood: prediction, reference and
    the like.
    """

    hyp: str = Field(examples=["The boy in a coat."])
    refs: References = Field(examples=[["The young man in a slicker."]])
    id: Annotated[str | int | None, Field(description="Comes back with the answer.")] = None

    @classmethod
    def _rename(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        named = _one_of(name_texts(given, "it"), REF, REFS)
        if isinstance(named.get(REFS), str):
            named[REFS] = [named[REFS]]
        return named

    @property
    def segment(self) -> Segment:
        """The pair as the scoring takes it."""
        return self.hyp, self.refs


class ScoreRequest(_Message):
    """Pairs, and the metrics to score them with.

    Instead of pairs there may be `hyps` and `refs`, as in Python: a list of texts each, or of lists
    of references; or one `hyp` and its `refs`. One metric may be `metric`.
    """

    pairs: list[PairRequest] = Field(min_length=1)
    metrics: Annotated[list[MetricRequest], Field(min_length=1, max_length=MAX_METRICS)] = [
        MetricRequest()
    ]
    id: Annotated[str | int | None, Field(description="Comes back with the answer.")] = None

    @classmethod
    def _rename(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        named = _one_of(given, "metric", "metrics")
        if "pairs" not in named:
            named = _with_pairs(named)
        for name, one in (("pairs", dict), ("metrics", (dict, str))):
            if isinstance(named.get(name), one):
                named[name] = [named[name]]
        return named

    @property
    def ids(self) -> dict[str, Any]:
        """What the request is called, and its pairs, as the answer repeats it."""
        of_pairs = [pair.id for pair in self.pairs]
        named = {"id": self.id} if self.id is not None else {}
        return {**named, "ids": of_pairs} if any(one is not None for one in of_pairs) else named


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


def _one_of(given: Mapping[str, Any], one: str, several: str) -> dict[str, Any]:
    """The same, with the plural name for both."""
    if one in given and several in given:
        raise InvalidInput(f"there are both {one} and {several}; send one of them")
    return {several if name == one else name: value for name, value in given.items()}


def _with_pairs(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same with pairs, where it has hypotheses and references of its own."""
    singular = {f"{name}s": name for name in OTHER_NAMES[HYP]}
    named = {singular.get(name, name): value for name, value in given.items()}
    named = _one_of(name_texts(named, "the request"), HYP, "hyps")
    named = _one_of(named, REF, REFS)
    if "hyps" not in named or REFS not in named:
        if "hyps" in named or REFS in named:
            missing = "refs" if "hyps" in named else "hyps"
            raise InvalidInput(f"{missing} is missing; send hyps and refs, or pairs")
        return named
    hyps, refs, ids = named.pop("hyps"), named.pop(REFS), named.pop("ids", None)
    if isinstance(hyps, str):  # one, and each of its references
        hyps, refs = [hyps], [refs]
    for name, value in (("hyps", hyps), (REFS, [refs] if isinstance(refs, str) else refs)):
        if not isinstance(value, list):
            raise InvalidInput(f"{name} is {shorten(value)}, not a list of texts")
    segments = pair_up(hyps, [refs] if isinstance(refs, str) else refs)
    if ids is not None and (not isinstance(ids, list) or len(ids) != len(segments)):
        raise InvalidInput(f"ids are {shorten(ids)}; give one for each of {len(segments)} hyps")
    pairs = [{HYP: hyp, REFS: list(several)} for hyp, several in segments]
    if ids is not None:
        pairs = [{"id": one, **pair} for one, pair in zip(ids, pairs, strict=True)]
    return {"pairs": pairs, **named}


class FileQuery(BaseModel):
    """How the body of a request is read as a file, or as several, and what is answered."""

    name: list[str] = Field(
        [], max_length=64, description="Of the file: its ending says what it is. One for each file."
    )
    size: list[int] = Field(
        [], max_length=64, description="Bytes of each file, where there are several."
    )
    format: Literal["csv", "tsv", "jsonl", "parquet"] = Field(
        "jsonl", description="What it is, if it has no name."
    )
    metric: list[str] = Field(
        [DEFAULT_METRIC],
        max_length=MAX_METRICS,
        description='A name, or JSON as in /api/score: {"name": "lazy-emd", "settings": ...}.',
    )
    output: Literal["json", "csv", "tsv", "jsonl", "progress"] = "json"
    encoding: Encoding = "utf-8"
    hyp_column: str | None = Field(None, description="The column of hypotheses, if not hyp.")
    ref_column: list[str] = Field([], description="The columns of references, if not ref or refs.")

    @property
    def names(self) -> list[str]:
        """The names of the files; one without a name is of the format."""
        return [one[-100:] for one in self.name] or [f"file.{self.format}"]

    def split(self, content: bytes) -> list[bytes]:
        """The bytes of each file."""
        sizes = self.size or [len(content)] * (len(self.names) == 1)
        if len(sizes) != len(self.names) or sum(sizes) != len(content) or min(sizes) < 0:
            raise InvalidInput(
                f"there are {len(self.names)} names of files, {len(self.size)} sizes and"
                f" {len(content):,} bytes; give the size of each file, which add up to the bytes"
            )
        ends = list(accumulate(sizes, initial=0))
        return [content[start:end] for start, end in pairwise(ends)]


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
    """The available metrics, and the limits of a request, by the names of the options."""

    metrics: list[MetricAnswer]
    limits: dict[str, float]


class EncoderAnswer(BaseModel):
    """An encoder: its name, its layers besides the embeddings, whether its units are words."""

    name: str
    depth: int
    words: bool


class EncodersAnswer(BaseModel):
    """The encoders that a request may name."""

    encoders: list[EncoderAnswer]


_CITATION: str = Field("", description="The signature in short, to be quoted with the score.")
_MEANING: str = Field(
    "", description="Where the score stands among those of real texts, where that was measured."
)
_NOTE: str = Field("", description="The encoder, if the language of the references chose it.")


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
    citation: str = _CITATION
    meaning: str = _MEANING
    note: str = _NOTE
    id: str | int | None = None


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
    citation: str = _CITATION
    meaning: str = _MEANING
    scale: dict[str, Any] | None = Field(
        None, description="What the system score in the first column is beside; by `meaning`."
    )
    chosen: dict[str, str | None] = Field(description="The encoder, and the language of defaults.")
    note: str = _NOTE


class ScoreAnswer(BaseModel):
    """One entry per metric, in the order of the request; ids where the request has them."""

    metrics: list[MetricScores]
    id: str | int | None = None
    ids: list[str | int | None] = Field([], description="Those of the pairs, in their order.")


class FileAnswer(ScoreAnswer):
    """One entry per metric, and the texts that were read from the file."""

    pairs: list[dict[str, Any]]


class HealthAnswer(BaseModel):
    """Live while the process answers at all, ready once it scores."""

    live: bool
    ready: bool
    state: Literal["starting", "ready", "stopping", "failed"]


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


class Json(JSONResponse):
    """JSON in ASCII, because a lone surrogate has no UTF-8 bytes; nan is an error."""

    def render(self, content: Any) -> bytes:
        """The bytes of an answer."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def score_answer(result: Result, models: ServedModels, metric: RequestedMetric) -> dict[str, Any]:
    """The scores of one metric as JSON, in the form of `MetricScores`."""
    meaning, scale = result.meaning, result.scale
    primary = result.system[result.columns[0].name]
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
        "citation": result.citation,
        "chosen": metric.choice,
        **({"meaning": meaning, "scale": scale.record(primary)} if scale and meaning else {}),
        **({"note": metric.note} if metric.note else {}),
    }


def _json_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
