"""The service put together: access control, API, pages and monitoring, with the worker behind."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib import resources
from typing import Any

import jinja2
import uvicorn
from fastapi import APIRouter, Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.responses import Response

from freight.errors import InvalidInput
from freight.serve.access import Access, AccessMiddleware, PrometheusMetrics, TimedProtocol
from freight.serve.messages import MAX_METRICS
from freight.serve.models import ServedModels
from freight.serve.refusals import EXCEPTION_HANDLERS, Limits
from freight.serve.routes import api_router, monitoring_router
from freight.serve.worker import Worker

_BACKLOG = 100
"""Connections that are accepted at once, before any of them can be closed."""

_OTHER_FILES = _BACKLOG + 100
"""Open files beyond those of connections: accepted at once, models, libraries, pipes."""


def create_app(
    models: ServedModels,
    access: Access | None = None,
    limits: Limits | None = None,
    threads: int | None = None,
    on_ready: Callable[[], None] = lambda: None,
) -> FastAPI:
    """An ASGI application; its worker runs from start-up to shutdown; it tells when it is ready."""
    from freight import __version__

    access, limits, metrics = access or Access(), limits or Limits(), PrometheusMetrics()
    worker = Worker(models, limits, metrics, threads, on_ready)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        worker.start()
        yield
        worker.stop()
        await worker.join()  # for a while: what it is at may have no end, and the process has

    app = FastAPI(
        title="Freight",
        version=__version__,
        description=_describe(limits),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        exception_handlers=EXCEPTION_HANDLERS,
    )
    # Only says in the schema that there is a token: it is checked before the body is read.
    bearer = [Depends(HTTPBearer(auto_error=False))] if access.token else []
    app.include_router(api_router(models, worker, limits), dependencies=bearer)
    app.include_router(page_router(app))
    app.include_router(monitoring_router(worker, metrics))
    app.add_middleware(AccessMiddleware, access=access, limits=limits, metrics=metrics)
    app.state.worker = worker
    _add_choices(app.openapi(), models)  # FastAPI makes the schema once and keeps it
    return app


def run_service(
    models: ServedModels,
    access: Access,
    limits: Limits,
    host: str = "127.0.0.1",
    port: int = 8000,
    threads: int | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress by then are finished, in their time."""
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    print(f"Freight serves http://{shown}:{listener.getsockname()[1]}", flush=True)
    there = f"{len(models.metrics)} metrics; encoders: {', '.join(models.encoders)}"
    announce = partial(print, f"Ready. {there}", flush=True)
    app = create_app(models, access, limits, threads, announce)
    make_server(app, limits).run(sockets=[listener])


def make_server(app: FastAPI, limits: Limits, request_seconds: float = 15.0) -> uvicorn.Server:
    """An HTTP server; a request has so many seconds to arrive, up to its body."""
    protocol: Any = partial(
        TimedProtocol, seconds=request_seconds, most=_most_connections(4 * limits.concurrency)
    )
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(request_seconds) + 1,  # the protocol's own time comes first
        timeout_graceful_shutdown=int(limits.seconds) + 5,
        backlog=_BACKLOG,
    )
    return uvicorn.Server(config)


def _most_connections(wanted: int) -> int:
    """As many as are wanted, or as there may be files, less those for other purposes."""
    if sys.platform == "win32":
        return wanted
    import resource

    files = resource.RLIMIT_NOFILE
    soft, hard = resource.getrlimit(files)
    if soft != resource.RLIM_INFINITY and soft < wanted + _OTHER_FILES:
        most = wanted + _OTHER_FILES
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(files, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - _OTHER_FILES))


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, before anything is loaded: a port that is taken is one line at once.

    Whoever reads the address and connects waits for the answer instead of being refused.
    """
    listener = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except (OSError, UnicodeError) as error:
        if listener is not None:
            listener.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"cannot listen on {host} port {port}: {reason}; give another --host or --port"
        ) from None
    listener.set_inheritable(True)
    return listener


def _describe(limits: Limits) -> str:
    return (
        f"Score generated text by optimal transport. A request has at most {limits.texts:,} texts"
        f" of {limits.characters:,} characters, {MAX_METRICS} metrics, {limits.body:,} bytes and"
        f" {limits.work / 1e6:,.0f} million characters squared of work,"
        f" and is answered within {limits.seconds:g} seconds or refused. Errors are"
        ' {"error": "one line"}; 429 and 503 say in Retry-After when to try again.'
    )


def _add_choices(schema: dict[str, Any], models: ServedModels) -> None:
    """Say in the schema which metrics, encoders and adapters there are."""
    properties = schema["components"]["schemas"]["MetricRequest"]["properties"]
    properties["name"]["enum"] = list(models.metrics)
    properties["encoder"]["anyOf"][0]["enum"] = list(models.encoders)
    if models.adapters:
        properties["adapter"]["anyOf"][0]["enum"] = list(models.adapters)


_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PAGES = {
    "/": "explorer.html",
    **{
        f"/{name}": name
        for name in (
            "explorer.css",
            "explorer.js",
            "requests.js",
            "controls.js",
            "elements.js",
            "examples.js",
            "files.js",
            "links.js",
            "table.js",
            "icon.svg",
        )
    },
}
_PAGE_HEADERS = {"Cache-Control": "no-cache"}
_ICON_HEADERS = {"Cache-Control": "max-age=3600"}
"""Browsers ask for it again whenever the address changes, and the explorer's often does."""


def page_router(app: FastAPI) -> APIRouter:
    """The explorer and the API's description: the same for everybody, so they need no token."""
    router = APIRouter(include_in_schema=False)
    for path, name in _PAGES.items():
        router.add_api_route(path, _page_sender(name), methods=["GET", "HEAD"])

    @router.get("/explanation.css")
    def get_explanation_style() -> Response:
        """The style sheet of the explanations' HTML."""
        from freight.report.explanation import fragment_style

        return Response(fragment_style(), headers=_PAGE_HEADERS, media_type="text/css")

    @router.get("/docs")
    def get_docs() -> Response:
        """The API's paths, with their requests and answers."""
        page = _render("docs.html", **_describe_paths(app.openapi()))
        return Response(page, headers=_PAGE_HEADERS, media_type="text/html")

    return router


def _describe_paths(schema: dict[str, Any]) -> dict[str, Any]:
    """Paths in their order, and the schemas that they use."""
    paths = [
        {"path": path, "method": method.upper(), **operation}
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    return {"info": schema["info"], "paths": paths, "schemas": schema["components"]["schemas"]}


def _page_sender(name: str) -> Callable[[], Response]:
    def send_page() -> Response:
        media_type = _TYPES[name.rsplit(".", 1)[1]]
        headers = _ICON_HEADERS if name.endswith(".svg") else _PAGE_HEADERS
        return Response(_page_source(name), headers=headers, media_type=media_type)

    return send_page


def _render(name: str, **content: Any) -> str:
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_page_source(name)).render(**content)


def _page_source(name: str) -> str:
    return resources.files("freight.serve").joinpath("page", name).read_text("utf-8")
