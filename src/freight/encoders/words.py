"""Texts as words with their character spans: one function per language, chosen by its code."""

from __future__ import annotations

import hashlib
import re
import string
import threading
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache, partial
from importlib.metadata import version
from itertools import pairwise
from typing import Any, NamedTuple

from freight.encoders.tokenizer import replace_surrogates
from freight.errors import MissingPart


class Words(NamedTuple):
    """The words and punctuation marks of a text, with the characters where each starts and ends.

    Three lists rather than a list of triples: these are created by the million.
    """

    texts: list[str]
    start: list[int]
    end: list[int]

    def add(self, text: str, start: int) -> None:
        """Add a word that has the same characters as the text."""
        self.texts.append(text)
        self.start.append(start)
        self.end.append(start + len(text))

    def extend(self, other: Words, by: int = 0) -> None:
        """Add the words of a part of the text that starts at character `by`."""
        self.texts.extend(other.texts)
        self.start.extend([at + by for at in other.start])
        self.end.extend([at + by for at in other.end])


WordTokenizer = Callable[[str], Words]


def text_id(text: str) -> int:
    """A number that stands for the characters of a text, lone surrogates included."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2


def places_in(text: str) -> list[tuple[int, int]]:
    """For each character of a text's form NFC, where what it is composed of starts and ends."""
    places: list[tuple[int, int]] = []
    first = 0
    for last in range(1, len(text) + 1):
        if last < len(text) and _belongs_to(text[first:last], text[last]):
            continue
        size = len(_composed(text[first:last]))
        alike = size == last - first
        places += [(first + k, first + k + 1) if alike else (first, last) for k in range(size)]
        first = last
    return places


def _belongs_to(before: str, character: str) -> bool:
    """Whether a character is a mark of what stands before it, or composed with it."""
    if unicodedata.combining(character):
        return True
    return _composed(before + character) != _composed(before) + _composed(character)


def word_tokenizer(lang: str | None, sentences: bool = False) -> WordTokenizer:
    """How texts of a language (English if none) become words, as a whole or by sentence."""
    split = _BY_LANGUAGE.get(lang or "en", unicode_words)
    return partial(_by_sentence, split) if sentences else split


def describe_tokenizer(lang: str | None) -> str:
    """The language, with the versions of its tokenizer where words may change with them."""
    if lang in _ICU_LANGUAGES:
        _icu()
        return f"{lang}({_ICU} {version(_ICU)})"
    if lang != "ja":
        return lang or "en"
    _sudachi()
    return f"ja(SudachiPy {version('sudachipy')},{_DICTIONARY} {version(_DICTIONARY)})"


def lowercase(word: str, lang: str | None = None) -> str:
    """A word in lower case; in Turkish and Azeri I becomes ı and İ becomes i."""
    if lang in _DOTTED_I:
        word = word.replace("İ", "i").replace("I", "ı")
    return word.lower()


def sentence_starts(text: str) -> list[int]:
    """Where sentences start: at 0, and after a sentence mark and white space."""
    return [0, *(end.end() for end in _SENTENCE_END.finditer(text))]


def english(text: str) -> Words:
    """Words as NLTKWordTokenizer gives them: contractions and punctuation are split off.

    White space of any kind counts as a space.

    NLTK's rules inside a text do not look beyond white space, so each run of characters is
    tokenized once and cached. The first and the last run have no neighbour on one side and are
    cached separately; the last one includes the closing marks after it, since a full stop before
    them ends the text.
    """
    open_ended = text.rstrip(_CLOSING)
    end = len(open_ended) - len((open_ended.rsplit(None, 1) or [""])[-1])
    texts, start, stop = words = Words([], [], [])
    at = 0
    for run in text[:end].split():
        at = text.index(run, at)
        if run.isalpha() and run.lower() not in _CONTRACTED:
            texts.append(run)
            start.append(at)
            stop.append(at + len(run))
        else:
            words.extend(_split_run(run, at == 0, False), at)
        at += len(run)
    last = _WHITE.sub(" ", text[end:]).rstrip()
    if last:
        begin = len(last) - len(last.lstrip())
        words.extend(_split_run(last[begin:], end + begin == 0, True), end + begin)
    return words


def chinese(text: str) -> Words:
    """Words by jieba from the Chinese characters of a text; everything else is dropped."""
    kept = [at for at, character in enumerate(text) if "一" <= character <= "\u9fff"]
    words, at = Words([], [], []), 0
    for word in _jieba().cut("".join(text[at] for at in kept)):
        words.texts.append(word)
        words.start.append(kept[at])
        at += len(word)
        words.end.append(kept[at - 1] + 1)
    return words


def japanese(text: str) -> Words:
    """Short units (mode A) by SudachiPy, and marks; by sentence, since its input is limited."""
    whole, words = replace_surrogates(text), Words([], [], [])
    for first, last in pairwise([*sentence_starts(whole), len(whole)]):
        for at in range(first, last, _LIMIT):
            for morpheme in _sudachi().tokenize(whole[at : min(at + _LIMIT, last)]):
                a, b = at + morpheme.begin(), at + morpheme.end()
                if not text[a:b].isspace():
                    words.add(text[a:b], a)
    return words


def icu_words(text: str, lang: str) -> Words:
    """Words and marks by ICU, which has dictionaries for scripts without spaces between words."""
    whole, words, at = replace_surrogates(text), Words([], [], []), 0
    for part in _icu()(whole, lang):  # its places count characters beyond U+FFFF twice
        if not part.isspace():
            words.add(text[at : at + len(part)], at)
        at += len(part)
    return words


def code(text: str) -> Words:
    """The words of identifiers: camelCase and snake_case are split, punctuation is dropped."""
    words = Words([], [], [])
    for word in _identifier().finditer(text):
        words.add(word[0].lower(), word.start())
    return words


def characters(text: str) -> Words:
    """Every character but white space."""
    words = Words([], [], [])
    for at, character in enumerate(text):
        if not character.isspace():
            words.add(character, at)
    return words


def unicode_words(text: str) -> Words:
    """Words and marks between the word boundaries of Unicode (UAX 29)."""
    words = Words([], [], [])
    for a, b in pairwise(bound.start() for bound in _boundary().finditer(text)):
        if not text[a:b].isspace():
            words.add(text[a:b], a)
    return words


_composed = partial(unicodedata.normalize, "NFC")
_ICU = "icu4py"
_ICU_LANGUAGES = ("th", "km", "lo", "my")
_BY_LANGUAGE: dict[str, WordTokenizer] = {
    **{lang: partial(icu_words, lang=lang) for lang in _ICU_LANGUAGES},
    "en": english,
    "zh": chinese,
    "ja": japanese,
    "code": code,
    "characters": characters,
}
_DOTTED_I = ("tr", "az")
_DICTIONARY = "sudachidict-small"
_LIMIT = 10_000
_WHITE = re.compile(r"\s")
_SENTENCE_END = re.compile(
    r"(?:[.!?…؟۔।॥]+[\])}\"'»«”“’]*(?=\s)|[。！？｡]+[」』）】》〉”’\"']*|\n\s*\n)\s*"
)
_CLOSING = "])}>\"'»”’" + string.whitespace
_QUOTES = {"``": '"', "''": '"'}
_CONTRACTED = {"cannot", "gimme", "gonna", "gotta", "lemme", "wanna"}


def _by_sentence(split: WordTokenizer, text: str) -> Words:
    words = Words([], [], [])
    for a, b in pairwise([*sentence_starts(text), len(text)]):
        words.extend(split(text[a:b]), a)
    return words


@lru_cache(maxsize=2**15)
def _split_run(run: str, first: bool, last: bool) -> Words:
    words = Words([], [], [])
    letters = len(run) - (run[-1:] in {",", "."})
    if run[:letters].isalpha() and run[:letters].lower() not in _CONTRACTED:
        parts = [run] if run[-1] == "." and not last else [run[:letters], run[letters:]]
        words.add(parts[0], 0)
        if parts[1:] and parts[1]:
            words.add(parts[1], letters)
        return words
    padded = ("" if first else "x ") + run + ("" if last else " x")
    tokens = _nltk().tokenize(padded)
    at = 0
    for word in tokens[0 if first else 1 : len(tokens) if last else -1]:
        shown = word if run.startswith(word, at) else _QUOTES.get(word, word)
        start = max(run.find(shown, at), at)
        at = start + len(shown)
        words.texts.append(word)
        words.start.append(start)
        words.end.append(at)
    return words


@cache
def _nltk() -> Any:
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


@cache
def _jieba() -> Any:
    try:
        import jieba
    except ImportError:
        raise MissingPart.extra("jieba", "zh") from None
    jieba.setLogLevel("WARNING")
    return jieba


@cache
def _icu() -> Any:
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        raise MissingPart.extra(_ICU, "icu") from None
    return WordBreaker


def _sudachi() -> Any:
    """One tokenizer per thread: it works on one text at a time."""
    if not hasattr(_THREAD, "sudachi"):
        try:
            from sudachipy import Dictionary, SplitMode
        except ImportError:
            raise MissingPart.extra("SudachiPy", "ja") from None
        try:
            _THREAD.sudachi = Dictionary(dict="small").tokenizer(mode=SplitMode.A)
        except ImportError:
            raise MissingPart.extra(_DICTIONARY, "ja") from None
    return _THREAD.sudachi


_THREAD = threading.local()


@cache
def _boundary() -> Any:
    import regex

    return regex.compile(r"\b", flags=regex.WORD)


@cache
def _identifier() -> Any:
    import regex

    return regex.compile(r"\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?\p{Ll}+|\p{Lu}+|\p{L}+|\d+")
