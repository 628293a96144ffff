"""Small runs into a folder, and processes that do them and can be killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import freight
import freight.core.pipeline
from freight.data import Corpus
from freight.run import Run, local

WORDS = ["the", "a", "cat", "dog", "king", "sat", "ran", "on", "under", "mat", "red", "old", "new"]
SHARD = 10


def rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Ten systems an input, one to three references, and now and then a text that is empty."""
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 9)))

    refs = [[text() for _ in range(1 + k % 3)] for k in range(-(-count // 10))]
    return [{"hyp": text() if k % 37 else "", "refs": refs[k // 10]} for k in range(count)]


def write_input(folder: Path, count: int, seed: int = 0) -> Path:
    path = folder / "input.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(count, seed)))
    return path


def metrics(cache: str | None = None) -> list[Any]:
    """One that learns from the input, and one whose system score is no mean."""
    encoder = freight.encoder("hashed", dim=16)
    chosen = freight.with_cache(encoder, cache) if cache else encoder
    return [freight.load("yisi-1", encoder=chosen), freight.load("bleu")]


def score(path: Path, output: Path, cache: str | None = None, **options: Any) -> Run:
    chosen = options.pop("metrics", None) or metrics(cache)
    with Corpus(str(path)) as corpus:
        return local(chosen, corpus, output, **{"shard": SHARD, "threads": 1, **options})


class Failing:
    """A metric that cannot score."""

    def __init__(self, error: Exception) -> None:
        self._inner: Any = freight.load("chrf")
        self.error = error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def read(self, *_: Any) -> Any:
        raise self.error


class InSmallChunks:
    """A metric that, wherever it is sent to, has texts scored a few at a time, and not too fast.

    So many of the processes that it is in kill themselves half-way; `notes` is where that is noted.
    """

    def __init__(self, inner: Any, notes: Path = Path(), deaths: int = 0) -> None:
        self.inner, self.notes, self.deaths, self.reads = inner, notes, deaths, 0

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        freight.core.pipeline.PAIRS = 8

    def read(self, *given: Any) -> Any:
        time.sleep(0.05)
        self.reads += 1
        for death in range(self.deaths if self.reads == 5 else 0):
            with suppress(FileExistsError):
                (self.notes / f"death-{death}").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return self.inner.read(*given)


def in_small_chunks(**options: Any) -> list[Any]:
    yisi, bleu = metrics()
    return [yisi, InSmallChunks(bleu, **options)]


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a run, but for the lock."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


# Importing takes longer than a run, so one process imports, and forks for each run. It must not
# have run a parallel kernel itself.
PARENT = """
import json, os, sys
import freight.core.pipeline
from runs import *
freight.core.pipeline.PAIRS = 8  # so that shards are finished one by one
print("ready", flush=True)
for line in sys.stdin:
    path, output, cache, options = json.loads(line)
    child = os.fork()
    if child == 0:
        try:
            score(Path(path), Path(output), cache, **options)
            os._exit(0)
        except BaseException as error:
            print(error, file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Forker:
    """Runs, each a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        assert self._line() == "ready"

    def start(self, path: Path, output: Path, cache: str | None, **options: Any) -> int:
        """Begin a run, and say by which number it can be killed."""
        assert self._process.stdin
        order = [str(path), str(output), cache, {"resume": True, **options}]
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def status(self) -> int:
        """How the run ended, once it has."""
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


@contextmanager
def forking() -> Iterator[Forker]:
    """A process that forks for every run; it does not outlive the test."""
    paths = [str(Path(__file__).parent), *sys.path]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Forker(process)
        finally:
            process.kill()
