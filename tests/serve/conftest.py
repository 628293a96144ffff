"""One set of models and one service for all tests of this folder.

Models are over vectors that cost nothing. `client` calls the application directly; `service` is the
same application behind a real HTTP server, in a thread of this process.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from freight.serve import worker as worker_module
from freight.serve.access import Access
from freight.serve.app import create_app, make_server
from freight.serve.jobs import score_pieces
from freight.serve.models import ServedModels, load_encoders
from freight.serve.refusals import Limits
from freight.serve.worker import Worker

BASE = "http://127.0.0.1"
SECRET = "a-token-of-enough-characters"
DEFAULT_LIMITS = Limits()
FEW = ("freight", "lazy-emd", "emd", "bert-score", "std", "bleu")


def wait_until_ready(worker: Worker) -> None:
    """Wait until a worker has warmed up, however long that takes; fail if it dies."""
    while not worker.warmed_up.wait(1):
        assert worker._thread.is_alive(), "the worker has ended"


@contextmanager
def open_client(
    models: ServedModels, limits: Limits | None = None, access: Access | None = None
) -> Iterator[TestClient]:
    """A client of a service that is ready."""
    app = create_app(models, access, limits, threads=1)
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        wait_until_ready(app.state.worker)
        yield client


@contextmanager
def open_server(
    models: ServedModels,
    limits: Limits = DEFAULT_LIMITS,
    access: Access | None = None,
    request_seconds: float = 600,
) -> Iterator[str]:
    """The address of a service that is ready, behind a real HTTP server."""
    app = create_app(models, access, limits, threads=1)
    with serve_app(app, limits, request_seconds) as address:
        wait_until_ready(app.state.worker)
        yield address


@contextmanager
def serve_app(app: FastAPI, limits: Limits, request_seconds: float = 600) -> Iterator[str]:
    """The address of an application behind a real HTTP server, which may not be ready yet."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = make_server(app, limits, request_seconds)
        server.config.timeout_graceful_shutdown = 5
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"{BASE}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="session")
def light() -> ServedModels:
    return ServedModels(load_encoders(["hashed", "one-hot"], 256))


@pytest.fixture(scope="session")
def few() -> ServedModels:
    """The same with few metrics, for tests that start a worker of their own."""
    models = ServedModels(load_encoders(["hashed", "one-hot"], 256))
    models.metrics = {name: models.metrics[name] for name in FEW}
    return models


@pytest.fixture(scope="session")
def client(light: ServedModels) -> Iterator[TestClient]:
    limits = Limits(body=20_000, file=250_000, rows=500, texts=20, characters=1000, seconds=300)
    with open_client(light, limits) as client:
        yield client


@pytest.fixture(scope="session")
def service(light: ServedModels) -> Iterator[str]:
    with open_server(light, Limits(characters=300, seconds=300)) as address:
        yield address


class Gate:
    """Holds calls of a function until it is opened, and tells when the first has come."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._turns = function, threading.Semaphore(0)
        self.entered, self.opened = threading.Event(), threading.Event()

    def let_through(self, calls: int) -> None:
        """Let so many calls through, and hold those after them."""
        self._turns.release(calls)

    def __call__(self, *arguments: Any) -> Any:
        self.entered.set()
        for _ in range(60_000):
            if self._turns.acquire(blocking=False) or self.opened.wait(0.01):
                return self._function(*arguments)
        raise AssertionError("nobody opened the gate")


@pytest.fixture
def scoring_gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Scoring waits until the test lets it go on."""
    gate = Gate(score_pieces)
    monkeypatch.setattr(worker_module, "score_pieces", gate)
    yield gate
    gate.opened.set()


@pytest.fixture
def expiring(scoring_gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Every deadline passes as soon as scoring has begun; the gate before scoring."""

    async def expire(_: Worker, answer: asyncio.Future[Any]) -> Any:
        await asyncio.to_thread(scoring_gate.entered.wait)
        answer.cancel()
        raise TimeoutError

    monkeypatch.setattr(Worker, "_await_answer", expire)
    return scoring_gate


@pytest.fixture
def warm_up_gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Workers warm up, and so begin to work, when the test lets them."""
    gate = Gate(Worker._warm_up)
    monkeypatch.setattr(Worker, "_warm_up", lambda self: gate(self))
    yield gate
    gate.opened.set()
