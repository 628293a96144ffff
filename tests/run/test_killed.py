"""Runs killed with -9 at random moments, again and again, come to the bytes of an undisturbed one.

FREIGHT_KILLS says how often; the log of it all is written to FREIGHT_KILL_LOG, where that is set.
"""

import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from runs import Forker, content, forking, score, write_input

KILLS = int(os.environ.get("FREIGHT_KILLS", "10"))
COUNT = 80
WAYS = [
    {"cache": False},
    {"cache": True},
    {"cache": True, "workers": 2},
]


class Log:
    """A line for each kill: how the run was begun, when it was killed, what it left behind.

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


def finished(output: Path) -> int:
    with suppress(FileNotFoundError):
        return (output / "shards.jsonl").read_bytes().count(b"\n")
    return 0


def state(output: Path) -> dict[str, object]:
    """What a killed run left behind."""
    there = sorted(path.name for path in output.iterdir()) if output.is_dir() else []
    return {
        "shards": sum(name.endswith(".parquet") for name in there),
        "noted": finished(output),
        "parts": [name for name in there if name.endswith(".part")],
        "manifest": "manifest.json" in there,
    }


def kill_once(forker: Forker, rng: random.Random, run: list[object], log: Log) -> bool:
    """Begin a run, or go on with it, and kill it at some moment; false where it was faster."""
    path, output, cache, options = run
    assert isinstance(path, Path)
    assert isinstance(output, Path)
    assert isinstance(options, dict)
    target, delay = finished(output) + rng.choice((0, 0, 1, 2)), rng.uniform(0, 0.4)
    resumed, begun = output.is_dir(), time.monotonic()
    child = forker.start(path, output, cache if cache is None else str(cache), **options)
    while target and finished(output) < target and time.monotonic() - begun < 60:
        if os.path.exists(output / "summary.json"):
            break
        time.sleep(0.002)
    time.sleep(delay if not target else delay / 8)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    status = forker.status()
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        return False
    after = round(time.monotonic() - begun, 3)
    log.kill(resumed=resumed, **options, cache=cache is not None, after=after, **state(output))
    return True


def test_killed_runs_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    path, rng, log = write_input(tmp_path, COUNT), random.Random(0), Log()
    score(path, tmp_path / "undisturbed")
    expected = content(tmp_path / "undisturbed")
    with forking() as forker:
        case = 0
        while log.kills < KILLS:
            way = dict(WAYS[case % len(WAYS)])
            cache = tmp_path / f"cache{case % 2}" if way.pop("cache") else None
            run: list[object] = [path, tmp_path / f"out{case}", cache, way]
            for _ in range(6):
                if log.kills == KILLS or not kill_once(forker, rng, run, log):
                    break
            forker.start(path, tmp_path / f"out{case}", str(cache) if cache else None, **way)
            assert forker.status() == 0
            same = content(tmp_path / f"out{case}") == expected
            log.end(run=case, identical=same)
            assert same, log.lines[-7:]
            case += 1
    log.write()
    assert any(line.get("resumed") for line in log.lines)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to look for processes")
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    path = write_input(tmp_path, COUNT)
    with forking() as forker:
        child = forker.start(path, tmp_path / "out", None, workers=2)
        while finished(tmp_path / "out") < 1:
            time.sleep(0.01)
        workers = children(child)
        os.kill(child, signal.SIGKILL)
        assert len(workers) >= 2
        forker.status()
    until = time.monotonic() + 60
    while any(alive(worker) for worker in workers):
        assert time.monotonic() < until
        time.sleep(0.05)


def children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = status.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == parent:
                found.append(int(status.parent.name))
    return found


def alive(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False
