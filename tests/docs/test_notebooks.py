"""The notebooks run, and print what they show.

Their cells run in this process, which has the encoder already; `make notebooks` starts a kernel.
"""

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
NUMBER = re.compile(r"-?\d+\.\d+")
AS_IN_A_KERNEL = ("display.width", 80, "display.max_columns", 20)
RESULT = re.compile(r"^Out\[\d+\]:", re.MULTILINE)


def shown_outputs(book: Any) -> list[str]:
    """Every output of a notebook as plain text."""
    outputs = [output for cell in book["cells"] for output in cell.get("outputs", ())]
    texts = [output.get("data", {}).get("text/plain", output.get("text", "")) for output in outputs]
    return ["".join(text) for text in texts]


def computed_outputs(book: Any) -> list[str]:
    """Run the cells in a shell of their own, and collect what they print and display."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from traitlets.config import Config

    pandas = pytest.importorskip("pandas", reason="pandas is an extra")
    config = Config({"HistoryManager": {"enabled": False}})
    make: Any = InteractiveShell
    shell = make(config=config, user_module=ModuleType("notebook"))
    outputs = []
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            with pandas.option_context(*AS_IN_A_KERNEL), capture_output() as captured:
                shell.run_cell("".join(cell["source"])).raise_error()
            outputs += [part for part in RESULT.split(captured.stdout) if part.strip()]
    return outputs


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython", reason="IPython is part of the extra dev")
    monkeypatch.chdir(path.parent)
    book = json.loads(path.read_text("utf-8"))
    shown, computed = shown_outputs(book), computed_outputs(book)
    assert [NUMBER.sub("#", text).split() for text in computed] == [
        NUMBER.sub("#", text).split() for text in shown
    ]
    numbers = [
        [float(x) for text in one for x in NUMBER.findall(text)] for one in (computed, shown)
    ]
    assert len(numbers[0]) > 10
    assert numbers[0] == pytest.approx(numbers[1], abs=2e-3)


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_has_been_run(path: Path) -> None:
    assert path.stat().st_size < 60_000
    code = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert code
    assert all(cell["execution_count"] for cell in code)


def test_there_are_two() -> None:
    assert [path.stem for path in BOOKS] == ["choosing_a_metric", "first_hour"]
