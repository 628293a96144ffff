"""Metrics of documents against people: REALSumm's summaries, as a table of Markdown.

    python benchmarks/studies/documents.py [--articles 100] [--cache FOLDER] [--resamples 300]

All metrics have their defaults, `doc-lazy-emd` also a few others; nothing is chosen on the set,
which is REALSumm in $FREIGHT_DATA (by default ../shared).
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import freight
from freight.core.sweep_cache import SharedEncodings, SweepCache
from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.judge.comparisons import StatisticOptions, comparison_of
from freight.transport.types import Array

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
LEVELS = ("text", "segment", "system")
BASE = "lazy-emd objective"
HARD_INNER = {"inner_hyp": math.inf, "inner_ref": math.inf, "inner_epsilon": 0.0}
ENTERED: dict[str, tuple[str, dict[str, Any]]] = {
    BASE: ("lazy-emd", {}),
    "lazy-emd transport": ("lazy-emd", {"preset": "paper"}),
    "emd transport": ("emd", {}),
    "bert-score f1": ("bert-score", {}),
    "bert-score recall": ("bert-score", {}),
    "sms similarity": ("sms", {}),
    "s+wms similarity": ("s+wms", {}),
    "MiniLM: sms similarity": ("sms", {"encoder": "embedded"}),
    "rouge-1 score": ("rouge-1", {}),
    "doc-lazy-emd objective": ("doc-lazy-emd", {}),
    "coverage: objective": ("doc-lazy-emd", {"preset": "coverage"}),
    "hard: objective": ("doc-lazy-emd", {"preset": "hard"}),
    "hard inner marginals, penalties 1, 1: objective": (
        "doc-lazy-emd",
        {**HARD_INNER, "hyp": 1.0, "ref": 1.0},
    ),
    "hard inner marginals: objective": ("doc-lazy-emd", HARD_INNER),
    "hard inner marginals: transport": ("doc-lazy-emd", HARD_INNER),
}
"""By name, which ends in the column: the metric and its settings."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--articles", type=int, default=100, help="drawn at random, all systems")
    parser.add_argument("--cache", help="a folder for what the encoder makes of texts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    judged = sampled(arguments.articles, arguments.seed)
    print(table(judged, scored(judged, arguments.cache), arguments.resamples))


def sampled(articles: int, seed: int) -> Judgements:
    """All systems' texts of so many articles."""
    judged = read_judgements(DATA / "data/realsumm.jsonl.gz")
    there = np.unique(judged.segments)
    chosen = np.random.default_rng(seed).choice(there, articles, replace=False)
    return judged.only(np.isin(judged.segments, chosen))


def scored(judged: Judgements, folder: str | None) -> dict[str, Array]:
    """Every metric under every setting: a number a row, higher for better."""
    memories = SharedEncodings()
    rehearsal = SweepCache(zip(judged.hyps, judged.refs, strict=True))
    embedded = freight.with_cache("embedded", folder) if folder else "embedded"
    scores = {}
    for name, (metric, settings) in ENTERED.items():
        chosen = dict(settings)
        if "encoder" in freight.parameters(metric):
            usual = settings.get("encoder", freight.default_encoder(metric))
            chosen["encoder"] = embedded if usual == "embedded" else usual
        scorer = memories.wrap(freight.load(metric, **chosen))
        column = name.split()[-1]
        higher = next(one.higher for one in scorer.columns if one.name == column)
        values = rehearsal.score(scorer)[column]
        scores[name] = values if higher else -values
        print(name, file=sys.stderr, flush=True)
    return scores


def table(judged: Judgements, scores: dict[str, Array], resamples: int) -> str:
    """A row per metric: by level Pearson x 100, its interval, and one-sided p against the base."""
    lines = [f"{len(judged)} rows, {len(np.unique(judged.segments))} articles", ""]
    lines += ["| metric | " + " | ".join(f"{level} | p" for level in LEVELS) + " |"]
    lines += ["| --- |" + " ---: |" * 2 * len(LEVELS)]
    every = np.ones(len(judged), bool)
    criterion, options = judged.criterion(), StatisticOptions(resamples)
    for name, values in scores.items():
        cells = []
        for level in LEVELS:
            asked = comparison_of(judged, every, level, "pearson", criterion, options)
            assert asked is not None
            interval = asked.interval(values)
            cells.append(f"{_x(interval.value)} ({_x(interval.low)} to {_x(interval.high)})")
            p = None if name == BASE else asked.p_values(np.array([values, scores[BASE]]))
            cells.append("" if p is None else f"{p[0, 1]:.3f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _x(value: float) -> str:
    return f"{100 * value:.1f}"


if __name__ == "__main__":
    main()
