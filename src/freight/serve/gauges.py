"""What a service counts, for Prometheus."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Gauges:
    """Counters of one service; another one in the same process has its own."""

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
        self.queue = Gauge("freight_queue_pairs", "Pairs that wait.", registry=self._registry)
        self.active = Gauge("freight_active_requests", "In progress.", registry=self._registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if status >= 400:
            self._refusals.labels(str(status)).inc()

    def batch(self, requests: int, pairs: int) -> None:
        """A batch was scored."""
        self._batch_requests.observe(requests)
        self._batch_pairs.observe(pairs)

    def text(self) -> bytes:
        """All of it in the format that Prometheus reads."""
        return generate_latest(self._registry)

    def _histogram(
        self, name: str, about: str, buckets: Sequence[float], labels: Sequence[str] = ()
    ) -> Histogram:
        return Histogram(name, about, labels, buckets=buckets, registry=self._registry)
