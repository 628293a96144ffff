"""What the service refuses: the limits of a request, and the one line that says what to change."""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from freight.core.types import Segment
from freight.errors import FreightError, InvalidInput
from freight.serve.messages import Json

_LONGEST_ERROR = 500


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

    A request with a file has up to `file` bytes and `rows`. `work` is that of all pairs with all
    metrics, `units` are those of a text for which a plan is computed. `queue` counts pairs that
    wait to be scored, `concurrency` requests that are being read, waited for or answered.
    """

    body: int = 2**20
    file: int = 2**23
    rows: int = 5000
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
            self._check_text(hyp, f"pairs[{k}].hyp")
            for r, ref in enumerate(refs):
                self._check_text(ref, f"pairs[{k}].refs[{r}]")
        self._check_work(segments, metrics)

    def check_rows(self, segments: Sequence[Segment]) -> None:
        """Refuse rows of a file with too many texts, too long ones, or what is no text."""
        for k, (hyp, refs) in enumerate(segments, 1):
            if len(refs) >= self.texts:
                raise InvalidInput(
                    f"row {k} has {len(refs):,} references; a row has at most {self.texts - 1:,},"
                    " or start the service with a larger --texts"
                )
            self._check_text(hyp, f"row {k}: hyp")
            for r, ref in enumerate(refs):
                self._check_text(ref, f"row {k}: refs[{r}]")

    def cut(self, segments: Sequence[Segment], metrics: int) -> list[slice]:
        """Parts of a file that are scored one after the other, and leave room for others."""
        parts, first, pairs, work = [], 0, 0, 0
        for k, segment in enumerate(segments):
            self._check_work([segment], metrics)
            pairs, work = pairs + metrics * len(segment[1]), work + metrics * segment_work(segment)
            if k > first and (pairs > self.queue // 16 or work > self.work // 16):
                parts.append(slice(first, k))
                first, pairs, work = k, metrics * len(segment[1]), metrics * segment_work(segment)
        return [*parts, slice(first, len(segments))]

    def unpack(self, content: bytes, name: str) -> bytes:
        """The content of a gzip file, if it is not too large."""
        try:
            with gzip.open(io.BytesIO(content)) as stream:
                plain = stream.read(4 * self.file + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInput(f"{name} is not a whole gzip file ({error})") from None
        if len(plain) > 4 * self.file:
            raise Refusal(
                f"{name} has more than {4 * self.file:,} bytes once it is unpacked; send several"
                " files, use `freight score`, or start the service with a larger --file",
                413,
            )
        return plain

    def _check_work(self, segments: Sequence[Segment], metrics: int) -> None:
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


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Json:
    """An error of one line."""
    line = " ".join(message.split())
    short = line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}…"
    return Json({"error": short}, status, headers)


async def _on_freight_error(request: Request, error: Exception) -> Json:
    """What the client can correct (422), or has to wait for."""
    return error.response if isinstance(error, Refusal) else error_response(422, str(error))


async def _on_invalid_request(request: Request, error: Exception) -> Json:
    """The first thing that is wrong with a request."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        reason, place = first["ctx"]["error"], first["loc"][-1]
        return error_response(400, f"the body is not JSON ({reason}, character {place})")
    return error_response(422, describe_problem(first))


async def _on_http_error(request: Request, error: Exception) -> Json:
    """No such path, no such method, bytes that are no JSON."""
    assert isinstance(error, HTTPException)
    path = request.url.path[:100]
    messages = {
        400: "the body cannot be read as JSON: it is not UTF-8, nested too deeply, or has a number"
        " of thousands of digits",
        404: f"there is no {path}; /docs lists what there is",
        405: f"{path} does not take {request.method[:10]}; /docs says what it takes",
    }
    message = messages.get(error.status_code, str(error.detail))
    return error_response(error.status_code, message, error.headers)


_EXPECTED = {
    "string_type": 'a text; an empty text is ""',
    "list_type": "a list",
    "dict_type": 'an object, {"name": value}',
    "model_type": 'an object, {"name": value}',
    "model_attributes_type": 'an object, {"name": value}',
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "finite_number": 'a finite number; infinity is "inf"',
}
_OBJECTS = {
    "pairs": 'an object, {"hyp": "...", "refs": ["..."]}',
    "metrics": 'a metric: its name, or {"name": "...", "settings": {...}}',
    "metric": 'a metric: its name, or {"name": "...", "settings": {...}}',
}
_EXPECTED_OF = {
    "layer": 'a layer: a number, a list of numbers, "all", or "-5:" for the last five',
    "id": "a text or a whole number",
    "settings": "a finite number, a text, true, false or null",
}
"""Of what may have several types, by the field or by the object that it is in."""

_EXAMPLES = {
    "pairs": 'send {"pairs": [{"hyp": "...", "refs": ["..."]}]}, or hyps and refs',
    "hyp": "give hyp, and ref or refs",
    "refs": "give hyp, and ref or refs",
}


def describe_problem(problem: Mapping[str, Any]) -> str:
    """What pydantic finds wrong with a request, as culprit and cure."""
    kind, loc, context = problem["type"], problem["loc"], problem.get("ctx", {})
    place = [part for part in loc if part not in ("body", "query")]
    where, given = _place(place) or "the body", problem.get("input")
    if kind == "value_error":
        return f"{_place(place)}: {context['error']}" if place else str(context["error"])
    if not place:
        return "the body is no JSON object; send one, with Content-Type: application/json"
    last = str(place[-1])
    if kind == "missing":
        above = _place(place[:-1])
        lacks = f"{above} has no {last}" if above else f"{last} is missing"
        return f"{lacks}; {_EXAMPLES.get(last, '/docs says what a request has')}"
    if kind in ("too_short", "too_long"):
        count = context["actual_length"] or "no"
        bound = "at least one" if kind == "too_short" else f"at most {context['max_length']}"
        return f"{where} has {count} entries; send {bound}"
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        return f"{where}={_quote(given)}: must be one of {choices}"
    if kind == "string_unicode":
        return f"{where} has half a character (a lone surrogate); send whole characters"
    for name, expected in _EXPECTED_OF.items():
        if name in place[:-1]:  # after it comes the type that was tried, or the name of a setting
            known = place.index(name) + (2 if name == "settings" else 1)
            return f"{_place(place[:known])} is {_quote(given)}, not {expected}"
    expected = _EXPECTED.get(kind, "what is wanted there; /docs says what that is")
    if kind.startswith("model_"):
        names = [part for part in place if isinstance(part, str)]
        expected = _OBJECTS.get(names[-1], expected)
    return f"{where} is {_quote(given)}, not {expected}"


def _quote(value: Any) -> str:
    """A value of a request as JSON, and not a long one."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _place(parts: Sequence[str | int]) -> str:
    """Where something is in a request, as JavaScript and Python would write it."""
    steps = [f"[{part}]" if isinstance(part, int) else f".{part[:40]}" for part in parts]
    return "".join(steps).removeprefix(".")


EXCEPTION_HANDLERS: dict[int | type[Exception], Any] = {
    FreightError: _on_freight_error,
    RequestValidationError: _on_invalid_request,
    HTTPException: _on_http_error,
}
