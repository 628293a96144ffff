"""A metric's facts, declared once, on the function that builds it.

`@declare(...)` turns a factory into a `Declaration`: still a function that builds the metric, and
also its name, columns, parameters, presets, paper and page. The parameters are read from the
signature, their ranges, choices and descriptions from pydantic annotations
(`Annotated[float, Field(ge=0, description=...)]`). The command line, shell completion, the
service's form, the cards for other libraries and the tables in the documentation are all made from
this. Nothing here imports torch.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, update_wrapper
from numbers import Integral
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from freight.errors import InvalidInput

P = ParamSpec("P")
R = TypeVar("R")

RENAMED = {"join": "pooling"}
"""Old names of parameters that are accepted, with a warning, for one release."""

REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""


_CROSS_LINGUAL = Annotated[
    bool,
    Field(
        description="Whether a hypothesis that is surely in another language than its reference is"
        " compared with it; otherwise it is scored as if unrelated (every cosine 0)."
    ),
]


class Direction(Enum):
    """Which way a column of scores is better."""

    HIGHER = "↑"
    LOWER = "↓"


HIGHER, LOWER = Direction.HIGHER, Direction.LOWER


@dataclass(frozen=True)
class Slider:
    """The range that a form offers and a service accepts.

    0 and infinity are accepted besides, where the parameter's type accepts them.
    """

    least: float
    most: float


@dataclass(frozen=True)
class Menu:
    """The choices that a form offers and a service accepts, where the type accepts more."""

    choices: tuple[str, ...]


@dataclass(frozen=True)
class Expected:
    """What the value must be, in words, where the type alone does not make a clear sentence."""

    phrase: str


@dataclass(frozen=True)
class ByLanguage:
    """What a parameter is by target language where it is not set: English where none is named."""

    values: Mapping[str, Any]
    other: Any

    def choose(self, lang: str | None) -> Any:
        """The value for a language."""
        return self.values.get("en" if lang is None else lang, self.other)


class Served(Enum):
    """How a service treats a parameter whose type does not say it."""

    AS_LAYERS = "layer"
    NEVER = "never"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a metric: its type with its range or choices, its default, a description."""

    name: str
    annotation: Any
    default: Any = REQUIRED

    def check(self, metric: str, value: Any) -> Any:
        """The value, unchanged; a wrong one raises an error of one line that names the culprit."""
        if isinstance(value, Integral) and not isinstance(value, (bool, int)):
            value = int(value)  # of numpy
        if not self.accepts(value):
            raise InvalidInput(
                f"{self.name}={shorten(value)} of {metric}: must be {self.expect(value)}"
            )
        return value

    def accepts(self, value: Any) -> bool:
        """Whether a value has the declared type and lies in the declared range."""
        try:
            self._adapter.validate_python(value)
        except ValidationError:
            return False
        return True

    def expect(self, value: Any = None) -> str:
        """What the value must be, in words; for a number out of range, the range alone."""
        explicit = self.mark(Expected)
        if explicit is not None:
            return explicit.phrase
        phrases = [f"one of {', '.join(map(str, self.choices))}"] if self.choices else []
        if bool in self.types:
            phrases.append("true or false")
        if self.is_number:
            kind = "a number" if self.is_continuous else "a whole number"
            fitting = (int, float) if self.is_continuous else (int,)
            is_kind = isinstance(value, fitting) and not isinstance(value, bool)
            phrases.append(self.range if is_kind and self.range else _listed(kind, self.range))
        if str in self.types:
            phrases.append("a text")
        return " or ".join(phrases) or f"of the type {_type_name(self.annotation)}"

    @property
    def range(self) -> str:
        """The bounds of a number in words; empty without bounds."""
        low, high = self.bound("ge"), self.bound("le")
        above, below = self.bound("gt"), self.bound("lt")
        if low is not None and high is not None:
            return f"{low:g} to {high:g}"
        if low is not None and below is not None:
            return f"{low:g} or more and below {below:g}"
        if above is not None and below is not None:
            return f"above {above:g} and below {below:g}"
        finite = " and finite" if self.is_continuous and not self.accepts(math.inf) else ""
        if low is not None:
            return f"{low:g} or more{finite}"
        return "" if above is None else f"above {above:g}{finite}"

    @cached_property
    def description(self) -> str:
        """One sentence on what the parameter does."""
        fields = (mark for mark in self._marks if isinstance(mark, FieldInfo))
        return next((field.description for field in fields if field.description), "")

    @cached_property
    def types(self) -> tuple[type, ...]:
        """The types that a value may have, choices aside."""
        return tuple(leaf for leaf in _leaves(self.annotation) if isinstance(leaf, type))

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The names among which a value is chosen; empty where it is no choice."""
        literal = [leaf for leaf in _leaves(self.annotation) if get_origin(leaf) is Literal]
        return tuple(choice for leaf in literal for choice in get_args(leaf))

    @property
    def is_number(self) -> bool:
        """Whether a value may be a number."""
        return bool({int, float} & {*self.types})

    @property
    def is_continuous(self) -> bool:
        """Whether a value may be any number rather than whole ones or names."""
        return float in self.types

    @property
    def is_optional(self) -> bool:
        """Whether a value may be None."""
        return self.default is None or NoneType in self.types

    @property
    def automatic(self) -> Any:
        """The value that the default stands for, where that depends on the language; or it."""
        by_language = self.mark(ByLanguage)
        return self.default if by_language is None else by_language.choose(None)

    def mark(self, kind: type[R]) -> R | None:
        """The mark of this kind in the annotation, if there is one."""
        return next((mark for mark in self._marks if isinstance(mark, kind)), None)

    def bound(self, kind: Literal["ge", "gt", "le", "lt"]) -> float | None:
        """A bound of the range of numbers."""
        fields = [mark for mark in self._marks if isinstance(mark, FieldInfo)]
        bounds = (getattr(one, kind, None) for field in fields for one in field.metadata)
        return next((bound for bound in bounds if bound is not None), None)

    @cached_property
    def _marks(self) -> tuple[Any, ...]:
        return tuple(_marks(self.annotation))

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        config = ConfigDict(strict=True, arbitrary_types_allowed=True)
        try:
            return TypeAdapter(self.annotation, config=config)
        except PydanticUserError:  # a user's annotation that pydantic cannot read is not checked
            return TypeAdapter(Any)


class Declaration(Generic[P, R]):
    """A metric's factory with the metric's facts; calling it checks the values and builds it."""

    def __init__(
        self,
        factory: Callable[P, R],
        name: str,
        columns: Mapping[str, Direction] | None = None,
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        former_presets: Mapping[str, Mapping[str, Any]] | None = None,
        other_languages: Mapping[str, Any] | None = None,
        paper: str = "",
        page: str | None = None,
        choose_when: str = "",
    ) -> None:
        self.factory = factory
        self.name = name
        self.columns = columns
        self.presets = {preset: dict(settings) for preset, settings in (presets or {}).items()}
        self.former_presets = dict(former_presets or {})
        self.other_languages = dict(other_languages or {})
        self.paper = paper
        self.page = name if page is None else page
        self.choose_when = choose_when
        update_wrapper(self, factory, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Build the metric; a wrong value is an error of one line that names it."""
        given = self._signature.bind_partial(*args, **self.check_names(kwargs))
        for name, value in given.arguments.items():
            if name in self.parameters:
                given.arguments[name] = self.parameters[name].check(self.name, value)
        for name, parameter in self.parameters.items():
            if parameter.default is REQUIRED and name not in given.arguments:
                raise InvalidInput(f"{self.name} needs a value for {name}, as in {name}=...")
        return self.factory(*given.args, **given.kwargs)

    def check_names(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The same settings under today's names; what the metric does not have is refused."""
        current = {}
        for given, value in settings.items():
            name = self.current_name(given)
            if name not in self.settable and not self._takes_any:
                there = ", ".join(self.settable) or "none"
                raise InvalidInput(f"{self.name} has no parameter {given!r}; there is {there}")
            current[name] = value
        return current

    def current_name(self, name: str) -> str:
        """What a parameter is called today; an old name gets a warning."""
        new = RENAMED.get(name)
        if new is None or name in self.parameters or new not in self.parameters:
            return name
        warnings.warn(
            f"the parameter {name} of {self.name} is called {new} now; {name} will go with the"
            " next release",
            FutureWarning,
            stacklevel=4,
        )
        return new

    def preset_settings(self, preset: str) -> dict[str, Any]:
        """The settings that a preset stands for; a former name gets a warning."""
        if preset not in self.former_presets:
            return dict(self.presets[preset])
        current = dict(self.former_presets[preset])
        instead = ", ".join(f"{name}={value!r}" for name, value in current.items())
        warnings.warn(
            f"the preset {preset} of {self.name} is {instead} now; the name will go with the next"
            " release",
            FutureWarning,
            stacklevel=4,
        )
        base = current.pop("preset", None)
        return {**self.presets.get(base, {}), **current}

    def has_preset(self, preset: str) -> bool:
        """Whether a preset is known by this name, today's or a former one."""
        return preset in self.presets or preset in self.former_presets

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """What the factory takes, in the order of its signature."""
        hints = _annotations(self.factory, self._signature)
        named = {
            name: one
            for name, one in self._signature.parameters.items()
            if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        }
        return {name: Parameter(name, hints[name], one.default) for name, one in named.items()}

    @cached_property
    def settable(self) -> dict[str, Parameter]:
        """What can be set when the metric is loaded: besides its parameters what `load` takes."""
        columns = Any if self.columns is None else _choice(self.columns)
        of_encoder = (
            {
                "lang": Parameter("lang", str | None, None),
                "adapter": Parameter("adapter", Any, None),
                "cross_lingual": Parameter("cross_lingual", _CROSS_LINGUAL, False),
            }
            if "encoder" in self.parameters
            else {}
        )
        return {
            **self.parameters,
            "preset": Parameter("preset", str | None, None),
            "column": Parameter("column", columns, None),
            **{name: one for name, one in of_encoder.items() if name not in self.parameters},
        }

    @property
    def summary(self) -> str:
        """What the metric is, in one sentence."""
        return (inspect.getdoc(self.factory) or "").split("\n")[0]

    @property
    def notes(self) -> list[str]:
        """What else there is to know, one paragraph each: options, departures from the paper."""
        paragraphs = (inspect.getdoc(self.factory) or "").split("\n\n")[1:]
        return [paragraph.replace("\n", " ") for paragraph in paragraphs]

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.factory)

    @property
    def _takes_any(self) -> bool:
        return any(one.kind is one.VAR_KEYWORD for one in self._signature.parameters.values())


def declare(
    name: str,
    *,
    columns: Mapping[str, Direction],
    presets: Mapping[str, Mapping[str, Any]] | None = None,
    former_presets: Mapping[str, Mapping[str, Any]] | None = None,
    other_languages: Mapping[str, Any] | None = None,
    paper: str = "",
    page: str | None = None,
    choose_when: str = "",
) -> Callable[[Callable[P, R]], Declaration[P, R]]:
    """Declare the metric that the decorated function builds.

    `columns` are those of the default settings, the primary one first; `page` is the name of its
    page in docs/metrics, by default the metric's own. `former_presets` are names that are accepted,
    with a warning, for one release, and the settings (a preset of today among them) to use instead.
    `other_languages` are settings for target languages other than English, where they are not
    given and no adapter is.
    """
    own = (presets, former_presets, other_languages)
    return lambda factory: Declaration(factory, name, columns, *own, paper, page, choose_when)


def shorten(value: Any) -> str:
    """A value as an error shows it: on one line, and not a long one."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _annotations(factory: Any, signature: inspect.Signature) -> dict[str, Any]:
    """The evaluated annotations of a factory's parameters; Any where there is none."""
    given = {name: one.annotation for name, one in signature.parameters.items()}
    names = getattr(inspect.unwrap(factory), "__globals__", {})
    evaluated = {}
    for name, annotation in given.items():
        if annotation is REQUIRED:
            evaluated[name] = Any
            continue
        alone = SimpleNamespace(__annotations__={name: annotation})
        try:
            evaluated[name] = get_type_hints(alone, names, include_extras=True)[name]
        except NameError:  # imported for type checkers only: the value is not checked
            evaluated[name] = Any
    return evaluated


def _leaves(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of, without marks and unions."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for one in get_args(annotation):
            yield from _leaves(one)
    else:
        yield annotation


def _marks(annotation: Any) -> Iterator[Any]:
    """What `Annotated` adds to the types of an annotation, outermost first."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *marks = get_args(annotation)
        yield from marks
        yield from _marks(inner)
    elif origin in (Union, UnionType):
        for one in get_args(annotation):
            yield from _marks(one)


def _choice(names: Mapping[str, Any]) -> Any:
    return Literal[tuple(names)] | None if names else Any


def _listed(kind: str, bounds: str) -> str:
    return f"{kind}, {bounds}" if bounds else kind


def _type_name(annotation: Any) -> str:
    return getattr(annotation, "__name__", str(annotation).replace("typing.", ""))
