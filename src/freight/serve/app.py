"""The service put together: guard, API, pages, health, and the worker behind them."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any, Literal

import jinja2
import uvicorn
from fastapi import APIRouter, FastAPI
from pydantic import BaseModel
from starlette.responses import Response

from freight.errors import InvalidInput
from freight.serve.access import LOOPBACK, Access, Guard, is_loopback
from freight.serve.jobs import METRICS, Gauges, Limits
from freight.serve.messages import HANDLERS, Json
from freight.serve.models import ServedModels
from freight.serve.routes import REFUSALS, api
from freight.serve.worker import Worker


class Health(BaseModel):
    """Live while it answers at all, ready once it scores."""

    live: bool
    ready: bool


def create_app(
    models: ServedModels,
    access: Access | None = None,
    limits: Limits | None = None,
    threads: int | None = None,
) -> FastAPI:
    """An ASGI application; its worker runs from start-up to shutdown."""
    from freight import __version__

    limits, gauges = limits or Limits(), Gauges()
    worker = Worker(models, limits, gauges, threads)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        worker.start()
        yield
        worker.stop()
        await worker.join()

    app = FastAPI(
        title="Freight",
        version=__version__,
        description=_about(limits),
        lifespan=running,
        docs_url=None,
        redoc_url=None,
        exception_handlers=HANDLERS,
    )
    app.include_router(api(models, worker, limits))
    app.include_router(pages(app))
    _add_watching(app, worker, gauges)
    app.add_middleware(Guard, access=access or Access(), limits=limits, gauges=gauges)
    app.state.worker = worker
    _name_choices(app.openapi(), models)  # it is made once, and kept
    return app


def _add_watching(app: FastAPI, worker: Worker, gauges: Gauges) -> None:
    health: dict[int | str, dict[str, Any]] = {200: {"model": Health}, 503: {"model": Health}}
    text: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}

    @app.get("/health", response_class=Json, responses={**REFUSALS, **health})
    def ready(check: Literal["live", "ready"] = "ready") -> Response:
        """Whether requests are answered now; with check=live, whether anything is."""
        found = {"live": True, "ready": worker.working}
        return Json(found, 200 if worker.working or check == "live" else 503)

    @app.get("/metrics", response_class=Response, responses={**REFUSALS, 200: text})
    def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(gauges.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _name_choices(schema: dict[str, Any], models: ServedModels) -> None:
    """Say in the schema which metrics and encoders there are."""
    named = schema["components"]["schemas"]["MetricRequest"]["properties"]
    named["name"]["enum"] = list(models.metrics)
    named["encoder"]["anyOf"][0]["enum"] = list(models.encoders)


def _about(limits: Limits) -> str:
    return (
        f"Score generated text by optimal transport. A request has at most {limits.texts:,} texts"
        f" of {limits.characters:,} characters, {METRICS} metrics and {limits.body:,} bytes, and is"
        f" answered within {limits.seconds:g} seconds or refused. Errors are"
        ' {"error": "one line"}; 429 and 503 say in Retry-After when to come back.'
    )


_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FILES = {
    "/": "explorer.html",
    **{
        f"/{name}": name
        for name in (
            "explorer.css",
            "explorer.js",
            "asking.js",
            "controls.js",
            "elements.js",
            "examples.js",
            "files.js",
            "icon.svg",
        )
    },
}
_HEADERS = {"Cache-Control": "no-cache"}


def pages(app: FastAPI) -> APIRouter:
    """Everything here is ours and the same for all, so that it needs no token."""
    router = APIRouter(include_in_schema=False)
    for path, name in _FILES.items():
        router.add_api_route(path, _sender(name), methods=["GET", "HEAD"])

    @router.get("/explanation.css")
    def style() -> Response:
        """What the explanations' HTML needs."""
        from freight.report.explanation import fragment_style

        return Response(fragment_style(), headers=_HEADERS, media_type="text/css")

    @router.get("/docs")
    def docs() -> Response:
        """The API's paths, with what they take and give."""
        page = _rendered("docs.html", **described(app.openapi()))
        return Response(page, headers=_HEADERS, media_type="text/html")

    return router


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """Paths in their order, and the schemas that they use."""
    paths = [
        {"path": path, "method": method.upper(), **operation}
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    return {"info": schema["info"], "paths": paths, "schemas": schema["components"]["schemas"]}


def _sender(name: str) -> Any:
    def send() -> Response:
        kind = _TYPES[name.rsplit(".", 1)[1]]
        return Response(_source(name), headers=_HEADERS, media_type=kind)

    return send


def _rendered(name: str, **content: Any) -> str:
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_source(name)).render(**content)


def _source(name: str) -> str:
    return resources.files("freight.serve").joinpath("page", name).read_text("utf-8")


TOKEN = "FREIGHT_TOKEN"
_SHORTEST = 16


def access(host: str, token: str | None, hosts: Sequence[str] = ()) -> Access:
    """Who may ask a service at this address; other machines only with a token."""
    token = token if token is not None else os.environ.get(TOKEN) or None
    if token is not None and (len(token) < _SHORTEST or not token.isascii()):
        raise InvalidInput(
            f"the token is shorter than {_SHORTEST} characters or not ASCII; make one with"
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


def serve(
    models: ServedModels,
    who: Access,
    limits: Limits,
    host: str = "127.0.0.1",
    port: int = 8000,
    threads: int | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; what is in flight by then is finished."""
    listening = _bound(host, port)
    config = uvicorn.Config(
        create_app(models, who, limits, threads),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=int(limits.seconds) + 5,
        limit_concurrency=4 * limits.concurrency,
        backlog=2 * limits.concurrency,
    )
    shown = f"[{host}]" if ":" in host else host
    print(f"Freight serves http://{shown}:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    """The socket, before anything is loaded: a port that is taken is one line.

    It listens at once, so that whoever reads the address and asks is answered, if not yet.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"cannot listen on {host} port {port}: {reason}; give another --host or --port"
        ) from None
    found.set_inheritable(True)
    return found
