"""Metrics for lm-evaluation-harness: answers are collected, and scored all at once.

A task's `process_results` is called for one answer at a time, its aggregations once with all of
them. The first aggregation scores the corpus, in one pass with all metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from freight.core.pipeline import adapt, score_together
from freight.core.result import Result
from freight.core.scorers import Scorer
from freight.errors import InvalidInput

Answer = tuple[str, tuple[str, ...]]
"""A hypothesis and its references."""


class Answers:
    """The functions of a task: scorers by the names that its `metric_list` has for them.

    `refs` is the field of a document with its reference or references, or a function of the
    document.
    """

    def __init__(
        self,
        metrics: Mapping[str, Scorer],
        refs: str | Callable[[Any], str | Sequence[str]],
    ) -> None:
        if not metrics:
            raise InvalidInput("metrics is empty; give {name: freight.load(...)}")
        self._metrics = {name: adapt(scorer) for name, scorer in metrics.items()}
        self._refs = refs
        self._score_once = lru_cache(maxsize=1)(self._score)

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Answer]:
        """The answer with its references, under the name of every metric."""
        hyp = results[0]
        if not isinstance(hyp, str):
            raise InvalidInput(
                f"an answer is {hyp!r}, not a text; add the filter take_first to the task"
            )
        answer = hyp, self._references(doc)
        return dict.fromkeys(self._metrics, answer)

    def aggregation(self, name: str) -> Callable[[Sequence[Answer]], float]:
        """The primary column of a metric over all answers, for a `metric_list`."""
        if name not in self._metrics:
            raise InvalidInput(f"there is no metric {name!r}; there is {', '.join(self._metrics)}")
        column = self._metrics[name].columns[0].name

        def corpus_score(items: Sequence[Answer]) -> float:
            answers = tuple((hyp, tuple(refs)) for hyp, refs in items)
            return self._score_once(answers)[name].system[column]

        return corpus_score

    def _references(self, doc: Mapping[str, Any]) -> tuple[str, ...]:
        if isinstance(self._refs, str) and self._refs not in doc:
            raise InvalidInput(f"a document has no field {self._refs!r}; it has {', '.join(doc)}")
        refs = doc[self._refs] if isinstance(self._refs, str) else self._refs(doc)
        return (refs,) if isinstance(refs, str) else tuple(refs)

    def _score(self, answers: tuple[Answer, ...]) -> dict[str, Result]:
        hyps, refs = zip(*answers, strict=True)
        results = score_together(list(self._metrics.values()), hyps, refs)
        return dict(zip(self._metrics, results, strict=True))
