"""Install the wheel in clean environments, bare and with each extra, and hold each to its promises.

One environment at a time. The bare one is made by pip alone; the others begin as a copy of it by
hard links, so that torch is unpacked once, and pip adds the extra.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from pathlib import Path

from building import ROOT, checked_build

BARE = "bare"
PROMISES = Path(__file__).with_name("promises.py")


def main() -> None:
    """Build, then install and try one environment after the other."""
    os.environ.pop("PYTHONPATH", None)  # nothing but what is installed
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("only", nargs="*", help="these extras alone, besides the bare one")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/wheels")
    parser.add_argument("--keep", action="store_true", help="leave the environments where they are")
    given = parser.parse_args()
    wheel = checked_build(ROOT, given.folder / "dist")[0]
    base = given.folder / BARE
    shutil.rmtree(base, ignore_errors=True)
    venv.create(base, with_pip=True)
    failed = [] if tried(base, wheel, "") else [BARE]
    for extra in given.only or extras():
        place = given.folder / extra
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run(["cp", "-al", str(base), str(place)], check=True)
        failed += [] if tried(place, wheel, extra) else [extra]
        if not given.keep:
            shutil.rmtree(place)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


def extras() -> list[str]:
    """What can be installed besides, `all` included."""
    return [name for name in _asked() if name != "dev"]


def promised(extra: str) -> list[str]:
    """What an extra brings: itself, or those that it gathers."""
    gathered = re.findall(r"freight\[(.*?)\]", " ".join(_asked().get(extra, ())))
    return ",".join(gathered).split(",") if gathered else [extra] if extra else []


def tried(place: Path, wheel: Path, extra: str) -> bool:
    """Install into an environment, run the promises there, and say how long both took."""
    start = time.perf_counter()
    python = str(place / "bin/python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["-c", str(ROOT / "constraints.txt")]
    wanted = f"freight[{extra}] @ {wheel.absolute().as_uri()}" if extra else str(wheel)
    if extra:  # the program that was copied belongs to the bare environment
        subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheel)], check=True)
    subprocess.run([*pip, wanted], check=True)
    subprocess.run([python, "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)
    installed = time.perf_counter()
    done = subprocess.run([python, str(PROMISES), *promised(extra)])
    times = f"{installed - start:.0f} s to install, {time.perf_counter() - installed:.0f} s to try"
    print(f"{extra or BARE}: {'ok' if not done.returncode else 'FAILED'}, {times}", flush=True)
    return not done.returncode


def _asked() -> dict[str, list[str]]:
    """What each extra asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked: dict[str, list[str]] = project["optional-dependencies"]
    return asked


if __name__ == "__main__":
    main()
