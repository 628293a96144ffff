"""Metrics of documents against people: REALSumm's summaries, as tables of Markdown.

    python benchmarks/studies/documents.py [--cache FOLDER] [--threads 1] [--resamples 1000]

The penalties of `doc-lazy-emd` are chosen on every other article of REALSumm in $FREIGHT_DATA (by
default ../shared), by Pearson's correlation on text level; all is reported on the other articles.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import freight
from freight.data.judgements import Judgements, read_judgements
from freight.judge.comparisons import Chance, Comparison, comparison
from freight.rehearsal import Memories, Rehearsal
from freight.types import Array

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
LEVELS = ("text", "segment", "system")
FLAT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "lazy-emd transport": ("lazy-emd", "transport", {}),
    "lazy-emd objective": ("lazy-emd", "objective", {}),
    "emd": ("emd", "transport", {}),
    "bert-score f1": ("bert-score", "f1", {}),
    "bert-score recall": ("bert-score", "recall", {}),
    "sms": ("sms", "similarity", {}),
    "s+wms": ("s+wms", "similarity", {}),
    "sms, MiniLM": ("sms", "similarity", {"encoder": "embedded"}),
    "rouge-1": ("rouge-1", "score", {}),
}
INNER: dict[str, dict[str, Any]] = {
    "emd": {},
    "recall": {"inner_hyp": 0.0},
    "lazy": {
        "inner_hyp": 0.23,
        "inner_ref": 0.31,
        "inner_epsilon": 0.009,
        "inner_readout": "objective",
    },
}
PENALTIES = (0.1, 0.3, 1.0)
OTHERS = [(0.23, 0.31), (math.inf, math.inf), (0.0, math.inf)]
OUTER = [(a, b) for a in PENALTIES for b in PENALTIES] + OTHERS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cache", help="a folder for what encoders make of texts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--resamples", type=int, default=1000)
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    judged = read_judgements(DATA / "data/realsumm.jsonl.gz")
    scores = {}
    for name, values in scored(judged, arguments.cache):
        scores[name] = values
        print(name, file=sys.stderr, flush=True)
    chosen, tested = (judged.segments % 2 == half for half in (0, 1))
    names = [name for name in scores if not name.startswith("doc ")]
    for inner in INNER:
        tried = [name for name in scores if name.startswith(f"doc {inner} ")]
        best = max(tried, key=lambda name: agreement(judged, chosen, scores[name]))
        names += [default for default in defaults(inner) if default not in names]
        names += [best] if best not in names else []
    for part in ("", "abs", "ext"):
        among = tested & np.array([part in judged.system_names[k] for k in judged.systems])
        shown = {name: scores[name] for name in names}
        print(part, table(judged, among, shown, arguments.resamples), flush=True)


def scored(judged: Judgements, folder: str | None) -> Iterator[tuple[str, Array]]:
    """Every metric under every setting: a number a row, higher for better."""
    memories = Memories()
    rehearsal = Rehearsal(zip(judged.hyps, judged.refs, strict=True))
    for name, (metric, column, settings) in FLAT.items():
        yield name, _oriented(rehearsal, memories, folder, metric, column, settings)
    for inner, options in INNER.items():
        for hyp, ref in OUTER:
            for column in ("transport", "objective"):
                settings = {**options, "hyp": hyp, "ref": ref}
                name = f"doc {inner} {hyp:g} {ref:g} {column}"
                yield name, _oriented(rehearsal, memories, folder, "doc-lazy-emd", column, settings)


def defaults(inner: str) -> list[str]:
    """The names of the default penalties, by both columns."""
    return [f"doc {inner} 0.23 0.31 {column}" for column in ("transport", "objective")]


def agreement(judged: Judgements, rows: Array, scores: Array) -> float:
    """Pearson's correlation on text level over some of the rows."""
    return float(_asked(judged, rows, "text", 1).interval(scores).value)


def table(judged: Judgements, rows: Array, scores: dict[str, Array], resamples: int) -> str:
    """A row a metric: on each level the correlation x 100, its interval, and p against lazy-emd."""
    lines = [f"{int(rows.sum())} rows", ""]
    lines += ["| metric | " + " | ".join(f"{level} | p" for level in LEVELS) + " |"]
    lines += ["| --- |" + " ---: |" * 2 * len(LEVELS)]
    values = np.array(list(scores.values()))
    asked = [_asked(judged, rows, level, resamples) for level in LEVELS]
    base = list(scores).index("lazy-emd objective")
    for k, name in enumerate(scores):
        cells = []
        for one in asked:
            found = one.interval(values[k])
            cells.append(f"{_x(found.value)} ({_x(found.low)} to {_x(found.high)})")
            beats = one.beats(values[[k, base]])
            cells.append("" if beats is None or k == base else f"{beats[0, 1]:.3f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _x(value: float) -> str:
    return f"{100 * value:.1f}"


def _asked(judged: Judgements, rows: Array, level: str, resamples: int) -> Comparison:
    criterion = judged.criterion()
    found = comparison(judged, rows, level, "pearson", criterion, Chance(resamples))
    assert found is not None
    return found


def _oriented(
    rehearsal: Rehearsal,
    memories: Memories,
    folder: str | None,
    name: str,
    column: str,
    settings: dict[str, Any],
) -> Array:
    if name.startswith("rouge"):
        scorer = freight.load(name)
    else:
        default = "distilled" if name in ("sms", "s+wms") else "embedded"
        chosen = settings.get("encoder", default)
        encoder = freight.with_cache(chosen, folder) if folder and chosen == "embedded" else chosen
        scorer = memories.remembering(freight.load(name, **{**settings, "encoder": encoder}))
    found = rehearsal.score(scorer)[column]
    higher = next(one.higher for one in scorer.columns if one.name == column)
    return found if higher else -found


if __name__ == "__main__":
    main()
