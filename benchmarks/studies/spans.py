"""Error spans against expert annotations: fits the limits, and compares with three other ways.

    python benchmarks/studies/spans.py [--threads 1] [-o benchmarks/results/spans.json]

The annotations are ted-mqm.zh-en in $FREIGHT_DATA (by default ../shared): 529 segments of TED
talks, translated by 13 systems. Half of the segments, by a hash of their names, fit the limits of
freight/explain/spans.py and of bert-score; the other half tests them. It prints the limits to
copy, and writes the figures that docs/spans.md shows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import freight
from freight.data.judgement_files import Annotation, read_annotations
from freight.explain.explainer import explain_segments
from freight.explain.explanation import Explanation
from freight.explain.spans import word_costs
from freight.transport.types import Array

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared")) / "data/ted-mqm.zh-en.jsonl.gz"
SEVERITY = {"minor": 1, "major": 2}
RESAMPLES = 10_000
GRID = np.linspace(0.0, 0.95, 39)  # quantiles of a score that are tried as limits


class Words(NamedTuple):
    """The words of an output, and the scores of errors that they have."""

    spans: list[tuple[int, int]]
    gold: Array  # (character,): 0, 1 minor, 2 major
    absent: Array
    cost: Array
    greedy: Array  # minus the similarity of bert-score


def read_words(one: Annotation, ours: Explanation, bert: Explanation) -> Words:
    """An annotated output with what is known of its words."""
    gold = np.zeros(len(one.hyp), int)
    for start, end, severity in one.errors:
        gold[start:end] = np.maximum(gold[start:end], SEVERITY[severity])
    words, absent, costs = word_costs(ours.views[0], "hyp")
    similarity = 1.0 - bert.views[0].cost.min(axis=1)
    parts = [similarity[list(word.units)] for word in bert.views[0].hyp.words]
    greedy = -np.array([part.mean() if part.size else 1.0 for part in parts])
    return Words([(word.start, word.end) for word in words], gold, absent, costs, greedy)


def is_fitted(segment: str) -> bool:
    """Whether a segment is in the half that is fitted on."""
    return hashlib.sha256(segment.encode()).digest()[-1] % 2 == 0


def mark(words: Words, severities: Array) -> Array:
    """The severity of every character: neighbouring errors are one span with what is between."""
    marked = np.zeros(len(words.gold), int)
    last = None
    for (start, end), severity in zip(words.spans, severities.tolist(), strict=True):
        if severity:
            marked[start:end] = severity
            if last is not None:
                marked[last:start] = np.minimum(marked[last - 1], severity)
        last = end if severity else None
    return marked


def count(words: Words, severities: Array) -> Array:
    """Characters: right, half right where the severity differs, marked by the model, by people."""
    marked = mark(words, severities)
    both = (marked > 0) & (words.gold > 0)
    same = both & (marked == words.gold)
    return np.array(
        [both.sum(), (both.sum() + same.sum()) / 2, (marked > 0).sum(), (words.gold > 0).sum()]
    )


def f1(counts: Array, weighted: bool = False) -> float:
    """Over the characters of all outputs together."""
    right, credit, marked, gold = counts.sum(axis=0)
    return float(2 * (credit if weighted else right) / (marked + gold))


Score = Callable[[Words], Array]


class Finder(NamedTuple):
    """A way to find errors: its score of each word, and the limits of minor and major errors."""

    score: Score
    minor: float
    major: float

    def counts(self, several: Sequence[Words]) -> Array:
        """What it finds in some outputs."""
        limits = self.minor, self.major
        return np.array(
            [count(one, np.searchsorted(limits, self.score(one), side="right")) for one in several]
        )


def fit_finder(score: Score, words: Sequence[Words]) -> Finder:
    """The limit of the best F1; then as large a share of it is major as people say is."""
    pooled = np.concatenate([score(one) for one in words])
    above = pooled[pooled > pooled.min()]
    limits = np.unique(np.quantile(above, GRID)) if len(above) else [pooled.min()]
    minor = max(limits, key=lambda limit: f1(Finder(score, limit, np.inf).counts(words)))
    gold = np.concatenate([one.gold for one in words])
    major = np.quantile(pooled[pooled >= minor], 1.0 - (gold == 2).sum() / (gold > 0).sum())
    return Finder(score, float(minor), float(major))


def p_value(ours: Array, other: Array, segments: Sequence[str], weighted: bool) -> float:
    """That ours is no better: paired bootstrap over segments, whose outputs stay together."""
    index = np.unique(segments, return_inverse=True)[1]
    sums = [np.zeros((index.max() + 1, 4)) for _ in range(2)]
    for total, counts in zip(sums, (ours, other), strict=True):
        np.add.at(total, index, counts)
    draws = np.random.default_rng(0).multinomial(
        len(sums[0]), [1 / len(sums[0])] * len(sums[0]), RESAMPLES
    )
    place = 1 if weighted else 0
    scores = [2 * (draws @ s[:, place]) / (draws @ s[:, 2] + draws @ s[:, 3]) for s in sums]
    return float(np.mean(scores[0] <= scores[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/spans.json"))
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    every = sorted(read_annotations(DATA), key=lambda one: one.segment)
    pairs = [(one.hyp, one.refs) for one in every]
    metrics: list[Any] = [freight.load(name) for name in ("freight", "bert-score")]
    explained = [explain_segments(metric, pairs) for metric in metrics]
    words = [
        read_words(one, ours, theirs) for one, ours, theirs in zip(every, *explained, strict=True)
    ]
    fitted = [is_fitted(one.segment) for one in every]
    fit = [one for one, yes in zip(words, fitted, strict=True) if yes]
    test = [one for one, yes in zip(words, fitted, strict=True) if not yes]
    table = {
        "every word": fit_finder(lambda one: np.ones(len(one.spans)), fit),
        "words absent from the reference": fit_finder(lambda one: one.absent * 1.0, fit),
        "bert-score": fit_finder(lambda one: one.greedy, fit),
        "freight": fit_finder(lambda one: one.cost, fit),
    }
    print("limits", table["freight"].minor, table["freight"].major)
    counts = {name: row.counts(test) for name, row in table.items()}
    segments = [one.segment for one, yes in zip(every, fitted, strict=True) if not yes]
    figures = {
        "segments": [len({one.segment for one in every}) - len(set(segments)), len(set(segments))],
        "outputs": [len(fit), len(test)],
        "rows": {
            name: {
                "fit": f1(row.counts(fit)),
                "f1": f1(counts[name]),
                "precision": float(counts[name][:, 0].sum() / counts[name][:, 2].sum()),
                "recall": float(counts[name][:, 0].sum() / counts[name][:, 3].sum()),
                "weighted": f1(counts[name], weighted=True),
                **(
                    {}
                    if name == "freight"
                    else {
                        "p": p_value(counts["freight"], counts[name], segments, False),
                        "weighted p": p_value(counts["freight"], counts[name], segments, True),
                    }
                ),
            }
            for name, row in table.items()
        },
    }
    arguments.output.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
