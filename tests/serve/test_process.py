"""A service as a process: it starts, answers, refuses to be exposed, and stops once it is done."""

import json
import re
import signal
import socket
import subprocess
import threading
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import freight
from freight.serve.app import TOKEN
from serve.running import COMMAND, Service, running

PAIRS = [{"hyp": f"the cat number {k}", "refs": [f"a dog, its number {k}"]} for k in range(200)]


def asked(name: str, pairs: int) -> bytes:
    return json.dumps({"pairs": PAIRS[:pairs], "metrics": [{"name": name}]}).encode()


def test_it_answers_and_stops_once_what_is_in_flight_is_answered() -> None:
    answers: list[tuple[int, bytes]] = []
    with running("--encoder", "hashed", "--queue", "5000") as service:
        status, body = service.ask("/api/score", asked("emd", 1))
        assert status == 200
        local = freight.load("emd", encoder="hashed")
        expected = local.score([PAIRS[0]["hyp"]], [PAIRS[0]["refs"]])["transport"].tolist()
        assert json.loads(body)["metrics"][0]["scores"]["transport"] == expected
        asking = [
            threading.Thread(target=lambda: answers.append(service.ask("/api/score", slow_body())))
            for _ in range(4)
        ]
        for thread in asking:
            thread.start()
        wait_until_busy(service)
        service.process.send_signal(signal.SIGTERM)
        for thread in asking:
            thread.join()
        service.process.wait(60)
        with pytest.raises(URLError):
            service.ask("/health")
    assert [status for status, _ in answers] == [200] * 4
    assert all(len(json.loads(b)["metrics"][0]["references"]) == 200 for _, b in answers)


def test_the_address_takes_questions_as_soon_as_it_is_said() -> None:
    command = [*COMMAND, "--port", "0", "--encoder", "hashed"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            with urlopen(address, timeout=300) as page:
                assert b"<html" in page.read()
        finally:
            process.terminate()


def slow_body() -> bytes:
    pairs = [{"hyp": pair["hyp"] * 10, "refs": [pair["refs"][0] * 10]} for pair in PAIRS]
    return json.dumps({"pairs": pairs, "metrics": [{"name": "ter"}]}).encode()


def wait_until_busy(service: Service) -> None:
    deadline = time.monotonic() + 60
    while True:
        _, body = service.ask("/metrics")
        found = re.search(rb"^freight_active_requests (\d+)", body, re.MULTILINE)
        if found and int(found[1]) >= 5:
            return
        assert time.monotonic() < deadline
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
    options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [*COMMAND, "--encoder", "hashed", "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert re.search(f"cannot listen on 127.0.0.1 port {port}.*--port", done.stderr)
