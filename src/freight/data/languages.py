"""Which language texts are in, by their script and their little words: roughly, and offline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import resources
from itertools import islice

AUTO = "auto"
SAMPLE = 500
"""Texts that are looked at."""
UNKNOWN = 0.3
"""The share of unknown units from which on it is worth a warning."""
_KANA = 0.05
"""The share of kana from which on Chinese characters are Japanese."""

_SCRIPTS = {  # the first and the last letter of each script that says much of the language
    "Latin": ("A", "ɏ"),
    "Greek": ("Ͱ", "Ͽ"),
    "Cyrillic": ("Ѐ", "ԯ"),
    "Armenian": ("԰", "֏"),
    "Hebrew": ("֐", "׿"),
    "Arabic": ("؀", "ۿ"),
    "Devanagari": ("ऀ", "ॿ"),
    "Bengali": ("ঀ", "৿"),
    "Tamil": ("஀", "௿"),
    "Thai": ("฀", "๿"),
    "Georgian": ("Ⴀ", "ჿ"),
    "Kana": ("ぁ", "ヿ"),
    "Han": ("一", "\u9fff"),
    "Hangul": ("가", "힣"),
}
_ALONE = {
    "Greek": "el",
    "Armenian": "hy",
    "Hebrew": "he",
    "Devanagari": "hi",
    "Bengali": "bn",
    "Tamil": "ta",
    "Thai": "th",
    "Georgian": "ka",
    "Kana": "ja",
    "Han": "zh",
    "Hangul": "ko",
}


def detect(texts: Iterable[str]) -> str | None:
    """The code of the language that most of the texts seem to be in; nothing where nothing shows.

    Where a script is one language's, that is it; where it is many languages', the one whose little
    words are there most often. Only the first texts are looked at.
    """
    sample = "\n".join(islice(texts, SAMPLE))
    script = _script(sample)
    if script is None or script in _ALONE:
        return _ALONE.get(script or "")
    words = Counter(re.findall(r"[^\W\d_]+", sample.lower()))
    little = _little_words()[script]
    owners = Counter(word for several in little.values() for word in several)
    found = {  # a word counts less where several languages have it
        lang: sum(words[word] / owners[word] for word in several)
        for lang, several in little.items()
    }
    best = max(found, key=lambda lang: found[lang])
    return best if found[best] else None


def vocabulary_note(encoder: str, texts: Iterable[str]) -> str:
    """That an encoder does not know the texts, what they look like, and what to do."""
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


def _script(sample: str) -> str | None:
    """The script of most letters; Han with some kana is Kana."""
    letters = "".join(re.findall(r"[^\W\d_]", sample))
    counts = {name: _count(letters, *bounds) for name, bounds in _SCRIPTS.items()}
    both = counts["Han"] + counts["Kana"]
    if counts["Kana"] > _KANA * both:
        counts["Kana"], counts["Han"] = both, 0
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def _count(letters: str, first: str, last: str) -> int:
    return sum(first <= letter <= last for letter in letters)


@cache
def _little_words() -> dict[str, dict[str, list[str]]]:
    """By script and language."""
    found: dict[str, dict[str, list[str]]] = {}
    text = resources.files("freight.data").joinpath("languages.txt").read_text("utf-8")
    for line in text.splitlines():
        script, lang, *words = line.split()
        found.setdefault(script, {})[lang] = words
    return found
