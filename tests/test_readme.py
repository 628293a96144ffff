"""What the README shows is what the library does: code, output, tables, picture, citation."""

import json
import re
from pathlib import Path

import pytest

import fitting_page
import freight
import readme
from freight.metrics import find_metric
from written import PAGES, blocks_of

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks/results"
pytestmark = pytest.mark.skipif(not README.exists(), reason="there is no README beside a package")


def test_its_examples_are_shown_with_their_output() -> None:
    """That they print it is checked with all other pages, in tests/docs."""
    blocks = blocks_of(README)
    assert [b.language for b in blocks if b.printed is not None] == ["python", "sh", "python"]
    assert [block.reason for block in blocks if block.reason] == []
    assert README in PAGES


def test_the_point_comes_first() -> None:
    """One sentence, how to install it, three lines of Python and one command, in this order."""
    text = README.read_text("utf-8")
    marks = ("by optimal transport", "pip install", "import freight", "freight score", "flow.svg")
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert text[: places[-1]].count("\n") < 60
    assert {"make demo", "make test"} <= set(re.findall(r"make \w+", text))


@pytest.mark.parametrize("page", readme.PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_tables_are_those_of_the_declarations_and_stored_results(page: Path) -> None:
    text = page.read_text("utf-8")
    assert readme.fill_in(text) == text, "make readme"


def test_the_markers_of_generated_tables() -> None:
    assert "<!-- agreement -->" in README.read_text("utf-8")
    assert "<!-- speed -->" in README.read_text("utf-8")
    assert "<!-- metrics -->" in README.read_text("utf-8")
    assert "<!-- index -->" in (ROOT / "docs/metrics/README.md").read_text("utf-8")
    stale = "<!-- parameters emd -->\n| old |\n<!-- /parameters -->"
    assert "| `pooling` | `mean` |" in readme.fill_in(stale)


def test_stored_agreement_is_that_of_the_reproduction() -> None:
    stored = json.loads((RESULTS / "agreement.json").read_text("utf-8"))["encoders"]
    page = (ROOT / "docs/reproduction.md").read_text("utf-8")
    section = page.split("\n## The default metric\n")[1].split("\n### ")[0]
    for encoder, part in zip(stored, section.split("\n**")[1:], strict=True):
        assert part.startswith(f"{encoder}**")
        lines = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
        table = [[re.sub(r"</?u>|\*\*", "", cell).strip() for cell in line] for line in lines]
        printed = [
            [float(cell.replace("−", "-")) for cell in line[1:] if cell != "–"]
            for line in table[2:]
        ]
        assert printed == [[*values.values()] for values in stored[encoder].values()]


def test_sentences_on_a_metric_are_those_of_the_figures() -> None:
    stale = "<!-- standing mover-score:similarity -->\nthe best of all\n<!-- /standing -->"
    stored = json.loads((RESULTS / "agreement.json").read_text("utf-8"))["encoders"]["embedded"]
    columns = stored["mover-score:similarity"]
    better = sum(columns[c] > stored["bert-score:f1"][c] for c in columns)
    written = readme.fill_in(stale).replace("\n", " ")
    assert "the best of all" not in written
    assert f"`bert-score` in {better} of {len(columns)} columns" in written
    assert "<!-- leaders -->" in (ROOT / "docs/choosing.md").read_text("utf-8")


def test_stored_speeds_are_those_of_the_pages() -> None:
    speeds, gpu = (
        json.loads((RESULTS / f"{name}.json").read_text("utf-8")) for name in ("speed", "gpu")
    )
    pages = {
        page: (ROOT / f"docs/{page}.md").read_text("utf-8")
        for page in ("gpu", "solvers", "big-data")
    }
    for row in gpu["rows"]:
        assert f" | {row['pairs_per_second']:,} | " in pages["gpu"]
    for row in gpu["solvers"]:
        assert f" | {row['milliseconds']:,} |" in pages["gpu"]
    (default,) = (
        row
        for row in gpu["rows"]
        if (row["shape"], row["tokens"], row["metric"]) == ("base", readme.SHORT, "freight")
    )
    assert f"| `freight` | {default['pairs_per_second']:,} |" in pages["big-data"]
    for ratio in speeds["solvers"]["values"].values():
        assert f"| {ratio} |" in pages["solvers"]


def test_the_page_of_fitting_is_that_of_its_figures() -> None:
    stored = json.loads((RESULTS / "fitting.json").read_text("utf-8"))
    assert fitting_page.page(stored) == (ROOT / "docs/studies/fitting.md").read_text("utf-8")


def test_the_picture_is_the_one_that_the_library_draws() -> None:
    import figures_flow

    stored = (ROOT / "docs/figures/flow.svg").read_text("utf-8")
    drawn = figures_flow.flow()
    number = re.compile(r"-?\d+\.\d+")
    assert number.sub("#", drawn) == number.sub("#", stored)
    values = [[float(x) for x in number.findall(text)] for text in (drawn, stored)]
    assert values[0] == pytest.approx(values[1], abs=0.2)


def test_the_citation_is_that_of_the_citation_file() -> None:
    text, facts = README.read_text("utf-8"), (ROOT / "CITATION.cff").read_text("utf-8")
    for name in ("title", "version", "license"):
        stated = re.search(rf"^  {name}\s*= {{(.*)}},?$", text, re.MULTILINE)
        fact = re.search(rf'^{name}: "?(.*?)"?$', facts, re.MULTILINE)
        assert stated is not None
        assert fact is not None
        assert stated[1] == fact[1]


def test_every_metric_is_in_the_readme() -> None:
    text = re.sub(r"\s", " ", README.read_text("utf-8"))
    for name in freight.list_metrics():
        assert f"`{name}`" in text


@pytest.mark.parametrize("name", freight.list_metrics())
def test_every_metric_has_a_page_that_names_its_presets(name: str) -> None:
    folder = ROOT / "docs/metrics"
    title = find_metric(name).page
    page = (folder / f"{title}.md").read_text("utf-8")
    assert name in page
    for heading in ("## When to use it", "## How ours differs from", "## Parameters"):
        assert heading in page
    assert ">>> import freight" in page
    for preset in freight.presets(name):
        assert f"`{preset}`" in page
    assert f"({title}.md)" in (folder / "README.md").read_text("utf-8")
