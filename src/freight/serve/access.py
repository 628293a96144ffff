"""What stands before every request: who may ask, how much, how many at once; what headers say.

A body is read here, whole and no further than its limit, so that nothing behind sees a large one.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freight.serve.jobs import Gauges, Limits
from freight.serve.messages import failure

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none';"
    " frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LATIN = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
_CLOSED = ("/api/", "/metrics")
FAULT = "something went wrong here; it has been logged"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Access:
    """Who may ask: by which host names (any, where there are none), and with which token."""

    hosts: tuple[str, ...] = LOOPBACK
    token: str | None = field(default=None, repr=False)


class _Refused(Exception):
    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.answer = failure(status, message, headers)


class Guard:
    """The outermost layer of the service."""

    def __init__(self, app: ASGIApp, access: Access, limits: Limits, gauges: Gauges) -> None:
        self._app, self._access, self._limits, self._gauges = app, access, limits, gauges
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in _LATIN if header[0] not in there),
                ]
            await send(message)

        self._count(1)
        try:
            await self._pass(scope, receive, sent)
        except Exception:
            logging.getLogger(__name__).exception("a request could not be answered")
            await failure(500, FAULT)(scope, receive, sent)
        finally:
            self._count(-1)
            took = time.perf_counter() - begun
            self._gauges.request(_route(scope), _method(scope), status, took)

    def _count(self, change: int) -> None:
        self._active += change
        self._gauges.active.set(self._active)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check(scope)
            body = await self._body(scope, receive)
        except _Refused as refused:
            await refused.answer(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    def _check(self, scope: Scope) -> None:
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        host = _host(headers.get("host", b"").decode("latin-1"))
        if self._access.hosts and host not in self._access.hosts:
            raise _Refused(
                421, "this service does not answer to that Host; start it with --allow-host"
            )
        self._check_origin(headers, host)
        if not self._allowed(scope["path"], headers):
            raise _Refused(
                401, "send the token: Authorization: Bearer ...", {"WWW-Authenticate": "Bearer"}
            )
        if self._active > self._limits.concurrency and scope["path"] != "/health":
            raise _Refused(
                429, f"{self._limits.concurrency} requests are in progress", {"Retry-After": "1"}
            )

    def _check_origin(self, headers: Mapping[str, bytes], host: str) -> None:
        """Another site's page may not make a visitor's browser ask."""
        origin = headers.get("origin")
        if origin is None:
            return
        named = _host(_netloc(origin.decode("latin-1")))
        if not named or named not in {host, *self._access.hosts}:
            raise _Refused(403, "requests from pages of other sites are refused")

    def _allowed(self, path: str, headers: Mapping[str, bytes]) -> bool:
        if self._access.token is None or not path.startswith(_CLOSED):
            return True
        kind, _, given = headers.get("authorization", b"").partition(b" ")
        right = hmac.compare_digest(given.strip(), self._access.token.encode())
        return right and kind.lower() == b"bearer"

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if said.isdigit() and int(said[:20]) > self._limits.body:
            raise self._too_large()
        try:
            return await asyncio.wait_for(self._read(receive), self._limits.seconds)
        except TimeoutError:
            raise _Refused(408, "the request did not arrive in time") from None

    async def _read(self, receive: Receive) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Refused(400, "the request was broken off")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._limits.body:
                raise self._too_large()
        return bytes(body)

    def _too_large(self) -> _Refused:
        return _Refused(
            413,
            f"a request has at most {self._limits.body:,} bytes; send several, or start the"
            " service with a larger --body",
            {"Connection": "close"},
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _replay(body: bytes, receive: Receive) -> Receive:
    messages: Iterable[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    waiting = iter(messages)

    async def replay() -> Message:
        message: Any = next(waiting, None)
        return message if message is not None else await receive()

    return replay


def _host(header: str) -> str:
    """The name in a Host header, without a port or brackets."""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _route(scope: Scope) -> str:
    """The path as it was declared, so that nobody can make up labels."""
    return str(getattr(scope.get("route"), "path", "other"))


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"
