"""What all tests and the examples of the documentation share: see tests/sharing.py."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "tests"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
if "PYTEST_XDIST_WORKER" in os.environ:  # more threads than cores would wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["sharing"]
