"""Metrics in evaluation harnesses: lm-evaluation-harness, pytest, DeepEval, Inspect, promptfoo.

In lm-evaluation-harness answers are collected, and scored all at once (`Answers`). The others ask
of one answer whether it is good enough, and get the same verdict, that of an `AnswerCheck`: the
score, whether it reaches a bound, and a line that says why. pytest loads this module by itself
wherever Freight is installed, so importing it imports neither a metric nor any of these packages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from freight.errors import InvalidInput, MissingPart

if TYPE_CHECKING:
    from freight.core.result import Result
    from freight.core.scorers import PipelineScorer, Scorer

AT_LEAST = 0.7
"""The score of the default metric that an answer needs, where nothing else is said."""


class Verdict(NamedTuple):
    """The score of an answer, whether it is good enough, and why."""

    score: float
    passed: bool
    reason: str


class AnswerCheck:
    """Scores one answer at a time by a metric, a name or a loaded one, and compares with a bound.

    `at_least` is a bound of the primary column: the highest score allowed where lower is better. A
    critical difference, such as another number, is named in the reason; an answer that has one does
    not pass unless `allow_critical`.
    """

    def __init__(
        self,
        metric: str | Scorer = "freight",
        at_least: float = AT_LEAST,
        allow_critical: bool = True,
        **settings: Any,
    ) -> None:
        from freight.metrics import scorer_of

        if isinstance(metric, str):
            self.scorer = _loaded(metric, tuple(sorted(settings.items())))
        elif settings:
            raise InvalidInput(f"{metric!r} is loaded already; {', '.join(settings)} cannot be set")
        else:
            self.scorer = scorer_of(metric)
        self.at_least, self.allow_critical = at_least, allow_critical

    def __call__(self, hyp: str, refs: str | Sequence[str]) -> Verdict:
        """The verdict on an answer against its reference, or the best of several."""
        from freight.core.critical import critical_differences

        several = [refs] if isinstance(refs, str) else list(refs)
        result = self.scorer.score([hyp], [several])
        column = self.scorer.columns[0]
        score = float(result[column.name][0])
        passed = score >= self.at_least if column.higher else score <= self.at_least
        differences = critical_differences(hyp, several, int(result.winners[0]))
        wanted = f"at {'least' if column.higher else 'most'} {self.at_least:g} is wanted"
        notes = [
            f"{self.scorer.name}:{column.name} is {score:.4f}, {wanted}",
            *(f"{one.kind}: {' / '.join(map(repr, one.words))}" for one in differences),
            *map(str, result.flags[0]),
        ]
        passed = passed and (self.allow_critical or not differences)
        return Verdict(score, passed, "; ".join(notes))


@lru_cache(maxsize=8)
def _loaded(name: str, settings: tuple[tuple[str, Any], ...]) -> PipelineScorer:
    """A metric that is loaded once, however many answers are checked one by one."""
    from freight.metrics import load

    return load(name, **dict(settings))


def assert_similar(
    hyp: str,
    refs: str | Sequence[str],
    at_least: float = AT_LEAST,
    metric: str | Scorer = "freight",
    **settings: Any,
) -> float:
    """The score of a text; an AssertionError that says why where it is not good enough."""
    verdict = AnswerCheck(metric, at_least, **settings)(hyp, refs)
    if not verdict.passed:
        raise AssertionError(f"{verdict.reason}\n  text:      {hyp}\n  reference: {refs}")
    return verdict.score


def deepeval_metric(
    metric: str | Scorer = "freight", threshold: float = AT_LEAST, **settings: Any
) -> Any:
    """A metric of DeepEval: `actual_output` is compared with `expected_output`."""
    base: Any = _module("deepeval.metrics", "deepeval").BaseMetric
    check = AnswerCheck(metric, threshold, **settings)

    class FreightMetric(base):  # type: ignore[misc]
        """Its fields are those that DeepEval reads."""

        _required_params: tuple[Any, ...] = ()

        def __init__(self) -> None:
            self.threshold, self.async_mode, self.include_reason = threshold, False, True
            self.evaluation_model = check.scorer.signature

        def measure(self, test_case: Any, *_: Any, **__: Any) -> float:
            expected = test_case.expected_output
            if expected is None:
                raise InvalidInput("a test case has no expected_output to compare with")
            verdict = check(test_case.actual_output, expected)
            self.score, self.success, self.reason = verdict
            return verdict.score

        async def a_measure(self, test_case: Any, *_: Any, **__: Any) -> float:
            return self.measure(test_case)

        def is_successful(self) -> bool:
            return bool(self.success)

        @property
        def __name__(self) -> str:
            return check.scorer.name

    return FreightMetric()


def inspect_scorer(
    metric: str | Scorer = "freight", at_least: float = AT_LEAST, **settings: Any
) -> Any:
    """A scorer of Inspect: the completion is compared with the sample's targets.

    Its value is the score of the primary column; `passed` is in the metadata.
    """
    inspect = _module("inspect_ai.scorer", "inspect_ai")
    check = AnswerCheck(metric, at_least, **settings)

    @inspect.scorer(metrics=[inspect.mean(), inspect.stderr()], name=check.scorer.name)  # type: ignore[untyped-decorator, unused-ignore]
    def freight_scorer() -> Any:
        async def score(state: Any, target: Any) -> Any:
            answer = state.output.completion
            verdict = check(answer, list(target))
            return inspect.Score(
                value=verdict.score,
                answer=answer,
                explanation=verdict.reason,
                metadata={"passed": verdict.passed},
            )

        return score

    return freight_scorer()


def get_assert(output: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """A Python assertion of promptfoo: the output is compared with a variable of the test.

    The assertion's `config` says how: `reference` (the variable, by default `reference`),
    `threshold`, `metric`, and settings of the metric.
    """
    config = dict(context.get("config") or {})
    variable = config.pop("reference", "reference")
    variables = context.get("vars") or {}
    if variable not in variables:
        known = ", ".join(variables) or "none"
        raise InvalidInput(f"the test has no variable {variable!r}; there is {known}")
    check = AnswerCheck(at_least=config.pop("threshold", AT_LEAST), **config)
    score, passed, reason = check(output, variables[variable])
    return {"pass": passed, "score": score, "reason": reason}


def _module(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingPart(f"{package} is not installed; pip install {package}") from None


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
        from freight.core.pipeline import adapt

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
        from freight.core.pipeline import score_together

        hyps, refs = zip(*answers, strict=True)
        results = score_together(list(self._metrics.values()), hyps, refs)
        return dict(zip(self._metrics, results, strict=True))


if "pytest" in sys.modules:  # it is loading its plugins
    import pytest

    @pytest.fixture(scope="session", name="assert_similar")
    def assert_similar_fixture() -> Callable[..., float]:
        """`assert_similar`, as a fixture."""
        return assert_similar
