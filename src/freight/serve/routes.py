"""The paths of the API: what each asks of the worker, and how its answer is written."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from freight.core.result import Result
from freight.core.types import Segment
from freight.data.files import Row, decode_lines, name_texts, parse_json, parse_rows
from freight.data.languages import detect_surely
from freight.errors import InvalidInput
from freight.explain.comparison import compare
from freight.explain.explanation import Explanation
from freight.serve.access import PrometheusMetrics
from freight.serve.jobs import Limits
from freight.serve.messages import (
    ERRORS,
    MAX_METRICS,
    EncodersAnswer,
    ExplainAnswer,
    ExplainRequest,
    FileAnswer,
    FragmentRequest,
    HealthAnswer,
    Json,
    MetricRequest,
    MetricsAnswer,
    ScoreAnswer,
    ScoreRequest,
    score_answer,
)
from freight.serve.models import DEFAULT_METRIC, RequestedMetric, ServedModels
from freight.serve.refusals import Refusal, describe_problem
from freight.serve.worker import Worker

_TABLE_TYPES = {"csv": "text/csv", "tsv": "text/tab-separated-values", "jsonl": "application/jsonl"}
_HTML_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "HTML."}
}
_FILE_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {
        "model": FileAnswer,
        "description": "Scores as JSON, or as a table to download.",
        "content": {kind: {"schema": {"type": "string"}} for kind in _TABLE_TYPES.values()},
    }
}
_FILE_BODY = {
    "requestBody": {
        "description": "Rows with hyp, and ref or refs.",
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string"}}},
    }
}
MOST_NUMBERS = 1_000_000
"""In the matrices of an explanation: eight megabytes of JSON."""

MetricNames = Annotated[
    list[str],
    Query(
        max_length=MAX_METRICS,
        description='A name, or JSON as in /api/score: {"name": "lazy-emd", "settings": ...}.',
    ),
]


def api_router(models: ServedModels, worker: Worker, limits: Limits) -> APIRouter:
    """Scores, explanations, files, and lists of the metrics and encoders."""
    router = APIRouter(prefix="/api", responses=ERRORS)

    async def resolve(
        requested: Iterable[MetricRequest], segments: Sequence[Segment]
    ) -> list[RequestedMetric]:
        lang = await asyncio.to_thread(language_of, segments)
        return [one.resolve(models, lang) for one in requested]

    def answers(
        results: Sequence[Result], metrics: Sequence[RequestedMetric]
    ) -> list[dict[str, Any]]:
        both = zip(results, metrics, strict=True)
        return [score_answer(result, models, metric.note) for result, metric in both]

    @router.get("/metrics", response_class=Json, responses={200: {"model": MetricsAnswer}})
    def get_metrics() -> Response:
        """Every metric with its columns, and its parameters with their bounds."""
        return Json({"metrics": models.metric_descriptions})

    @router.get("/encoders", response_class=Json, responses={200: {"model": EncodersAnswer}})
    def get_encoders() -> Response:
        """The encoders that requests may name."""
        return Json({"encoders": models.encoder_descriptions})

    @router.post("/score", response_class=Json, responses={200: {"model": ScoreAnswer}})
    async def score(request: ScoreRequest) -> Response:
        """Score pairs with one metric or several."""
        segments = [pair.segment for pair in request.pairs]
        limits.check(segments, len(request.metrics))
        metrics = await resolve(request.metrics, segments)
        scored = await worker.score(segments, metrics)
        results = await asyncio.to_thread(_with_differences, scored, segments)
        return Json({"metrics": answers(results, metrics), **request.ids})

    @router.post("/explain", response_class=Json, responses={200: {"model": ExplainAnswer}})
    async def explain(request: ExplainRequest) -> Response:
        """Why a hypothesis scores as it does: units, costs, flow, additions, omissions."""
        limits.check([request.segment])
        [metric] = await resolve([request.metric], [request.segment])
        explanation = await worker.explain(request.segment, metric)
        public = _with_public_signature(explanation, models)
        named = {"id": request.id, "note": metric.note or None}
        return await asyncio.to_thread(_explain_as_json, public, named)

    @router.post("/explain/fragment", response_class=Response, responses=_HTML_RESPONSE)
    async def explain_as_html(request: FragmentRequest) -> Response:
        """An explanation as a piece of HTML, alone or beside another hypothesis or metric."""
        segments, requested = [request.segment], [request.metric]
        if request.other is not None:
            hyp = request.hyp if request.other.hyp is None else request.other.hyp
            segments.append((hyp, request.refs))
            requested.append(request.other.metric or request.metric)
        limits.check(segments)
        metrics = await resolve(requested, segments)
        explanations = await asyncio.gather(*map(worker.explain, segments, metrics))
        public = [_with_public_signature(one, models) for one in explanations]
        notes = dict.fromkeys(metric.note for metric in metrics if metric.note)
        return Response(
            await asyncio.to_thread(_render_html, public),
            headers={"Freight-Note": "; ".join(notes)} if notes else None,
            media_type="text/html",
        )

    @router.post("/file", response_class=Json, responses=_FILE_RESPONSE, openapi_extra=_FILE_BODY)
    async def score_file(
        request: Request,
        format: Literal["csv", "tsv", "jsonl"] = "jsonl",
        output: Literal["json", "csv", "tsv", "jsonl"] = "json",
        metric: MetricNames = [DEFAULT_METRIC],  # noqa: B006
    ) -> Response:
        """Score the rows of a small table, which is the body of the request."""
        requested = [_parse_metric(name) for name in metric]
        segments = read_segments(await request.body(), format, limits.texts)
        limits.check(segments, len(requested))
        metrics = await resolve(requested, segments)
        scored = await worker.score(segments, metrics)
        results = await asyncio.to_thread(_with_differences, scored, segments)
        if output == "json":
            pairs = [{"hyp": hyp, "refs": list(refs)} for hyp, refs in segments]
            return Json({"pairs": pairs, "metrics": answers(results, metrics)})
        headers = {"Content-Disposition": f'attachment; filename="scores.{output}"'}
        return Response(
            score_table(results, output), headers=headers, media_type=_TABLE_TYPES[output]
        )

    return router


def monitoring_router(worker: Worker, metrics: PrometheusMetrics) -> APIRouter:
    """The paths /health and /metrics."""
    router = APIRouter(responses=ERRORS)
    health: dict[int | str, dict[str, Any]] = {
        200: {"model": HealthAnswer},
        503: {"model": HealthAnswer},
    }
    text: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}

    @router.get("/health", response_class=Json, responses=health)
    def get_health(check: Literal["live", "ready"] = "ready") -> Response:
        """Whether requests are answered now; with check=live, whether the process is up."""
        state = worker.state
        answer = {"live": True, "ready": state == "ready", "state": state}
        return Json(answer, 200 if answer["ready"] or check == "live" else 503)

    @router.get("/metrics", response_class=Response, responses={200: text})
    def get_counters() -> Response:
        """Counters for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def language_of(segments: Sequence[Segment]) -> str | None:
    """The language that the first references are surely in."""
    refs = (ref[:200] for _, refs in segments for ref in refs)
    return detect_surely(refs, sample=50)  # few, since what is detected is kept with its texts


def _with_differences(results: Sequence[Result], segments: Sequence[Segment]) -> list[Result]:
    """The results, with flags for what differs critically between the texts."""
    hyps, refs = zip(*segments, strict=True)
    return [result.with_differences(hyps, refs) for result in results]


def _with_public_signature(explanation: Explanation, models: ServedModels) -> Explanation:
    return replace(explanation, signature=models.public_signature(explanation.signature))


def _explain_as_json(explanation: Explanation, named: dict[str, Any]) -> Json:
    """An explanation as an answer; not in the event loop, which others wait for."""
    numbers = sum(
        view.cost.size * (1 + len(view.terms) + len(view.plans)) for view in explanation.views
    )
    if numbers > MOST_NUMBERS:
        raise Refusal(
            f"the costs and plans of this explanation are {numbers:,} numbers; an answer has at"
            f" most {MOST_NUMBERS:,}: explain shorter texts, or ask for a fragment",
            413,
        )
    given = {name: value for name, value in named.items() if value is not None}
    return Json({**given, **explanation.to_dict()})


def _render_html(explanations: Sequence[Explanation]) -> str:
    from freight.report.explanation import fragment

    if len(explanations) == 1:
        return fragment(explanations[0])
    return fragment(compare(explanations[0], explanations[1]))


def _parse_metric(text: str) -> MetricRequest:
    """A metric by its name, or as JSON."""
    named = parse_json(text, "metric") if text.lstrip().startswith("{") else text
    try:
        return MetricRequest.model_validate(named)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = {**first, "loc": ("metric", *first["loc"])}
        raise InvalidInput(describe_problem(problem)) from None


_SHOWN = "the file"


def read_segments(content: bytes, kind: str, max_texts: int) -> list[Segment]:
    """Each row's hypothesis with its references: columns `hyp`, and `ref` or `refs`.

    Reading stops with an error once there are more than `max_texts` texts.
    """
    segments: list[Segment] = []
    count = 0
    for number, row in enumerate(_read_rows(content, kind), 1):
        segments.append(_segment(row, number))
        count += 1 + len(segments[-1][1])
        if count > max_texts:
            raise InvalidInput(
                f"{_SHOWN} has more than {max_texts:,} texts; send it in parts, use `freight"
                " score`, or start the service with a larger --texts"
            )
    if not segments:
        raise InvalidInput(f"{_SHOWN} has no rows; give columns hyp, and ref or refs")
    return segments


def score_table(results: Sequence[Result], kind: str) -> str:
    """One row per segment: its number, each column of each metric, the references, the flags."""
    names: list[str] = ["segment"]
    columns: list[list[Any]] = [list(range(1, len(results[0]) + 1))]
    for k, result in enumerate(results):
        same = sum(other.name == result.name for other in results[:k])
        title = result.name if not same else f"{result.name} ({same + 1})"
        for column in result.columns:
            names.append(f"{title}:{column.name}")
            columns.append([None if x != x else float(x) for x in result[column.name]])
        names.append(f"{title}:reference")
        columns.append([int(winner) for winner in result.winners])
    names.append("flags")
    flags_of_segments = zip(*(result.flags for result in results), strict=True)
    columns.append([sorted({flag for one in row for flag in one}) for row in flags_of_segments])
    return "".join(_format_rows(names, zip(*columns, strict=True), kind))


def _read_rows(content: bytes, kind: str) -> Iterator[Row]:
    stream = io.BytesIO(content)
    try:
        yield from parse_rows(decode_lines(stream, "utf-8", _SHOWN), f".{kind}", _SHOWN)
    except RecursionError:
        raise InvalidInput(f"{_SHOWN} is nested too deeply") from None
    except ValueError as error:  # Python refuses to read an integer of thousands of digits
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{_SHOWN} has a number of too many digits") from None


def _segment(row: Row, number: int) -> Segment:
    row = name_texts(row, _SHOWN)
    hyps = _texts(row, "hyp", number)
    refs = _texts(row, "refs" if "refs" in row else "ref", number)
    if len(hyps) != 1 or not refs:
        raise InvalidInput(
            f"row {number} of {_SHOWN} has {len(hyps)} hypotheses and {len(refs)} references"
        )
    return hyps[0], refs


def _texts(row: Row, name: str, number: int) -> list[str]:
    if name not in row:
        raise InvalidInput(
            f"row {number} of {_SHOWN} has no column {name}; give hyp, and ref or refs"
        )
    value: Any = row[name]
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str):
            raise InvalidInput(f"row {number} of {_SHOWN}: {name} is not a text")
    return texts


def _format_rows(names: Sequence[str], rows: Any, kind: str) -> Iterator[str]:
    if kind == "jsonl":
        for row in rows:
            yield json.dumps(dict(zip(names, row, strict=True)), allow_nan=False) + "\n"
        return
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="," if kind == "csv" else "\t", lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow("; ".join(x) if isinstance(x, list) else x for x in row)
    yield stream.getvalue()
