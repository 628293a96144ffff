"""Writes the generated tables into the pages that have markers for them: `make readme`.

The README has tables of agreement and speed, from stored results, and of the metrics; the metrics'
pages have tables of parameters, and sentences on how well a metric does, from the same results. The
text between `<!-- NAME -->` and `<!-- /NAME -->` is replaced.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import Any

import metric_tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"
WIDTH = 110
"""Of generated sentences."""
BAR = 24
"""How many characters the longest bar has."""
SHORT = 28.3
"""Tokens of the texts whose speed the README shows."""


ENCODER = "embedded"
COLUMNS = {
    "WMT15 r": "WMT15, r",
    "WMT17 r": "WMT17, r",
    "DARR cs-en": "WMT18 cs-en, τ",
    "DARR en-cs": "WMT18 en-cs, τ",
    "RS abs text τ": "REALSumm, τ",
    "Flickr τ": "Flickr8k, τ",
}
"""What of the reproduction the README shows, and how it calls it."""

METRICS = {
    "freight:score": "`freight`",
    "bert-score:f1": "`bert-score`",
    "lazy-emd:objective": "`lazy-emd`",
    "bary-score:distance": "`bary-score`",
    "mover-score:similarity": "`mover-score`",
    "wrd-score:f1": "`wrd-score`",
    "std:distance": "`std`",
    "chrf:score": "`chrf`",
    "sentence-bleu:score": "`sentence-bleu`",
}


def agreement() -> str:
    """How well metrics agree with people: a row per metric, the best of a column in bold."""
    values = {label: _figures()[label] for label in METRICS}
    best = {column: max(row[column] for row in values.values()) for column in COLUMNS}
    lines = [f"| metric | {' | '.join(COLUMNS.values())} |", f"| --- |{' ---: |' * len(COLUMNS)}"]
    for label, name in METRICS.items():
        row = values[label]
        cells = [_coefficient(row[c], row[c] == best[c]) for c in COLUMNS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def leaders() -> str:
    """In which columns of the reproduction the default is first, and who is first in the others."""
    firsts = {
        column: max(values, key=values.__getitem__) for column, values in _by_column().items()
    }
    own = [column for column, label in firsts.items() if label == "freight:score"]
    others = [
        f"{column} (`{_shown(label)}`, {_coefficient(_figures()[label][column])})"
        for column, label in firsts.items()
        if column not in own
    ]
    return fill(
        f"With the embedded encoder `freight` agrees best with people in {len(own)} of "
        f"{len(firsts)} columns of [the reproduction](reproduction.md#the-default-metric): "
        f"{', '.join(own)}. Another metric is first in {', '.join(others)}.",
        WIDTH,
        break_on_hyphens=False,
        break_long_words=False,
    )


def standing(label: str) -> str:
    """How a metric does beside the others, with the embedded encoder."""
    columns, own = _by_column(), _figures()[label]
    beside = [
        f"{METRICS[other]} in {sum(own[c] > _figures()[other][c] for c in own)}"
        for other in ("bary-score:distance", "lazy-emd:objective", "bert-score:f1")
        if other != label
    ]
    first = [c for c in own if own[c] == max(columns[c].values())]
    best = (
        f"is first of all metrics in {', '.join(f'{c} ({_coefficient(own[c])})' for c in first)}"
        if first
        else "is first in none"
    )
    return fill(
        f"With the embedded encoder it agrees better with people than {', than '.join(beside)} of "
        f"{len(own)} columns of [the reproduction](../reproduction.md#the-default-metric), and "
        f"{best}.",
        WIDTH,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _figures() -> dict[str, dict[str, float]]:
    """By metric and column, with the embedded encoder."""
    figures: dict[str, dict[str, float]] = _read("agreement")["encoders"][ENCODER]
    return figures


def _by_column() -> dict[str, dict[str, float]]:
    figures = _figures()
    columns = dict.fromkeys(column for row in figures.values() for column in row)
    return {c: {label: row[c] for label, row in figures.items() if c in row} for c in columns}


def _shown(label: str) -> str:
    """A metric as the command line calls it, without its primary column."""
    metric, _, column = label.partition(":")
    return label if metric.startswith("bert-score") and column != "f1" else metric


def speed() -> str:
    """Pairs per second on a GPU, and solvers beside POT."""
    machine = _read("gpu")["machine"]
    lines = ["| what | speed | on |", "| --- | ---: | --- |"]
    for row in _gpu_rows("base", SHORT):
        name, rate = row["metric"], f"{row['pairs_per_second']:,} pairs/s"
        if name in ("bert-score", "lazy-emd", "freight"):
            lines.append(f"| `{name}`, text to score | {rate} | {machine} |")
        elif name == "bert-score package, float32":  # with short texts its faster precision
            lines.append(f"| the bert-score package | {rate} | the same run, float32 |")
    solvers = _read("speed")["solvers"]
    for name, value in solvers["values"].items():
        lines.append(f"| solver, {name} | {value:.0f} × POT | {solvers['machine']} |")
    return "\n".join(lines)


def gpu(shape: str, tokens: str) -> str:
    """What was measured on a GPU with an encoder of a shape and so many tokens, with bars."""
    rows = _gpu_rows(shape, float(tokens))
    fastest = max(max(row["pairs_per_second"], row.get("encoder_alone", 0)) for row in rows)
    lines = ["| metric | pairs per second | | encoder alone | share of it |"]
    lines.append("| --- | ---: | --- | ---: | ---: |")
    for row in rows:
        name, rate = row["metric"], row["pairs_per_second"]
        shown = name if "package" in name else f"`{name}`".replace(", IDF`", "` with IDF")
        alone = f"{row['encoder_alone']:,}" if "encoder_alone" in row else "–"
        share = f"{row['share']:.2f}" if "share" in row else "–"
        bar = "█" * max(1, round(BAR * rate / fastest))
        lines.append(f"| {shown} | {rate:,} | {bar} | {alone} | {share} |")
    return "\n".join(lines)


def _gpu_rows(shape: str, tokens: float) -> list[dict[str, Any]]:
    rows = _read("gpu")["rows"]
    return [row for row in rows if (row["shape"], row["tokens"]) == (shape, tokens)]


def spans() -> str:
    """Error spans against annotators, one row per way to find them, ours last."""
    figures = _read("spans")["rows"]
    lines = ["| way | precision | recall | F1 | p | weighted F1 | p |", "| --- |" + " ---: |" * 6]
    for name, row in figures.items():
        tests = [f"{row[p]:.3f}" if p in row else "" for p in ("p", "weighted p")]
        values = [f"{row[key]:.3f}" for key in ("precision", "recall", "f1", "weighted")]
        cells = [*values[:3], tests[0], values[3], tests[1]]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[..., str]] = {
    "agreement": agreement,
    "speed": speed,
    "gpu": gpu,
    "metrics": metric_tables.metrics,
    "index": metric_tables.index,
    "leaders": leaders,
    "standing": standing,
    "spans": spans,
    "parameters": metric_tables.parameters,
}
"""By the name of its markers what stands between them; words after the name are arguments."""

PAGES = [
    ROOT / "README.md",
    ROOT / "docs/choosing.md",
    ROOT / "docs/gpu.md",
    ROOT / "docs/spans.md",
    *sorted((ROOT / "docs/metrics").glob("*.md")),
]
"""The pages that have generated tables."""

_BLOCK = re.compile(
    r"<!-- (?P<name>[a-z]+)(?P<of>( [^ \n]+)*) -->\n.*?<!-- /(?P=name) -->", re.DOTALL
)


def fill_in(text: str) -> str:
    """The text of a page with each table put between its two markers."""
    return _BLOCK.sub(_block, text)


def _block(match: re.Match[str]) -> str:
    name, words = match["name"], match["of"].split()
    return f"<!-- {name}{match['of']} -->\n{TABLES[name](*words)}\n<!-- /{name} -->"


def _read(name: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return stored


def _coefficient(value: float, best: bool = False) -> str:
    shown = f"{value:.3f}".replace("0.", ".", 1)
    return f"**{shown}**" if best else shown


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill_in(page.read_text("utf-8")), "utf-8")
