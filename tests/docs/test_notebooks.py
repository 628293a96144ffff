"""The notebooks run, and print what they say that they print."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

BOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
NUMBER = re.compile(r"-?\d+\.\d+")


def printed(book: Any) -> list[str]:
    """What each output says as plain text."""
    outputs = [output for cell in book["cells"] for output in cell.get("outputs", ())]
    said = [output.get("data", {}).get("text/plain", output.get("text", "")) for output in outputs]
    return ["".join(text) for text in said]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_says(path: Path) -> None:
    pytest.importorskip("nbclient", reason="nbclient is part of the extra dev")
    from executing import executed

    kept = printed(json.loads(path.read_text("utf-8")))
    found = printed(executed(path))
    assert [NUMBER.sub("#", text).split() for text in found] == [
        NUMBER.sub("#", text).split() for text in kept
    ]
    numbers = [[float(x) for text in said for x in NUMBER.findall(text)] for said in (found, kept)]
    assert numbers[0] == pytest.approx(numbers[1], abs=2e-3)


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_has_been_run(path: Path) -> None:
    assert path.stat().st_size < 60_000
    code = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code)


def test_there_are_two() -> None:
    assert [path.stem for path in BOOKS] == ["choosing_a_metric", "first_hour"]
