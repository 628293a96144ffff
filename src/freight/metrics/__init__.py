"""The metrics by name: a table of factories, imported on request."""

import difflib
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from freight.core.scoring import Scorer
from freight.errors import InvalidInput

METRICS = {
    "freight": "freight:freight",
    "lazy-emd": "lazy_emd:lazy_emd",
    "emd": "lazy_emd:emd",
    "bert-score": "bert_score:bert_score",
    "f-alpha": "f_alpha:f_alpha",
    "yisi-1": "f_alpha:yisi_1",
    "bary-score": "bary_score:bary_score",
    "wrd-score": "wrd_score:wrd_score",
    "wrd-score-code": "wrd_score:wrd_score_code",
    "std": "std:std",
    "wmd": "wmd:wmd",
    "wmdo": "wmd:wmdo",
    "mover-score": "mover_score:mover_score",
    "sms": "sms:sms",
    "s+wms": "sms:s_wms",
    "doc-lazy-emd": "doc_lazy_emd:doc_lazy_emd",
    "bleu": "lexical:bleu",
    "sentence-bleu": "lexical:sentence_bleu",
    "chrf": "lexical:chrf",
    "chrf++": "lexical:chrf_plus_plus",
    "word-f": "lexical:word_f",
    "ter": "lexical:ter",
    "rouge-1": "lexical:rouge_1",
    "rouge-2": "lexical:rouge_2",
    "rouge-l": "lexical:rouge_l",
    "nist": "lexical:nist",
    "meteor": "lexical:meteor",
    "wer": "lexical:wer",
    "per": "lexical:per",
    "character": "lexical:character",
}


def load(
    name: str, preset: str | None = None, column: str | None = None, **settings: Any
) -> Scorer:
    """The metric of this name; its parameters are those of its factory.

    A preset is settings under a name, such as a paper's, or in a file that ends in .json; what is
    set besides comes first. `column` is made the primary one.
    """
    known = parameters(name)
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise InvalidInput(f"{name} has no parameter {unknown[0]!r}; there is {', '.join(known)}")
    if preset is not None:
        given = settings if column is None else {**settings, "column": column}
        return load(name, **{**preset_settings(name, preset), **given})
    _check_numbers(name, settings)
    scorer: Scorer = factory(name)(**settings)
    return led_by(scorer, column)


def led_by(metric: str | Scorer, column: str | None = None) -> Scorer:
    """A metric by name, or as it is; `column`, where one is named, is made the primary one."""
    scorer: Any = load(metric) if isinstance(metric, str) else metric
    if column is None:
        return scorer
    there = [one.name for one in scorer.columns]
    if column not in there:
        raise InvalidInput(f"{scorer.name} has no column {column!r}; there is {', '.join(there)}")
    return replace(scorer, columns=tuple(sorted(scorer.columns, key=lambda c: c.name != column)))


def preset_settings(name: str, preset: str) -> dict[str, Any]:
    """What a preset, known by name or in a file, sets of a metric."""
    if preset.endswith(".json"):
        known = [setting for setting in parameters(name) if setting != "preset"]
        return read_preset(Path(preset), name, known)
    there = presets(name)
    if preset not in there:
        has = ", ".join(there) or "none"
        raise InvalidInput(f"{name} has no preset {preset!r}; there is {has}, or a .json file")
    return there[preset]


def parameters(name: str) -> list[str]:
    """What can be set of a metric."""
    return [*inspect.signature(factory(name)).parameters, "preset", "column"]


def is_continuous(name: str, parameter: str) -> bool:
    """Whether a parameter of a metric takes any number, rather than whole ones or names."""
    found = inspect.signature(factory(name)).parameters.get(parameter)
    return found is not None and "float" in str(found.annotation)


def default_encoder(name: str) -> str:
    """What a metric encodes with where nothing is said."""
    return str(inspect.signature(factory(name)).parameters["encoder"].default)


def presets(name: str) -> dict[str, dict[str, Any]]:
    """The settings that a metric knows by name: its paper's, its authors' code's, and others."""
    module, function = METRICS[name].split(":")
    return (
        dict(getattr(inspect.getmodule(factory(name)), "PRESETS", {})) if module == function else {}
    )


def paper(name: str) -> str:
    """Where a metric comes from, as its file says with a year; empty where it is not published."""
    home = inspect.getmodule(factory(name))
    said = (inspect.getdoc(home) or "").replace("\n\n", "\0").replace("\n", " ").split("\0")
    dated = [paragraph for paragraph in said if re.search(r"\b(19|20)\d\d\b", paragraph)]
    return str(getattr(home, "PAPERS", {}).get(name, dated[0] if dated else ""))


def list_metrics() -> dict[str, str]:
    """What there is to score with, and what it is."""
    return {name: (inspect.getdoc(factory(name)) or "").split("\n")[0] for name in METRICS}


def factory(name: str) -> Any:
    """The function that makes a metric; its parameters are what can be set."""
    if name not in METRICS:
        near = ", ".join(difflib.get_close_matches(str(name), METRICS, 3, 0.4))
        instead = f"did you mean {near}?" if near else f"there is {', '.join(METRICS)}"
        raise InvalidInput(f"there is no metric {name!r}; {instead}")
    module, function = METRICS[name].split(":")
    return getattr(import_module(f"freight.metrics.{module}"), function)


def _check_numbers(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse texts where a parameter takes nothing but numbers."""
    there = inspect.signature(factory(name)).parameters
    for setting, value in settings.items():
        annotation = there[setting].annotation
        kinds = get_args(annotation) or (annotation,)
        if {float, int} & {*kinds} and str not in kinds and isinstance(value, str):
            raise InvalidInput(f"{setting}={value!r} of {name} is not a number")


_INFINITE = {"inf": float("inf"), "-inf": float("-inf")}


def read_preset(path: Path, metric: str, known: Sequence[str]) -> dict[str, Any]:
    """The settings in a file, which has to be of this metric."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"the preset {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidInput(f"the preset {path} is not JSON") from None
    settings = content.get("settings") if isinstance(content, dict) else None
    if not isinstance(settings, dict) or "metric" not in content:
        raise InvalidInput(f"{path} is no preset; it has no metric with settings")
    if content["metric"] != metric:
        raise InvalidInput(f"{path} is a preset of {content['metric']}, not of {metric}")
    for name in settings:
        if name not in known:
            raise InvalidInput(
                f"{path} sets {name!r}, which {metric} does not have; it has {', '.join(known)}"
            )
    return {name: _INFINITE.get(x, x) if isinstance(x, str) else x for name, x in settings.items()}


def write_preset(path: Path, content: Mapping[str, Any]) -> None:
    """Write a metric, its settings, and how they were found, whole or not at all."""
    check_preset(path)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(plain(content), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(path)


def check_preset(path: Path) -> None:
    """Before any work: a place that cannot be written is no surprise at the end of it."""
    if path.suffix != ".json":
        raise InvalidInput(f"{path} does not end in .json")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")


def plain(value: Any) -> Any:
    """The same in the words of JSON: infinity is a text, and what is no number is null."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float) and value in _INFINITE.values():
        return "inf" if value > 0 else "-inf"
    return None if value != value else value
