"""What happens before a request reaches the API: who may ask, how much, and what is counted.

`TimedProtocol` closes connections on which no request arrives. `AccessMiddleware` is the outermost
layer of the application. It refuses unknown hosts, pages of other sites, missing
tokens and requests beyond the limit before a byte of the body is read; it reads the body, whole and
never beyond its limit, so that nothing behind it meets a large one; and it adds the security
headers to every answer.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from freight.errors import InvalidInput
from freight.serve.refusals import Limits, Refusal, error_response

TOKEN = "FREIGHT_TOKEN"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
INTERNAL_ERROR = "something went wrong here; it has been logged"
_SHORTEST_TOKEN = 16
_FILE_PATH, _MOST_FILES = "/api/file", 8
_NEED_TOKEN = ("/api/", "/metrics")
_LEAST_READ = 2**16  # bytes of an answer, in the time that a request has to arrive
_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
_HOST = r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?"
_HOST_HEADER = re.compile(_HOST, re.I)
_ORIGIN_HEADER = re.compile(rf"(?P<scheme>https?)://{_HOST}", re.I)
_PORTS = {"http": 80, "https": 443}
_SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self';"
        " img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """The host names that the service answers to (any name where there are none), and the token."""

    hosts: tuple[str, ...] = LOOPBACK
    token: str | None = field(default=None, repr=False)


def access_for(host: str, token: str | None, hosts: Sequence[str] = ()) -> Access:
    """Who may ask a service that listens on `host`; other machines only with a token."""
    token = token if token is not None else os.environ.get(TOKEN) or None
    if token is not None and (len(token) < _SHORTEST_TOKEN or not token.isascii()):
        raise InvalidInput(
            f"the token is shorter than {_SHORTEST_TOKEN} characters or not ASCII; make one with"
            "  python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if is_loopback(host):
        return Access((*LOOPBACK, host.lower(), *map(str.lower, hosts)), token)
    if token is None:
        raise InvalidInput(
            f"{host} can be reached from other machines, which takes a token: --token, or"
            f" {TOKEN} in the environment; or leave --host out"
        )
    return Access(tuple(map(str.lower, hosts)), token)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class PrometheusMetrics:
    """Counters of one service; another service in the same process has its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "freight_requests", "Requests answered.", ("route", "method", "status"),
            registry=self._registry,
        )  # fmt: skip
        self._seconds = self._histogram(
            "freight_request_seconds", "From the first byte to the answer.", _SECONDS, ("route",)
        )
        self._refusals = Counter(
            "freight_refusals", "Requests refused, by status.", ("status",), registry=self._registry
        )
        self._batch_requests = self._histogram(
            "freight_batch_requests", "Requests that were scored together.", _SIZES
        )
        self._batch_pairs = self._histogram(
            "freight_batch_pairs", "Pairs that were scored together.", _SIZES
        )
        self.pairs = Counter("freight_pairs_scored", "Pairs scored.", registry=self._registry)
        self.queue = Gauge(
            "freight_queue_pairs", "Pairs that wait to be scored.", registry=self._registry
        )
        self.active = Gauge(
            "freight_active_requests", "Requests in progress.", registry=self._registry
        )

    def record_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if status >= 400:
            self._refusals.labels(str(status)).inc()

    def record_batch(self, requests: int, pairs: int) -> None:
        """A batch was scored."""
        self._batch_requests.observe(requests)
        self._batch_pairs.observe(pairs)

    def text(self) -> bytes:
        """Every counter in the text format of Prometheus."""
        return generate_latest(self._registry)

    def _histogram(
        self, name: str, about: str, buckets: Sequence[float], labels: Sequence[str] = ()
    ) -> Histogram:
        return Histogram(name, about, labels, buckets=buckets, registry=self._registry)


class AccessMiddleware:
    """Checks, counts and times every request, and adds the security headers to its answer."""

    def __init__(
        self, app: ASGIApp, access: Access, limits: Limits, metrics: PrometheusMetrics
    ) -> None:
        self._app, self._access, self._limits, self._metrics = app, access, limits, metrics
        self._active, self._files = 0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        self._count(1)
        try:
            await self._answer(scope, receive, send_with_headers)
        except Exception:
            logging.getLogger(__name__).exception("a request could not be answered")
            await error_response(500, INTERNAL_ERROR)(scope, receive, send_with_headers)
        finally:
            self._count(-1)
            # the route as it was declared, so that nobody can make up labels
            route = str(getattr(scope.get("route"), "path", "other"))
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.record_request(route, method, status, time.perf_counter() - start)

    def _count(self, change: int) -> None:
        self._active += change
        self._metrics.active.set(self._active)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = Headers(scope=scope)
            host = _HOST_HEADER.fullmatch(headers.get("host", ""))
            self._check_host(host)
            self._check_origin(headers.getlist("origin"), host)
            self._check_token(scope["path"], headers.get("authorization", ""))
            self._check_concurrency(scope["path"])
            is_file = scope["path"] == _FILE_PATH
            with self._count_file() if is_file else nullcontext():
                most = self._limits.file if is_file else self._limits.body
                body = await self._read_body(headers, Request(scope, receive), most)
                await self._app(scope, _replay(body, receive), send)
        except Refusal as refusal:
            await refusal.response(scope, receive, send)

    def _check_host(self, host: re.Match[str] | None) -> None:
        """A page whose name was bound to this machine's address sends its own name."""
        if host is None or (self._access.hosts and _name(host) not in self._access.hosts):
            raise Refusal(
                "this service does not answer to that Host; start it with --allow-host", 421
            )

    def _check_origin(self, origins: Sequence[str], host: re.Match[str] | None) -> None:
        """Only the pages of this service may make a browser ask: same name, same port.

        A page that another program of this machine serves has another port.
        """
        for text in origins:
            origin = _ORIGIN_HEADER.fullmatch(text)
            usual = _PORTS[origin["scheme"].lower()] if origin else 0
            if not (origin and host and _address(origin, usual) == _address(host, usual)):
                raise Refusal("requests from pages of other sites are refused", 403)

    def _check_token(self, path: str, authorization: str) -> None:
        if self._access.token is None or not path.startswith(_NEED_TOKEN):
            return
        scheme, _, token = authorization.partition(" ")
        # as bytes: only ASCII texts can be compared in constant time
        equal = hmac.compare_digest(token.strip().encode(), self._access.token.encode())
        if not equal or scheme.lower() != "bearer":
            raise Refusal(
                "send the token: Authorization: Bearer ...", 401, {"WWW-Authenticate": "Bearer"}
            )

    def _check_concurrency(self, path: str) -> None:
        if self._active > self._limits.concurrency and path != "/health":
            raise Refusal(
                f"{self._limits.concurrency} requests are in progress", 429, {"Retry-After": "1"}
            )

    @contextmanager
    def _count_file(self) -> Iterator[None]:
        """Few files at once, because they may be large."""
        if self._files >= _MOST_FILES:
            message = f"{_MOST_FILES} files are being scored; try again when one is done"
            raise Refusal(message, 429, {"Retry-After": "5"})
        self._files += 1
        try:
            yield
        finally:
            self._files -= 1

    async def _read_body(self, headers: Headers, request: Request, most: int) -> bytes:
        declared = headers.get("content-length", "0")
        if declared.isdigit() and int(declared[:20]) > most:
            raise self._too_large(most)
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most:
                        raise self._too_large(most)
        except TimeoutError:
            raise Refusal(
                "the request did not arrive in time", 408, {"Connection": "close"}
            ) from None
        except ClientDisconnect:
            raise Refusal(
                "the connection was closed before the request was complete", 400
            ) from None
        return bytes(body)

    def _too_large(self, most: int) -> Refusal:
        what, flag = ("a file", "--file") if most == self._limits.file else ("a request", "--body")
        return Refusal(
            f"{what} has at most {most:,} bytes; send several, or start the service with a larger"
            f" {flag}",
            413,
            {"Connection": "close"},
        )


class TimedProtocol(H11Protocol):
    """A connection that is closed if it stands still for so many seconds.

    uvicorn waits for ever for the rest of a header, and for an answer to be read. Of more than
    `most` connections, the one that has waited longest for a request is closed, so that idle ones
    cannot keep others out.
    """

    def __init__(self, *arguments: Any, seconds: float, most: int, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._seconds, self._most, self._unsent = seconds, most, 0
        self._timer: asyncio.TimerHandle | None = None
        self.waiting_since = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self._most:
            timed = (one for one in self.connections if isinstance(one, TimedProtocol))
            idle = [one for one in timed if one.is_waiting and not one.transport.is_closing()]
            min(idle, key=lambda one: one.waiting_since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._wait()
        super().on_response_complete()

    def _wait(self) -> None:
        self.waiting_since = self.loop.time()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._unsent = self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(self._seconds, self._check_progress)

    def _check_progress(self) -> None:
        """Close if neither a request arrives nor an answer is being read."""
        unsent = self.transport.get_write_buffer_size()
        stuck = unsent > self._unsent - _LEAST_READ if unsent else self.is_waiting
        if stuck:
            self.transport.abort()
        else:
            self._set_timer()


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once, and then what the connection says."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replay() -> Message:
        nonlocal first
        message, first = first, None
        return message if message is not None else await receive()

    return replay


def _name(host: re.Match[str]) -> str:
    """The name in a Host or Origin header in lower case, without port or brackets."""
    return (host["ipv6"] or host["name"]).lower()


def _address(host: re.Match[str], usual_port: int) -> tuple[str, int]:
    return _name(host), int(host["port"] or usual_port)
