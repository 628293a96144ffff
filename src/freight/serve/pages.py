"""What a browser sees: the explorer, its style and script, and the API's description."""

from __future__ import annotations

from importlib import resources
from typing import Any

import jinja2
from fastapi import APIRouter, FastAPI
from starlette.responses import Response

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
