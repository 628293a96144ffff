"""Words, sentences, cases and scripts of other languages, and which language a text is in."""

import gzip
import json
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import freight
from freight.data.languages import detect
from freight.encoders.static import Static
from freight.encoders.words import lowercase, sentence_starts, word_tokenizer
from freight.errors import MissingPart, UnknownVocabulary

TEXTS = {
    "en": "The minister said that it was not the first time they had seen this.",
    "de": "Der Minister sagte, dass die neue Brücke nicht vor dem Winter eröffnet wird.",
    "cs": "Ministr řekl, že se to stalo už podruhé a že jsou na to připraveni, ale nevědí jak.",
    "sk": "Minister povedal, že sa to stalo už druhýkrát a že sú na to pripravení, nevedia ako.",
    "pl": "Minister powiedział, że nie jest to pierwszy raz i że są na to przygotowani.",
    "fi": "Ministeri sanoi, että se ei ole ensimmäinen kerta, kun näin on käynyt, mutta on.",
    "et": "Minister ütles, et see ei ole esimene kord, kui nii on juhtunud, aga see on tõsi.",
    "tr": "Bakan, bu olayın ilk olmadığını ve daha sonra da bir çok kez olacağını söyledi.",
    "fr": "Le ministre a dit que ce n'est pas la première fois et que les ponts sont fermés.",
    "es": "El ministro dijo que no es la primera vez y que los puentes se han cerrado.",
    "nl": "De minister zei dat het niet de eerste keer is en dat de bruggen zijn gesloten.",
    "hu": "A miniszter azt mondta, hogy ez nem az első alkalom, és hogy a hidak is zárva vannak.",
    "ro": "Ministrul a spus că nu este prima dată și că podurile sunt închise din cauza vântului.",
    "ru": "Министр сказал, что это не первый раз и что мосты закрыты из-за ветра.",
    "uk": "Міністр сказав, що це не вперше і що мости зачинені, але він не знає, як довго.",
    "bg": "Министърът каза, че това не е за първи път и че мостовете са затворени.",
    "ar": "قال الوزير إن هذا ليس الحادث الأول من نوعه في هذه المدينة التي تقع على البحر.",
    "fa": "وزیر گفت که این اولین بار است که پل را برای آن باد بسته‌اند.",
    "el": "Ο υπουργός είπε ότι δεν είναι η πρώτη φορά.",
    "he": "השר אמר שזו לא הפעם הראשונה.",
    "hi": "मंत्री ने कहा कि यह पहली बार नहीं है।",
    "ja": "大臣は、これが初めてではないと述べた。",
    "zh": "部长说这不是第一次发生这样的事。",
    "ko": "장관은 이번이 처음이 아니라고 말했다.",
    "th": "รัฐมนตรีกล่าวว่านี่ไม่ใช่ครั้งแรก",
}


@pytest.mark.parametrize("lang", TEXTS)
def test_the_language_of_a_sentence(lang: str) -> None:
    assert detect([TEXTS[lang]]) == lang


def test_what_has_no_language() -> None:
    assert detect([]) is None
    assert detect(["12:30", "🦖 !!", "x9"]) is None


def test_the_language_of_real_references(data: Path) -> None:
    found: dict[str, list[str]] = {}
    for name in ("wmt17-da", "wmt18-darr.en-cs"):
        with gzip.open(data / f"data/{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
            for row in map(json.loads, stream):
                target = row["lang_pair"].partition("-")[2]
                found.setdefault(target, []).extend(row.get("refs") or [row["ref"]])
    assert set(found) == {"en", "ru", "zh", "cs"}
    for lang, refs in found.items():
        distinct = list(dict.fromkeys(refs))
        tens = [detect(distinct[k : k + 10]) for k in range(0, 400, 10)]
        assert tens.count(lang) >= 39, (lang, tens)


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
}


@pytest.mark.parametrize("lang", WORDS)
def test_words_and_where_they_stand(lang: str) -> None:
    text, words = WORDS[lang]
    found = word_tokenizer(lang)(text)
    assert found.texts == words.split()
    assert [text[a:b] for a, b in zip(found.start, found.end, strict=True)] == found.texts


def test_japanese_of_any_length_with_half_characters() -> None:
    text = "東京" * 30_000 + "\ud800 タワー"
    found = word_tokenizer("ja")(text)
    assert found.texts.count("東京") >= 29_990
    assert found.texts[-1] == "タワー"
    assert found.end[-1] == len(text)


def test_japanese_says_what_found_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "v.vec").write_text("1 2\n東京 1 0\n", encoding="utf-8")
    signature = freight.load("wmd", encoder=f"static:{tmp_path}/v.vec", lang="ja").signature
    assert "ja(SudachiPy" in signature
    monkeypatch.setitem(__import__("sys").modules, "sudachipy", None)
    monkeypatch.delattr("freight.encoders.words._THREAD.sudachi")
    with pytest.raises(MissingPart, match=r"pip install 'freight\[ja\]'"):
        word_tokenizer("ja")("東京")


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


def test_a_word_is_found_whatever_its_case_and_marks(tmp_path: Path) -> None:
    lines = "4 2\nışık 1 0\nkůň 0 1\nmodl\u0065\u0301 1 1\nstraße 1 2\n"
    (tmp_path / "v.vec").write_text(lines, encoding="utf-8")
    vectors = f"static:{tmp_path}/v.vec"
    turkish = Static(vectors, lang="tr").encode(["IŞIK ışık"], [0])
    assert turkish.layers[:, 0].tolist() == [[1, 0], [1, 0]]
    decomposed = unicodedata.normalize("NFD", "Kůň")
    czech = Static(vectors, lang="cs").encode([f"{decomposed} kůň modl\u0065\u0301"], [0])
    assert czech.layers[:, 0].tolist() == [[0, 1], [0, 1], [1, 1]]
    assert czech.ids[0] == czech.ids[1]
    assert czech.notes == [()]
    german = Static(vectors, lang="de").encode(["STRASSE Straße"], [0])
    assert german.notes == [("unknown units 50%",)]  # ß is not undone


@pytest.mark.parametrize(
    ("lang", "penalties"),
    [("en", (0.23, 0.31)), ("zh", (0.018, 0.97))]
    + [(lang, (0.009, 0.95)) for lang in ("ja", "ar", "de", "cs", "ru", "fi", "tr")],
)
def test_the_paper_s_penalties_by_language(lang: str, penalties: tuple[float, float]) -> None:
    signature = freight.load("lazy-emd", encoder="hashed", lang=lang).signature
    assert "hyp={},ref={},".format(*penalties) in signature


@pytest.mark.parametrize("lang", ["zh", "ja", "ar", "de", "cs", "ru", "fi", "tr"])
def test_an_encoder_places_tokens_in_any_script(lang: str) -> None:
    text = TEXTS[lang]
    cloud = freight.encoder("embedded").encode([text], [0])
    inner = (cloud.kind & 1) == 0
    covered = np.zeros(len(text), bool)
    for a, b in zip(cloud.start[inner], cloud.end[inner], strict=True):
        covered[a:b] = True
    letters = np.array([character.isalnum() for character in text])
    assert covered[letters].all()
    assert (np.diff(cloud.start[inner]) >= 0).all()  # from the first letter on, right to left too


def test_unknown_vocabulary_warns_once_with_the_language_and_a_cure() -> None:
    metric = freight.load("emd")
    texts = ["部长说这不是第一次发生这样的事。", "饕餮盛宴，鳞次栉比。"]
    with pytest.warns(UnknownVocabulary, match="they look like zh: take encoder bert") as caught:
        result = metric.score(texts, texts)
    assert len(caught) == 1
    assert result.unknown > 0.3
    assert metric.score(["A plain text."], ["A plain text."]).unknown == 0
