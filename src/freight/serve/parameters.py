"""What a request may set of a metric: numbers within bounds and names from lists, nothing else.

What could name a file, a language's dictionary or a download is not here, so it cannot be set.
Bounds keep solvers fast: a blur or a price close to 0 takes them many steps.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_args

from freight.catalogue import factory
from freight.catalogue.shared import BARYCENTER, JOINS, STANDARDISED, UNITS
from freight.catalogue.std import MASSES as STD_MASSES
from freight.errors import InvalidInput
from freight.scoring import REFERENCES
from freight.weightings import MASSES


class Kind(Protocol):
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
class Choice:
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
KINDS: dict[str, Kind] = {
    "layer": Layers(),
    "hyp": _PENALTY,
    "ref": _PENALTY,
    "inner_hyp": _PENALTY,
    "inner_ref": _PENALTY,
    "inner_epsilon": Number(0.001, 1.0, zero=True),
    "inner_readout": Choice(("transport", "objective")),
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
    "idf": Choice(("ref", "own")),
    "mass": Choice(tuple(MASSES)),
    "std.mass": Choice(tuple(STD_MASSES)),
    "unit": Choice(tuple(UNITS)),
    "wmd.unit": _SWITCH,
    "join": Choice((*JOINS, BARYCENTER, STANDARDISED)),
    "readout": Choice(("transport", "objective")),
    "references": Choice(REFERENCES),
    "shared": Choice(("stays", "moved")),
    "stop_words": Choice(("en",)),
    "smooth": Choice(("none", "floor", "add-k", "exp")),
    "tokenize": Choice(("13a", "intl", "char", "none")),
    "nist.tokenize": Choice(("nltk", "none")),
    "meteor.tokenize": Choice(("nltk", "none")),
    **dict.fromkeys(
        ("alpha", "gamma", "greedy", "neighbours", "order", "unknown", "unigram", "bigram"), _SHARE
    ),
    **dict.fromkeys(("system_unigram", "system_bigram"), _SHARE),
    **dict.fromkeys(("clip", "lowercase", "stem", "normalized", "no_punct"), _SWITCH),
    **dict.fromkeys(("asian_support", "case_sensitive"), _SWITCH),
}
MEANT = {"lazy-emd.hyp": 0.23, "lazy-emd.ref": 0.31, "f-alpha.alpha": 0.48}
"""What a metric takes where its default is to choose for itself."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a metric; `optional` ones may be null."""

    name: str
    kind: Kind
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


def settable(metric: str) -> dict[str, Parameter]:
    """What may be set of a metric."""
    found = {}
    for name, one in inspect.signature(factory(metric)).parameters.items():
        kind = KINDS.get(f"{metric}.{name}") or KINDS.get(name)
        if kind is not None:
            optional = one.default is None or type(None) in get_args(one.annotation)
            found[name] = Parameter(name, kind, one.default, optional)
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


def _listed(names: Sequence[str] | dict[str, Parameter]) -> str:
    return ", ".join(names) or "nothing"


def _shown(value: Any) -> str:
    """What was given, no longer than a line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
