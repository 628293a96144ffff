"""What a service offers: metrics over the encoders that were allowed when it was started."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from freight.catalogue import default_encoder, load, metrics, parameters, presets
from freight.clouds import Encoder
from freight.encoding import DISTILLED, EMBEDDED, encoder, is_static
from freight.encoding.keeping import device_of
from freight.encoding.remembered import Remembered
from freight.encoding.transformer import Transformer
from freight.errors import InvalidInput, MissingPart
from freight.rehearsal import Memories
from freight.scoring import Scorer
from freight.serve.parameters import Choice, checked, settable

KEPT = 256
"""Metrics that are kept loaded; those not asked for longest make room."""

_SMALL = 256
"""Tokens of an encoder batch on a CPU where nothing else is said."""


@dataclass(frozen=True)
class Wanted:
    """A metric as a request names it, its settings checked; what is equal is scored together."""

    name: str
    encoder: str | None
    settings: str  # JSON, so that equal ones are equal

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings by name."""
        found: dict[str, Any] = json.loads(self.settings)
        return {name: float("inf") if x == "inf" else x for name, x in found.items()}


@dataclass(frozen=True)
class Named:
    """An encoder as requests name it, and what metrics are given for it.

    They are given word vectors by name, since they choose how texts become words.
    """

    name: str
    spec: str
    given: str | Encoder
    depth: int

    def remembering(self, memory: int) -> Named:
        """The same, remembering what it has encoded: a text is often sent again."""
        if isinstance(self.given, str):
            return self
        return replace(self, given=Remembered(self.given, memory))


class Offer:
    """Metrics by what requests say of them, loaded when first asked for.

    `learnt_from` are texts that IDF is learnt from; without them a metric that weighs by IDF is
    refused. Encoders remember up to `memory` bytes of vectors each.
    """

    def __init__(
        self, encoders: Sequence[Named], learnt_from: Sequence[str] = (), memory: int = 2**28
    ) -> None:
        self.encoders = {one.name: one.remembering(memory) for one in encoders}
        self.metrics = {name: about for name, about in metrics().items() if _works(name)}
        self._texts = learnt_from
        self._memories = Memories(memory)
        self._scorers: OrderedDict[Wanted, Scorer] = OrderedDict()

    def wanted(
        self,
        name: str,
        encoder: str | None = None,
        settings: Mapping[str, Any] | None = None,
        preset: str | None = None,
        column: str | None = None,
    ) -> Wanted:
        """Check what a request says of a metric, without loading anything."""
        if name not in self.metrics:
            raise InvalidInput(
                f"there is no metric {name[:40]!r}; there is {_listed(self.metrics)}"
            )
        given = checked(name, dict(settings or {}))
        if preset is not None:
            given["preset"] = Choice(tuple(presets(name))).check("preset", preset)
        if column is not None:
            given["column"] = Choice(_columns(name)).check("column", column)
        found = {key: "inf" if x == float("inf") else x for key, x in given.items()}
        return Wanted(name, self._encoder(name, encoder), json.dumps(found, sort_keys=True))

    def scorer(self, wanted: Wanted) -> Scorer:
        """The metric, ready to score; only one thread may ask."""
        if wanted not in self._scorers:
            self._scorers[wanted] = self._loaded(wanted)
            while len(self._scorers) > KEPT:
                self._scorers.popitem(last=False)
        self._scorers.move_to_end(wanted)
        return self._scorers[wanted]

    @cached_property
    def described(self) -> list[dict[str, Any]]:
        """Every metric with its columns and what may be set of it."""
        return [self._described(name, about) for name, about in self.metrics.items()]

    @property
    def described_encoders(self) -> list[dict[str, Any]]:
        """Every encoder, how many layers it has, and whether its units are words."""
        return [
            {"name": one.name, "depth": one.depth, "words": is_static(one.spec)}
            for one in self.encoders.values()
        ]

    def public(self, text: str) -> str:
        """A signature that calls encoders by the names that requests know them by."""
        for one in self.encoders.values():
            text = text.replace(one.spec, one.name) if "/" in one.spec else text
        return text

    def _encoder(self, metric: str, named: str | None) -> str | None:
        if "encoder" not in parameters(metric):
            if named is not None:
                raise InvalidInput(f"{metric} has no encoder; leave it out")
            return None
        if named is None:
            usual = default_encoder(metric)
            return usual if usual in self.encoders else next(iter(self.encoders))
        if named not in self.encoders:
            raise InvalidInput(
                f"the encoder {named[:40]!r} is not among those allowed: {_listed(self.encoders)}"
            )
        return named

    def _loaded(self, wanted: Wanted) -> Scorer:
        named = None if wanted.encoder is None else self.encoders[wanted.encoder]
        chosen: dict[str, Any] = {} if named is None else {"encoder": named.given}
        scorer = load(wanted.name, **chosen, **wanted.chosen)
        if scorer.needs_fitting:
            if not self._texts:
                raise InvalidInput(
                    f"{wanted.name} weighs units by IDF, which has to be learnt from many texts;"
                    " set idf to null where the metric has it, or start the service with --idf FILE"
                )
            scorer = scorer.fit(self._texts, self._texts, "the service's texts")
        return self._memories.remembering(scorer)

    def _described(self, name: str, about: str) -> dict[str, Any]:
        light, known = _light(name), settable(name)
        if not self._texts and "idf" in known and not light.needs_fitting:
            del known["idf"]
        return {
            "name": name,
            "about": about,
            "columns": [{"name": c.name, "higher": c.higher} for c in light.columns],
            "encoder": self._encoder(name, None),
            "explained": bool(light.parts),
            "unlearnt": light.needs_fitting and not self._texts,
            "parameters": [one.describe(name) for one in known.values()],
            "presets": list(presets(name)),
        }


def allowed(names: Sequence[str], budget: int | None, **options: Any) -> list[Named]:
    """Encoders as the command line gives them, a name or a folder, or NAME=that, looked at once.

    Batches have `budget` tokens, by default few on a CPU: small requests leave large ones mostly
    empty.
    """
    found: dict[str, Named] = {}
    for one in names or (EMBEDDED, DISTILLED):
        short, equals, spec = one.partition("=")
        spec = spec if equals else one
        short = short if equals else spec.rstrip("/").rsplit("/", 1)[-1]
        if short in found:
            raise InvalidInput(f"two encoders are called {short}; call one x: --encoder x={spec}")
        made = encoder(spec)
        if isinstance(made, Transformer):
            made = replace(made, budget=budget, **options)
            if budget is None and device_of(made).type == "cpu":
                made = replace(made, budget=_SMALL)
        found[short] = Named(short, spec, spec if is_static(spec) else made, made.depth)
    return list(found.values())


def _works(name: str) -> bool:
    """Whether the libraries and the data that a metric needs are here."""
    try:
        found = _light(name)
        if not found.parts:
            found.score(["a"], ["a"])
    except MissingPart:
        return False
    return True


def _light(name: str) -> Scorer:
    """A metric over vectors that cost nothing to load."""
    return load(name, **({"encoder": "hashed"} if "encoder" in parameters(name) else {}))


def _columns(name: str) -> tuple[str, ...]:
    return tuple(column.name for column in _light(name).columns)


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names)
