"""Monitoring: counters for Prometheus at /metrics, and whether the service is up at /health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.responses import Response

from freight.serve.messages import ERRORS, HealthAnswer, Json

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


def monitoring_router(is_ready: Callable[[], bool], metrics: PrometheusMetrics) -> APIRouter:
    """The paths /health and /metrics."""
    router = APIRouter(responses=ERRORS)
    health: dict[int | str, dict[str, Any]] = {
        200: {"model": HealthAnswer},
        503: {"model": HealthAnswer},
    }
    text: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}

    @router.get("/health", response_class=Json, responses=health)
    def get_health(check: Literal["live", "ready"] = "ready") -> Response:
        """Whether requests are answered now; with check=live, whether the process is up."""
        ready = is_ready()
        return Json({"live": True, "ready": ready}, 200 if ready or check == "live" else 503)

    @router.get("/metrics", response_class=Response, responses={200: text})
    def get_counters() -> Response:
        """Counters for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router
