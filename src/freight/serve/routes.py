"""The paths of the API: what each asks of the worker, and how its answer is written."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from freight.core.result import Result
from freight.core.types import Segment
from freight.data.files import Row, decode_lines, parse_rows
from freight.errors import InvalidInput
from freight.explain.comparison import compare
from freight.explain.explanation import Explanation
from freight.serve.jobs import METRICS, Limits
from freight.serve.messages import (
    HOUSE,
    EncodersAnswer,
    ExplainAnswer,
    ExplainRequest,
    Failure,
    FileAnswer,
    FragmentRequest,
    Json,
    MetricRequest,
    MetricsAnswer,
    ScoreAnswer,
    ScoreRequest,
    scored,
)
from freight.serve.models import ServedModels
from freight.serve.worker import Worker

_ABOUT = {
    400: "Not JSON.",
    401: "No token, or a wrong one.",
    403: "Sent by a page of another site.",
    408: "Did not arrive in time.",
    413: "Too many bytes.",
    421: "Not a name of this service.",
    422: "Something cannot be used; the error names it.",
    429: "Too much at once; come back after Retry-After seconds.",
    503: "Not begun in time, or stopping.",
    504: "Not done in time.",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": about} for status, about in _ABOUT.items()
}
_HTML: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "HTML."}
}
FORMATS = {"csv": "text/csv", "tsv": "text/tab-separated-values", "jsonl": "application/jsonl"}

_TABLES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": FileAnswer,
        "description": "Scores as JSON, or a table to be kept.",
        "content": {kind: {"schema": {"type": "string"}} for kind in FORMATS.values()},
    }
}
_UPLOAD = {
    "requestBody": {
        "description": "Rows with hyp, and ref or refs.",
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string"}}},
    }
}
Names = Annotated[
    list[str],
    Query(
        max_length=METRICS,
        description='A name, or JSON as in /api/score: {"name": "lazy-emd", "settings": ...}.',
    ),
]


def api(models: ServedModels, worker: Worker, limits: Limits) -> APIRouter:
    """Scores, explanations, files, and what there is to choose from."""
    router = APIRouter(prefix="/api", responses=REFUSALS)

    @router.get("/metrics", response_class=Json, responses={200: {"model": MetricsAnswer}})
    def metrics() -> Response:
        """Every metric with its columns, and what may be set of it within which bounds."""
        return Json({"metrics": models.metric_descriptions})

    @router.get("/encoders", response_class=Json, responses={200: {"model": EncodersAnswer}})
    def encoders() -> Response:
        """The encoders that requests may name."""
        return Json({"encoders": models.encoder_descriptions})

    @router.post("/score", response_class=Json, responses={200: {"model": ScoreAnswer}})
    async def score(request: ScoreRequest) -> Response:
        """Score pairs by one metric or several."""
        segments = [pair.segment for pair in request.pairs]
        limits.check(segments)
        wanted = [metric.wanted(models) for metric in request.metrics]
        results = await worker.score(segments, wanted)
        return Json({"metrics": [scored(result, models) for result in results]})

    @router.post("/explain", response_class=Json, responses={200: {"model": ExplainAnswer}})
    async def explain(request: ExplainRequest) -> Response:
        """Why a hypothesis scores as it does: units, costs, flow, additions, omissions."""
        limits.check([request.segment])
        found = await worker.explain(request.segment, request.metric.wanted(models))
        return Json(_public(found, models).to_dict())

    @router.post("/explain/fragment", response_class=Response, responses=_HTML)
    async def fragment(request: FragmentRequest) -> Response:
        """The same as a piece of HTML, alone or beside another hypothesis or metric."""
        asked = [(request.segment, request.metric.wanted(models))]
        if request.other is not None:
            hyp = request.hyp if request.other.hyp is None else request.other.hyp
            metric = request.other.metric or request.metric
            asked.append(((hyp, request.refs), metric.wanted(models)))
        limits.check([segment for segment, _ in asked])
        found = await asyncio.gather(*(worker.explain(*one) for one in asked))
        shown = [_public(one, models) for one in found]
        return Response(await asyncio.to_thread(_drawn, shown), media_type="text/html")

    @router.post("/file", response_class=Json, responses=_TABLES, openapi_extra=_UPLOAD)
    async def file(
        request: Request,
        format: Literal["csv", "tsv", "jsonl"] = "jsonl",
        output: Literal["json", "csv", "tsv", "jsonl"] = "json",
        metric: Names = [HOUSE],  # noqa: B006
    ) -> Response:
        """Score the rows of a small table, sent as it is."""
        wanted = [_named(name).wanted(models) for name in metric]
        segments = segments_of(await request.body(), format, limits.texts)
        limits.check(segments)
        results = await worker.score(segments, wanted)
        if output == "json":
            pairs = [{"hyp": hyp, "refs": list(refs)} for hyp, refs in segments]
            return Json({"pairs": pairs, "metrics": [scored(r, models) for r in results]})
        headers = {"Content-Disposition": f'attachment; filename="scores.{output}"'}
        return Response(table(results, output), headers=headers, media_type=FORMATS[output])

    return router


def _public(found: Explanation, models: ServedModels) -> Explanation:
    return replace(found, signature=models.public_signature(found.signature))


def _drawn(found: Sequence[Explanation]) -> str:
    from freight.report.explanation import fragment

    return fragment(found[0] if len(found) == 1 else compare(found[0], found[1]))


def _named(given: str) -> MetricRequest:
    """A metric by its name, or as JSON."""
    if not given.lstrip().startswith("{"):
        return MetricRequest(name=given)
    try:
        return MetricRequest.model_validate(json.loads(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"metric.{where}: {first['msg']}") from None
    except (ValueError, RecursionError):
        raise InvalidInput("metric is not JSON; give a name, or an object") from None


_SHOWN = "the file"


def segments_of(content: bytes, kind: str, most: int) -> list[Segment]:
    """Each row's hypothesis with its references: columns `hyp`, and `ref` or `refs`.

    Reading stops once there are more texts than `most`, and says so.
    """
    found: list[Segment] = []
    count = 0
    for number, row in enumerate(_rows(content, kind), 1):
        found.append(_segment(row, number))
        count += 1 + len(found[-1][1])
        if count > most:
            raise InvalidInput(
                f"{_SHOWN} has more than {most:,} texts; send it in parts, use `freight score`, or"
                " start the service with a larger --texts"
            )
    if not found:
        raise InvalidInput(f"{_SHOWN} has no rows; give columns hyp, and ref or refs")
    return found


def table(results: Sequence[Result], kind: str) -> str:
    """A row a segment: its number, each column of each metric, the references and the flags."""
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
    every = zip(*(result.flags for result in results), strict=True)
    names.append("flags")
    columns.append([sorted({flag for one in row for flag in one}) for row in every])
    return "".join(_written(names, zip(*columns, strict=True), kind))


def _rows(content: bytes, kind: str) -> Iterator[Row]:
    stream = io.BytesIO(content)
    try:
        yield from parse_rows(decode_lines(stream, "utf-8", _SHOWN), f".{kind}", _SHOWN)
    except RecursionError:
        raise InvalidInput(f"{_SHOWN} is nested too deeply") from None


def _segment(row: Row, number: int) -> Segment:
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
    several = value if isinstance(value, list) else [value]
    for text in several:
        if not isinstance(text, str):
            raise InvalidInput(f"row {number} of {_SHOWN}: {name} is not a text")
    return several


def _written(names: Sequence[str], rows: Any, kind: str) -> Iterator[str]:
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
