"""Metrics as modules of Hugging Face evaluate, and the folders that `evaluate.load` reads.

`Score` is the metric of every such module. `write_module` writes the folder of a metric: a module
of a few lines, its card, its requirements and the page of a Space, all generated from the metric's
declaration. A folder is loaded by its path, or pushed to a Space as it is and loaded by its name.

Presets are configurations. Settings are given to `evaluate.load`, or to `compute`, where they take
precedence. Because `references` are texts there, the parameter that says how several references
become one score is called `several`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from freight.core.result import Column
from freight.core.scorers import PipelineScorer, pair_up
from freight.data.output import write_whole
from freight.errors import InvalidInput, MissingPart
from freight.metrics import find_metric, load
from freight.metrics.declaration import Declaration, Parameter

try:
    import datasets
    import evaluate
except ImportError as error:
    raise MissingPart.extra("evaluate", "evaluate") from error

SEVERAL = "several"
"""What the parameter `references` is called where `references` are texts."""
HYPS = ["The boy in a coat.", "Rain fell all day."]
REFS = ["The young man in a slicker.", "It rained all day."]
_DEFAULT = "default"
_NAMES = "predictions", "references"
_OPTIONS_OF_EVALUATE = tuple(inspect.signature(evaluate.EvaluationModule.__init__).parameters)


class Score(evaluate.Metric):  # type: ignore[misc]
    """The metric of Freight that `metric` names."""

    metric: ClassVar[str]

    def __init__(self, config_name: str | None = None, **options: Any) -> None:
        own = {name: options.pop(name) for name in _OPTIONS_OF_EVALUATE if name in options}
        self._settings = {**self._configuration(config_name), **options}
        self._loaded: dict[str, PipelineScorer] = {}
        self.scorer({})
        super().__init__(config_name, **own)

    def scorer(self, settings: Mapping[str, Any]) -> PipelineScorer:
        """The metric with these settings on top of those given to `evaluate.load`."""
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
        """The scores of the corpus: of the texts that were added, and of those given here.

        `details` adds one list of scores per column, the flags of each segment and the signature.
        """
        self.scorer(settings)  # an invalid setting must not consume the texts that were added
        texts = dict(zip(_NAMES, (predictions, references), strict=True))
        scores: dict[str, Any] | None = super().compute(**texts, details=details, **settings)
        return scores

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Add texts, each with one reference or several."""
        segments = pair_up(predictions, references, _NAMES)
        hyps, refs = [hyp for hyp, _ in segments], [list(several) for _, several in segments]
        super().add_batch(predictions=hyps, references=refs, **others)

    def add(self, *, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Add a text, with one reference or several."""
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
        flags = [[flag.record for flag in row] for row in result.flags]
        return {
            **result.system,
            "segments": segments,
            "flags": flags,
            "signature": result.signature,
        }

    def _info(self) -> Any:
        about = MetricCard(self.metric)
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
        if name is None or name == _DEFAULT:
            return {}
        declaration = find_metric(self.metric)
        if not declaration.has_preset(name):
            raise InvalidInput(
                f"{self.metric} has no configuration {name!r};"
                f" there is {', '.join([_DEFAULT, *declaration.presets])}"
            )
        return {"preset": name}


def _inputs(about: MetricCard) -> str:
    lines = (
        f"    {name}: {one.description} Default: {one.default!r}"
        for name, one in about.settings.items()
    )
    return "\n".join(
        (
            "",
            "Args:",
            "    predictions: one text per segment",
            "    references: one text for each of them, or a list of texts",
            "    details: whether to add the scores and flags of each segment, and the signature",
            *lines,
            "Returns:",
            *(
                f"    {c.name}: {'higher' if c.higher else 'lower'} is better"
                for c in about.columns
            ),
        )
    )


@dataclass(frozen=True)
class MetricCard:
    """What a card says of a metric, all of it read from its declaration."""

    name: str

    @property
    def declaration(self) -> Declaration[..., Any]:
        """The metric's facts."""
        return find_metric(self.name)

    @property
    def slug(self) -> str:
        """The name as a Python identifier, for folders and modules."""
        return str(self.declaration.factory.__name__)

    @property
    def summary(self) -> str:
        """What it is, in one sentence."""
        return self.declaration.summary

    @property
    def paper(self) -> str:
        """Its paper, or nothing."""
        return self.declaration.paper

    @property
    def notes(self) -> list[str]:
        """What else there is to know, one paragraph each: options, departures from the paper."""
        return self.declaration.notes

    @property
    def version(self) -> str:
        """The library's, from which on the module works."""
        from freight import __version__

        return __version__

    @property
    def encodes(self) -> bool:
        """Whether texts become vectors first."""
        return "encoder" in self.declaration.parameters

    @property
    def settings(self) -> dict[str, Parameter]:
        """Its parameters, under the names that evaluate uses."""
        there = self.declaration.parameters
        return {SEVERAL if name == "references" else name: one for name, one in there.items()}

    @property
    def presets(self) -> list[str]:
        """The names of its presets."""
        return list(self.declaration.presets)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its results, the primary one first."""
        return self.light.columns

    @cached_property
    def light(self) -> PipelineScorer:
        """The metric on vectors that need no download."""
        return load(self.name, **({"encoder": "hashed"} if self.encodes else {}))

    def system(self, hyps: Sequence[str], refs: Sequence[str]) -> dict[str, float]:
        """Its scores of some texts, on vectors that need no download."""
        return self.light.score(hyps, refs).system


def write_module(folder: Path, name: str) -> Path:
    """Write the folder of a metric into a folder, and return its path."""
    if folder.is_file():
        raise InvalidInput(f"{folder} is a file; name a folder")
    about = MetricCard(name)
    texts = module_files(about)
    home = folder / about.slug
    home.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        write_whole(home / file, text.encode())
    return home


def module_files(about: MetricCard) -> dict[str, str]:
    """The files of a metric's folder."""
    title = "".join(part.capitalize() for part in about.slug.split("_"))
    part = "embedded" if about.encodes else "lexical"
    words = {"name": about.name, "slug": about.slug, "summary": about.summary, "title": title}
    return {
        f"{about.slug}.py": _MODULE.format(**words),
        "app.py": _APP.format(**words),
        "requirements.txt": f"freight[evaluate,{part}]>={about.version}\n",
        "README.md": _card(about),
    }


def _card(about: MetricCard) -> str:
    named = ", ".join(f"`{preset}`" for preset in about.presets)
    return _CARD.format(
        name=about.name,
        summary=about.summary,
        several=SEVERAL,
        example=_example(about),
        signature=about.light.signature,
        settings="\n".join(
            f"| `{name}` | `{one.default!r}` | {one.description} |"
            for name, one in about.settings.items()
        ),
        configurations=f"Configurations, by `config_name`: {named}." if named else "",
        columns="\n".join(_row(column) for column in about.columns),
        limits="\n".join(f"- {limit}" for limit in _limits(about)),
        paper=about.paper
        or f"Freight {about.version}; the metric has not been published elsewhere.",
    )


def _example(about: MetricCard) -> str:
    """A session that can be repeated anywhere, since nothing is fetched for it."""
    light = ', encoder="hashed"' if about.encodes else ""
    scores = {name: round(x, 4) for name, x in about.system(HYPS, REFS).items()}
    return "\n".join(
        (
            ">>> import evaluate",
            f'>>> metric = evaluate.load("{about.slug}"{light})',
            f">>> scores = metric.compute(predictions={json.dumps(HYPS)},",
            f"...                         references={json.dumps(REFS)})",
            ">>> {name: round(score, 4) for name, score in scores.items()}",
            repr(scores),
        )
    )


def _row(column: Column) -> str:
    better = "higher ↑" if column.higher else "lower ↓"
    return f"| `{column.name}` | {better} | {column.perfect:g} | {column.worst:g} |"


def _limits(about: MetricCard) -> Iterator[str]:
    if about.encodes:
        default = about.settings["encoder"].default
        yield (
            "A score depends on its encoder: `hashed` compares words, not meanings, and is for"
            f" tests; the default is `{default}`. Scores of different encoders, layers or settings"
            " cannot be compared; the signature tells them apart."
        )
    else:
        yield "It compares strings: another wording of the same thing counts as an error."
    if "idf" in about.settings and about.settings["idf"].default is not None:
        yield "IDF is fitted on the references given, so that scores depend on all of them."
    yield from about.notes


_MODULE = '''"""{summary}

Written by `freight export evaluate`; the code is in freight.interop.evaluate.
"""

from freight.interop import evaluate


class {title}(evaluate.Score):
    """{name}, a metric of Freight."""

    metric = "{name}"
'''

_APP = '''"""The page of a Space, to try the metric on."""

from pathlib import Path

import evaluate
from evaluate.utils import launch_gradio_widget

launch_gradio_widget(evaluate.load(str(Path(__file__).with_name("{slug}.py"))))
'''

_CARD = """---
title: {name}
emoji: 🚚
colorFrom: blue
colorTo: gray
sdk: gradio
sdk_version: 3.19.1
python_version: "3.11"
app_file: app.py
pinned: false
license: apache-2.0
tags:
- evaluate
- metric
description: >-
  {summary}
---

# {name}

## Metric description

{summary} It is one of the metrics of Freight, which scores generated text by optimal transport.

## How to use

```python
{example}
```

`references` has one text for each prediction, or a list of texts; `add` and `add_batch` take the
same. The signature of this example, which names every setting:

    {signature}

## Inputs

- **predictions** (`list` of `str`): the texts to score.
- **references** (`list` of `str`, or of `list` of `str`): the texts to compare them with.
- **details** (`bool`, default `False`): adds `segments` (one list of scores per column), `flags`
  (per segment, why it could not be scored normally) and `signature` (every setting, one line).

Settings of `evaluate.load` or of `compute`:

| name | default | what it does |
| --- | --- | --- |
{settings}

`{several}` says how several references become one score: `best`, `each` or `mean`. {configurations}

## Output values

The score of the corpus in each column, the primary one first:

| column | better | identical texts | one side empty |
| --- | --- | --- | --- |
{columns}

## Limitations

{limits}

## Citation

{paper}
"""
