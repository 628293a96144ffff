"""Texts as words: as the libraries find them, with their places."""

import gzip
import json
from pathlib import Path

import jieba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer

from freight.encoders.words import chinese, code, english, unicode_words, word_tokenizer

jieba.setLogLevel("WARNING")
AWKWARD = [
    'He said "no", it isn\'t 3.5%...', "the doctors. '", "Cannot gonna wanna. lemme", "(a) [b.]",
    "", "  ", "'", '"', "don't 'tis more'n d'ye", "a--b -- c", "U.S. etc. end.", "x x. x",
    "word.\n\nWord", "“quoted” ‘words’ «here»", "cannot.", "cannot,", "Mr. Smith's dogs' toys.",
    "1,000.50 a:b 12:30",
]  # fmt: skip


@pytest.mark.parametrize("text", AWKWARD)
def test_english_is_nltks(text: str) -> None:
    assert english(text).texts == NLTKWordTokenizer().tokenize(text)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab cannot .,'\"()[]-–’”%$:;?! \n"), max_size=40))
def test_english_is_nltks_whatever_the_text(text: str) -> None:
    """But for a quote after a line break, which NLTK takes for a closing one."""
    assert english(text).texts == NLTKWordTokenizer().tokenize(text.replace("\n", " "))


def test_english_is_nltks_on_real_texts(data: Path) -> None:
    with gzip.open(data / "data/wmt17-da.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["hyp"] for line in lines][::5]
    for text in texts:
        words = english(text)
        assert words.texts == NLTKWordTokenizer().tokenize(text)
        for word, start, end in zip(*words, strict=True):
            assert word in (text[start:end], "``", "''")


def test_chinese_keeps_chinese_characters() -> None:
    text = "他在2024年，去了 Berlin 天安门。"
    words = chinese(text)
    assert "".join(words.texts) == "他在年去了天安门"
    assert [text[at] for at in words.start] == [word[0] for word in words.texts]
    assert words.texts[-1] == "天安门"
    assert text[words.end[-1]] == "。"


def test_code_takes_identifiers_apart() -> None:
    found = code("getHTTPResponse_code2(fooBar, XMLParser)").texts
    assert found == ["get", "http", "response", "code", "2", "foo", "bar", "xml", "parser"]


def test_other_languages_break_where_unicode_does() -> None:
    found = unicode_words("L'été à 3.5 %, здравствуй-мир!").texts
    assert found == ["L'été", "à", "3.5", "%", ",", "здравствуй", "-", "мир", "!"]
    assert word_tokenizer("de") is unicode_words
    assert word_tokenizer(None) is word_tokenizer("en") is english
