"""Metrics as modules of Hugging Face evaluate: `Score` does the work of those in the folders that
`freight export evaluate` writes.

Presets are configurations. Settings are given to `evaluate.load`, or to `compute`, where they come
first; since `references` are texts there, how several of them become one score is `several`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from freight.core.pipeline import pair_up
from freight.core.scorers import PipelineScorer
from freight.errors import InvalidInput, MissingPart
from freight.interop.evaluate_cards import SEVERAL, Description
from freight.metrics import load, presets

try:
    import datasets
    import evaluate
except ImportError as error:
    raise MissingPart.extra("evaluate", "evaluate") from error

_DEFAULT = "default"
_NAMES = "predictions", "references"
_THEIRS = tuple(inspect.signature(evaluate.EvaluationModule.__init__).parameters)


class Score(evaluate.Metric):  # type: ignore[misc]
    """A metric of the catalogue, named by `metric`."""

    metric: ClassVar[str]

    def __init__(self, config_name: str | None = None, **options: Any) -> None:
        theirs = {name: options.pop(name) for name in _THEIRS if name in options}
        self._settings = {**self._configuration(config_name), **options}
        self._loaded: dict[str, PipelineScorer] = {}
        self.scorer({})
        super().__init__(config_name, **theirs)

    def scorer(self, settings: Mapping[str, Any]) -> PipelineScorer:
        """The metric with these settings besides those that were given on loading."""
        chosen = {**self._settings, **settings}
        key = repr(sorted(chosen.items()))
        if key not in self._loaded:
            if SEVERAL in chosen:
                chosen["references"] = chosen.pop(SEVERAL)
            self._loaded[key] = load(self.metric, **chosen)
        return self._loaded[key]

    def compute(
        self,
        *,
        predictions: Sequence[str] | None = None,
        references: Sequence[Any] | None = None,
        details: bool = False,
        **settings: Any,
    ) -> dict[str, Any] | None:
        """What the corpus gets: everything that was added, and what is given here.

        `details` adds a list of scores a column, flags a segment and the signature.
        """
        self.scorer(settings)  # refused before anything that was added is used up
        texts = dict(zip(_NAMES, (predictions, references), strict=True))
        found: dict[str, Any] | None = super().compute(**texts, details=details, **settings)
        return found

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Add texts, with a reference or several for each."""
        segments = pair_up(predictions, references, _NAMES)
        hyps, refs = [hyp for hyp, _ in segments], [list(several) for _, several in segments]
        super().add_batch(predictions=hyps, references=refs, **others)

    def add(self, *, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Add a text, with its reference or several of them."""
        self.add_batch(predictions=[prediction], references=[reference], **others)

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[Sequence[str]],
        details: bool = False,
        **settings: Any,
    ) -> dict[str, Any]:
        result = self.scorer(settings).score(predictions, references)
        if not details:
            return result.system
        segments = {name: values.tolist() for name, values in result.segments.items()}
        flags = [list(found) for found in result.flags]
        return {
            **result.system,
            "segments": segments,
            "flags": flags,
            "signature": result.signature,
        }

    def _info(self) -> Any:
        about = Description(self.metric)
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=about.summary,
            citation=about.paper,
            inputs_description=_inputs(about),
            features=[
                datasets.Features({"predictions": text, "references": refs})
                for refs in (text, datasets.Sequence(text))
            ],
        )

    def _configuration(self, name: str | None) -> dict[str, Any]:
        there = presets(self.metric)
        if name in (None, _DEFAULT):
            return {}
        if name not in there:
            raise InvalidInput(
                f"{self.metric} has no configuration {name!r};"
                f" there is {', '.join([_DEFAULT, *there])}"
            )
        return {"preset": name}


def _inputs(about: Description) -> str:
    lines = (f"    {name}: default {value!r}" for name, value in about.settings.items())
    return "\n".join(
        (
            "",
            "Args:",
            "    predictions: texts, one a segment",
            "    references: a text for each, or a list of texts",
            "    details: whether to add scores and flags a segment, and the signature",
            *lines,
            "Returns:",
            *(
                f"    {c.name}: {'higher' if c.higher else 'lower'} is better"
                for c in about.columns
            ),
        )
    )
