"""The paths of the API: what each asks of the worker, and how its answer is written."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.responses import Response, StreamingResponse

from freight.core.result import Result
from freight.core.types import Segment
from freight.data.corpus import Corpus
from freight.data.files import FORMATS, HYP, PARQUET, REFS, Row, check_parquet, parse_json
from freight.data.languages import detect_surely
from freight.errors import FreightError, InvalidInput
from freight.explain.comparison import compare
from freight.explain.explanation import Explanation
from freight.serve.access import INTERNAL_ERROR, PrometheusMetrics
from freight.serve.messages import (
    ERRORS,
    EncodersAnswer,
    ExplainAnswer,
    ExplainRequest,
    FileAnswer,
    FileQuery,
    FragmentRequest,
    HealthAnswer,
    Json,
    MetricRequest,
    MetricsAnswer,
    ScoreAnswer,
    ScoreRequest,
    score_answer,
)
from freight.serve.models import RequestedMetric, ServedModels
from freight.serve.refusals import Limits, Refusal, describe_problem
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
        "description": "A table with hyp, and ref or refs; or files of texts, one after the other.",
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string"}}},
    }
}
MOST_NUMBERS = 1_000_000
"""In the matrices of an explanation: eight megabytes of JSON."""


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
        return [score_answer(result, models, metric) for result, metric in both]

    @router.get("/metrics", response_class=Json, responses={200: {"model": MetricsAnswer}})
    def get_metrics() -> Response:
        """Every metric with its columns, and its parameters with their bounds."""
        return Json({"metrics": models.metric_descriptions, "limits": vars(limits)})

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
            headers={
                "Freight-Chosen": json.dumps([metric.choice for metric in metrics]),
                **({"Freight-Note": "; ".join(notes)} if notes else {}),
            },
            media_type="text/html",
        )

    @router.post("/file", response_class=Json, responses=_FILE_RESPONSE, openapi_extra=_FILE_BODY)
    async def score_file(request: Request, options: Annotated[FileQuery, Query()]) -> Response:
        """Score the rows of a table, or of files of texts, which are the body of the request.

        With output=progress lines of JSON say how many rows are done; the last is the answer.
        """
        requested = [_parse_metric(name) for name in options.metric]
        table = await asyncio.to_thread(read_upload, await request.body(), options, limits)
        parts = limits.cut(table.segments, len(requested))
        metrics = await resolve(requested, table.segments)
        scored = score_parts(worker, [table.segments[part] for part in parts], metrics)

        def answer(parts: Sequence[Sequence[Result]]) -> dict[str, Any]:
            results = [Result.joined(one) for one in zip(*parts, strict=True)]
            return {"pairs": table.pairs, "metrics": answers(results, metrics)}

        if options.output == "progress":
            lines = _progress_lines(scored, len(table.segments), answer)
            return StreamingResponse(lines, media_type=_TABLE_TYPES["jsonl"])
        done = []
        async for results in scored:
            done.append(results)
            if await request.is_disconnected():
                await scored.aclose()
                raise Refusal("the connection was closed before the answer was there", 400)
        if options.output == "json":
            return await asyncio.to_thread(Json, await asyncio.to_thread(answer, done))
        results = [Result.joined(one) for one in zip(*done, strict=True)]
        written = await asyncio.to_thread(score_table, table.names, results, options.output)
        headers = {"Content-Disposition": f'attachment; filename="scores.{options.output}"'}
        return Response(written, headers=headers, media_type=_TABLE_TYPES[options.output])

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


async def score_parts(
    worker: Worker, parts: Sequence[Sequence[Segment]], metrics: Sequence[RequestedMetric]
) -> AsyncGenerator[list[Result], None]:
    """The results of each part in its turn; while one is read, the next is being scored."""
    waiting = deque[asyncio.Task[list[Result]]]()
    try:
        for k in range(len(parts) + 1):
            if k < len(parts):
                waiting.append(asyncio.create_task(worker.score_patiently(parts[k], metrics)))
            if k:
                results = await waiting[0]
                waiting.popleft()
                yield await asyncio.to_thread(_with_differences, results, parts[k - 1])
    finally:
        for task in waiting:
            task.cancel()


async def _progress_lines(
    scored: AsyncGenerator[list[Result], None],
    rows: int,
    answer: Callable[[Sequence[Sequence[Result]]], dict[str, Any]],
) -> AsyncGenerator[bytes, None]:
    """How many rows are done after each part; then the answer, or the error."""
    parts: list[list[Result]] = []
    yield _json_line({"done": 0, "rows": rows})
    try:
        async with aclosing(scored):
            async for results in scored:
                parts.append(results)
                yield _json_line({"done": sum(len(part[0]) for part in parts), "rows": rows})
        yield await asyncio.to_thread(lambda: _json_line(answer(parts)))
    except FreightError as error:
        yield _json_line({"error": str(error)})
    except Exception:
        logging.getLogger(__name__).exception("a file could not be scored")
        yield _json_line({"error": INTERNAL_ERROR})


def _json_line(content: dict[str, Any]) -> bytes:
    return bytes(Json(content).body) + b"\n"


@dataclass(frozen=True)
class UploadedTable:
    """The segments of a file, and what else identifies each row: its id, and its system."""

    segments: list[Segment]
    names: list[Row]

    @property
    def pairs(self) -> list[Row]:
        """Each row as JSON."""
        named = zip(self.names, self.segments, strict=True)
        return [{**names, HYP: hyp, REFS: list(refs)} for names, (hyp, refs) in named]


def read_upload(content: bytes, options: FileQuery, limits: Limits) -> UploadedTable:
    """The rows of the files that a body consists of, read as `freight score` reads them."""
    pieces, names = options.split(content), options.names
    with TemporaryDirectory() as folder:
        paths: dict[str, str] = {}
        for k, (name, piece) in enumerate(zip(names, pieces, strict=True)):
            *_, ending = Path(f"x{name.lower().removesuffix('.gz')}").suffixes or [""]
            path = Path(folder, f"{k}{ending if ending in FORMATS else '.txt'}")
            plain = limits.unpack(piece, name) if name.lower().endswith(".gz") else piece
            path.write_bytes(plain)
            if ending == PARQUET:
                check_parquet(path, name, limits.rows, 4 * limits.file, 4 * limits.characters)
            paths[str(path)] = name
        hyp, *refs = paths
        columns = options.hyp_column, options.ref_column
        with Corpus(hyp, refs, options.encoding, *columns, shown=paths) as corpus:
            if len(corpus) > limits.rows:
                raise InvalidInput(
                    f"{names[0]} has {len(corpus):,} rows; send at most {limits.rows:,}, in several"
                    " files, use `freight score`, or start the service with a larger --rows"
                )
            table = UploadedTable(list(corpus), [_json_names(one) for one in corpus.row_names()])
    limits.check_rows(table.segments)
    return table


def _json_names(row: Row) -> Row:
    """What identifies a row; an id that JSON has no word for is a text, of whole characters."""
    return {
        name: value
        if isinstance(value, int) or value is None
        else str(value).encode(errors="replace").decode()
        for name, value in row.items()
    }


def score_table(rows: Sequence[Row], results: Sequence[Result], kind: str) -> str:
    """One row per segment: what identifies it, each column of each metric, references, flags."""
    names: list[str] = list(rows[0])
    columns: list[list[Any]] = [[row[name] for row in rows] for name in names]
    for k, result in enumerate(results):
        same = sum(other.name == result.name for other in results[:k])
        title = result.name if not same else f"{result.name} ({same + 1})"
        for column in result.columns:
            names.append(f"{title}:{column.name}")
            columns.append([None if x != x else float(x) for x in result[column.name]])
        names.append(f"{title}:reference")
        columns.append([int(winner) + 1 for winner in result.winners])  # as segments are
    names.append("flags")
    flags_of_segments = zip(*(result.flags for result in results), strict=True)
    columns.append([sorted({flag for one in row for flag in one}) for row in flags_of_segments])
    return "".join(_format_rows(names, zip(*columns, strict=True), kind))


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
