"""A service in this process, over vectors that cost nothing; and a client of it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from freight.serve.access import Access
from freight.serve.app import create_app
from freight.serve.jobs import Limits
from freight.serve.models import ServedModels, load_encoders

BASE = "http://127.0.0.1"


@contextmanager
def served(
    models: ServedModels, limits: Limits | None = None, access: Access | None = None
) -> Iterator[TestClient]:
    """A client of a service that is ready."""
    app = create_app(models, access, limits, threads=1)
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        deadline = time.monotonic() + 300
        while not app.state.worker.working:
            assert time.monotonic() < deadline, "the service does not become ready"
            time.sleep(0.01)
        yield client


@pytest.fixture(scope="session")
def light() -> ServedModels:
    return ServedModels(load_encoders(["hashed", "one-hot"], 256))


@pytest.fixture(scope="session")
def client(light: ServedModels) -> Iterator[TestClient]:
    limits = Limits(body=20_000, texts=20, characters=1000, seconds=300)
    with served(light, limits) as found:
        yield found
