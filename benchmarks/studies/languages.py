"""Agreement with people in languages other than English, as a JSON file and the guide's table.

    python benchmarks/studies/languages.py            # judge, then write both
    python benchmarks/studies/languages.py --table    # write the table from the stored figures

Sets of WMT are looked for in $FREIGHT_DATA. Large ones are sampled, always the same rows.
"""

import argparse
import gzip
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import freight
from freight.data.languages import language_name

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results/languages.json"
GUIDE = ROOT / "docs/languages.md"
MARKS = "<!-- figures -->", "<!-- end of figures -->"
DATA = Path(os.environ.get("FREIGHT_DATA", ROOT.parent / "shared")) / "data"
ROWS = 1200
SETS = {
    "WMT17 en-zh": ("wmt17-da", "en-zh"),
    "WMT17 en-ru": ("wmt17-da", "en-ru"),
    "WMT18 en-cs τ": ("wmt18-darr.en-cs", "en-cs"),
    "WMT18 en-cs": ("wmt18-da.en-cs", "en-cs"),
    "WMT18 en-et": ("wmt18-da.en-et", "en-et"),
    "WMT18 en-fi": ("wmt18-da.en-fi", "en-fi"),
    "WMT18 en-tr": ("wmt18-da.en-tr", "en-tr"),
}
METRICS: dict[str, dict[str, Any]] = {
    "freight": {"encoder": "multilingual"},
    "bert-score": {"encoder": "multilingual"},
    "lazy-emd": {"encoder": "multilingual"},
    "freight, embedded": {"encoder": "embedded"},
    "chrf": {},
}


def main() -> None:
    """Judge unless only the table is asked for, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--table", action="store_true", help="from the stored figures")
    parser.add_argument("--cache", help="a folder for vectors")
    given = parser.parse_args()
    if not given.table:
        RESULTS.write_text(json.dumps(judge(given.cache), indent=1, ensure_ascii=False) + "\n")
    before, _, rest = GUIDE.read_text("utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    GUIDE.write_text(f"{before}{MARKS[0]}\n\n{table()}\n{MARKS[1]}{after}", encoding="utf-8")


def judge(cache: str | None) -> dict[str, Any]:
    """Agreement by set and metric, and the number of rows."""
    figures: dict[str, Any] = {}
    for name, (file, pair) in SETS.items():
        rows = _rows(file, pair)
        lang = pair.rpartition("-")[2]
        figures[name] = {"language": lang, "rows": len(rows), "agreement": {}}
        for label, settings in METRICS.items():
            settings = dict(settings)
            if "encoder" in settings:
                settings["lang"] = lang
                settings["encoder"] = freight.with_cache(settings["encoder"], cache)
            metric = freight.load(label.partition(",")[0], **settings)
            figures[name]["agreement"][label] = round(_agreement(metric, rows), 4)
            print(name, label, figures[name]["agreement"][label], flush=True)
    return figures


def _rows(file: str, pair: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / f"{file}.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows = [row for row in map(json.loads, stream) if row["lang_pair"] == pair]
    if "better" in rows[0] or len(rows) <= ROWS:
        return rows
    chosen = np.random.default_rng(0).permutation(len(rows))[:ROWS]
    return [rows[k] for k in sorted(chosen)]


def _agreement(metric: Any, rows: Sequence[dict[str, Any]]) -> float:
    """Pearson's r of segments, or τ of preferences, where a tie counts against the metric."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "better" in rows[0]:
            better, worse = (
                _scores(metric, [row[side] for row in rows], [row["ref"] for row in rows])
                for side in ("better", "worse")
            )
            return float(np.mean(np.where(better > worse, 1.0, -1.0)))
        scores = _scores(metric, [row["hyp"] for row in rows], [row["refs"] for row in rows])
    people = np.array([row["human"]["da_z"] for row in rows])
    return float(np.corrcoef(scores, people)[0, 1])


def _scores(metric: Any, hyps: list[str], refs: list[Any]) -> Any:
    result = metric.score(hyps, refs)
    column = result.columns[0]
    return result[column.name] if column.higher else -result[column.name]


def table() -> str:
    """The stored figures as a table of Markdown, the best of each row in bold.

    None is where a metric was judged on other rows, whose number is then in brackets.
    """
    figures = json.loads(RESULTS.read_text("utf-8"))
    lines = [
        f"| language | set | rows | {' | '.join(METRICS)} |",
        "| --- | --- | ---: | " + " | ".join("---:" for _ in METRICS) + " |",
    ]
    for name, one in figures.items():
        values = [one["agreement"].get(label, np.nan) for label in METRICS]
        others = one.get("other rows", {})
        shown = [
            _figure(value) + (f" ({others[label]:,})" if label in others else "")
            for label, value in zip(METRICS, values, strict=True)
        ]
        if not others:
            best = int(np.nanargmax(values))
            shown[best] = f"**{shown[best]}**"
        language = language_name(one["language"])
        lines.append(f"| {language} | {name} | {one['rows']:,} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _figure(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}".replace("0.", ".", 1)


def beside_published(published: Mapping[str, float]) -> str:
    """Preferences of en-cs: what is published for a multilingual encoder, and ours."""
    stored = json.loads(RESULTS.read_text("utf-8"))["WMT18 en-cs τ"]
    sample, ours = stored["beside published"]["rows"], stored["beside published"]["τ"]
    house = stored["agreement"]["freight"]
    rows = stored.get("other rows", {}).get("freight", stored["rows"])
    lines = [
        "en-cs with an encoder that reads Czech: `multilingual` (multilingual-e5-small in 4 bits,"
        " 118 million parameters) beside the published bert-base-multilingual-cased (178 million)."
        f" Ours are of a random sample of {sample:,} of the {stored['rows']:,} preferences:",
        "",
        "| metric | published | multilingual |",
        "| --- | --- | --- |",
    ]
    for row, value in ours.items():
        before = published.get(row, np.nan)
        lines.append(f"| {row} | {_figure(before)} | {_figure(value)} |")
    lines += [f"| `freight` ({rows:,} preferences) | – | {_figure(house)} |", ""]
    lines.append(
        "Recall agrees best on either side, as α = .96 and the penalties (.009, .95) of the paper"
        " have it for other languages than English. Ratings of the other pairs from English are in"
        " the [guide to languages](languages.md#what-is-known-of-agreement-with-people)."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
