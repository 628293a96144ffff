"""Small runs into a folder, scorers that fail, die or wait, and processes that can be killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any

import freight
from freight.core.pipeline import ChunkSize
from freight.core.result import Column, Result
from freight.core.scorers import PipelineScorer, Refs
from freight.data import Corpus
from freight.run import Run, local
from freight.run.journal import RunFolder

WORDS = ["the", "a", "cat", "dog", "king", "sat", "ran", "on", "under", "mat", "red", "old", "new"]
SHARD = 10
SMALL_CHUNKS = ChunkSize(pairs=8)
"""So small that the shards of a small run are finished one by one."""


def wait_for(happened: Callable[[], Any], running: "subprocess.Popen[Any] | None" = None) -> None:
    """Wait until something has happened; an end of the process before that is an error.

    The limit only keeps a broken test from waiting for ever.
    """
    until = time.monotonic() + 600
    while not happened():
        assert running is None or running.poll() is None, "the process has ended"
        assert time.monotonic() < until
        time.sleep(0.01)


def rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Ten systems per input, one to three references, and sometimes an empty text."""
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 9)))

    refs = [[text() for _ in range(1 + k % 3)] for k in range(-(-count // 10))]
    return [{"hyp": text() if k % 37 else "", "refs": refs[k // 10]} for k in range(count)]


def write_input(folder: Path, count: int, seed: int = 0) -> Path:
    path = folder / "input.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(count, seed)))
    return path


def metrics(cache: str | None = None) -> list[PipelineScorer]:
    """One that is fitted on the input, and one whose system score is no mean."""
    encoder = freight.encoder("hashed", dim=16)
    chosen = freight.with_cache(encoder, cache) if cache else encoder
    return [freight.load("yisi-1", encoder=chosen), freight.load("bleu")]


def score(path: Path, output: Path, cache: str | None = None, **options: Any) -> Run:
    chosen = options.pop("metrics", None) or metrics(cache)
    with Corpus(str(path)) as corpus:
        return local(chosen, corpus, output, **{"shard": SHARD, "threads": 1, **options})


class WrappedScorer:
    """A scorer with the scores of another, which does something before it scores."""

    def __init__(self, inner: PipelineScorer) -> None:
        self.inner, self.calls = inner, 0

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.inner.columns

    @property
    def signature(self) -> str:
        return self.inner.signature

    def system_of(self, tally: Any) -> dict[str, float]:
        scores: dict[str, float] = self.inner.system_of(tally)  # type: ignore[attr-defined]
        return scores

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        self.calls += 1
        self.before_scoring()
        return self.inner.score(hyps, refs)

    def before_scoring(self) -> None:
        raise NotImplementedError


class FailingScorer(WrappedScorer):
    """A scorer that cannot score."""

    def __init__(self, error: Exception) -> None:
        super().__init__(freight.load("chrf"))
        self.error = error

    def before_scoring(self) -> None:
        raise self.error


class DyingScorer(WrappedScorer):
    """A scorer that kills its process before the fifth chunk, in so many processes.

    Each death is noted by a file in a folder, by which processes share the number.
    """

    def __init__(self, inner: PipelineScorer, folder: Path, deaths: int) -> None:
        super().__init__(inner)
        self.folder, self.deaths = folder, deaths

    def before_scoring(self) -> None:
        for death in range(self.deaths if self.calls == 5 else 0):
            with suppress(FileExistsError):
                (self.folder / f"death-{death}").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)


class WaitingScorer(WrappedScorer):
    """A scorer that scores a few chunks and then waits until a file exists."""

    def __init__(self, inner: PipelineScorer, gate: Path, chunks: int = 6) -> None:
        super().__init__(inner)
        self.gate, self.chunks = gate, chunks

    def before_scoring(self) -> None:
        if self.calls > self.chunks:
            wait_for(self.gate.exists)


def dying_metrics(folder: Path, deaths: int) -> list[Any]:
    yisi, bleu = metrics()
    return [yisi, DyingScorer(bleu, folder, deaths)]


def waiting_metrics(gate: Path) -> list[Any]:
    yisi, bleu = metrics()
    return [yisi, WaitingScorer(bleu, gate)]


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a run, but for the lock."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def die_at_step(step: int, delay: float) -> None:
    """Kill this process at its next but `step` operation on the disk, or a moment after it."""
    done = 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def counted(operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal done
            done += 1
            if done == step + 1:
                Timer(delay, die).start() if delay else die()
            return operation(*arguments)

        return call

    for name in ("write", "fsync", "replace"):
        setattr(os, name, counted(getattr(os, name)))


def wait_after_first_shard(sign: str) -> None:
    """Let the run create a file once a shard is in its journal, and then wait for ever."""
    append = RunFolder.append_line

    def append_and_wait(self: RunFolder, name: str, line: bytes) -> None:
        append(self, name, line)
        Path(sign).touch()
        while True:
            time.sleep(0.01)

    RunFolder.append_line = append_and_wait  # type: ignore[method-assign]


# Importing takes longer than a run, so one process imports, and forks for each run.
PARENT = """
import json, os, sys
from pathlib import Path
import runs
print("ready", flush=True)
for line in sys.stdin:
    path, output, cache, prepare, arguments, options = json.loads(line)
    child = os.fork()
    if child == 0:
        try:
            if prepare:
                getattr(runs, prepare)(*arguments)
            runs.score(Path(path), Path(output), cache, chunk=runs.SMALL_CHUNKS, **options)
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

    def start(
        self,
        path: Path,
        output: Path,
        cache: Path | None = None,
        prepare: tuple[str, list[Any]] = ("", []),
        **options: Any,
    ) -> int:
        """Begin a run, or continue it, and return its process id.

        The run calls the function `prepare` of this module first.
        """
        assert self._process.stdin
        place = [str(path), str(output), str(cache) if cache else None]
        order = [*place, *prepare, {"resume": True, **options}]
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
