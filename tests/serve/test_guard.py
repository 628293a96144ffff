"""Who may ask, from where, how much and how many at once."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

import freight
from freight.serve import worker as working
from freight.serve.access import Access, is_loopback
from freight.serve.app import TOKEN, access
from freight.serve.jobs import Limits
from freight.serve.models import ServedModels
from serve.conftest import served

BODY = {"pairs": [{"hyp": "a cat", "refs": ["a dog"]}], "metrics": [{"name": "emd"}]}
SECRET = "a-token-of-enough-characters"


@pytest.fixture(scope="module")
def closed(light: ServedModels) -> Iterator[TestClient]:
    with served(light, access=Access(token=SECRET)) as client:
        yield client


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""]
)
def test_other_names_of_this_machine_are_refused(client: TestClient, host: str) -> None:
    """A page whose name was bound to this machine's address sends its own name."""
    assert client.get("/api/metrics", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:1", "[::1]:8000", "LOCALHOST"])
def test_this_machines_own_names_are_not(client: TestClient, host: str) -> None:
    assert client.get("/api/encoders", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        ("http://127.0.0.1", 200),
        ("http://localhost:8000", 200),
    ],
)
def test_pages_of_other_sites_may_not_ask(client: TestClient, origin: str, status: int) -> None:
    answer = client.post("/api/score", json=BODY, headers={"Origin": origin})
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


def test_the_token(closed: TestClient) -> None:
    for header in (
        None,
        "",
        SECRET,
        f"Basic {SECRET}",
        f"Bearer {SECRET}x",
        "Bearer",
        "Bearer \xe9",
    ):
        headers = {} if header is None else {"Authorization": header.encode("latin-1")}
        for path in ("/api/metrics", "/metrics"):
            answer = closed.get(path, headers=headers)
            assert answer.status_code == 401, header
            assert answer.headers["www-authenticate"] == "Bearer"
        assert closed.post("/api/score", json=BODY, headers=headers).status_code == 401
    right = {"Authorization": f"Bearer {SECRET}"}
    assert closed.post("/api/score", json=BODY, headers=right).status_code == 200
    for path in ("/", "/health", "/docs", "/explorer.js"):
        assert closed.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/metrics", "/docs", "/health", "/nothing", "/metrics"])
def test_headers_of_every_answer(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_a_large_body_is_refused_by_what_it_says_and_by_what_it_is(client: TestClient) -> None:
    asked = client.post("/api/file", content=b"x" * 20_001)
    assert asked.status_code == 413
    assert "--body" in asked.json()["error"]
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b"x" * 1000

    assert client.post("/api/file", content=pieces()).status_code == 413


def test_too_many_at_once(light: ServedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    go, begun = threading.Event(), threading.Event()
    honest = working.score_together

    def held(*given: Any) -> Any:
        begun.set()
        go.wait(30)
        return honest(*given)

    limits = Limits(concurrency=1)
    with served(light, limits) as client:
        monkeypatch.setattr(working, "score_together", held)
        statuses: list[int] = []

        def ask() -> None:
            statuses.append(client.post("/api/score", json=BODY).status_code)

        first = threading.Thread(target=ask)
        first.start()
        assert begun.wait(30)
        answer = client.post("/api/score", json=BODY)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        assert client.get("/health").status_code == 200
        go.set()
        first.join()
        assert statuses == [200]


def test_what_takes_too_long_is_given_up(
    light: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    honest = working.score_together

    def held(*given: Any) -> Any:
        go.wait(30)
        return honest(*given)

    with served(light, Limits(seconds=0.3)) as client:
        monkeypatch.setattr(working, "score_together", held)
        answer = client.post("/api/score", json=BODY)
        go.set()
    assert answer.status_code == 504
    assert "0.3 seconds" in answer.json()["error"]


def test_a_fault_of_ours_tells_nothing(
    light: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any) -> Any:
        raise RuntimeError("the secret is 42")

    with served(light) as client:
        monkeypatch.setattr(working, "score_together", broken)
        answer = client.post("/api/score", json=BODY)
    assert answer.status_code == 500
    assert answer.json() == {"error": "something went wrong here; it has been logged"}
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_other_addresses_take_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    for host in ("0.0.0.0", "::", "192.168.1.4", "example.org"):
        with pytest.raises(freight.InvalidInput, match="takes a token"):
            access(host, None)
        assert access(host, SECRET).token == SECRET
        with pytest.raises(freight.InvalidInput, match="shorter than 16"):
            access(host, "short")
    assert access("127.0.0.1", None).token is None
    assert access("127.0.0.1", None, ["scores.example"]).hosts[-1] == "scores.example"
    monkeypatch.setenv(TOKEN, SECRET)
    assert access("0.0.0.0", None) == Access((), SECRET)
    assert SECRET not in repr(access("0.0.0.0", None))


def test_loopback() -> None:
    assert [is_loopback(h) for h in ("127.0.0.1", "127.8.0.1", "::1", "localhost")] == [True] * 4
    assert not any(is_loopback(h) for h in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""))
