"""A service in a process of its own, as a user starts it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import HTTPError
from urllib.request import Request, urlopen

COMMAND = [sys.executable, "-c", "from freight.cli import main; main()", "serve"]
PATIENCE = 1200
"""Seconds that an answer may take on a machine that does a lot besides."""


@dataclass(frozen=True)
class ServiceProcess:
    """The process, and where it listens."""

    process: subprocess.Popen[str]
    url: str

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """The status of an answer, and its bytes."""
        request = Request(self.url + path, body, {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()

    def wait_until_ready(self) -> None:
        """Wait as long as the process lives."""
        while self.ask("/health")[0] != 200:
            assert self.process.poll() is None, "the service has ended"
            time.sleep(0.1)

    @property
    def memory(self) -> int:
        """Bytes that are in memory."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def start_service(*options: str, files: int | None = None) -> Iterator[ServiceProcess]:
    """A service on a free port, once it has printed its address; it may open so many files."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    command = [*COMMAND, "--port", "0", "--threads", "1", *options]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield ServiceProcess(process, process.stdout.readline().split()[-1])
        finally:
            process.terminate()
            process.wait(PATIENCE)
