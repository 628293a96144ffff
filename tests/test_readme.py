"""The first example in the README runs, and says what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

import freight
from freight.metrics import METRICS

PAGES = {"wrd-score-code": "wrd-score", "s+wms": "sms"}
README = Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the README is not part of an installed package")
def test_the_first_example() -> None:
    text = README.read_text()
    block = text.split("## A first example of the core")[1].split("\n\nA problem says")[0]
    code = "\n".join(line[4:] for line in block.splitlines() if line.startswith("    "))
    names: dict[str, object] = {}
    exec(code, names)
    claimed = re.search(r"plan\.transport\s+# ([\d.]+)", code)
    assert claimed is not None
    assert names["plan"].transport == pytest.approx(float(claimed[1]), abs=0.005)  # type: ignore[attr-defined]
    assert np.asarray(names["lazy"].flow).sum() < 1  # type: ignore[attr-defined]


@pytest.mark.skipif(not README.exists(), reason="the README is not part of an installed package")
def test_the_scoring_example() -> None:
    block = README.read_text().split("In Python:")[1].split("| metric |")[0]
    code = "\n".join(line[4:] for line in block.splitlines() if line.startswith("    "))
    names: dict[str, object] = {}
    exec(code, names)
    assert set(names["result"].system) == {"transport", "objective"}  # type: ignore[attr-defined]


def test_every_metric_is_in_the_readme() -> None:
    text = re.sub(r"\s", " ", README.read_text())
    for name in METRICS:
        assert f"`{name}`" in text


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_page_that_names_its_presets(name: str) -> None:
    folder = README.parent / "docs/metrics"
    title = PAGES.get(name, name if "encoder" in freight.parameters(name) else "lexical")
    page = (folder / f"{title}.md").read_text()
    assert name in page
    for heading in ("## When to use it", "## How ours differs from", "## Parameters"):
        assert heading in page
    assert ">>> import freight" in page
    for preset in freight.presets(name):
        assert f"`{preset}`" in page
    assert f"({title}.md)" in (folder / "README.md").read_text()
