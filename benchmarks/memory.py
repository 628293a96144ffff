"""How the peak memory of `freight score` grows with the corpus: it should not.

    python benchmarks/memory.py [--small 10000] [--large 100000] [-o results.json]

Each run is a process of its own over a file of distinct pairs, made from WMT15's to-English ones
in $FREIGHT_DATA (by default ../shared) or from the bundled example.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from text import real_pairs

METRICS = ("lazy-emd", "yisi-1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/memory.json"))
    arguments = parser.parse_args()
    peaks = {pairs: peak(pairs) for pairs in (arguments.small, arguments.large)}
    for pairs, bytes_used in peaks.items():
        print(f"{pairs:>9,} pairs: {bytes_used / 2**20:,.0f} MiB at the peak")
    print(f"ratio {peaks[arguments.large] / peaks[arguments.small]:.2f}")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(peaks, indent=1))


def peak(pairs: int) -> int:
    """The largest resident size of a run over this many pairs."""
    hyps, refs = real_pairs(2000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.jsonl"
        with path.open("w", encoding="utf-8") as stream:
            for k in range(pairs):
                row = {"hyp": f"{hyps[k % len(hyps)]} {k}", "ref": f"{refs[k % len(refs)]} {k}"}
                stream.write(json.dumps(row) + "\n")
        names = [part for name in METRICS for part in ("-m", name)]
        command = [sys.executable, "-c", "from freight.cli import main; main()", "score", str(path)]
        process = subprocess.Popen(
            [*command, *names, "-o", f"{folder}/scores.parquet"], stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"the run over {pairs} pairs failed")
        return _bytes(used)


def _bytes(used: resource.struct_rusage) -> int:
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
