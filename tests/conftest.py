"""Data that lies beside the project: looked for in $FREIGHT_DATA, by default ../shared."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pages import browser, chromium_address, open_page  # noqa: F401

DATA = Path(os.environ.get("FREIGHT_DATA", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def data() -> Path:
    if not DATA.is_dir():
        message = f"the data beside the project is not at {DATA}; set FREIGHT_DATA"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return DATA


@pytest.fixture(scope="session")
def published(data: Path) -> dict[str, Any]:
    """Stored scores of published implementations, with the pairs that they scored."""
    stored: dict[str, Any] = json.loads((data / "golden/published.json").read_text())
    return stored
