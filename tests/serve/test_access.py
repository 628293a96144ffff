"""Who may ask, from where, how much and how many at once."""

import contextlib
import hmac
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

import freight
from freight.serve import worker as worker_module
from freight.serve.access import TOKEN, Access, access_for, is_loopback
from freight.serve.app import create_app
from freight.serve.models import ServedModels
from freight.serve.refusals import Limits
from serve.conftest import SECRET, Gate, open_client, open_server

BODY = {"pairs": [{"hyp": "a cat", "refs": ["a dog"]}], "metrics": [{"name": "emd"}]}


@pytest.fixture(scope="module")
def closed(few: ServedModels) -> Iterator[TestClient]:
    """A service that asks for a token."""
    with open_client(few, Limits(seconds=300), Access(token=SECRET)) as client:
        yield client


@pytest.fixture(scope="module")
def exposed(few: ServedModels) -> TestClient:
    """A service that other machines reach by any name; nothing is scored."""
    app = create_app(few, Access((), SECRET))
    return TestClient(app, raise_server_exceptions=False)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "",
        "[::1",
        "[::1].evil.example",
        "[::2]:8000",
        "evil.example@127.0.0.1",
        "127.0.0.1/evil.example",
        "127.0.0.1 evil.example",
        "127.0.0.1:80:80",
        "127.0.0.1:",
        "127.0.0.1:800000",
        "user@127.0.0.1",
        "user:word@127.0.0.1:8000",
    ],
)
def test_other_names_of_this_machine_are_refused(client: TestClient, host: str) -> None:
    """A page whose name was bound to this machine's address sends its own name."""
    answer = client.get("/api/metrics", headers={"Host": host})
    assert answer.status_code == 421
    assert "--allow-host" in answer.json()["error"]


@pytest.mark.parametrize("host", ["user@evil.example", "@evil.example", "evil.example/x", ""])
def test_a_malformed_host_is_refused_where_any_name_is_answered_to(
    exposed: TestClient, host: str
) -> None:
    assert exposed.get("/health?check=live", headers={"Host": "evil.example"}).status_code == 200
    assert exposed.get("/health?check=live", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:1", "[::1]:8000", "LOCALHOST"])
def test_this_machines_own_names_are_not(client: TestClient, host: str) -> None:
    assert client.get("/api/encoders", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("https://evil.example", "127.0.0.1", 403),
        ("null", "127.0.0.1", 403),
        ("http://[", "127.0.0.1", 403),
        ("http://127.0.0.1.evil.example", "127.0.0.1", 403),
        ("http://127.0.0.1@evil.example", "127.0.0.1", 403),
        ("http://user@127.0.0.1", "127.0.0.1", 403),
        ("", "127.0.0.1", 403),
        ("http://127.0.0.1:9000", "127.0.0.1:8000", 403),
        ("http://127.0.0.1:9000", "127.0.0.1", 403),
        ("http://127.0.0.1", "127.0.0.1:8000", 403),
        ("https://127.0.0.1", "127.0.0.1:80", 403),
        ("http://localhost:8000", "127.0.0.1:8000", 403),
        ("ftp://127.0.0.1", "127.0.0.1", 403),
        ("//127.0.0.1", "127.0.0.1", 403),
        ("http://127.0.0.1/page", "127.0.0.1", 403),
        ("http://127.0.0.1", "127.0.0.1", 200),
        ("http://127.0.0.1", "127.0.0.1:80", 200),
        ("https://LOCALHOST", "localhost", 200),
        ("http://localhost:8000", "localhost:8000", 200),
        ("http://[::1]:8000", "[::1]:8000", 200),
    ],
)
def test_pages_of_other_sites_may_not_ask(
    client: TestClient, origin: str, host: str, status: int
) -> None:
    headers = {"Origin": origin, "Host": host}
    answer = client.post("/api/score", json=BODY, headers=headers)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


def test_of_several_origins_every_one_counts(client: TestClient) -> None:
    headers = [(b"Origin", b"http://127.0.0.1"), (b"Origin", b"http://evil.example")]
    assert client.get("/api/encoders", headers=headers).status_code == 403


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
        headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
        for path in ("/api/metrics", "/metrics"):
            answer = closed.get(path, headers=headers)
            assert answer.status_code == 401, header
            assert answer.headers["www-authenticate"] == "Bearer"
        assert closed.post("/api/score", json=BODY, headers=headers).status_code == 401
    right = {"Authorization": f"Bearer {SECRET}"}
    assert closed.post("/api/score", json=BODY, headers=right).status_code == 200
    for path in ("/", "/health", "/docs", "/explorer.js"):
        assert closed.get(path).status_code == 200


def test_the_token_is_asked_for_before_the_body_is_read(closed: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    for body in (b"{", b"x" * 2**21):
        assert closed.post("/api/score", content=body, headers=headers).status_code == 401
    assert closed.get("/api/nothing").status_code == 401


def test_tokens_are_compared_in_constant_time(
    closed: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, right: bytes) -> bool:
        compared.append((given, right))
        return given == right

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for token in (SECRET, "x" * len(SECRET)):
        closed.get("/api/encoders", headers={"Authorization": f"Bearer {token}"})
    assert compared == [(given, SECRET.encode()) for given in (SECRET.encode(), b"x" * len(SECRET))]


def test_the_schema_tells_whether_there_is_a_token(client: TestClient, closed: TestClient) -> None:
    schema = closed.get("/openapi.json").json()
    assert schema["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert schema["paths"]["/api/score"]["post"]["security"] == [{"HTTPBearer": []}]
    assert "securitySchemes" not in client.get("/openapi.json").json()["components"]


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


@pytest.mark.parametrize(
    ("path", "most", "flag"),
    [("/api/score", 20_000, "--body"), ("/api/file", 250_000, "--file")],
)
def test_a_large_body_is_refused_by_what_it_says_and_by_what_it_is(
    client: TestClient, path: str, most: int, flag: str
) -> None:
    asked = client.post(path, content=b"x" * (most + 1))
    assert asked.status_code == 413
    assert flag in asked.json()["error"]
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b"x" * 1000

    assert client.post(path, content=pieces()).status_code == 413


def test_too_many_at_once(few: ServedModels, scoring_gate: Gate) -> None:
    with open_client(few, Limits(concurrency=1, seconds=600)) as client:
        statuses: list[int] = []

        def ask() -> None:
            statuses.append(client.post("/api/score", json=BODY).status_code)

        first = threading.Thread(target=ask)
        first.start()
        assert scoring_gate.entered.wait(600)
        answer = client.post("/api/score", json=BODY)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        assert client.get("/health").status_code == 200
        scoring_gate.opened.set()
        first.join()
        assert statuses == [200]


TABLE = b"hyp\tref\n" + b"a cat\ta dog\n" * 400


def counted(client: Any, name: str) -> float:
    """What a counter of the service says."""
    text = client.get("/metrics").text
    return float(re.search(rf"^{name} ([\d.]+)", text, re.MULTILINE)[1])  # type: ignore[index]


@pytest.mark.parametrize("output", ["progress", "json"])
def test_a_file_that_nobody_waits_for_is_not_scored_to_the_end(
    few: ServedModels, scoring_gate: Gate, output: str
) -> None:
    with open_server(few, Limits(seconds=300)) as address:
        host, port = address.removeprefix("http://").split(":")
        head = (
            f"POST /api/file?name=x.tsv&metric=emd&output={output} HTTP/1.1\r\nHost: {host}:{port}"
        )
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"{head}\r\nContent-Length: {len(TABLE)}\r\n\r\n".encode() + TABLE)
            assert scoring_gate.entered.wait(600)
        with httpx.Client(base_url=address, timeout=600) as client:
            if output == "progress":  # noticed at once, otherwise after a part
                while counted(client, "freight_active_requests") > 1:
                    time.sleep(0.01)
            scoring_gate.opened.set()
            while counted(client, "freight_active_requests") > 1:
                time.sleep(0.01)
            while counted(client, "freight_queue_pairs") > 0:
                time.sleep(0.01)
            assert counted(client, "freight_pairs_scored_total") < 200


def test_few_files_at_once_and_small_requests_between_them(
    few: ServedModels, scoring_gate: Gate
) -> None:
    options = {"name": "x.tsv", "metric": "emd"}
    statuses: list[int] = []

    def upload(address: str) -> None:
        answer = httpx.post(f"{address}/api/file", params=options, content=TABLE, timeout=600)
        statuses.append(answer.status_code)

    with open_server(few, Limits(seconds=300, queue=100_000)) as address:
        clients = [threading.Thread(target=upload, args=(address,)) for _ in range(8)]
        for thread in clients:
            thread.start()
        with httpx.Client(base_url=address, timeout=600) as client:
            while counted(client, "freight_active_requests") < 9:
                time.sleep(0.01)
            refused = client.post("/api/file", params=options, content=TABLE)
            assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
            assert "8 files are being scored" in refused.json()["error"]
            with ThreadPoolExecutor() as pool:
                small = pool.submit(client.post, "/api/score", json=BODY)
                while counted(client, "freight_active_requests") < 10:
                    time.sleep(0.01)
                scoring_gate.let_through(2)  # what was begun before it came, and one more
                assert small.result().status_code == 200
            assert statuses == []  # it did not have to wait for the files
            scoring_gate.opened.set()
        for thread in clients:
            thread.join()
    assert statuses == [200] * 8


def test_what_takes_too_long_is_given_up(few: ServedModels, expiring: Gate) -> None:
    with open_client(few, Limits(seconds=300)) as client:
        answer = client.post("/api/score", json=BODY)
        expiring.opened.set()
    assert answer.status_code == 504
    assert "300 seconds" in answer.json()["error"]


def test_a_body_that_does_not_arrive_is_given_up(few: ServedModels) -> None:
    with (
        open_server(few, Limits(seconds=0.1)) as address,
        socket.create_connection(("127.0.0.1", int(address.rsplit(":", 1)[1]))) as connection,
    ):
        connection.sendall(
            b"POST /api/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 408")


def connect(address: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", int(address.rsplit(":", 1)[1])))
    connection.settimeout(600)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Wait until the service closes a connection; false if it has not for very long."""
    try:
        while connection.recv(2**16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def send_on(connection: socket.socket, *several: bytes) -> None:
    """Send one after the other, slowly; an error as soon as the connection is closed."""
    for one in several:
        connection.sendall(one)
        time.sleep(0.01)


def answered(address: str) -> socket.socket:
    """A connection on which one request has been answered, however slow this machine is."""
    while True:
        connection = connect(address)
        with contextlib.suppress(OSError):
            connection.sendall(WHOLE)
            if connection.recv(2**16).startswith(b"HTTP/1.1 200"):
                return connection
        connection.close()


HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
WHOLE = b"GET /health?check=live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def test_headers_that_do_not_arrive_close_the_connection(few: ServedModels) -> None:
    """Neither a first request, nor a later one, nor one of which a byte comes now and then."""
    with open_server(few, Limits(seconds=300), request_seconds=0.1) as address:
        with connect(address) as silent, connect(address) as first, answered(address) as later:
            with contextlib.suppress(OSError):
                first.sendall(HALF)
                later.sendall(HALF)
            assert [is_closed(one) for one in (silent, first, later)] == [True] * 3
        with connect(address) as slow, pytest.raises(ConnectionError):
            send_on(slow, HALF, *[b"x"] * 60_000)


def test_idle_connections_keep_nobody_out(few: ServedModels) -> None:
    """Four for each request at once; of more, the one that has waited longest is closed."""
    with (
        open_server(few, Limits(seconds=300, concurrency=1)) as address,
        contextlib.ExitStack() as all_,
    ):
        idle = []
        for _ in range(4):
            idle.append(all_.enter_context(connect(address)))
            idle[-1].sendall(HALF)
        for closed in idle[:3]:
            asked = all_.enter_context(connect(address))
            asked.sendall(WHOLE)
            assert asked.recv(2**16).startswith(b"HTTP/1.1 200")
            assert is_closed(closed)
        idle[3].sendall(b"x\r\n\r\n")
        assert idle[3].recv(2**16).startswith(b"HTTP/1.1 200")


def test_an_answer_that_nobody_reads_is_given_up(few: ServedModels) -> None:
    """The connection is closed although bytes are left to be sent."""
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with open_server(few, Limits(seconds=300), request_seconds=0.1) as address:
        connection = connect(address)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        with connection, pytest.raises(ConnectionError):
            send_on(connection, *[asked] * 60_000)


def test_an_internal_error_tells_nothing(
    few: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("the secret is 42")

    with open_client(few, Limits(seconds=300)) as client:
        monkeypatch.setattr(worker_module, "score_pieces", fail)
        answer = client.post("/api/score", json=BODY)
    assert answer.status_code == 500
    assert answer.json() == {"error": "something went wrong here; it has been logged"}
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_other_addresses_take_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    for host in ("0.0.0.0", "::", "192.168.1.4", "example.org"):
        with pytest.raises(freight.InvalidInput, match="takes a token"):
            access_for(host, None)
        assert access_for(host, SECRET).token == SECRET
        with pytest.raises(freight.InvalidInput, match="shorter than 16"):
            access_for(host, "short")
    assert access_for("127.0.0.1", None).token is None
    assert access_for("127.0.0.1", None, ["scores.example"]).hosts[-1] == "scores.example"
    monkeypatch.setenv(TOKEN, SECRET)
    assert access_for("0.0.0.0", None) == Access((), SECRET)
    assert SECRET not in repr(access_for("0.0.0.0", None))


def test_loopback() -> None:
    assert [is_loopback(h) for h in ("127.0.0.1", "127.8.0.1", "::1", "localhost")] == [True] * 4
    assert not any(is_loopback(h) for h in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""))
