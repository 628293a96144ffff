"""Runs killed with -9 at random steps, again and again, come to the bytes of an undisturbed one.

FREIGHT_KILLS is the number of kills; a log of them is written to FREIGHT_KILL_LOG, where it is set.
"""

import json
import os
import random
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runs import SHARD, Forker, content, forking, score, wait_for, write_input

KILLS = int(os.environ.get("FREIGHT_KILLS", "10"))
COUNT = 80
STEPS = 40
"""Fewer than the operations on the disk of a whole run, so that the first kill always happens."""


@dataclass(frozen=True)
class Case:
    """A run that is killed: its output, its cache, and how it is done."""

    path: Path
    output: Path
    cache: Path | None
    options: dict[str, Any]


class Log:
    """A line for each kill: how the run was begun, where it was killed, what it left behind.

    After the last kill of a run a line says whether it came to the same bytes.
    """

    def __init__(self) -> None:
        self.lines: list[dict[str, object]] = []
        self.kills = 0

    def kill(self, **facts: object) -> None:
        self.kills += 1
        self.lines.append({"kill": self.kills, **facts})

    def end(self, **facts: object) -> None:
        self.lines.append(facts)

    def write(self) -> None:
        place = os.environ.get("FREIGHT_KILL_LOG")
        if place:
            path = Path(place)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))


def state(output: Path) -> dict[str, object]:
    """What a killed run left behind."""
    there = sorted(path.name for path in output.iterdir()) if output.is_dir() else []
    noted = 0
    with suppress(FileNotFoundError):
        noted = (output / "shards.jsonl").read_bytes().count(b"\n")
    return {
        "shards": sum(name.endswith(".parquet") for name in there),
        "noted": noted,
        "parts": [name for name in there if name.endswith(".part")],
        "manifest": "manifest.json" in there,
    }


def kill_once(forker: Forker, case: Case, step: int, delay: float, log: Log) -> bool:
    """Begin a run, or continue it, and have it killed; false where it ended before that."""
    resumed = case.output.is_dir()
    prepare = "die_at_step", [step, delay]
    forker.start(case.path, case.output, case.cache, prepare, **case.options)
    status = forker.status()
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        return False
    assert os.WTERMSIG(status) == signal.SIGKILL
    facts = {**case.options, "cache": case.cache is not None, "step": step, "delay": delay}
    log.kill(resumed=resumed, **facts, **state(case.output))
    return True


def test_killed_runs_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    path, rng, log = write_input(tmp_path, COUNT), random.Random(0), Log()
    score(path, tmp_path / "undisturbed")
    expected = content(tmp_path / "undisturbed")
    ways: list[tuple[bool, dict[str, Any]]] = [
        (False, {}),
        (True, {"checkpoint": 0.0, "shard": SHARD}),
        (True, {"workers": 2, "checkpoint": 0.0}),
    ]
    with forking() as forker:
        number = 0
        while log.kills < KILLS:
            cached, options = ways[number % len(ways)]
            cache = tmp_path / f"cache{number % 2}" if cached else None
            case = Case(path, tmp_path / f"out{number}", cache, options)
            assert kill_once(forker, case, 8 + rng.randrange(STEPS - 8), 0.0, log)
            for attempt in range(5):
                delay = rng.choice((0.0, rng.uniform(0, 0.05))) if attempt else 0.0
                step = rng.randrange(STEPS if attempt else 8)
                if log.kills >= KILLS or not kill_once(forker, case, step, delay, log):
                    break
            forker.start(path, case.output, cache, **options)
            assert forker.status() == 0
            same = content(case.output) == expected
            log.end(run=number, identical=same)
            assert same, log.lines[-7:]
            number += 1
    log.write()
    assert any(line.get("resumed") for line in log.lines)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to look for processes")
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    path, sign = write_input(tmp_path, COUNT), tmp_path / "a shard is there"
    with forking() as forker:
        prepare = "wait_after_first_shard", [str(sign)]
        child = forker.start(path, tmp_path / "out", prepare=prepare, workers=2)
        wait_for(sign.exists)
        workers = children(child)
        os.kill(child, signal.SIGKILL)
        assert len(workers) >= 2
        forker.status()
    wait_for(lambda: not any(is_alive(worker) for worker in workers))


def children(parent: int) -> list[int]:
    processes = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = status.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == parent:
                processes.append(int(status.parent.name))
    return processes


def is_alive(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False
