"""A service as a process: it starts, answers, refuses to be exposed, and stops once it is done."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.error import URLError

import pytest

import freight
from freight.cli import main
from freight.serve.access import TOKEN
from serve.service_process import COMMAND, PATIENCE, ServiceProcess, start_service

TEXTS = [(f"the cat number {k}", f"a dog, its number {k}") for k in range(200)]


def request_body(metric: str, texts: list[tuple[str, str]]) -> bytes:
    pairs = [{"hyp": hyp, "refs": [ref]} for hyp, ref in texts]
    return json.dumps({"pairs": pairs, "metrics": [{"name": metric}]}).encode()


def test_it_answers_from_its_first_line_until_what_is_in_flight_is_answered() -> None:
    answers: list[tuple[int, bytes]] = []
    slow = request_body("ter", [(hyp * 10, ref * 10) for hyp, ref in TEXTS])
    options = ["--encoder", "hashed", "--queue", "5000", "--seconds", str(PATIENCE)]
    with start_service(*options, files=256) as service, contextlib.ExitStack() as connections:
        status, page = service.ask("/")  # not yet ready, and answered at the first attempt
        assert status == 200
        assert b"<html" in page
        service.wait_until_ready()
        assert service.process.stdout is not None
        line = service.process.stdout.readline()
        assert re.fullmatch(r"Ready\. \d+ metrics; encoders: hashed\n", line)
        status, body = service.ask("/api/score", request_body("emd", TEXTS[:1]))
        assert status == 200
        [(hyp, ref)] = TEXTS[:1]
        port = int(service.url.rsplit(":", 1)[1])
        for _ in range(400):  # more than it may open files
            half = connections.enter_context(socket.create_connection(("127.0.0.1", port)))
            half.sendall(b"GET / HTTP/1.1\r\n")
        assert service.ask("/docs")[0] == 200
        expected = freight.load("emd", encoder="hashed").score([hyp], [ref])["transport"].tolist()
        assert json.loads(body)["metrics"][0]["scores"]["transport"] == expected
        clients = [
            threading.Thread(target=lambda: answers.append(service.ask("/api/score", slow)))
            for _ in range(4)
        ]
        for thread in clients:
            thread.start()
        wait_until_busy(service, requests=5)  # four, and the one that looks
        service.process.send_signal(signal.SIGTERM)
        for thread in clients:
            thread.join()
        service.process.wait(PATIENCE)
        with pytest.raises(URLError):
            service.ask("/health")
    assert [status for status, _ in answers] == [200] * 4
    assert all(len(json.loads(b)["metrics"][0]["references"]) == 200 for _, b in answers)


def wait_until_busy(service: ServiceProcess, requests: int) -> None:
    while True:
        _, body = service.ask("/metrics")
        active = re.search(rb"^freight_active_requests (\d+)", body, re.MULTILINE)
        if active and int(active[1]) >= requests:
            return
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "takes a token"),
        (["--host", "0.0.0.0", "--token", "short"], "shorter than 16 characters"),
        (["--encoder", "/nowhere"], "there is no folder /nowhere"),
        (["--encoder", "hashed", "--idf", "/nowhere"], "there is no file /nowhere"),
        (["--encoder", "hashed", "--host", "no.such.host.invalid", "--token", "x" * 16], "listen"),
    ],
)
def test_what_cannot_be_served_is_one_line(
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    monkeypatch.setattr(sys, "argv", ["freight", "serve", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [*COMMAND, "--encoder", "hashed", "--port", port]
        # A socket that is not closed would be a second line.
        said = {**os.environ, "PYTHONWARNINGS": "default::ResourceWarning"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=said)
    assert done.returncode == 1
    assert re.search(f"cannot listen on 127.0.0.1 port {port}.*--port", done.stderr)
    assert done.stderr.count("\n") == 1
