"""Load without end: no error but 429, and no growth of memory.

A few seconds here, ten minutes by `make soak` (FREIGHT_SOAK_SECONDS).
"""

import json
import os
import threading
import time
from collections import Counter

import numpy as np

from serve.running import Service, running

SECONDS = float(os.environ.get("FREIGHT_SOAK_SECONDS", "6"))
CLIENTS = 8
METRICS = ["emd", "lazy-emd", "freight", "bert-score", "std", "wmd", "bleu", "chrf"]


def body(rng: np.random.Generator) -> tuple[str, bytes]:
    """A request that nobody has sent before."""
    words = [" ".join(f"w{x}" for x in rng.integers(0, 10**6, rng.integers(1, 12))) for _ in "abc"]
    metric = {"name": str(rng.choice(METRICS))}
    if metric["name"] == "lazy-emd":
        metric["settings"] = {"hyp": float(rng.uniform(0.1, 2))}  # type: ignore[assignment]
    pair = {"hyp": words[0], "refs": words[1:]}
    if rng.random() < 0.3 and metric["name"] not in ("bleu", "chrf"):
        path = "/api/explain" if rng.random() < 0.5 else "/api/explain/fragment"
        return path, json.dumps({**pair, "metric": metric}).encode()
    return "/api/score", json.dumps({"pairs": [pair], "metrics": [metric]}).encode()


def load(service: Service, seconds: float, seed: int) -> Counter[int]:
    """What clients are answered that ask without a pause."""
    statuses: list[int] = []
    deadline = time.monotonic() + seconds

    def client(number: int) -> None:
        rng = np.random.default_rng((seed, number))
        while time.monotonic() < deadline:
            status, _ = service.ask(*body(rng))
            statuses.append(status)

    threads = [threading.Thread(target=client, args=(k,)) for k in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Counter(statuses)


def test_load_without_end() -> None:
    options = ["--encoder", "hashed", "--memory", "1", "--queue", "6"]
    with running(*options) as service:
        statuses = load(service, SECONDS / 2, 0)
        before = service.memory
        statuses += load(service, SECONDS, 1)
        after = service.memory
    assert statuses[200] > 0
    assert set(statuses) <= {200, 429}, statuses
    print(f"{dict(statuses)}, {before / 2**20:.0f} MiB, then {after / 2**20:.0f} MiB")
    assert after < 1.1 * before + 2**20 * 16
