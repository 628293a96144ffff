"""Texts as words with their character spans, sentences and lower case, by language."""

import gzip
import json
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import jieba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer

import freight
from freight.encoders import words
from freight.encoders.words import (
    chinese,
    code,
    english,
    lowercase,
    sentence_starts,
    unicode_words,
    word_tokenizer,
)
from freight.errors import MissingPart

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
    words = code("getHTTPResponse_code2(fooBar, XMLParser)").texts
    assert words == ["get", "http", "response", "code", "2", "foo", "bar", "xml", "parser"]


def test_other_languages_break_where_unicode_does() -> None:
    words = unicode_words("L'été à 3.5 %, здравствуй-мир!").texts
    assert words == ["L'été", "à", "3.5", "%", ",", "здравствуй", "-", "мир", "!"]
    assert word_tokenizer("de") is unicode_words
    assert word_tokenizer(None) is word_tokenizer("en") is english


WORDS = {
    "de": ("„Straßenbahn“, sagte sie – 3,5 % mehr.", "„ Straßenbahn “ , sagte sie – 3,5 % mehr ."),
    "cs": ("Řekl: „Přijďte v 10.30!“", "Řekl : „ Přijďte v 10.30 ! “"),
    "ru": ("Он сказал: «ёж №5».", "Он сказал : « ёж № 5 » ."),
    "fi": ("Äiti, EU:n pöydällä.", "Äiti , EU:n pöydällä ."),
    "tr": ("Türkiye'nin ışığı yandı.", "Türkiye'nin ışığı yandı ."),
    "ar": ("قال: «نعم؟» في ٢٠٢٤، مُحَمَّدٌ.", "قال : « نعم ؟ » في ٢٠٢٤ ، مُحَمَّدٌ ."),
    "hi": ("यह किताब है।", "यह किताब है ।"),
    "zh": ("他说：“今天天气很好。”GDP", "他 说 今天天气 很 好"),
    "ja": ("私は東京タワーへ行きました。", "私 は 東京 タワー へ 行き まし た 。"),
    "th": ("สะพานใหม่จะไม่เปิด 😀 3,5%.", "สะพาน ใหม่ จะ ไม่ เปิด 😀 3,5 % ."),
    "km": ("ស្ពានថ្មីនឹងមិនបើកទេ។", "ស្ពាន ថ្មី នឹង មិន បើក ទេ ។"),
    "lo": ("ຂົວໃໝ່ຈະບໍ່ເປີດ", "ຂົວ ໃໝ່ ຈະ ບໍ່ ເປີດ"),
    "my": ("တံတားသစ်ကို မဖွင့်ဘူး။", "တံတား သစ် ကို မ ဖွင့် ဘူး ။"),
}


@pytest.mark.parametrize("lang", WORDS)
def test_words_and_where_they_stand(lang: str) -> None:
    text, words = WORDS[lang]
    tokens = word_tokenizer(lang)(text)
    assert tokens.texts == words.split()
    assert [text[a:b] for a, b in zip(tokens.start, tokens.end, strict=True)] == tokens.texts


def test_japanese_of_any_length_with_half_characters() -> None:
    text = "東京" * 30_000 + "\ud800 タワー"
    tokens = word_tokenizer("ja")(text)
    assert tokens.texts.count("東京") >= 29_990
    assert tokens.texts[-1] == "タワー"
    assert tokens.end[-1] == len(text)


def test_japanese_says_what_found_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "v.vec").write_text("1 2\n東京 1 0\n", encoding="utf-8")
    signature = freight.load("wmd", encoder=f"static:{tmp_path}/v.vec", lang="ja").signature
    assert "ja(SudachiPy" in signature
    monkeypatch.setitem(sys.modules, "sudachipy", None)
    monkeypatch.delattr("freight.encoders.words._THREAD.sudachi")
    with pytest.raises(MissingPart, match=r"pip install 'freight\[ja\]'"):
        word_tokenizer("ja")("東京")


def test_thai_says_what_found_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "v.vec").write_text("1 2\nสะพาน 1 0\n", encoding="utf-8")
    load = partial(freight.load, "wmd", encoder=f"static:{tmp_path}/v.vec", lang="th")
    assert "th(icu4py" in load().signature
    text = "สะพาน\ud800ใหม่"  # half of a character
    assert "".join(word_tokenizer("th")(text).texts) == text
    words._icu.cache_clear()
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    with pytest.raises(MissingPart, match=r"icu4py is not installed; run  pip .*'freight\[icu\]'"):
        word_tokenizer("th")("สะพาน")
    words._icu.cache_clear()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("هل أنت متأكد؟ نعم.", ["هل أنت متأكد؟ ", "نعم."]),
        ("„Komm!“ Er ging.", ["„Komm!“ ", "Er ging."]),
        ("«Стой!» Он ушёл.", ["«Стой!» ", "Он ушёл."]),
        ("他说：“好。”我走了。", ["他说：“好。”", "我走了。", ""]),
        ("「本当？」彼は笑った。", ["「本当？」", "彼は笑った。", ""]),
        ("यह है। ठीक है।", ["यह है। ", "ठीक है।"]),
    ],
)
def test_sentences_end_by_the_marks_of_the_script(text: str, sentences: list[str]) -> None:
    starts = [*sentence_starts(text), len(text)]
    assert [text[a:b] for a, b in pairwise(starts)] == sentences


def test_lower_case_by_language() -> None:
    assert lowercase("IŞIK İYİ", "tr") == "ışık iyi"
    assert lowercase("DIŞ", "az") == "dış"
    assert lowercase("IS", "de") == "is"
    assert lowercase("Straße", "de") == "straße"
    assert lowercase("ΟΔΟΣ", "el") == "οδος"[:-1] + "ς"
