"""Folders for Hugging Face evaluate, one per metric: a module, its card, and what it requires.

All of it follows from the metrics' declarations. A folder can be loaded by its path, and can be
pushed as it is to a Space, from where `evaluate.load` loads it by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from freight.core.result import Column
from freight.core.scorers import PipelineScorer
from freight.errors import InvalidInput
from freight.metrics import find_metric, load
from freight.metrics.declaration import Declaration, Parameter

HYPS = ["The boy in a coat.", "Rain fell all day."]
REFS = ["The young man in a slicker.", "It rained all day."]

_MODULE = '''"""{summary}

Written by `freight export evaluate`; what it does is in freight.interop.evaluate.
"""

from freight.interop import evaluate


class {title}(evaluate.Score):
    """{name}, a metric of Freight."""

    metric = "{name}"
'''

_APP = '''"""The page of a Space: the metric to try."""

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

{summary} One of the metrics of Freight, which scores generated text by optimal transport.

## How to use

```python
{example}
```

`references` has a text for each prediction, or a list of texts; `add` and `add_batch` take the
same. The signature of this example, every choice in one line:

    {signature}

## Inputs

- **predictions** (`list` of `str`): the texts to score.
- **references** (`list` of `str`, or of `list` of `str`): what they are compared with.
- **details** (`bool`, default `False`): adds `segments` (a list of scores a column), `flags` (what
  could not be scored normally, by segment) and `signature` (every choice, one line).

Settings, of `evaluate.load` or of `compute`:

| name | default | what it does |
| --- | --- | --- |
{settings}

`{several}` says how several references become one score: `best`, `each` or `mean`. {configurations}

## Output values

What the corpus gets by each column, the primary one first:

| column | better | identical texts | one side empty |
| --- | --- | --- | --- |
{columns}

## Limitations

{limits}

## Citation

{paper}
"""


def write_module(folder: Path, name: str) -> Path:
    """Write the folder of a metric into a folder, and say where it is."""
    if folder.is_file():
        raise InvalidInput(f"{folder} is a file; name a folder")
    about = Description(name)
    texts = module_files(about)
    home = folder / about.slug
    home.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (home / file).write_text(text, encoding="utf-8")
    return home


def module_files(about: Description) -> dict[str, str]:
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


def _card(about: Description) -> str:
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


def _example(about: Description) -> str:
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


def _limits(about: Description) -> Iterator[str]:
    if about.encodes:
        default = about.settings["encoder"].default
        yield (
            "A score is as good as the encoder: `hashed` knows words but no meaning, and is for"
            f" tests; the default is `{default}`. Scores of different encoders, layers or settings"
            " cannot be compared; the signature tells them apart."
        )
    else:
        yield "It compares strings: another wording of the same thing counts as an error."
    if "idf" in about.settings and about.settings["idf"].default is not None:
        yield "IDF is fitted on the references given, so that scores depend on all of them."
    yield from about.notes


SEVERAL = "several"
"""What the parameter `references` is called where `references` are texts."""


@dataclass(frozen=True)
class Description:
    """A metric in words and numbers; everything is read off its declaration."""

    name: str

    @property
    def declaration(self) -> Declaration[..., Any]:
        """The metric's facts."""
        return find_metric(self.name)

    @property
    def slug(self) -> str:
        """The name as Python has it, for folders and modules."""
        return str(self.declaration.factory.__name__)

    @property
    def summary(self) -> str:
        """What it is, in one sentence."""
        return self.declaration.summary

    @property
    def paper(self) -> str:
        """Where it comes from."""
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
        """What can be set, under the names that this library uses."""
        there = self.declaration.parameters
        return {SEVERAL if name == "references" else name: one for name, one in there.items()}

    @property
    def presets(self) -> list[str]:
        """Settings that have a name."""
        return list(self.declaration.presets)

    @property
    def columns(self) -> tuple[Column, ...]:
        """What it gives, the primary one first."""
        return self.light.columns

    @cached_property
    def light(self) -> PipelineScorer:
        """The metric on vectors that need no download."""
        return load(self.name, **({"encoder": "hashed"} if self.encodes else {}))

    def system(self, hyps: Sequence[str], refs: Sequence[str]) -> dict[str, float]:
        """What it gives some texts, on vectors that need no download."""
        return self.light.score(hyps, refs).system
