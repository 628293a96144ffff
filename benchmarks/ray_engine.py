"""The speed of a Ray cluster on this machine, compared with worker processes.

    python benchmarks/ray_engine.py [--pairs 8000] [--workers 2] [--encoder embedded] [--rounds 2]
        [-o results.json]

The time runs from the first finished shard to the last, so that starting an engine is not part of
it. The engines take turns, and the best round of each counts, since the machine may be shared.
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import ray

import freight
from freight.data import Corpus
from freight.run import local, on_ray
from text import real_pairs

ENGINES: dict[str, Any] = {"local": local, "ray": on_ray}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--encoder", default="embedded")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/ray.json"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    ray.init(num_cpus=arguments.workers, log_to_driver=False, include_dashboard=False)
    metrics = [freight.load(name, encoder=arguments.encoder) for name in ("lazy-emd", "bert-score")]
    best = dict.fromkeys(ENGINES, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = write_pairs(arguments.pairs, Path(folder))
        for k in range(arguments.rounds):
            for name in ENGINES:
                rate = measure_rate(
                    name, metrics, path, Path(folder) / f"{name}{k}", arguments.workers
                )
                print(f"{name:>6}: {rate:,.0f} pairs per second")
                best[name] = max(best[name], rate)
        check_equal(Path(folder))
    print(f"ratio {best['ray'] / best['local']:.2f}")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(best, indent=1))


def write_pairs(pairs: int, folder: Path) -> Path:
    hyps, refs = real_pairs(2000)
    path = folder / "pairs.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for k in range(pairs):
            row = {"hyp": f"{hyps[k % len(hyps)]} {k}", "ref": f"{refs[k % len(refs)]} {k}"}
            stream.write(json.dumps(row) + "\n")
    return path


def measure_rate(name: str, metrics: list[Any], path: Path, output: Path, workers: int) -> float:
    """Pairs per second, from the first finished shard to the last."""
    ends: list[tuple[float, float]] = []

    def progress(rows: float) -> None:
        if rows:
            ends.append((time.monotonic(), rows))

    with Corpus(str(path)) as corpus:
        options = {"shard": max(len(corpus) // 40, 1), "workers": workers, "threads": 1}
        ENGINES[name](metrics, corpus, output, progress=progress, **options)
    done = sum(rows for _, rows in ends[1:])
    return done / (ends[-1][0] - ends[0][0])


def check_equal(folder: Path) -> None:
    """Both engines must have written the same bytes."""
    for shard in (folder / "local0").glob("shard-*"):
        if shard.read_bytes() != (folder / "ray0" / shard.name).read_bytes():
            raise SystemExit(f"{shard.name} differs between the engines")


if __name__ == "__main__":
    main()
