"""Load without end: no error but 429, and no growth of memory.

A few hundred requests here; by `make soak` (FREIGHT_SOAK_SECONDS) as many as fit into ten minutes.
"""

import json
import os
import threading
import time
from collections import Counter
from typing import Any

import numpy as np

from serve.service_process import ServiceProcess, start_service

SECONDS = float(os.environ.get("FREIGHT_SOAK_SECONDS", "0"))
CLIENTS, REQUESTS = 8, 40
"""Each client sends so many requests, or as many as it can in SECONDS."""
METRICS = ["emd", "lazy-emd", "freight", "bert-score", "std", "wmd", "bleu", "chrf"]


def make_request(rng: np.random.Generator) -> tuple[str, bytes]:
    """A path and a body that nobody has sent before."""
    words = [" ".join(f"w{x}" for x in rng.integers(0, 10**6, rng.integers(1, 12))) for _ in "abc"]
    metric: dict[str, Any] = {"name": str(rng.choice(METRICS))}
    if metric["name"] == "lazy-emd":
        metric["settings"] = {"hyp": float(rng.uniform(0.1, 2))}
    pair = {"hyp": words[0], "refs": words[1:]}
    if rng.random() < 0.3 and metric["name"] not in ("bleu", "chrf"):
        path = "/api/explain" if rng.random() < 0.5 else "/api/explain/fragment"
        return path, json.dumps({**pair, "metric": metric}).encode()
    return "/api/score", json.dumps({"pairs": [pair], "metrics": [metric]}).encode()


def put_under_load(service: ServiceProcess, share: float, seed: int) -> Counter[int]:
    """How often clients that send requests without a pause get which status."""
    statuses: list[int] = []
    deadline = time.monotonic() + share * SECONDS

    def send_requests(number: int) -> None:
        rng = np.random.default_rng((seed, number))
        sent = 0
        while time.monotonic() < deadline if SECONDS else sent < share * REQUESTS:
            status, _ = service.ask(*make_request(rng))
            statuses.append(status)
            sent += 1

    threads = [threading.Thread(target=send_requests, args=(k,)) for k in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Counter(statuses)


def test_load_without_end() -> None:
    options = ["--encoder", "hashed", "--memory", "1", "--queue", "6", "--seconds", "600"]
    with start_service(*options) as service:
        service.wait_until_ready()
        statuses = put_under_load(service, 0.5, 0)
        before = service.memory
        statuses += put_under_load(service, 1.0, 1)
        after = service.memory
    assert statuses[200] > 0
    assert set(statuses) <= {200, 429}, statuses
    print(f"{dict(statuses)}, {before / 2**20:.0f} MiB, then {after / 2**20:.0f} MiB")
    assert after < 1.1 * before + 2**20 * 16
