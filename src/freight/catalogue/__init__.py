"""The metrics by name: a table of factories, imported on request."""

import difflib
import inspect
from importlib import import_module
from typing import Any

from freight.errors import InvalidInput
from freight.scoring import Scorer

METRICS = {
    "freight": "freight:freight",
    "lazy-emd": "lazy_emd:lazy_emd",
    "emd": "emd:emd",
    "bert-score": "bert_score:bert_score",
    "f-alpha": "f_alpha:f_alpha",
    "yisi-1": "yisi_1:yisi_1",
    "bary-score": "bary_score:bary_score",
    "wrd-score": "wrd_score:wrd_score",
    "wrd-score-code": "wrd_score:wrd_score_code",
    "std": "std:std",
    "wmd": "wmd:wmd",
    "wmdo": "wmdo:wmdo",
    "mover-score": "mover_score:mover_score",
    "sms": "sms:sms",
    "s+wms": "sms:s_wms",
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


def load(name: str, preset: str | None = None, **settings: Any) -> Scorer:
    """The metric of this name; its parameters are those of its factory.

    A preset is settings under a name, such as a paper's; what is set besides comes first.
    """
    known = parameters(name)
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise InvalidInput(f"{name} has no parameter {unknown[0]!r}; there is {', '.join(known)}")
    if preset is not None:
        there = presets(name)
        if preset not in there:
            has = ", ".join(there) or "none"
            raise InvalidInput(f"{name} has no preset {preset!r}; there is {has}")
        settings = {**there[preset], **settings}
    scorer: Scorer = _factory(name)(**settings)
    return scorer


def parameters(name: str) -> list[str]:
    """What can be set of a metric."""
    return [*inspect.signature(_factory(name)).parameters, "preset"]


def default_encoder(name: str) -> str:
    """What a metric encodes with where nothing is said."""
    return str(inspect.signature(_factory(name)).parameters["encoder"].default)


def presets(name: str) -> dict[str, dict[str, Any]]:
    """The settings that a metric knows by name: its paper's, its authors' code's, and others."""
    return dict(getattr(inspect.getmodule(_factory(name)), "PRESETS", {}))


def metrics() -> dict[str, str]:
    """What there is to score with, and what it is."""
    return {name: (inspect.getdoc(_factory(name)) or "").split("\n")[0] for name in METRICS}


def _factory(name: str) -> Any:
    if name not in METRICS:
        near = difflib.get_close_matches(str(name), METRICS, 3, 0.4) or list(METRICS)
        raise InvalidInput(f"there is no metric {name!r}; did you mean {', '.join(near)}?")
    module, function = METRICS[name].split(":")
    return getattr(import_module(f"freight.catalogue.{module}"), function)
