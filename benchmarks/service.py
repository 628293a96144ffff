"""Many small clients against one large batch: the service beside local scoring, in one run.

    python benchmarks/service.py [--metric freight] [--pairs 640] [--clients 64] [--threads 2]

A service of one process runs beside this one, and remembers no text. It is held against local
scoring as it is, and in encoder batches as small as the service's own, which are faster on some
machines. Rounds are interleaved, and the best of each counts, since the machine is shared; clients
take their share of it too. Then four times as many clients ask a service with a short queue: those
who find it full are sent away.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from rich.console import Console
from rich.table import Table

import freight
from text import real_pairs

COMMAND = "from freight.cli import main; main()"


class Round(NamedTuple):
    """What a crowd of clients saw: seconds in all, seconds a request, and how many were refused."""

    seconds: float
    waits: list[float]
    refused: int
    faults: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--metric", default="freight")
    parser.add_argument("--pairs", type=int, default=640)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=int, default=256)
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("benchmarks/results/service.json")
    )
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    results = measure(arguments)
    show(results)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=1))


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    hyps, refs = real_pairs(arguments.pairs)
    small = freight.encoder("embedded", budget=arguments.budget)
    metrics = [freight.load(arguments.metric), freight.load(arguments.metric, encoder=small)]
    bodies = [request(arguments.metric, h, r) for h, r in zip(hyps, refs, strict=True)]
    sizes = ["--threads", str(arguments.threads), "--budget", str(arguments.budget)]
    options = [*sizes, "--memory", "1"]
    rounds: list[Round] = []
    local: list[list[float]] = [[], []]
    with service(*options) as port:
        asyncio.run(crowd(port, bodies[:128], arguments.clients))
        for metric in metrics:
            metric.score(hyps[:64], refs[:64])
        for _ in range(arguments.rounds):
            for metric, seconds in zip(metrics, local, strict=True):
                start = time.perf_counter()
                metric.score(hyps, refs)
                seconds.append(time.perf_counter() - start)
            rounds.append(asyncio.run(crowd(port, bodies, arguments.clients)))
        alone = asyncio.run(crowd(port, bodies[:32], 1))
    with service(*options, "--queue", str(arguments.clients)) as port:
        asyncio.run(crowd(port, bodies[:64], arguments.clients))
        flood = asyncio.run(crowd(port, bodies * 4, 4 * arguments.clients))
    best = min(rounds, key=lambda one: one.seconds)
    return {
        "local pairs a second": len(hyps) / min(local[0]),
        "local pairs a second, small batches": len(hyps) / min(local[1]),
        "service pairs a second": len(hyps) / best.seconds,
        "ratio": min(local[0]) / best.seconds,
        "ratio, small batches": min(local[1]) / best.seconds,
        "p50 ms": 1e3 * float(np.quantile(best.waits, 0.5)),
        "p99 ms": 1e3 * float(np.quantile(best.waits, 0.99)),
        "alone p50 ms": 1e3 * float(np.quantile(alone.waits, 0.5)),
        "overload p50 ms": 1e3 * float(np.quantile(flood.waits, 0.5)),
        "overload p99 ms": 1e3 * float(np.quantile(flood.waits, 0.99)),
        "overload answered": len(flood.waits),
        "overload sent away (429)": flood.refused,
        "other errors": sum(one.faults for one in (*rounds, alone, flood)),
    }


@contextmanager
def service(*options: str) -> Iterator[int]:
    """A service on a free port, once it is ready; its port."""
    command = [sys.executable, "-c", COMMAND, "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        while not _ready(port):
            time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        process.wait()


def _ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health") as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


def request(metric: str, hyp: str, ref: str) -> bytes:
    body = json.dumps({"pairs": [{"hyp": hyp, "refs": [ref]}], "metrics": [{"name": metric}]})
    head = "POST /api/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode("ascii")


async def crowd(port: int, bodies: list[bytes], clients: int) -> Round:
    """Clients that send one pair after another, each waiting for its answer."""
    todo, waits, statuses = iter(bodies), [], []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body in todo:
            start = time.perf_counter()
            writer.write(body)
            status = await _answered(reader)
            statuses.append(status)
            if status == 200:
                waits.append(time.perf_counter() - start)
            else:
                await asyncio.sleep(0.1)
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    took = time.perf_counter() - start
    refused = statuses.count(429)
    return Round(took, waits, refused, len(statuses) - refused - len(waits))


async def _answered(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = next(x for x in head.split("\r\n") if x.lower().startswith("content-length"))
    await reader.readexactly(int(length.split(":")[1]))
    return int(head.split(" ", 2)[1])


def show(results: dict[str, float]) -> None:
    table = Table("what", "how much", title="One pair a request")
    for name, value in results.items():
        table.add_row(name, f"{value:,.2f}" if name.startswith("ratio") else f"{value:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
