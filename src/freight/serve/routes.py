"""The paths of the API: what each asks of the worker, and how its answer is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from freight.comparing import compare
from freight.errors import InvalidInput
from freight.explanations import Explanation
from freight.serve.answers import Json, scored
from freight.serve.files import FORMATS, segments_of, table
from freight.serve.limits import METRICS, Limits
from freight.serve.messages import (
    HOUSE,
    EncodersAnswer,
    ExplainAnswer,
    ExplainRequest,
    Failure,
    FileAnswer,
    FragmentRequest,
    Metric,
    MetricsAnswer,
    ScoreAnswer,
    ScoreRequest,
)
from freight.serve.offer import Offer
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


def api(offer: Offer, worker: Worker, limits: Limits) -> APIRouter:
    """Scores, explanations, files, and what there is to choose from."""
    router = APIRouter(prefix="/api", responses=REFUSALS)

    @router.get("/metrics", response_class=Json, responses={200: {"model": MetricsAnswer}})
    def metrics() -> Response:
        """Every metric with its columns, and what may be set of it within which bounds."""
        return Json({"metrics": offer.described})

    @router.get("/encoders", response_class=Json, responses={200: {"model": EncodersAnswer}})
    def encoders() -> Response:
        """The encoders that requests may name."""
        return Json({"encoders": offer.described_encoders})

    @router.post("/score", response_class=Json, responses={200: {"model": ScoreAnswer}})
    async def score(request: ScoreRequest) -> Response:
        """Score pairs by one metric or several."""
        segments = [pair.segment for pair in request.pairs]
        limits.check(segments)
        wanted = [metric.wanted(offer) for metric in request.metrics]
        results = await worker.score(segments, wanted)
        return Json({"metrics": [scored(result, offer) for result in results]})

    @router.post("/explain", response_class=Json, responses={200: {"model": ExplainAnswer}})
    async def explain(request: ExplainRequest) -> Response:
        """Why a hypothesis scores as it does: units, costs, flow, additions, omissions."""
        limits.check([request.segment])
        found = await worker.explain(request.segment, request.metric.wanted(offer))
        return Json(_public(found, offer).to_dict())

    @router.post("/explain/fragment", response_class=Response, responses=_HTML)
    async def fragment(request: FragmentRequest) -> Response:
        """The same as a piece of HTML, alone or beside another hypothesis or metric."""
        asked = [(request.segment, request.metric.wanted(offer))]
        if request.other is not None:
            hyp = request.hyp if request.other.hyp is None else request.other.hyp
            metric = request.other.metric or request.metric
            asked.append(((hyp, request.refs), metric.wanted(offer)))
        limits.check([segment for segment, _ in asked])
        found = await asyncio.gather(*(worker.explain(*one) for one in asked))
        shown = [_public(one, offer) for one in found]
        return Response(await asyncio.to_thread(_drawn, shown), media_type="text/html")

    @router.post("/file", response_class=Json, responses=_TABLES, openapi_extra=_UPLOAD)
    async def file(
        request: Request,
        format: Literal["csv", "tsv", "jsonl"] = "jsonl",
        output: Literal["json", "csv", "tsv", "jsonl"] = "json",
        metric: Names = [HOUSE],  # noqa: B006
    ) -> Response:
        """Score the rows of a small table, sent as it is."""
        wanted = [_named(name).wanted(offer) for name in metric]
        segments = segments_of(await request.body(), format, limits.texts)
        limits.check(segments)
        results = await worker.score(segments, wanted)
        if output == "json":
            pairs = [{"hyp": hyp, "refs": list(refs)} for hyp, refs in segments]
            return Json({"pairs": pairs, "metrics": [scored(r, offer) for r in results]})
        headers = {"Content-Disposition": f'attachment; filename="scores.{output}"'}
        return Response(table(results, output), headers=headers, media_type=FORMATS[output])

    return router


def _public(found: Explanation, offer: Offer) -> Explanation:
    return replace(found, signature=offer.public(found.signature))


def _drawn(found: Sequence[Explanation]) -> str:
    from freight.report.explanation import fragment

    return fragment(found[0] if len(found) == 1 else compare(found[0], found[1]))


def _named(given: str) -> Metric:
    """A metric by its name, or as JSON."""
    if not given.lstrip().startswith("{"):
        return Metric(name=given)
    try:
        return Metric.model_validate(json.loads(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"metric.{where}: {first['msg']}") from None
    except (ValueError, RecursionError):
        raise InvalidInput("metric is not JSON; give a name, or an object") from None
