"""The parameters of metrics as the service offers them: in its form, and within its limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Never

from freight.errors import InvalidInput
from freight.metrics import find_metric, json_value
from freight.metrics.declaration import ByLanguage, Menu, Parameter, Served, Slider, shorten


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
            self._refuse(metric, value, f"one of {listed(self.choices)}")
        checked = self.parameter.check(metric, value)
        slider = self.parameter.mark(Slider)
        if slider is not None and not self._is_within(slider, checked):
            self._refuse(metric, value, f"{slider.least:g} to {slider.most:g}{self._besides}")
        return checked

    def describe(self, other_languages: Mapping[str, Any]) -> dict[str, Any]:
        """What a form shows: the kind, the limits or choices, the default, a sentence.

        `other_languages` are the defaults of the metric for languages other than English.
        """
        by_language = self._defaults_by_language(other_languages)
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
            **({"by_language": by_language} if by_language else {}),
            "optional": self.parameter.is_optional,
        }

    def _defaults_by_language(self, other_languages: Mapping[str, Any]) -> dict[str, Any]:
        """The defaults for languages by their codes, and for "other" ones."""
        mark, name = self.parameter.mark(ByLanguage), self.parameter.name
        if mark is not None:
            return {**json_value(mark.values), "other": json_value(mark.other)}
        return {"other": json_value(other_languages[name])} if name in other_languages else {}

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
            if name not in declaration.settable:
                check_choice(metric, "parameter", given, fields)
            there = listed(fields) or "nothing"
            raise InvalidInput(f"{shorten(given)} of {metric} cannot be set here; there is {there}")
        checked[name] = fields[name].check(metric, value)
    return checked


def check_choice(metric: str, name: str, value: str, choices: Iterable[str]) -> str:
    """The value, if it is one of the choices; `name` says what a metric has none of otherwise."""
    if value not in choices:
        there = listed(choices) or "none"
        raise InvalidInput(f"{metric} has no {name} {shorten(value)}; there is {there}")
    return value


def listed(names: Iterable[str]) -> str:
    """Names in a sentence."""
    return ", ".join(names)
