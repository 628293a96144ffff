"""The way of a score from the command line to the table passes few files, each for one purpose."""

import json
import os
import subprocess
import sys
from pathlib import Path

MOST = 25
# Notes each file of the package in which a function is entered, in the order of the first entries.
TRACED = """
import json, os, sys, threading
import freight
from freight.cli import main

package, entered = os.path.dirname(freight.__file__) + os.sep, []

def note(frame, event, argument):
    if frame.f_code.co_name == "print_critical_note":  # the table is there
        sys.setprofile(None)
        return
    code, caller = frame.f_code, frame.f_back.f_code if frame.f_back else None
    is_function = code.co_flags & 1 and code.co_name != "<module>"
    is_import = caller and caller.co_filename.startswith("<frozen importlib")
    above = frame.f_back
    while above and not is_import:  # what a module calls while it is imported
        is_import = above.f_code.co_name == "<module>" and above.f_globals["__name__"] != "__main__"
        above = above.f_back
    if event == "call" and is_function and not is_import and code.co_filename.startswith(package):
        name = code.co_filename[len(package):]
        if name not in entered:
            entered.append(name)

threading.setprofile(note)
sys.setprofile(note)
try:
    main()
finally:
    sys.setprofile(None)
    json.dump(entered, open("walk.json", "w"))
"""


def test_a_score_passes_few_files(tmp_path: Path) -> None:
    (tmp_path / "hyp.txt").write_text("The boy in a coat.\nA cat sat.\n")
    (tmp_path / "ref.txt").write_text("The young man in a slicker.\nThe cat sat down.\n")
    command = "score", "hyp.txt", "ref.txt", "-m", "lazy-emd"
    paths = os.pathsep.join(part for part in sys.path if part)
    done = subprocess.run(
        [sys.executable, "-c", TRACED, *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "objective↓" in done.stdout
    walk = json.loads((tmp_path / "walk.json").read_text())
    files = [name for name in walk if not name.endswith("__init__.py")]
    assert files[:2] == ["cli/groups.py", "cli/score.py"]
    assert len(files) <= MOST, files
