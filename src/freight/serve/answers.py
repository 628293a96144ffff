"""Answers as they are sent: JSON without a number that JSON lacks, and errors of one line."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from freight.errors import FreightError
from freight.serve.jobs import Busy, Late, Stopping

if TYPE_CHECKING:
    from freight.results import Result
    from freight.serve.offer import Offer

_LONGEST = 500


class Json(JSONResponse):
    """In ASCII, since half a character of Unicode has no bytes of its own."""

    def render(self, content: Any) -> bytes:
        """Nothing that is no number may have come this far."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def scored(result: Result, offer: Offer) -> dict[str, Any]:
    """What a metric says, in the words of JSON."""
    columns = [{"name": column.name, "higher": column.higher} for column in result.columns]
    return {
        "metric": result.name,
        "columns": columns,
        "scores": {c["name"]: [_number(x) for x in result[str(c["name"])]] for c in columns},
        "system": {name: _number(value) for name, value in result.system.items()},
        "references": [int(winner) for winner in result.winners],
        "flags": [list(flags) for flags in result.flags],
        "signature": offer.public(result.signature),
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
