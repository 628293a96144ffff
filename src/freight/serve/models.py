"""What a service offers: metrics over the encoders that were allowed when it was started.

The parameters of a metric, their limits and their defaults come from its declaration.
"""

from __future__ import annotations

import difflib
import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from freight.core.scorers import PipelineScorer
from freight.core.sweep_cache import SharedEncodings
from freight.core.types import Encoder, device_of
from freight.data.languages import language_name, reads_english
from freight.encoders import FOR_OTHERS, MULTILINGUAL, PACKAGED, is_static, languages_of
from freight.encoders import encoder as find_encoder
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
from freight.metrics.declaration import shorten
from freight.metrics.extensions import is_in_file
from freight.serve.forms import check_choice, check_settings, form_fields, listed

DEFAULT_METRIC = "freight"
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
    lang: str | None = None  # where the references have chosen the encoder
    note: str = field(default="", compare=False)

    @property
    def choice(self) -> dict[str, str | None]:
        """What the language of the references may have chosen: it has defaults of its own."""
        return {"encoder": self.encoder, "lang": self.lang}

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
        lang: str | None = None,
    ) -> RequestedMetric:
        """Check what a request says of a metric, without loading anything.

        `lang` is the language of the references, where it is known: where no encoder is named, it
        chooses one that reads it.
        """
        if name not in self.metrics:
            near = listed(difflib.get_close_matches(name, self.metrics, 3, 0.4))
            instead = f"did you mean {near}?" if near else f"there is {listed(self.metrics)}"
            raise InvalidInput(f"there is no metric {shorten(name)}; {instead}")
        source = self._sources[name]
        given = check_settings(source, settings or {})
        if preset is not None:
            if not find_metric(source).has_preset(preset):
                check_choice(name, "preset", preset, presets(source))
            given["preset"] = preset
        if column is not None:
            given["column"] = check_choice(name, "column", column, self._columns(source))
        stored = json.dumps(json_value(given), sort_keys=True)
        if adapter is not None:
            return RequestedMetric(name, self._adapted(source, adapter, encoder), stored, adapter)
        chosen, spoken = self._encoder(source, encoder), None
        if encoder is None and chosen is not None and not self._reads(chosen, lang):
            chosen, spoken = self._encoder_for(name, chosen, str(lang)), lang
        return RequestedMetric(name, chosen, stored, lang=spoken, note=self._note(chosen, lang))

    def scorer(self, wanted: RequestedMetric) -> PipelineScorer:
        """The metric, ready to score; only one thread may ask."""
        if wanted not in self._scorers:
            self._scorers[wanted] = self._loaded(wanted)
            while len(self._scorers) > KEPT:
                self._scorers.popitem(last=False)
        self._scorers.move_to_end(wanted)
        return self._scorers[wanted]

    @property
    def other_encoders(self) -> list[tuple[str, str]]:
        """A metric, and an encoder that no metric uses by default, for each such encoder."""
        usual = {self._encoder(self._sources[name], None) for name in self.metrics}
        return [
            ("wmd" if is_static(one.spec) else DEFAULT_METRIC, name)
            for name, one in self.encoders.items()
            if name not in usual
        ]

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
                f"the encoder {named[:40]!r} is not among those allowed: {listed(self.encoders)}"
            )
        return named

    def _reads(self, encoder: str, lang: str | None) -> bool:
        """Whether an encoder was trained on a language, as far as is known."""
        given = self.encoders[encoder].given
        known = languages_of(find_encoder(given) if isinstance(given, str) else given)
        return lang is None or known is None or lang in known

    def _encoder_for(self, metric: str, usual: str, lang: str) -> str:
        """The encoder that takes the place of the usual one for a language."""
        words = is_static(self.encoders[usual].spec)
        fitting = [
            name
            for name, one in self.encoders.items()
            if is_static(one.spec) == words and self._reads(name, lang)
        ]
        best = FOR_OTHERS.get(usual)
        if not fitting:
            raise InvalidInput(
                f"the references are in {language_name(lang)}, which the encoder of {metric} does"
                f" not read; name one, encoder {usual} for what there is, or start the service with"
                f" --encoder {best or MULTILINGUAL}"
            )
        return best if best in fitting else fitting[0]

    def _note(self, encoder: str | None, lang: str | None) -> str:
        """What a language other than English has changed, or that it is not read."""
        if encoder is None or lang is None or reads_english(lang):
            return ""
        if self._reads(encoder, lang):
            return f"language: {language_name(lang)}; encoder: {encoder}"
        return f"the encoder {encoder} does not read {language_name(lang)}: its scores say little"

    def _adapted(self, metric: str, adapter: str, encoder: str | None) -> str:
        """The encoder of an adapter, which has to be the one that is named, if one is."""
        if adapter not in self.adapters:
            there = listed(self.adapters) or "none"
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
        if wanted.lang is not None:
            chosen["lang"] = wanted.lang
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
        others = find_metric(source).other_languages
        if not self._texts and "idf" in fields and not light.needs_fitting:
            del fields["idf"]
        return {
            "name": name,
            "about": about,
            "columns": [{"name": c.name, "higher": c.higher} for c in light.columns],
            "encoder": self._encoder(source, None),
            "explained": bool(light.parts),
            "needs_idf_texts": light.needs_fitting and not self._texts,
            "parameters": [field.describe(others) for field in fields.values()],
            "presets": list(presets(source)),
            "adapters": [
                one.describe(source) for one in self.adapters.values() if one.fits(source)
            ],
        }


def default_encoders() -> list[str]:
    """The encoders of a service that names none: for other languages too where they are there."""
    others = FOR_OTHERS.values() if PACKAGED[MULTILINGUAL].is_installed else ()
    return [*FOR_OTHERS, *others]


def load_encoders(names: Sequence[str], budget: int | None, **options: Any) -> list[ServedEncoder]:
    """Encoders as the command line gives them, a name or a folder, or NAME=that, looked at once.

    Batches have `budget` tokens, by default few on a CPU: small requests leave large ones mostly
    empty.
    """
    served: dict[str, ServedEncoder] = {}
    for one in names or default_encoders():
        short, equals, spec = one.partition("=")
        spec = spec if equals else one
        short = short if equals else spec.rstrip("/").rsplit("/", 1)[-1]
        if short in served:
            raise InvalidInput(f"two encoders are called {short}; call one x: --encoder x={spec}")
        made = find_encoder(spec)
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
