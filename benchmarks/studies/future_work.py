"""What the papers left for later, against people: tables of Markdown.

    python benchmarks/studies/future_work.py [--rows 100] [--threads 1] [--resamples 300] [--seed 0]

Options of WRDScore and STD on so many rows of each language pair of WMT15 to English in
$FREIGHT_DATA (by default ../shared), and barycenters as features that tell people's sentences from
machines'.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest

import freight
from freight.core.sweep_cache import SharedEncodings, SweepCache
from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.judge.comparisons import StatisticOptions, comparison_of
from freight.transport.types import Array

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
CHARACTERS: dict[str, Any] = {"lang": "characters", "short": 2}
ENTERED: dict[str, dict[str, tuple[str, str, dict[str, Any]]]] = {
    **{
        f"Word order in {name}": {
            f"order {order:g}": (name, "f1", {"order": order}) for order in (0.0, 0.1, 0.2, 0.4)
        }
        for name in ("wrd-score", "wrd-score-code")
    },
    "STD": {
        "distilled words": ("std", "distance", {}),
        "contextual": ("std", "distance", {"encoder": "embedded"}),
        "contextual, all of it moved": (
            "std",
            "distance",
            {"encoder": "embedded", "shared": "moved"},
        ),
        "contextual, no order": ("std", "distance", {"encoder": "embedded", "order": 0.0}),
        "characters, n-grams of 2 and 4": ("std", "distance", {**CHARACTERS, "long": 4}),
        "words and 3-grams": ("std", "distance", {"long": 3}),
    },
}
FEATURES: dict[str, tuple[str, dict[str, Any], str]] = {
    "mean of one layer": ("emd", {}, "mean"),
    "mean of five layers": (
        "emd",
        {"layer": "-5:", "pooling": "unit-mean"},
        "mean",
    ),
    "five layers, deviation": ("emd", {"layer": "-5:", "pooling": "unit-mean"}, "deviation"),
    "barycenter, mean": ("bary-score", {}, "mean"),
    "barycenter, deviation": ("bary-score", {}, "deviation"),
    "five layers, power means": ("emd", {"layer": "-5:", "pooling": "unit-mean"}, "power-means"),
    "barycenter, power means": ("bary-score", {}, "power-means"),
}


def main() -> None:
    arguments = asked(__doc__)
    judged = sampled(arguments.rows, arguments.seed)
    memories = SharedEncodings()
    rehearsal = SweepCache(zip(judged.hyps, judged.refs, strict=True))
    for title, entered in ENTERED.items():
        scores = {}
        for name, (metric, column, settings) in entered.items():
            scorer = memories.wrap(freight.load(metric, **settings))
            higher = next(one.higher for one in scorer.columns if one.name == column)
            values = rehearsal.score(scorer)[column]
            scores[name] = values if higher else -values
            print(name, file=sys.stderr, flush=True)
        print(f"## {title}\n\n{table(judged, scores, arguments.resamples)}", flush=True)
    print(f"## Features\n\n{told_apart(judged, memories, arguments.seed)}")


def asked(about: str) -> argparse.Namespace:
    """What the command line says, its threads set."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100, help="of each language pair")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    return arguments


def sampled(rows: int, seed: int) -> Judgements:
    """So many rows of each language pair to English."""
    judged = read_judgements(DATA / "data/wmt15-da.jsonl.gz")
    rng = np.random.default_rng(seed)
    pairs = np.array(judged.lang_pairs)
    english = [pair for pair in dict.fromkeys(judged.lang_pairs) if pair.endswith("-en")]
    of = [rng.choice(np.flatnonzero(pairs == pair), rows, replace=False) for pair in english]
    return judged.only(np.sort(np.concatenate(of)))


def table(judged: Judgements, scores: dict[str, Array], resamples: int) -> str:
    """Pearson x 100 over all rows with its interval, and one-sided p against the first metric."""
    lines = [f"| {len(judged)} rows | Pearson | p against the first |", "| --- | ---: | ---: |"]
    every, first = np.ones(len(judged), bool), next(iter(scores.values()))
    for name, values in scores.items():
        asked = comparison_of(
            judged, every, "segment", "pearson", judged.criterion(), StatisticOptions(resamples)
        )
        assert asked is not None
        interval = asked.interval(values)
        p_values = None if values is first else asked.p_values(np.array([values, first]))
        p = "" if p_values is None else f"{p_values[0, 1]:.3f}"
        shown = " ".join(f"{100 * x:.1f}" for x in (interval.value, interval.low, interval.high))
        lines.append("| {} | {} ({} to {}) | {} |".format(name, *shown.split(), p))
    return "\n".join(lines) + "\n"


def told_apart(judged: Judgements, memories: SharedEncodings, seed: int) -> str:
    """How often a logistic regression tells a reference from a hypothesis, five folds.

    Every reference is there once, with one hypothesis that differs from it, in the same fold.
    """
    rows = zip(judged.refs, judged.hyps, strict=True)
    apart = {ref: hyp for (ref, *_), hyp in rows if ref != hyp}
    texts = [*apart, *apart.values()]
    human = np.repeat([1.0, 0.0], len(apart))
    fold = np.tile(np.random.default_rng(seed).permutation(len(apart)) % 5, 2)
    lines = [
        "| features | dimensions | right | p against the first |",
        "| --- | ---: | ---: | ---: |",
    ]
    first: Array | None = None
    for name, (metric, settings, pool) in FEATURES.items():
        scorer = memories.wrap(freight.load(metric, **settings))
        made = freight.features(scorer, texts, pool)
        right = np.zeros(len(human), bool)
        for part, predicted in _predicted(made, human, fold):
            right[part] = predicted == human[part]
        p = "" if first is None else f"{_sign_test(right, first):.3f}"
        first = right if first is None else first
        lines.append(f"| {name} | {made.shape[1]} | {right.mean():.1%} | {p} |")
        print(name, file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def _predicted(rows: Array, human: Array, fold: Array) -> Iterator[tuple[Array, Array]]:
    for part in np.unique(fold):
        taught, asked = fold != part, fold == part
        mean, spread = rows[taught].mean(axis=0), rows[taught].std(axis=0) + 1e-9
        scaled = np.column_stack(((rows - mean) / spread, np.ones(len(rows))))
        weights = _logistic(scaled[taught], human[taught])
        yield asked, (scaled[asked] @ weights > 0).astype(float)


def _logistic(rows: Array, target: Array) -> Array:
    """Weights of a logistic regression, penalised by the sum of their squares."""

    def loss(weights: Array) -> tuple[float, Array]:
        seen = rows @ weights
        value = np.logaddexp(0.0, seen) - target * seen
        slope = rows.T @ (expit(seen) - target)
        price = 0.01 * rows.shape[1]
        return float(value.sum() + price * weights @ weights / 2), slope + price * weights

    solution: Array = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x
    return solution


def _sign_test(one: Array, other: Array) -> float:
    """McNemar's exact p, one-sided, that the one is right more often than the other."""
    better, worse = int((one & ~other).sum()), int((other & ~one).sum())
    return float(binomtest(better, max(better + worse, 1), alternative="greater").pvalue)


if __name__ == "__main__":
    main()
