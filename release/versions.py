"""Run a part of the tests on the oldest versions of what we depend on, or on the newest.

torch stays as it is pinned: it is the same everywhere, and large.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from building import ROOT

EXTRAS = (
    "embedded,lexical,zh,ja,icu,cache,train,tune,report,serve,pandas,evaluate,torchmetrics,spacy"
)
TESTS = ("transport", "core", "metrics", "explain", "cli", "data", "interop", "learn")
MINIMUM = ROOT / "constraints-minimum.txt"


def main() -> None:
    """Make the environment, say what is in it, and run the tests there."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("which", choices=("minimum", "newest"))
    parser.add_argument("tests", nargs="*", help=f"below tests/; default: {' '.join(TESTS)}")
    parser.add_argument("--folder", type=Path, default=ROOT / "build")
    parser.add_argument("--again", action="store_true", help="in the environment that is there")
    given = parser.parse_args()
    place = given.folder / given.which
    if not given.again:
        make(place, given.which)
    tests = [str(Path("tests", name)) for name in given.tests or TESTS]
    command = [str(place / "bin/python"), "-m", "pytest", "-q", *tests]
    if given.which == "minimum":  # where old versions call what their newer neighbours deprecate
        command.append("-Wignore::DeprecationWarning")
    quiet = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    sys.exit(subprocess.run(command, cwd=ROOT, env={**quiet, "OMP_NUM_THREADS": "1"}).returncode)


def make(place: Path, which: str) -> None:
    """An environment with what the tests need.

    Ray is left out for its size, trl since it asks for newer versions than we do.
    """
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True)
    pip = [str(place / "bin/python"), "-m", "pip"]
    limits = place / "constraints.txt"
    limits.write_text(MINIMUM.read_text() if which == "minimum" else f"{_pinned('torch')}\n")
    wanted = [f"-e{ROOT}[{EXTRAS}]", "pytest", "hypothesis", "POT", "bert-score", "hatchling"]
    install = [*pip, "install", "--quiet", "--upgrade", "--upgrade-strategy", "eager"]
    subprocess.run([*install, "-c", str(limits), *wanted], check=True)
    subprocess.run([*pip, "freeze", "--exclude-editable"], check=True)


def bounds() -> dict[str, str]:
    """The lower bound of each package that pyproject.toml asks for, the development's aside."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(x for e in extras if e != "dev" for x in extras[e])]
    matches = (re.fullmatch(r"([\w.-]+)>=([\w.]+)", one) for one in asked)
    return {one[1].lower(): one[2] for one in matches if one}


def _pinned(package: str) -> str:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{package}=="))


if __name__ == "__main__":
    main()
