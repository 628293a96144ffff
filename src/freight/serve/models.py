"""What a service offers: metrics over the encoders that were allowed when it was started."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, get_args

from freight.core.scoring import REFERENCES, Scorer
from freight.core.sweep_cache import Memories
from freight.core.types import Encoder, device_of
from freight.core.weightings import MASSES
from freight.encoders import DISTILLED, EMBEDDED, encoder, is_static
from freight.encoders.cache import MemoryCached
from freight.encoders.transformer import Transformer
from freight.errors import InvalidInput, MissingPart
from freight.metrics import default_encoder, factory, list_metrics, load, parameters, presets
from freight.metrics.sources import BARYCENTER, JOINS, STANDARDISED, UNITS
from freight.metrics.std import MASSES as STD_MASSES

KEPT = 256
"""Metrics that are kept loaded; those not asked for longest make room."""

_SMALL = 256
"""Tokens of an encoder batch on a CPU where nothing else is said."""


@dataclass(frozen=True)
class RequestedMetric:
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
class ServedEncoder:
    """An encoder as requests name it, and what metrics are given for it.

    They are given word vectors by name, since they choose how texts become words.
    """

    name: str
    spec: str
    given: str | Encoder
    depth: int

    def remembering(self, memory: int) -> ServedEncoder:
        """The same, remembering what it has encoded: a text is often sent again."""
        if isinstance(self.given, str):
            return self
        return replace(self, given=MemoryCached(self.given, memory))


class ServedModels:
    """Metrics by what requests say of them, loaded when first asked for.

    `idf_texts` are texts that IDF is learnt from; without them a metric that weighs by IDF is
    refused. Encoders remember up to `memory` bytes of vectors each.
    """

    def __init__(
        self, encoders: Sequence[ServedEncoder], idf_texts: Sequence[str] = (), memory: int = 2**28
    ) -> None:
        self.encoders = {one.name: one.remembering(memory) for one in encoders}
        self.metrics = {name: about for name, about in list_metrics().items() if _works(name)}
        self._texts = idf_texts
        self._memories = Memories(memory)
        self._scorers: OrderedDict[RequestedMetric, Scorer] = OrderedDict()

    def requested_metric(
        self,
        name: str,
        encoder: str | None = None,
        settings: Mapping[str, Any] | None = None,
        preset: str | None = None,
        column: str | None = None,
    ) -> RequestedMetric:
        """Check what a request says of a metric, without loading anything."""
        if name not in self.metrics:
            raise InvalidInput(
                f"there is no metric {name[:40]!r}; there is {_listed(self.metrics)}"
            )
        given = checked(name, dict(settings or {}))
        if preset is not None:
            given["preset"] = ChoiceParameter(tuple(presets(name))).check("preset", preset)
        if column is not None:
            given["column"] = ChoiceParameter(_columns(name)).check("column", column)
        found = {key: "inf" if x == float("inf") else x for key, x in given.items()}
        return RequestedMetric(
            name, self._encoder(name, encoder), json.dumps(found, sort_keys=True)
        )

    def scorer(self, wanted: RequestedMetric) -> Scorer:
        """The metric, ready to score; only one thread may ask."""
        if wanted not in self._scorers:
            self._scorers[wanted] = self._loaded(wanted)
            while len(self._scorers) > KEPT:
                self._scorers.popitem(last=False)
        self._scorers.move_to_end(wanted)
        return self._scorers[wanted]

    @cached_property
    def metric_descriptions(self) -> list[dict[str, Any]]:
        """Every metric with its columns and what may be set of it."""
        return [self._describe(name, about) for name, about in self.metrics.items()]

    @property
    def encoder_descriptions(self) -> list[dict[str, Any]]:
        """Every encoder, how many layers it has, and whether its units are words."""
        return [
            {"name": one.name, "depth": one.depth, "words": is_static(one.spec)}
            for one in self.encoders.values()
        ]

    def public_signature(self, text: str) -> str:
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

    def _loaded(self, wanted: RequestedMetric) -> Scorer:
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

    def _describe(self, name: str, about: str) -> dict[str, Any]:
        light, known = _light(name), settable(name)
        if not self._texts and "idf" in known and not light.needs_fitting:
            del known["idf"]
        return {
            "name": name,
            "about": about,
            "columns": [{"name": c.name, "higher": c.higher} for c in light.columns],
            "encoder": self._encoder(name, None),
            "explained": bool(light.parts),
            "needs_idf_texts": light.needs_fitting and not self._texts,
            "parameters": [one.describe(name) for one in known.values()],
            "presets": list(presets(name)),
        }


def load_encoders(names: Sequence[str], budget: int | None, **options: Any) -> list[ServedEncoder]:
    """Encoders as the command line gives them, a name or a folder, or NAME=that, looked at once.

    Batches have `budget` tokens, by default few on a CPU: small requests leave large ones mostly
    empty.
    """
    found: dict[str, ServedEncoder] = {}
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
        found[short] = ServedEncoder(short, spec, spec if is_static(spec) else made, made.depth)
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


class ParameterKind(Protocol):
    """What values a parameter takes."""

    def check(self, name: str, value: Any) -> Any:
        """The value as the metric takes it; what cannot be used is named."""
        ...

    def describe(self) -> dict[str, Any]:
        """The same for those who build sliders."""
        ...


@dataclass(frozen=True)
class Number:
    """From `least` to `most`; 0 besides, or "inf", where that means something of its own."""

    least: float
    most: float
    zero: bool = False
    infinite: bool = False
    whole: bool = False

    def check(self, name: str, value: Any) -> float:
        """A number of JSON, or "inf"."""
        if self.infinite and value == "inf":
            return math.inf
        kinds = (int,) if self.whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise InvalidInput(f"{name}={_shown(value)}; give a{self._which} number")
        if not self.least <= value <= self.most and not (self.zero and value == 0):
            besides = " or 0" * self.zero + ' or "inf"' * self.infinite
            raise InvalidInput(
                f"{name}={_shown(value)}; give {self.least:g} to {self.most:g}{besides}"
            )
        return value

    @property
    def _which(self) -> str:
        return " whole" if self.whole else ""

    def describe(self) -> dict[str, Any]:
        """Its bounds, and whether steps are better ratios."""
        wide = self.least > 0 and self.most / self.least > 100
        return {
            "kind": "whole" if self.whole else "number",
            "least": self.least,
            "most": self.most,
            "zero": self.zero,
            "infinite": self.infinite,
            "scale": "log" if wide else "linear",
        }


@dataclass(frozen=True)
class ChoiceParameter:
    """One of several names."""

    names: tuple[str, ...]

    def check(self, name: str, value: Any) -> Any:
        """One of them."""
        if not isinstance(value, str) or value not in self.names:
            raise InvalidInput(f"{name}={_shown(value)}; there is {', '.join(self.names)}")
        return value

    def describe(self) -> dict[str, Any]:
        """All of them."""
        return {"kind": "choice", "choices": list(self.names)}


class Switch:
    """True or false."""

    def check(self, name: str, value: Any) -> Any:
        """One of the two."""
        if not isinstance(value, bool):
            raise InvalidInput(f"{name}={_shown(value)}; give true or false")
        return value

    def describe(self) -> dict[str, Any]:
        """Nothing more to say."""
        return {"kind": "switch"}


class Layers:
    """Hidden states: 4, -1, [2, 4], "-5:", "all"."""

    _WORDS = re.compile(r"all|-?[0-9]{0,3}:-?[0-9]{0,3}|-?[0-9]{1,3}", re.ASCII)

    def check(self, name: str, value: Any) -> Any:
        """Of the right form; whether the encoder has them is for the metric to say."""
        if isinstance(value, str) and self._WORDS.fullmatch(value):
            return value
        several = value if isinstance(value, list) else [value]
        for one in several:
            if isinstance(one, bool) or not isinstance(one, int) or abs(one) > 999:
                raise InvalidInput(
                    f'{name}={_shown(value)}; give a number, a list of them, "all" or "-5:"'
                )
        if not 0 < len(several) <= 64:
            raise InvalidInput(f"{name} names {len(several)} layers; give 1 to 64")
        return value

    def describe(self) -> dict[str, Any]:
        """Nothing more to say."""
        return {"kind": "layer"}


_SHARE, _SWITCH = Number(0.0, 1.0), Switch()
_PENALTY = Number(0.01, 100.0, zero=True, infinite=True)
KINDS: dict[str, ParameterKind] = {
    "layer": Layers(),
    "hyp": _PENALTY,
    "ref": _PENALTY,
    "inner_hyp": _PENALTY,
    "inner_ref": _PENALTY,
    "inner_epsilon": Number(0.001, 1.0, zero=True),
    "inner_readout": ChoiceParameter(("transport", "objective")),
    "epsilon": Number(0.001, 1.0, zero=True),
    "bary-score.epsilon": Number(0.02, 4.0, zero=True),
    "cut": Number(0.001, 2.0),
    "floor": Number(0.001, 0.999),
    "baseline": Number(-1.0, 0.999),
    "beta": Number(0.01, 10.0),
    "smooth_value": Number(1e-6, 10.0),
    "char_order": Number(1, 10, whole=True),
    "word_order": Number(1, 6, whole=True),
    "n": Number(1, 9, whole=True),
    "ngram": Number(1, 9, whole=True),
    "version": Number(1, 2, whole=True),
    "idf": ChoiceParameter(("ref", "own")),
    "mass": ChoiceParameter(tuple(MASSES)),
    "std.mass": ChoiceParameter(tuple(STD_MASSES)),
    "unit": ChoiceParameter(tuple(UNITS)),
    "wmd.unit": _SWITCH,
    "join": ChoiceParameter((*JOINS, BARYCENTER, STANDARDISED)),
    "readout": ChoiceParameter(("transport", "objective")),
    "references": ChoiceParameter(REFERENCES),
    "shared": ChoiceParameter(("stays", "moved")),
    "stop_words": ChoiceParameter(("en",)),
    "smooth": ChoiceParameter(("none", "floor", "add-k", "exp")),
    "tokenize": ChoiceParameter(("13a", "intl", "char", "none")),
    "nist.tokenize": ChoiceParameter(("nltk", "none")),
    "meteor.tokenize": ChoiceParameter(("nltk", "none")),
    **dict.fromkeys(
        ("alpha", "gamma", "greedy", "neighbours", "order", "unknown", "unigram", "bigram"), _SHARE
    ),
    **dict.fromkeys(("system_unigram", "system_bigram"), _SHARE),
    **dict.fromkeys(("clip", "lowercase", "stem", "normalized", "no_punct"), _SWITCH),
    **dict.fromkeys(("asian_support", "case_sensitive"), _SWITCH),
}
MEANT = {
    "lazy-emd.hyp": 0.23,
    "lazy-emd.ref": 0.31,
    "f-alpha.alpha": 0.48,
    "bleu.tokenize": "13a",
    "sentence-bleu.tokenize": "13a",
}
"""What a metric takes where its default is to choose for itself."""


@dataclass(frozen=True)
class SettableParameter:
    """A parameter of a metric; `optional` ones may be null."""

    name: str
    kind: ParameterKind
    default: Any
    optional: bool

    def check(self, value: Any) -> Any:
        """The value as the metric takes it."""
        return None if value is None and self.optional else self.kind.check(self.name, value)

    def describe(self, metric: str) -> dict[str, Any]:
        """Its kind, and what it is where nothing is said."""
        meant = MEANT.get(f"{metric}.{self.name}", self.default)
        rest = {"default": meant, "optional": self.optional}
        return {"name": self.name, **self.kind.describe(), **rest}


def settable(metric: str) -> dict[str, SettableParameter]:
    """What may be set of a metric."""
    found = {}
    for name, one in inspect.signature(factory(metric)).parameters.items():
        kind = KINDS.get(f"{metric}.{name}") or KINDS.get(name)
        if kind is not None:
            optional = one.default is None or type(None) in get_args(one.annotation)
            found[name] = SettableParameter(name, kind, one.default, optional)
    return found


def checked(metric: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a request, each within its bounds."""
    known = settable(metric)
    for name in settings:
        if name not in known:
            raise InvalidInput(
                f"{_shown(name)} of {metric} cannot be set here; there is {_listed(known)}"
            )
    return {name: known[name].check(value) for name, value in settings.items()}


def _listed_parameters(names: Sequence[str] | dict[str, SettableParameter]) -> str:
    return ", ".join(names) or "nothing"


def _shown(value: Any) -> str:
    """What was given, no longer than a line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
