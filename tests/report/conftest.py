"""A real browser, where there is one."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def browser(tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    program = shutil.which("chromium")
    if program is None:
        message = "chromium is not here (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)

    def opened(page: str) -> tuple[str, str]:
        """What became of a page, and what its console said."""
        file = tmp_path / "page.html"
        file.write_text(page, encoding="utf-8")
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", file.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return done.stdout, "\n".join(said)

    return opened
