"""Writes the README's tables of agreement and speed from stored results: `make readme`."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


TABLES: dict[str, Callable[[], str]] = {"agreement": agreement, "speed": speed}


def fill_in(text: str) -> str:
    """The README with each table put between its two markers."""
    for name, table in TABLES.items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        assert block.search(text), f"README.md has no <!-- {name} --> ... <!-- /{name} -->"
        content = table()
        head, tail = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        text = block.sub((head + content + tail).replace("\\", r"\\"), text)
    return text


def _read(name: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return stored


def _coefficient(value: float, best: bool) -> str:
    shown = f"{value:.3f}".replace("0.", ".", 1)
    return f"**{shown}**" if best else shown


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(fill_in(readme.read_text("utf-8")), "utf-8")
