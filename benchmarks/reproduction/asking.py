"""Stored scores, and how well they agree with people: a statistic on one set per question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.judge.comparisons import ResampledComparison, StatisticOptions, comparison_of
from freight.judge.correlation import Correlation
from freight.judge.levels import estimate
from freight.judge.significance import williams_p_values
from freight.transport.types import Array
from scores import STRINGS, SYSTEMS, WORDS, rated_systems

ORDER = ("embedded", "e5", "mpnet")
"""Encoders that come first, in this order."""


class Question(NamedTuple):
    """A set, or the part of it with that language pair or that kind of systems, and a statistic."""

    set: str
    part: str = ""
    level: str = "segment"
    statistic: str = "pearson"
    criterion: str = ""


@dataclass(frozen=True)
class Store:
    """A folder of <encoder>.<set>.npz beside the data that were scored."""

    folder: Path
    data: Path

    @cached_property
    def encoders(self) -> tuple[str, ...]:
        """The contextual ones."""
        return self._having("bert-score:f1")

    @cached_property
    def vectors(self) -> tuple[str, ...]:
        """Word vectors, the default ones among them."""
        return self._having("std:distance")

    def scores(self, encoder: str, title: str) -> dict[str, Array]:
        """Columns of an encoder and, beside it, those of words and strings.

        None where there is no file.
        """
        columns = dict(_columns(self.folder / f"{encoder}.{title}.npz"))
        if encoder in self.encoders:
            words = _columns(self.folder / f"{WORDS}.{title}.npz")
            columns |= {_of_words(label): values for label, values in words.items()}
        if encoder in (*self.encoders, WORDS):
            columns |= _columns(self.folder / f"{STRINGS}.{title}.npz")
        return columns

    def made(self, encoder: str) -> str:
        """What computed an encoder's scores."""
        path = self.folder / f"{encoder}.txt"
        return path.read_text("utf-8").strip() if path.exists() else "not recorded"

    def partial(self, encoder: str, title: str) -> list[str]:
        """The metrics that a set was not scored with, though others were."""
        files = self.folder.glob(f"{encoder}.*.npz")
        every = {
            label.partition(":")[0]: None for file in sorted(files) for label in _columns(file)
        }
        there = _columns(self.folder / f"{encoder}.{title}.npz")
        return sorted(set(every) - {label.partition(":")[0] for label in there})

    def unscored(self) -> dict[str, int]:
        """By metric the rows, over all files, that it could not score."""
        rows: Counter[str] = Counter()
        for file in self.folder.glob("*.npz"):
            worst: Counter[str] = Counter()
            for label, values in _columns(file).items():
                metric = label.partition(":")[0]
                worst[metric] = max(worst[metric], int((~np.isfinite(values)).sum()))
            rows.update(worst)
        return {metric: count for metric, count in sorted(rows.items()) if count}

    def holding(self, title: str) -> list[str]:
        """The contextual encoders that a set was scored with."""
        return [encoder for encoder in self.encoders if self.holds(encoder, title)]

    def systems(self, vectors: str, pair: str) -> dict[str, Array]:
        """By metric the scores of WMT18's systems; `rated_systems` has what people gave them."""
        title = f"{SYSTEMS[0].partition('.')[0]}.{pair}"
        return {
            label: values
            for label, values in self.scores(vectors, title).items()
            if len(values) == len(rated_systems(pair))
        }

    def holds(self, encoder: str, title: str) -> bool:
        """Whether the set was scored with this encoder."""
        return (self.folder / f"{encoder}.{title}.npz").exists()

    def ask(self, encoder: str, question: Question) -> Panel:
        """All metrics beside each other."""
        return _ask(self, encoder, question)

    def _having(self, label: str) -> tuple[str, ...]:
        files = sorted(self.folder.glob("*.npz"))
        names = {f.name.split(".")[0] for f in files if label in _columns(f)}
        places = {name: place for place, name in enumerate(ORDER)}
        return tuple(sorted(names, key=lambda name: (places.get(name, len(ORDER)), name)))


@dataclass(frozen=True, eq=False)
class Panel:
    """The metrics on the rows of one question; empty if the set was not scored.

    A row that a metric could not score is left out for this metric, and for a metric that it is
    compared with.
    """

    question: Question
    judged: Judgements | None
    scores: dict[str, Array]

    @cached_property
    def values(self) -> dict[str, float]:
        """The statistic by metric."""
        return {
            label: estimate(self._over(label).statistic, row) for label, row in self.scores.items()
        }

    def p(self, first: str, second: str) -> float:
        """One-sided p-value of the first agreeing better, under equal agreement."""
        one, other = sorted((first, second))
        return float(
            self._matrix(one, other)[0, 1] if first == one else self._matrix(one, other)[1, 0]
        )

    def williams(self, labels: Sequence[str]) -> Array:
        """One-sided p-values of row against column by Williams' test of Pearson's r."""
        return williams_p_values(*self.points(labels))

    def points(self, labels: Sequence[str]) -> tuple[Array, Array]:
        """What is correlated on the question's level: metrics (metric, point), and people."""
        statistic = self._over(*labels).statistic
        assert isinstance(statistic, Correlation), self.question
        sample = statistic.sample
        several = [
            statistic.rated.points(sample.scores(self.scores[label]), sample.once)
            for label in labels
        ]
        return np.concatenate([one.metric for one in several]), several[0].human[0]

    @cache  # noqa: B019, a panel lives as long as the page
    def _matrix(self, one: str, other: str) -> Array:
        both = np.stack([self.scores[one], self.scores[other]])
        return self._over(one, other).p_values(both)

    def _over(self, *labels: str) -> ResampledComparison:
        usable = np.logical_and.reduce([np.isfinite(self.scores[label]) for label in labels])
        _, _, level, statistic, criterion = self.question
        assert self.judged is not None, "there are no scores without a set"
        options = StatisticOptions()
        comparison = comparison_of(self.judged, usable, level, statistic, criterion, options)
        assert isinstance(comparison, ResampledComparison), self.question
        return comparison


def combined_p(panels: list[Panel], first: str, second: str) -> float:
    """One-sided p-value of the first agreeing better; panels are combined by Stouffer."""
    ps = np.clip([panel.p(first, second) for panel in panels], 1e-12, 1 - 1e-12)
    return float(stats.combine_pvalues(ps, "stouffer").pvalue)


def differ_significantly(panels: list[Panel], first: str, second: str) -> bool:
    """Whether two metrics differ at the 5 % level, two-sided."""
    return min(combined_p(panels, *pair) for pair in ((first, second), (second, first))) < 0.025


@cache
def _ask(store: Store, encoder: str, question: Question) -> Panel:
    if not store.holds(encoder, question.set):
        return Panel(question, None, {})
    judged = _judged(store.data / "data" / f"{question.set}.jsonl.gz")
    rows = _rows(judged, question.part)
    scores = {k: v[rows] for k, v in store.scores(encoder, question.set).items()}
    return Panel(question, judged.only(rows), scores)


def _rows(judged: Judgements, part: str) -> Array:
    """Those of a language pair, or of the systems whose names start so."""
    if not part:
        return np.ones(len(judged), bool)
    pairs = np.array(judged.lang_pairs) == part
    systems = np.array([name.startswith(f"{part}/") for name in judged.system_names])
    return pairs | systems[judged.systems]


def _of_words(label: str) -> str:
    """Metrics that exist for both kinds of vectors are told apart."""
    metric, _, column = label.partition(":")
    return f"{metric}(words):{column}" if metric == "wrd-score" else label


@cache
def _judged(path: Path) -> Judgements:
    return read_judgements(path)


@cache
def _columns(path: Path) -> dict[str, Array]:
    if not path.exists():
        return {}
    with np.load(path) as stored:
        return {label: stored[label] for label in stored}
