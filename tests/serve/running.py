"""A service in a process of its own, as a user starts it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

COMMAND = [sys.executable, "-c", "from freight.cli import main; main()", "serve"]


@dataclass(frozen=True)
class Service:
    """The process, and where it listens."""

    process: subprocess.Popen[str]
    url: str

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """The status of an answer, and its bytes."""
        headers = {"Content-Type": "application/json", **headers}
        try:
            with urlopen(Request(self.url + path, body, headers), timeout=300) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()

    @property
    def memory(self) -> int:
        """Bytes that are in memory."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running(*options: str) -> Iterator[Service]:
    """A service on a free port, once it is ready."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    command = [*COMMAND, "--port", "0", "--threads", "1", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            found = Service(process, process.stdout.readline().split()[-1])
            deadline = time.monotonic() + 300
            while not _ready(found):
                assert process.poll() is None, "the service has ended"
                assert time.monotonic() < deadline, "the service does not become ready"
                time.sleep(0.1)
            yield found
        finally:
            process.terminate()
            process.wait(60)


def _ready(service: Service) -> bool:
    try:
        return service.ask("/health")[0] == 200
    except URLError:
        return False
