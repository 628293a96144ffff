"""How long a command takes to start: one pair, beside `import torch` and sacrebleu's own command.

    python benchmarks/startup.py [--rounds 5] [-o results.json]

Every command is a process of its own, and rounds are interleaved. The median of the processor's
time counts, since the machine is shared; the wall's time of the fastest is shown beside it. Freight
is a copy with byte code, which pip makes when it installs; "first ever" is one without.
"""

import argparse
import compileall
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

import freight

FREIGHT = [sys.executable, "-c", "from freight.cli import main; main()"]
PAIR = ["score", "hyp.txt", "ref.txt", "-m"]
COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import torch": [sys.executable, "-c", "import torch"],
    "import transformers' AutoModel": [sys.executable, "-c", "from transformers import AutoModel"],
    "freight score -m lazy-emd": [*FREIGHT, *PAIR, "lazy-emd"],
    "freight score -m lazy-emd, first ever": [*FREIGHT, *PAIR, "lazy-emd"],
    "freight score -m freight": [*FREIGHT, *PAIR, "freight"],
    "freight score -m freight, first ever": [*FREIGHT, *PAIR, "freight"],
    "freight score -m chrf": [*FREIGHT, *PAIR, "chrf"],
    "freight score -m chrf, first ever": [*FREIGHT, *PAIR, "chrf"],
    "sacrebleu -m chrf": [
        *(sys.executable, "-m", "sacrebleu"), *("ref.txt", "-i", "hyp.txt", "-m", "chrf")
    ],
}  # fmt: skip
FIRST = ", first ever"


@dataclass
class Start:
    """The times of one command in seconds."""

    what: str
    processor: float
    wall: float
    over_torch: float
    over_sacrebleu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("benchmarks/results/startup.json")
    )
    arguments = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "hyp.txt").write_text("The boy in a coat.\n")
        Path(folder, "ref.txt").write_text("The young man in a slicker.\n")
        for name, command in COMMANDS.items():
            seconds_of(command, Path(folder), name)  # what the system keeps of files is warm
        for _ in range(arguments.rounds):
            for name, command in COMMANDS.items():
                times[name].append(seconds_of(command, Path(folder), name))
    processor = {name: statistics.median(one for one, _ in rows) for name, rows in times.items()}
    starts = [
        Start(
            name,
            processor[name],
            min(wall for _, wall in rows),
            processor[name] / processor["import torch"],
            processor[name] / processor["sacrebleu -m chrf"],
        )
        for name, rows in times.items()
    ]
    show(starts, arguments.rounds)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps([asdict(start) for start in starts], indent=1))


def seconds_of(command: list[str], folder: Path, name: str) -> tuple[float, float]:
    """The processor's and the wall's seconds of a process."""
    copy = folder / ("first" if name.endswith(FIRST) else "warm")
    if name.endswith(FIRST) or not copy.exists():
        copy_package(copy, byte_code=not name.endswith(FIRST))
    paths = [str(copy), *(str(Path(part).absolute()) for part in sys.path if part)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.setdefault("OMP_NUM_THREADS", "1")
    before, started = used(), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return used() - before, time.perf_counter() - started


def copy_package(folder: Path, byte_code: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    left_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(freight.__file__).parent, folder / "freight", ignore=left_out)
    if byte_code:
        compileall.compile_dir(folder, quiet=2)


def used() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def show(starts: list[Start], rounds: int) -> None:
    table = Table(title=f"Start-up in seconds, one pair, median of {rounds}")
    for name in ("what", "processor", "wall", "over import torch", "over sacrebleu"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for start in starts:
        ratios = f"{start.over_torch:.2f}", f"{start.over_sacrebleu:.2f}"
        table.add_row(start.what, f"{start.processor:.2f}", f"{start.wall:.2f}", *ratios)
    Console().print(table)


if __name__ == "__main__":
    main()
