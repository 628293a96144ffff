"""What a service offers: metrics over the encoders that were allowed when it was started.

The parameters of a metric, their limits and their defaults come from its declaration.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Never

from freight.core.scorers import PipelineScorer
from freight.core.sweep_cache import SharedEncodings
from freight.core.types import Encoder, device_of
from freight.encoders import DISTILLED, EMBEDDED, encoder, is_static
from freight.encoders.adapters import Adapter, read_adapter, with_adapter
from freight.encoders.cache import MemoryCached
from freight.encoders.transformer import Transformer
from freight.errors import InvalidInput, MissingPart
from freight.metrics import (
    adapter_settings,
    default_encoder,
    find_metric,
    json_value,
    list_metrics,
    load,
    parameters,
    presets,
)
from freight.metrics.declaration import Menu, Parameter, Served, Slider, shorten
from freight.metrics.extensions import is_in_file

KEPT = 256
"""Metrics that are kept loaded; the least recently used ones are dropped first."""

_SMALL = 256
"""Tokens of an encoder batch on a CPU by default."""


@dataclass(frozen=True)
class RequestedMetric:
    """A metric as a request names it, its settings checked; what is equal is scored together."""

    name: str
    encoder: str | None
    settings: str  # JSON, so that equal ones are equal
    adapter: str | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings by name."""
        settings: dict[str, Any] = json.loads(self.settings)
        return {name: math.inf if value == "inf" else value for name, value in settings.items()}


@dataclass(frozen=True)
class ServedEncoder:
    """An encoder as requests name it, and what metrics are given for it.

    They are given word vectors by name, since they choose how texts become words.
    """

    name: str
    spec: str
    given: str | Encoder
    depth: int

    def wrap(self, memory: int) -> ServedEncoder:
        """The same, remembering what it has encoded: a text is often sent again."""
        if isinstance(self.given, str):
            return self
        return replace(self, given=MemoryCached(self.given, memory))


@dataclass(frozen=True)
class ServedAdapter:
    """An adapter, the name of the encoder that it is for, and that encoder with it."""

    adapter: Adapter
    encoder: str
    given: Encoder

    def fits(self, metric: str) -> bool:
        """Whether a metric takes it."""
        try:
            adapter_settings(find_metric(metric), self.adapter)
        except InvalidInput:
            return False
        return True

    def describe(self, metric: str) -> dict[str, Any]:
        """What a form shows: the name, the encoder, and what the adapter sets of the metric."""
        settings = adapter_settings(find_metric(metric), self.adapter)
        return {
            "name": self.adapter.name,
            "encoder": self.encoder,
            "settings": json_value(settings),
        }


def _served_adapter(adapter: Adapter, encoders: Iterable[ServedEncoder]) -> ServedAdapter:
    """The adapter on the encoder that has the weights which it was fitted on."""
    for one in encoders:
        if not isinstance(one.given, str):
            try:
                return ServedAdapter(adapter, one.name, with_adapter(one.given, adapter))
            except InvalidInput:
                continue
    raise InvalidInput(
        f"the adapter {adapter.name} is for {adapter.encoder} (weights {adapter.weights[:12]}),"
        " which is not among the encoders; give that with --encoder"
    )


class ServedModels:
    """Metrics by what requests say of them, loaded when first asked for.

    IDF is fitted on `idf_texts`; without them a metric that weighs by IDF is refused. Encoders keep
    up to `memory` bytes of vectors each. `own_metrics` are offered besides, as `file.py:name`, by
    their own names, and `adapters` of these encoders by theirs.
    """

    def __init__(
        self,
        encoders: Sequence[ServedEncoder],
        idf_texts: Sequence[str] = (),
        memory: int = 2**28,
        own_metrics: Sequence[str] = (),
        adapters: Sequence[str | Adapter] = (),
    ) -> None:
        self.encoders = {one.name: one.wrap(memory) for one in encoders}
        self.adapters: dict[str, ServedAdapter] = {}
        for source in adapters:
            adapter = read_adapter(source)
            if adapter.name in self.adapters:
                raise InvalidInput(f"two adapters are called {adapter.name}; serve one of them")
            self.adapters[adapter.name] = _served_adapter(adapter, self.encoders.values())
        usable = [name for name in (*list_metrics(), *own_metrics) if _works(name)]
        self._sources = {_public_name(name): name for name in usable}
        self.metrics = {name: find_metric(source).summary for name, source in self._sources.items()}
        self._texts = idf_texts
        self._memories = SharedEncodings(memory)
        self._scorers: OrderedDict[RequestedMetric, PipelineScorer] = OrderedDict()

    def requested_metric(
        self,
        name: str,
        encoder: str | None = None,
        settings: Mapping[str, Any] | None = None,
        preset: str | None = None,
        column: str | None = None,
        adapter: str | None = None,
    ) -> RequestedMetric:
        """Check what a request says of a metric, without loading anything."""
        if name not in self.metrics:
            raise InvalidInput(
                f"there is no metric {name[:40]!r}; there is {_listed(self.metrics)}"
            )
        source = self._sources[name]
        given = check_settings(source, settings or {})
        if preset is not None:
            if not find_metric(source).has_preset(preset):
                _check_choice(name, "preset", preset, list(presets(source)))
            given["preset"] = preset
        if column is not None:
            given["column"] = _check_choice(name, "column", column, self._columns(source))
        stored = json.dumps(json_value(given), sort_keys=True)
        if adapter is not None:
            return RequestedMetric(name, self._adapted(source, adapter, encoder), stored, adapter)
        return RequestedMetric(name, self._encoder(source, encoder), stored)

    def scorer(self, wanted: RequestedMetric) -> PipelineScorer:
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

    def _columns(self, source: str) -> list[str]:
        declared = find_metric(source).columns
        return [c.name for c in _light(source).columns] if declared is None else list(declared)

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

    def _adapted(self, metric: str, adapter: str, encoder: str | None) -> str:
        """The encoder of an adapter, which has to be the one that is named, if one is."""
        if adapter not in self.adapters:
            there = _listed(self.adapters) or "none"
            raise InvalidInput(f"the adapter {adapter[:40]!r} is not served; there is {there}")
        served = self.adapters[adapter]
        adapter_settings(find_metric(metric), served.adapter)
        if encoder not in (None, served.encoder):
            raise InvalidInput(f"the adapter {adapter} is for {served.encoder}, not for {encoder}")
        return served.encoder

    def _loaded(self, wanted: RequestedMetric) -> PipelineScorer:
        chosen: dict[str, Any] = {}
        if wanted.adapter is not None:
            served = self.adapters[wanted.adapter]
            chosen = {"encoder": served.given, "adapter": served.adapter}
        elif wanted.encoder is not None:
            chosen = {"encoder": self.encoders[wanted.encoder].given}
        scorer = load(self._sources[wanted.name], **chosen, **wanted.chosen)
        if scorer.needs_fitting:
            if not self._texts:
                raise InvalidInput(
                    f"{wanted.name} weighs units by IDF, which has to be fitted on many texts;"
                    " set idf to null where the metric has it, or start the service with --idf FILE"
                )
            scorer = scorer.fit(self._texts, self._texts, "the service's texts")
        return self._memories.wrap(scorer)

    def _describe(self, name: str, about: str) -> dict[str, Any]:
        source = self._sources[name]
        light, fields = _light(source), form_fields(source)
        if not self._texts and "idf" in fields and not light.needs_fitting:
            del fields["idf"]
        return {
            "name": name,
            "about": about,
            "columns": [{"name": c.name, "higher": c.higher} for c in light.columns],
            "encoder": self._encoder(source, None),
            "explained": bool(light.parts),
            "needs_idf_texts": light.needs_fitting and not self._texts,
            "parameters": [field.describe() for field in fields.values()],
            "presets": list(presets(source)),
            "adapters": [
                one.describe(source) for one in self.adapters.values() if one.fits(source)
            ],
        }


def load_encoders(names: Sequence[str], budget: int | None, **options: Any) -> list[ServedEncoder]:
    """Encoders as the command line gives them, a name or a folder, or NAME=that, looked at once.

    Batches have `budget` tokens, by default few on a CPU: small requests leave large ones mostly
    empty.
    """
    served: dict[str, ServedEncoder] = {}
    for one in names or (EMBEDDED, DISTILLED):
        short, equals, spec = one.partition("=")
        spec = spec if equals else one
        short = short if equals else spec.rstrip("/").rsplit("/", 1)[-1]
        if short in served:
            raise InvalidInput(f"two encoders are called {short}; call one x: --encoder x={spec}")
        made = encoder(spec)
        if isinstance(made, Transformer):
            made = replace(made, budget=budget, **options)
            if budget is None and device_of(made).type == "cpu":
                made = replace(made, budget=_SMALL)
        served[short] = ServedEncoder(short, spec, spec if is_static(spec) else made, made.depth)
    return list(served.values())


def _works(name: str) -> bool:
    """Whether the libraries and the data that a metric needs are here."""
    try:
        scorer = _light(name)
        if not scorer.parts:
            scorer.score(["a"], ["a"])
    except MissingPart:
        return False
    return True


def _public_name(name: str) -> str:
    """What requests call a metric: a user's own is known by its name, not by its file."""
    return _light(name).name if is_in_file(name) else name


def _light(name: str) -> PipelineScorer:
    """A metric over vectors that cost nothing to load."""
    return load(name, **({"encoder": "hashed"} if "encoder" in parameters(name) else {}))


@dataclass(frozen=True)
class FormField:
    """A parameter as the service offers it: within narrower limits than in Python.

    A request must not be able to name a file or a package, nor to ask for hours of work. So a
    number needs a declared slider, a name declared choices; all else is not offered.
    """

    parameter: Parameter
    kind: Literal["number", "whole", "choice", "switch", "layer"]
    choices: tuple[str, ...] = ()

    def check(self, metric: str, value: Any) -> Any:
        """The value as the metric takes it; a wrong one is named in one line."""
        if value is None and self.parameter.is_optional:
            return None
        if value == "inf" and self.kind == "number":
            value = math.inf
        if self.kind in ("number", "whole") and isinstance(value, str):
            self._refuse(metric, value, self._number)
        if self.choices and value not in self.choices:
            self._refuse(metric, value, f"one of {_listed(self.choices)}")
        checked = self.parameter.check(metric, value)
        slider = self.parameter.mark(Slider)
        if slider is not None and not self._is_within(slider, checked):
            self._refuse(metric, value, f"{slider.least:g} to {slider.most:g}{self._besides}")
        return checked

    def describe(self) -> dict[str, Any]:
        """What a form shows: the kind, the limits or choices, the default, a sentence."""
        slider = self.parameter.mark(Slider)
        limits: dict[str, Any] = {}
        if slider is not None:
            wide = slider.least > 0 and slider.most / slider.least > 100
            limits = {
                "least": slider.least,
                "most": slider.most,
                "zero": self._takes_zero(slider),
                "infinite": self.parameter.accepts(math.inf),
                "scale": "log" if wide else "linear",
            }
        elif self.choices:
            limits = {"choices": list(self.choices)}
        return {
            "name": self.parameter.name,
            "about": self.parameter.description,
            "kind": self.kind,
            **limits,
            "default": json_value(self.parameter.automatic),
            "optional": self.parameter.is_optional,
        }

    def _is_within(self, slider: Slider, value: Any) -> bool:
        if not isinstance(value, (int, float)):
            return False
        inside = slider.least <= value <= slider.most
        return inside or value == math.inf or (value == 0 and self._takes_zero(slider))

    def _takes_zero(self, slider: Slider) -> bool:
        return slider.least > 0 and self.parameter.accepts(0)

    @property
    def _number(self) -> str:
        slider = self.parameter.mark(Slider)
        assert slider is not None
        kind = "a whole number" if self.kind == "whole" else "a number"
        return f"{kind}, {slider.least:g} to {slider.most:g}{self._besides}"

    @property
    def _besides(self) -> str:
        slider = self.parameter.mark(Slider)
        zero = slider is not None and self._takes_zero(slider)
        return " or 0" * zero + ' or "inf"' * self.parameter.accepts(math.inf)

    def _refuse(self, metric: str, value: Any, expected: str) -> Never:
        raise InvalidInput(
            f"{self.parameter.name}={shorten(value)} of {metric}: must be {expected}"
        )


def form_fields(metric: str) -> dict[str, FormField]:
    """What may be set of a metric through the service."""
    fields = {}
    for name, parameter in find_metric(metric).parameters.items():
        field = _form_field(parameter)
        if field is not None:
            fields[name] = field
    return fields


def _form_field(parameter: Parameter) -> FormField | None:
    menu, served = parameter.mark(Menu), parameter.mark(Served)
    if served is Served.NEVER:
        return None
    if served is Served.AS_LAYERS:
        return FormField(parameter, "layer")
    if parameter.mark(Slider) is not None:
        return FormField(parameter, "number" if parameter.is_continuous else "whole")
    if menu is not None:
        return FormField(parameter, "choice", menu.choices)
    if parameter.choices and all(isinstance(choice, str) for choice in parameter.choices):
        return FormField(parameter, "choice", parameter.choices)
    return FormField(parameter, "switch") if parameter.types == (bool,) else None


def check_settings(metric: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a request, each within the limits of the service."""
    declaration, fields = find_metric(metric), form_fields(metric)
    checked = {}
    for given, value in settings.items():
        name = declaration.current_name(given)
        if name not in fields:
            there = _listed(fields) or "nothing"
            raise InvalidInput(f"{shorten(given)} of {metric} cannot be set here; there is {there}")
        checked[name] = fields[name].check(metric, value)
    return checked


def _check_choice(metric: str, name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        there = _listed(choices) or "none"
        raise InvalidInput(f"{name}={shorten(value)} of {metric}: must be one of {there}")
    return value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
