"""What the catalogue knows of a metric, gathered for the modules and the cards of evaluate."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from freight.catalogue import factory, load, metrics, paper, parameters, presets
from freight.results import Column
from freight.scoring import Scorer

SEVERAL = "several"
"""What the parameter `references` is called where `references` are texts."""


@dataclass(frozen=True)
class Description:
    """A metric in words and numbers; everything is read off its factory."""

    name: str

    @property
    def slug(self) -> str:
        """The name as Python has it, for folders and modules."""
        return str(factory(self.name).__name__)

    @property
    def summary(self) -> str:
        """What it is, in a sentence."""
        return metrics()[self.name]

    @property
    def paper(self) -> str:
        """Where it comes from."""
        return paper(self.name)

    @property
    def notes(self) -> list[str]:
        """What else there is to know, a paragraph each: options, departures from the paper."""
        both = factory(self.name), inspect.getmodule(factory(self.name))
        texts = [(inspect.getdoc(one) or "").split("\n\n")[1:] for one in both]
        notes = [note.replace("\n", " ") for text in texts for note in text]
        return [note for note in notes if note != self.paper]

    @property
    def version(self) -> str:
        """The library's, from which on the module works."""
        from freight import __version__

        return __version__

    @property
    def encodes(self) -> bool:
        """Whether texts become vectors first."""
        return "encoder" in parameters(self.name)

    @property
    def settings(self) -> dict[str, Any]:
        """What can be set, and what it is otherwise."""
        there = inspect.signature(factory(self.name)).parameters
        found = {name: parameter.default for name, parameter in there.items()}
        return {SEVERAL if name == "references" else name: x for name, x in found.items()}

    @property
    def presets(self) -> list[str]:
        """Settings that have a name."""
        return list(presets(self.name))

    @property
    def columns(self) -> tuple[Column, ...]:
        """What it gives, the primary one first."""
        return self.light.columns

    @cached_property
    def light(self) -> Scorer:
        """The metric on vectors that need no download."""
        return load(self.name, **({"encoder": "hashed"} if self.encodes else {}))

    def system(self, hyps: Sequence[str], refs: Sequence[str]) -> dict[str, float]:
        """What it gives some texts, on vectors that need no download."""
        return self.light.score(hyps, refs).system
