"""The memory of `freight score` by the size of the corpus, on which it should not depend.

    python benchmarks/memory.py [--small 10000] [--large 100000] [--encoder embedded]
        [-o results.json] [--figure memory.svg]

Each run is a process of its own and scores a Parquet file of distinct hypotheses, ten for each
reference, into a folder of shards. The texts are those of WMT15 to English in $FREIGHT_DATA (by
default ../shared) or of the bundled example. The memory is read five times per second.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
from pyarrow import parquet

from text import real_pairs

METRICS = ("lazy-emd", "yisi-1")
SYSTEMS = 10
PAUSE = 0.2


class MemoryCurve(NamedTuple):
    """The peak in bytes, and the bytes at each time in seconds."""

    peak: int
    curve: list[tuple[float, int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--encoder", default="embedded")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/memory.json"))
    parser.add_argument("--figure", type=Path, default=Path("benchmarks/results/memory.svg"))
    arguments = parser.parse_args()
    measure_run(100, arguments.encoder)  # loads what the first run needs
    runs = {n: measure_run(n, arguments.encoder) for n in (arguments.small, arguments.large)}
    for pairs, run in runs.items():
        print(f"{pairs:>9,} pairs: {run.peak / 2**20:,.0f} MiB at the peak")
    print(f"ratio {runs[arguments.large].peak / runs[arguments.small].peak:.2f}")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({n: run._asdict() for n, run in runs.items()}))
    draw(runs, arguments.encoder, arguments.figure)


def measure_run(pairs: int, encoder: str) -> MemoryCurve:
    """The memory of a run over this many pairs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.parquet"
        write_pairs(pairs, path)
        names = [part for name in METRICS for part in ("-m", name)]
        command = [sys.executable, "-c", "from freight.cli import main; main()", "score", str(path)]
        options = ["--encoder", encoder, "--threads", "1", "-o", f"{folder}/out/"]
        process = subprocess.Popen([*command, *names, *options], stdout=subprocess.DEVNULL)
        begun, curve = time.monotonic(), []
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            curve.append((time.monotonic() - begun, resident_bytes(process.pid)))
            time.sleep(PAUSE)
        if ended[1]:
            raise SystemExit(f"the run over {pairs} pairs failed")
        return MemoryCurve(_peak_bytes(ended[2]), curve)


def write_pairs(pairs: int, path: Path) -> None:
    """Distinct hypotheses, ten in a row with the same reference, all in one row group."""
    hyps, refs = real_pairs(2000)
    count = len(hyps)
    table = {
        "hyp": [f"{hyps[k % count]} {k}" for k in range(pairs)],
        "ref": [f"{refs[k // SYSTEMS % count]} {k // SYSTEMS}" for k in range(pairs)],
    }
    parquet.write_table(pyarrow.table(table), path)


def resident_bytes(process: int) -> int:
    """The resident memory of a process; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * resource.getpagesize()


def draw(runs: dict[int, MemoryCurve], encoder: str, path: Path) -> None:
    """Both curves, each over its own time."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "freight"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.2), layout="constrained")
    for (pairs, run), colour in zip(runs.items(), ("#888888", "#1f6feb"), strict=True):
        times, sizes = zip(*run.curve, strict=True)
        share = [100 * at / times[-1] for at in times]
        label = f"{pairs:,} pairs, {run.peak / 2**20:,.0f} MiB at the peak"
        axes.plot(share, [size / 2**20 for size in sizes], color=colour, label=label)
    axes.set(xlabel="% of the run's time", ylabel="MiB", ylim=(0, None), xlim=(0, 100))
    axes.set_title(f"{', '.join(METRICS)} with the {encoder} encoder, ten systems per reference")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    none: Any = None
    figure.savefig(path, metadata={"Date": none})


def _peak_bytes(used: resource.struct_rusage) -> int:
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
