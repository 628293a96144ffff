"""The service put together: guard, API, pages, health, and the worker behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.responses import Response

from freight.serve.answers import HANDLERS, Json
from freight.serve.gauges import Gauges
from freight.serve.guard import Access, Guard
from freight.serve.limits import METRICS, Limits
from freight.serve.offer import Offer
from freight.serve.pages import pages
from freight.serve.routes import REFUSALS, api
from freight.serve.worker import Worker


class Health(BaseModel):
    """Live while it answers at all, ready once it scores."""

    live: bool
    ready: bool


def create_app(
    offer: Offer,
    access: Access | None = None,
    limits: Limits | None = None,
    threads: int | None = None,
) -> FastAPI:
    """An ASGI application; its worker runs from start-up to shutdown."""
    from freight import __version__

    limits, gauges = limits or Limits(), Gauges()
    worker = Worker(offer, limits, gauges, threads)

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
    app.include_router(api(offer, worker, limits))
    app.include_router(pages(app))
    _add_watching(app, worker, gauges)
    app.add_middleware(Guard, access=access or Access(), limits=limits, gauges=gauges)
    app.state.worker = worker
    _name_choices(app.openapi(), offer)  # it is made once, and kept
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


def _name_choices(schema: dict[str, Any], offer: Offer) -> None:
    """Say in the schema which metrics and encoders there are."""
    named = schema["components"]["schemas"]["Metric"]["properties"]
    named["name"]["enum"] = list(offer.metrics)
    named["encoder"]["anyOf"][0]["enum"] = list(offer.encoders)


def _about(limits: Limits) -> str:
    return (
        f"Score generated text by optimal transport. A request has at most {limits.texts:,} texts"
        f" of {limits.characters:,} characters, {METRICS} metrics and {limits.body:,} bytes, and is"
        f" answered within {limits.seconds:g} seconds or refused. Errors are"
        ' {"error": "one line"}; 429 and 503 say in Retry-After when to come back.'
    )
