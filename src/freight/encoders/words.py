"""Texts as words with their places: one function a language, chosen by its name."""

from __future__ import annotations

import re
import string
import threading
from collections.abc import Callable
from functools import cache, lru_cache, partial
from importlib.metadata import version
from itertools import pairwise
from typing import Any, NamedTuple

from freight.errors import MissingPart


class Words(NamedTuple):
    """The words and marks of a text, and the characters that each stands for.

    Three lists rather than a list of triples: these are made by the million.
    """

    texts: list[str]
    start: list[int]
    end: list[int]

    def add(self, text: str, start: int) -> None:
        """A word that is written as it is."""
        self.texts.append(text)
        self.start.append(start)
        self.end.append(start + len(text))

    def extend(self, other: Words, by: int = 0) -> None:
        """Words that were found further on."""
        self.texts.extend(other.texts)
        self.start.extend([at + by for at in other.start])
        self.end.extend([at + by for at in other.end])


Tokeniser = Callable[[str], Words]


def tokeniser(lang: str | None, sentences: bool = False) -> Tokeniser:
    """How texts of a language become words, sentence by sentence or as a whole; else English."""
    split = _BY_LANGUAGE.get(lang or "en", unicode_words)
    return partial(_by_sentence, split) if sentences else split


def named(lang: str | None) -> str:
    """The language with what finds its words, where that changes from version to version."""
    if lang != "ja":
        return lang or "en"
    _sudachi()
    return f"ja(SudachiPy {version('sudachipy')},{_DICTIONARY} {version(_DICTIONARY)})"


def lowered(word: str, lang: str | None = None) -> str:
    """In lower case; in Turkish and Azeri the dot of an i stays what it is."""
    if lang in _DOTTED:
        word = word.replace("İ", "i").replace("I", "ı")
    return word.lower()


def sentence_starts(text: str) -> list[int]:
    """Where sentences begin: at the beginning, and after a full stop and white space."""
    return [0, *(end.end() for end in _SENTENCE_END.finditer(text))]


def english(text: str) -> Words:
    """Words as NLTKWordTokenizer finds them: contractions and punctuation apart.

    White space of any kind is a space.

    What it does to the inside of a text, it does between white space; so a run of characters that
    has been seen before need not be taken apart again. The first and the last run have no
    neighbour on one side, and are remembered apart from the others; the last takes the closing
    marks behind it along, since a full stop before them ends the text.
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
            words.extend(_taken_apart(run, at == 0, False), at)
        at += len(run)
    last = _WHITE.sub(" ", text[end:]).rstrip()
    if last:
        begin = len(last) - len(last.lstrip())
        words.extend(_taken_apart(last[begin:], end + begin == 0, True), end + begin)
    return words


def chinese(text: str) -> Words:
    """Words as jieba finds them in the Chinese characters of a text, everything else left out."""
    kept = [at for at, character in enumerate(text) if "一" <= character <= "\u9fff"]
    words, at = Words([], [], []), 0
    for word in _jieba().cut("".join(text[at] for at in kept)):
        words.texts.append(word)
        words.start.append(kept[at])
        at += len(word)
        words.end.append(kept[at - 1] + 1)
    return words


def japanese(text: str) -> Words:
    """Short units as SudachiPy finds them, and marks; sentence by sentence, as it has a limit."""
    whole, words = _HALF.sub("\ufffd", text), Words([], [], [])
    for first, last in pairwise([*sentence_starts(whole), len(whole)]):
        for at in range(first, last, _LIMIT):
            for found in _sudachi().tokenize(whole[at : min(at + _LIMIT, last)]):
                a, b = at + found.begin(), at + found.end()
                if not text[a:b].isspace():
                    words.add(text[a:b], a)
    return words


def code(text: str) -> Words:
    """The words of identifiers: camelCase and snake_case taken apart, punctuation left out."""
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


_BY_LANGUAGE: dict[str, Tokeniser] = {
    "en": english,
    "zh": chinese,
    "ja": japanese,
    "code": code,
    "characters": characters,
}
_DOTTED = ("tr", "az")
_DICTIONARY = "sudachidict-small"
_LIMIT = 10_000
_HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate, which is no character
_WHITE = re.compile(r"\s")
_SENTENCE_END = re.compile(
    r"(?:[.!?…؟۔।॥]+[\])}\"'»«”“’]*(?=\s)|[。！？｡]+[」』）】》〉”’\"']*|\n\s*\n)\s*"
)
_CLOSING = "])}>\"'»”’" + string.whitespace
_QUOTES = {"``": '"', "''": '"'}
_CONTRACTED = {"cannot", "gimme", "gonna", "gotta", "lemme", "wanna"}


def _by_sentence(split: Tokeniser, text: str) -> Words:
    words = Words([], [], [])
    for a, b in pairwise([*sentence_starts(text), len(text)]):
        words.extend(split(text[a:b]), a)
    return words


@lru_cache(maxsize=2**15)
def _taken_apart(run: str, first: bool, last: bool) -> Words:
    words = Words([], [], [])
    letters = len(run) - (run[-1:] in {",", "."})
    if run[:letters].isalpha() and run[:letters].lower() not in _CONTRACTED:
        parts = [run] if run[-1] == "." and not last else [run[:letters], run[letters:]]
        words.add(parts[0], 0)
        if parts[1:] and parts[1]:
            words.add(parts[1], letters)
        return words
    padded = ("" if first else "x ") + run + ("" if last else " x")
    found = _nltk().tokenize(padded)
    at = 0
    for word in found[0 if first else 1 : len(found) if last else -1]:
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


def _sudachi() -> Any:
    """One a thread, as it works on one text at a time."""
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
