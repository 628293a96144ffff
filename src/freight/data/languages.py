"""Which language texts are in (py3langid, offline), and what to do where an encoder lacks it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Any

AUTO = "auto"
UNKNOWN = 0.3
"""The share of unknown units from which on there is a warning."""

_MIN_CONFIDENCE = 0.15
_SAME_SETTINGS = {"wuu": "zh", "yue": "zh"}
"""Languages written like another one, whose settings and tokenizer they share."""


def detect(texts: Iterable[str], sample: int = 500) -> str | None:
    """The ISO 639 code of the language of the first texts; nothing if they show none."""
    lang, confidence = _identifier().classify("\n".join(islice(texts, sample)))
    if confidence < _MIN_CONFIDENCE or lang == "zxx":  # zxx: no linguistic content
        return None
    return _SAME_SETTINGS.get(lang, lang)


def vocabulary_note(encoder: str, texts: Iterable[str]) -> str:
    """A warning that texts are unknown to an encoder, with their language and a cure."""
    lang = detect(texts)
    known = {"zh": "bert-base-chinese"}.get(lang or "", "xlm-roberta-base")
    cure = f"encoder {known}, or vectors of that language, static:FILE with lang {lang}"
    if lang in (None, "en"):
        seems, cure = "unlike any language", "an encoder or vectors that know such texts"
    else:
        seems = f"like {lang}"
    return (
        f"more than {UNKNOWN:.0%} of the units are unknown to {encoder}, and scores say little of"
        f" such texts; they look {seems}: take {cure}"
    )


@cache
def _identifier() -> Any:
    """Loaded on first use, which takes about a second."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
