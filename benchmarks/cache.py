"""Encoding beside reading: what a cache of vectors costs when it is cold, and saves when warm.

    python benchmarks/cache.py [--texts 10000] [--sample 2000] [--full] [-o results.json]

Distinct texts, made of WMT15's (in $FREIGHT_DATA, by default ../shared) or of the bundled example's
with a number each, the embedded encoder and layer 4. The cold and the warm cache are measured on
all texts; the encoder by itself on a sample, whose time is scaled up, unless --full is given. Texts
come in chunks of 4096, as when scoring, and the cache lies in a temporary folder.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import freight
from freight.core.types import Encoder
from freight.encoders.cache.disk import DiskCached, cache_info
from text import real_pairs

LAYER = 4
CHUNK = 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=2000)
    parser.add_argument("--full", action="store_true", help="encode all texts without a cache, too")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/cache.json"))
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    texts = distinct_texts(arguments.texts)
    sample = texts if arguments.full else texts[: arguments.sample]
    results = measured(texts, sample)
    show(results)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=1))


def distinct_texts(count: int) -> list[str]:
    hyps, refs = real_pairs(count)
    real = list(dict.fromkeys([*hyps, *refs]))
    return [f"{real[k % len(real)]} {k}" for k in range(count)]


def measured(texts: list[str], sample: list[str]) -> dict[str, float]:
    plain = freight.encoder("embedded")
    plain.encode(texts[:1], [LAYER])
    encoding = seconds(plain, sample) * len(texts) / len(sample)
    with tempfile.TemporaryDirectory() as folder:
        cached = DiskCached(plain, folder)
        cold, *warm = (seconds(cached, texts) for _ in range(4))
        disk = cache_info(folder).disk
    return {
        "texts": len(texts),
        "sample": len(sample),
        "encoding": encoding,
        "cold": cold,
        "warm": min(warm),
        "warm, the first time": warm[0],
        "encoding / warm, the first time": encoding / warm[0],
        "mebibytes": disk / 2**20,
    }


def seconds(encoder: Encoder, texts: list[str]) -> float:
    started = time.perf_counter()
    for start in range(0, len(texts), CHUNK):
        encoder.encode(texts[start : start + CHUNK], [LAYER])
    return time.perf_counter() - started


def show(results: dict[str, float]) -> None:
    scaled = results["sample"] < results["texts"]
    rows = {
        "encoding"
        + (f", scaled up from {results['sample']:.0f} texts" if scaled else ""): "encoding",
        "cold cache": "cold",
        "warm cache: the first time": "warm, the first time",
        "warm cache: best of three": "warm",
    }
    title = f"{results['texts']:.0f} texts, layer {LAYER}, {results['mebibytes']:.0f} MiB on disk"
    table = Table("what", title=title)
    for name in ("seconds", "texts a second", "of encoding"):
        table.add_column(name, justify="right")
    for name, key in rows.items():
        spent = results[key]
        ratio = spent / results["encoding"]
        table.add_row(name, f"{spent:.2f}", f"{results['texts'] / spent:.0f}", f"{ratio:.3f}")
    Console().print(table)
    times = results["encoding / warm, the first time"]
    print(f"a warm cache is {times:.0f} times as fast as encoding, when it is first read")


if __name__ == "__main__":
    main()
