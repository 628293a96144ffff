"""Writes the generated tables into the pages that have markers for them: `make readme`.

The README has tables of agreement and speed, from stored results, and of the metrics; the metrics'
pages have tables of parameters. The text between `<!-- NAME -->` and `<!-- /NAME -->` is replaced.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import metric_tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"


def agreement() -> str:
    """How well metrics agree with people: a row per metric, the best of a column in bold."""
    stored = _read("agreement")
    columns = stored["columns"]
    rows = {name: one["values"] for name, one in stored["metrics"].items()}
    best = {column: max(values[column] for values in rows.values()) for column in columns}
    lines = [f"| metric | {' | '.join(columns.values())} |", f"| --- |{' ---: |' * len(columns)}"]
    for name, values in rows.items():
        cells = [_coefficient(values[c], values[c] == best[c]) for c in columns]
        metric, _, rest = name.partition(" ")
        lines.append(f"| `{metric}`{' ' + rest if rest else ''} | {' | '.join(cells)} |")
    return "\n".join(lines)


def speed() -> str:
    """Pairs per second on a GPU, and solvers beside POT."""
    text, solvers = (_read("speed")[part] for part in ("text", "solvers"))
    lines = ["| what | speed | on |", "| --- | ---: | --- |"]
    for name, value in text["values"].items():
        lines.append(f"| `{name}`, text to score | {value:,} pairs/s | {text['machine']} |")
    package = text["package"]
    lines.append(
        f"| the {package['name']}, same encoder | {package['float32']:,} pairs/s | H200, float32 |"
    )
    for name, value in solvers["values"].items():
        lines.append(f"| solver, {name} | {value:.0f} × POT | {solvers['machine']} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    "agreement": agreement,
    "speed": speed,
    "metrics": metric_tables.metrics,
    "index": metric_tables.index,
}
"""The tables by the name of their markers; `parameters NAME` stands for those of a metric."""

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/metrics").glob("*.md"))]
"""The pages that have generated tables."""

_BLOCK = re.compile(
    r"<!-- (?P<name>[a-z]+)(?P<of>( [^ \n]+)*) -->\n.*?<!-- /(?P=name) -->", re.DOTALL
)


def fill_in(text: str) -> str:
    """The text of a page with each table put between its two markers."""
    return _BLOCK.sub(_block, text)


def _block(match: re.Match[str]) -> str:
    name, metrics = match["name"], match["of"].split()
    table = partial(metric_tables.parameters, *metrics) if metrics else TABLES[name]
    return f"<!-- {name}{match['of']} -->\n{table()}\n<!-- /{name} -->"


def _read(name: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return stored


def _coefficient(value: float, best: bool) -> str:
    shown = f"{value:.3f}".replace("0.", ".", 1)
    return f"**{shown}**" if best else shown


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill_in(page.read_text("utf-8")), "utf-8")
