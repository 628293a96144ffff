"""Choosing among candidates: each encoded once, beside scoring their pairs by themselves.

    python benchmarks/mbr.py [--candidates 50] [--metric lazy-emd] [--timed 100] [--sources 40]

Candidates are what the systems of WMT18 made of a source in Estonian, those of the next sources too
until there are enough, out of $FREIGHT_DATA (by default ../shared). Seconds are those of the
processor, on one thread, so that others on the machine do not count. Scoring pair by pair takes
long: so many pairs are timed, and the rest reckoned; so is encoding both texts of every pair. Then
the choices among the systems' outputs of some sources are held against people's translations by
chrF.
"""

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import freight
from freight.core.types import Encoder

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candidates", type=int, default=50)
    parser.add_argument("--metric", default="lazy-emd")
    parser.add_argument("--timed", type=int, default=100)
    parser.add_argument("--sources", type=int, default=40)
    arguments = parser.parse_args()
    freight.set_threads(1)
    metric: Any = freight.load(arguments.metric)
    rows = translations()
    texts = list(dict.fromkeys(text for row in rows for text in row["outputs"].values()))
    texts = texts[: arguments.candidates]
    show(len(texts), arguments.metric, timings(metric, texts, arguments.timed))
    if arguments.sources:
        show_quality(metric, rows[: arguments.sources])


def translations() -> list[dict[str, Any]]:
    with gzip.open(DATA / "data/wmt18-systems.et-en.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def timings(metric: Any, texts: list[str], timed: int) -> dict[str, float]:
    pairs = [(hyp, ref) for hyp in texts for ref in texts]
    chosen = np.random.default_rng(0).permutation(len(pairs))[:timed]
    encoder: Encoder = metric.encoder
    metric.score(texts[:2], texts[1:3])  # compiled and loaded by now
    times = {
        "encoding every candidate once, alone": seconds(
            lambda: encoder.encode(texts, metric.layers)
        ),
        "freight.mbr": seconds(lambda: freight.mbr(texts, metric)),
        "score, a call for all pairs": seconds(
            lambda: metric.score([hyp for hyp, _ in pairs], [ref for _, ref in pairs])
        ),
        "score, a call a candidate": seconds(
            lambda: [metric.score([hyp] * len(texts), texts) for hyp in texts]
        ),
    }
    alone = seconds(lambda: [metric.score([pairs[k][0]], [pairs[k][1]]) for k in chosen])
    once = times["encoding every candidate once, alone"]
    times["encoding both texts of every pair, in full batches"] = once * 2 * len(texts)
    times["score, a call a pair"] = alone * len(pairs) / len(chosen)
    return times


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def show(count: int, name: str, times: dict[str, float]) -> None:
    table = Table("way", title=f"{count} candidates, {count**2} pairs, {name}")
    for heading in ("seconds", "times freight.mbr"):
        table.add_column(heading, justify="right")
    for way, taken in times.items():
        table.add_row(way, f"{taken:.2f}", f"{taken / times['freight.mbr']:.1f}")
    Console().print(table)


def show_quality(metric: Any, rows: list[dict[str, Any]]) -> None:
    chrf = freight.load("chrf")
    lists = [list(row["outputs"].values()) for row in rows]
    refs = [row["ref"] for row in rows]
    systems = list(rows[0]["outputs"])
    by_system = {
        name: chrf.score([row["outputs"][name] for row in rows], refs).system["score"]
        for name in systems
    }
    chosen = [choice.text for choice in freight.mbr(lists, metric)]
    best = max(by_system, key=lambda name: by_system[name])
    print(f"chrF over {len(rows)} sources, {len(systems)} systems' outputs to choose from:")
    print(f"  the choice by {metric.name}  {chrf.score(chosen, refs).system['score']:.1f}")
    print(f"  the systems' mean  {np.mean(list(by_system.values())):.1f}")
    print(f"  the best system, {best}, which only the references tell  {by_system[best]:.1f}")


if __name__ == "__main__":
    main()
