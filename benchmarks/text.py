"""From text to score beside the bert-score package: same encoder, layer and pairs, one process.

    python benchmarks/text.py [--pairs 2000] [--rounds 3] [--threads 2] [-o results.json]

Pairs are WMT15's to-English ones, looked for in $FREIGHT_DATA (by default ../shared); the bundled
example, repeated with numbers so that no two are equal, stands in where they are absent. Rounds are
interleaved and the best of each counts, since the machine is shared. What bfloat16 gains is shown
with how well its scores agree with float32's in rank.
"""

import argparse
import gzip
import json
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import bert_score
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

import freight
from freight.encoders import packaged_folder

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
Pairs = tuple[list[str], list[str]]
OURS = ("bert-score", "emd", "lazy-emd", "bary-score")
HALVED = OURS[:3]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/text.json"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    freight.set_threads(arguments.threads)
    hyps, refs = real_pairs(arguments.pairs)
    seconds = best_times(contestants(hyps, refs), arguments.rounds)
    show(len(hyps), seconds)
    agreement(hyps, refs)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"pairs": len(hyps), "seconds": seconds}, indent=1))


def real_pairs(count: int) -> Pairs:
    path = DATA / "data/wmt15-da.jsonl.gz"
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            rows = [json.loads(line) for line in stream]
        chosen = [row for row in rows if row["lang_pair"].endswith("-en")][:count]
        return [row["hyp"] for row in chosen], [row["refs"][0] for row in chosen]
    sides = [Path(f"examples/{side}.txt").read_text().splitlines() for side in ("hyp", "ref")]
    hyps, refs = ([f"{side[k % len(side)]} {k}" for k in range(count)] for side in sides)
    return hyps, refs


def contestants(hyps: list[str], refs: list[str]) -> dict[str, Callable[[], object]]:
    metrics: dict[str, Any] = {name: freight.load(name) for name in OURS}
    encoder = metrics["emd"].encoder
    texts = list(dict.fromkeys([*hyps, *refs]))
    several = list(metrics["bary-score"].layers)
    package = bert_score.BERTScorer(model_type=str(packaged_folder("embedded")), num_layers=4)
    halved = {name: freight.load(name, encoder=in_halves()) for name in HALVED}
    return {
        "bert-score package": lambda: package.score(hyps, refs),
        **{f"freight {n}": partial(m.score, hyps, refs) for n, m in metrics.items()},
        **{f"freight {n}, bfloat16": partial(m.score, hyps, refs) for n, m in halved.items()},
        "encoder alone, layer 4": lambda: encoder.encode(texts, [4]),
        f"encoder alone, layers {several[0]}-{several[-1]}": lambda: encoder.encode(texts, several),
        "freight, all four in one pass": lambda: freight.score_together(
            list(metrics.values()), hyps, refs
        ),
    }


def in_halves() -> Any:
    return freight.encoder("embedded", dtype="bfloat16")


def agreement(hyps: list[str], refs: list[str]) -> None:
    for name in HALVED:
        both = [freight.load(name), freight.load(name, encoder=in_halves())]
        scores = [metric.score(hyps, refs)[metric.columns[0].name] for metric in both]
        print(f"{name}: Spearman {spearmanr(*scores).statistic:.5f} between bfloat16 and float32")


def best_times(them: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    for run in them.values():
        run()
    seconds: dict[str, float] = dict.fromkeys(them, float("inf"))
    for _ in range(rounds):
        for name, run in them.items():
            started = time.perf_counter()
            run()
            seconds[name] = min(seconds[name], time.perf_counter() - started)
    return seconds


def show(pairs: int, seconds: dict[str, float]) -> None:
    package, layer, layers = (
        next(s for name, s in seconds.items() if name.startswith(start))
        for start in ("bert-score package", "encoder alone, layer 4", "encoder alone, layers")
    )
    ours = seconds["freight bert-score"]
    table = Table(title=f"{pairs} pairs, the best of each")
    for name in ("what", "seconds", "over the package", "over our bert-score", "over its encoder"):
        first = name == "what"
        table.add_column(name, justify="left" if first else "right", no_wrap=first)
    for name, spent in seconds.items():
        own = layers if "bary" in name or "layers" in name or "four" in name else layer
        ratios = [f"{spent / other:.2f}" for other in (package, ours, own)]
        table.add_row(name, f"{spent:.2f}", *ratios)
    Console().print(table)


if __name__ == "__main__":
    main()
