"""Languages: codes and names, detection by py3langid (offline), and flags of texts by language."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any

import numpy as np

from freight.core.flags import NO_FLAGS, Flag, FlagKind, Flags
from freight.errors import InvalidInput
from freight.kernels import compare_words
from freight.transport.types import Array

AUTO = "auto"
ENGLISH = "en"
UNKNOWN = 0.3
"""The share of unknown units from which on there is a warning."""

SETTINGS = {
    "code": "source code",
    "characters": "single characters",
    "other": "any other language",
}
"""What `lang` takes besides languages: they choose how texts become words, or the penalties."""

_NAMES: dict[str, str] = dict(
    re.findall(
        r"(\w\w) ([^,]+)",
        "aa Afar, ab Abkhazian, af Afrikaans, ak Akan, am Amharic, an Aragonese, ar Arabic, as "
        "Assamese, av Avaric, ay Aymara, az Azerbaijani, ba Bashkir, be Belarusian, bg Bulgarian, "
        "bi Bislama, bm Bambara, bn Bengali, bo Tibetan, br Breton, bs Bosnian, ca Catalan, ce "
        "Chechen, co Corsican, cr Cree, cs Czech, cv Chuvash, cy Welsh, da Danish, de German, dv "
        "Divehi, dz Dzongkha, ee Ewe, el Greek, en English, eo Esperanto, es Spanish, et "
        "Estonian, eu Basque, fa Persian, ff Fulah, fi Finnish, fj Fijian, fo Faroese, fr French, "
        "fy Western Frisian, ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, gu Gujarati, "
        "gv Manx, ha Hausa, he Hebrew, hi Hindi, hr Croatian, ht Haitian, hu Hungarian, hy "
        "Armenian, ia Interlingua, id Indonesian, ig Igbo, ii Sichuan Yi, io Ido, is Icelandic, "
        "it Italian, iu Inuktitut, ja Japanese, jv Javanese, ka Georgian, kg Kongo, ki Kikuyu, kk "
        "Kazakh, kl Greenlandic, km Khmer, kn Kannada, ko Korean, ks Kashmiri, ku Kurdish, kv "
        "Komi, kw Cornish, ky Kyrgyz, la Latin, lb Luxembourgish, lg Ganda, li Limburgish, ln "
        "Lingala, lo Lao, lt Lithuanian, lu Luba-Katanga, lv Latvian, mg Malagasy, mi Maori, mk "
        "Macedonian, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, ne "
        "Nepali, nl Dutch, no Norwegian, nv Navajo, ny Chichewa, oc Occitan, om Oromo, or Odia, "
        "os Ossetian, pa Punjabi, pl Polish, ps Pashto, pt Portuguese, qu Quechua, rm Romansh, rn "
        "Rundi, ro Romanian, ru Russian, rw Kinyarwanda, sa Sanskrit, sc Sardinian, sd Sindhi, se "
        "Northern Sami, sg Sango, si Sinhala, sk Slovak, sl Slovenian, sm Samoan, sn Shona, so "
        "Somali, sq Albanian, sr Serbian, ss Swati, st Southern Sotho, su Sundanese, sv Swedish, "
        "sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai, ti Tigrinya, tk Turkmen, tl Tagalog, "
        "tn Tswana, to Tongan, tr Turkish, ts Tsonga, tt Tatar, ty Tahitian, ug Uyghur, uk "
        "Ukrainian, ur Urdu, uz Uzbek, ve Venda, vi Vietnamese, vo Volapük, wa Walloon, wo Wolof, "
        "xh Xhosa, yi Yiddish, yo Yoruba, za Zhuang, zh Chinese, zu Zulu",
    )
)
_OTHER_NAMES = {
    "bokmål": "no",
    "cantonese": "zh",
    "farsi": "fa",
    "filipino": "tl",
    "flemish": "nl",
    "frisian": "fy",
    "mandarin": "zh",
    "nynorsk": "no",
    "simplified chinese": "zh",
    "traditional chinese": "zh",
}
_SAME_SETTINGS = {
    **dict.fromkeys(("cmn", "wuu", "yue"), "zh"),
    **dict.fromkeys(("arb", "ary", "arz"), "ar"),
    **dict.fromkeys(("nb", "nn"), "no"),
    "fil": "tl",
    "gug": "gn",
    "in": "id",
    "iw": "he",
    "ji": "yi",
    "kik": "ki",
    "mo": "ro",
    "pcm": "en",
    "prs": "fa",
    "sdh": "ku",
    "sh": "sr",
    "uzs": "uz",
}
"""Varieties, and codes of old, that have the settings of another language."""

_TAG = re.compile(r"([A-Za-z]{2,3})([-_][A-Za-z0-9]{1,8})*")
_MIN_CONFIDENCE = 0.15
_SURE = 0.8
_EXCLUDED = 0.01
_LETTERS = 20
"""How many letters a text of Latin script has to have before its language is taken for sure."""
_ENGLISH_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the of and that with was were from this which his her they have had been their it its "
        "as by but not would about there who what when you your are she said into after could "
        "should people two new year years some them our these those while where how because "
        "between before through other such being against",
    )
)
_ENGLISH_SHARE = 0.1
_LATIN_BYTES = 1.25
"""Bytes of UTF-8 a character: a letter with a mark has two, Cyrillic about 1.8, Chinese 3."""
_FEW_WORDS, _SHARED = 3, 0.15
"""Two texts are in one language if of more words than these such a share is in both."""


def language_code(lang: str) -> str:
    """The code of a language from a code (de, de-AT, zh-Hans) or an English name (german)."""
    given = unicodedata.normalize("NFC", lang).strip()
    if given in SETTINGS:
        return given
    by_name = {name.lower(): code for code, name in _NAMES.items()} | _OTHER_NAMES
    if given.lower() in by_name:
        return by_name[given.lower()]
    tag = _TAG.fullmatch(given)
    code = tag[1].lower() if tag else ""
    code = _SAME_SETTINGS.get(code, code)
    if code in _NAMES:
        return code
    near = difflib.get_close_matches(given.lower(), [*by_name, *_NAMES], 3, 0.5)
    listed = [one if one in by_name else f"{one} ({_NAMES[one]})" for one in near]
    instead = f"did you mean {', '.join(listed)}?" if near else "write de, zh-Hans or german"
    raise InvalidInput(f"there is no language {lang!r}; {instead}")


def language_name(lang: str) -> str:
    """The English name of a language, or what else `lang` may be."""
    return _NAMES.get(lang) or SETTINGS.get(lang, lang)


def reads_english(lang: str | None) -> bool:
    """Whether an English encoder serves: for English, source code, or where nothing is known."""
    return lang in (None, ENGLISH, "code", "characters")


def detect(texts: Iterable[str], sample: int = 500) -> str | None:
    """The ISO 639 code of the language of the first texts; nothing if they show none."""
    return _best(_probabilities("\n".join(islice(texts, sample))), _MIN_CONFIDENCE)


def detect_surely(texts: Iterable[str], sample: int = 500) -> str | None:
    """The same where there is no doubt: names, numbers, source code and single words show none.

    English texts are known by their most frequent words, without loading anything.
    """
    document = "\n".join(islice(texts, sample))
    return ENGLISH if _is_english(document) else _sure_language(document)


def differs(hyp: str, ref: str) -> bool:
    """Whether a hypothesis is surely in another language than its reference.

    Texts that share some words of any length are not looked at: they are in one language.
    """
    return _differs(hyp, ref)


def language_flags(hyp: str, ref: str, languages: frozenset[str] | None) -> Flags:
    """A hypothesis in another language than its reference; a reference in none of these."""
    raised = []
    if differs(hyp, ref):
        raised.append(Flag(FlagKind.OTHER_LANGUAGE, side="hyp"))
    if not _is_read(ref, languages):
        raised.append(Flag(FlagKind.UNREAD_LANGUAGE, side="ref"))
    return frozenset(raised) if raised else NO_FLAGS


def pair_flags(
    texts: Sequence[str], index: Array, languages: frozenset[str] | None
) -> Iterator[tuple[int, Flags]]:
    """The pairs of an index (pair, 2) that have such flags, with them.

    Texts that are plainly in one language, by the words they share, or in English, by its most
    frequent ones, are passed over at the speed of compiled code.
    """
    english, words, shared = compare_words(texts, _ENGLISH_WORDS, index)
    english = np.where(list(map(_is_latin, texts)), english, 0.0)
    both = (english > _ENGLISH_SHARE)[index].all(axis=1)
    unlike = ~(both | ((words > _FEW_WORDS) & (shared > _SHARED * words)))
    unread = np.zeros(len(texts), bool)
    if languages is not None:
        doubtful = english <= _ENGLISH_SHARE if ENGLISH in languages else english >= 0.0
        for place in np.intersect1d(np.flatnonzero(doubtful), index[:, 1]):
            unread[place] = not _is_read(texts[place], languages)
    for k in np.flatnonzero(unlike | unread[index[:, 1]]):
        hyp, ref = (texts[place] for place in index[k])
        if flags := language_flags(hyp, ref, languages):
            yield int(k), flags


def _is_read(ref: str, languages: frozenset[str] | None) -> bool:
    return languages is None or (detect_surely([ref]) or ENGLISH) in languages


@lru_cache(maxsize=2**15)
def _differs(hyp: str, ref: str) -> bool:
    both = [text.lower().split() for text in (hyp, ref)]
    words = set(both[0])
    shared = sum(word.isalpha() for word in words.intersection(both[1]))
    alike = hyp == ref or (len(words) > _FEW_WORDS and shared > _SHARED * len(words))
    if alike or (_is_english(hyp) and _is_english(ref)):
        return False
    one, other = _sure_language(hyp), _sure_language(ref)
    if one is None or other is None or one == other:
        return False
    doubts = _probabilities(hyp).get(other, 0.0), _probabilities(ref).get(one, 0.0)
    return max(doubts) < _EXCLUDED


def _is_english(text: str) -> bool:
    """Whether it has enough of the most frequent English words."""
    words = text.lower().split()
    share = sum(map(_ENGLISH_WORDS.__contains__, words)) > _ENGLISH_SHARE * len(words)
    return share and _is_latin(text)


def _is_latin(text: str) -> bool:
    """Whether nearly all characters could be English: a title is no word among Chinese ones."""
    return text.isascii() or len(text.encode("utf-8", "replace")) < _LATIN_BYTES * len(text)


@lru_cache(maxsize=2**15)
def _sure_language(text: str) -> str | None:
    """The language of a text that has enough letters and is no English by any chance."""
    letters = [character for character in text[:2000] if character.isalpha()]
    latin = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    if len(letters) < 2 or (2 * latin > len(letters) and latin < _LETTERS):
        return None
    known = _probabilities(text)
    best = _best(known, _SURE if 2 * latin > len(letters) else _MIN_CONFIDENCE)
    if best == ENGLISH:
        return best
    return best if known.get(ENGLISH, 0.0) < _EXCLUDED else None


def _best(known: dict[str, float], least: float) -> str | None:
    lang = max(known, key=known.__getitem__)
    return None if lang == "zxx" or known[lang] < least else lang  # zxx: no linguistic content


def _probabilities(text: str) -> dict[str, float]:
    """The probability of each language, varieties counted with the language they belong to."""
    known: dict[str, float] = {}
    for lang, probability in _identifier().rank(text):
        code = _SAME_SETTINGS.get(lang, lang)
        known[code] = known.get(code, 0.0) + float(probability)
    return known


def vocabulary_note(encoder: str, texts: Iterable[str]) -> str:
    """A warning that texts are unknown to an encoder, with their language and a cure."""
    lang = detect(texts)
    if lang in (None, ENGLISH):
        seems, cure = "unlike any language", "an encoder or vectors that know such texts"
    else:
        seems = f"like {language_name(lang or '')}"
        cure = f"encoder multilingual, or vectors of that language, static:FILE with lang {lang}"
    return (
        f"more than {UNKNOWN:.0%} of the units are unknown to {encoder}, and scores say little of"
        f" such texts; they look {seems}: take {cure}"
    )


@cache
def _identifier() -> Any:
    """Loaded on first use, which takes about a second."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


# Letters and words.


def fold_word(word: str) -> str:
    """Lower case, without accents and possessive endings."""
    if not word.isascii():
        word = "".join(
            c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn"
        )
        word = word.replace("\u2019", "'").translate(_PLAIN_LETTERS)
    return word.lower().removesuffix("'s").rstrip("'")


_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "ı": "i", "ß": "s", "đ": "d"}
)


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The first word of the character's name: LATIN, CYRILLIC; CJK and kana are one script."""
    name = unicodedata.name(character, "?").split()[0].split("-")[0]
    return "CJK" if name in ("HIRAGANA", "KATAKANA", "IDEOGRAPHIC") else name


@lru_cache(maxsize=4096)
def sound_of(name: str) -> str:
    """A name without the spellings in which transliterations differ."""
    for spelling, sound in _SOUNDS:
        name = name.replace(spelling, sound)
    return name


_SPELLINGS = "ph:f kh:h gh:h ch:h ck:k q:k c:k x:ks w:v j:i y:i z:s sh:s th:t"
_SOUNDS = [spelling.split(":") for spelling in _SPELLINGS.split()]


# What is known of English words.


def word_set(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())


FUNCTION_WORDS = word_set(
    "a about after again all also an and any are as at back be been before but by can could did do"
    " does don't for from had has have he her him his how i if in into is isn't it its just like"
    " made make may me more most my no not of off on one only or other our out over said she should"
    " so some than that the their them then there these they this those to two up was we were what"
    " when where which while who whose will with would you your however every cannot"
)
"""The commonest words, which occur in nearly every sentence."""
NO_NAMES = FUNCTION_WORDS | word_set(
    "i'm i've i'd i'll mr mrs ms miss dr sir lady lord prof st here why each nobody nothing"
    " everyone everything something someone somebody anyone three must very still even now today"
    " yesterday god internet president minister chancellor king queen prince princess pope"
    " bishop general captain governor mayor secretary deputy vice head chief executive officer"
    " director managing chairman chairwoman chair state government parliament senate congress court"
    " house party church police army north south east west northern southern eastern western world"
    " war earth sun moon office agency institute department station school university college cup"
    " championship championships league group review investigation convention regulation authority"
    " public supreme high medical board administration association promotion advancement commission"
    " committee council federal national international ministry bureau center bank fund union"
    " act law treaty award prize festival company corporation hospital museum street road avenue"
    " bridge park river lake sea island mountain airport square hall assembly republic academy"
    " society federation organisation organization foundation service services agreement january"
    " february march april june july august september october november december jan feb mar apr jun"
    " jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday al el"
    " lieutenant major colonel attorney prosecutor section permanent first second third fourth"
    " fifth sixth seventh superintendent commissioner inspector sergeant city provincial criminal"
    " forensic trade commerce naval navy marine corps forces command followers"
)
"""Words that are written with a capital letter, in lower case, and are no names by themselves."""
_ALIAS_GROUPS = (
    "us usa u.s america american americans states united; uk gb britain british england english"
    " kingdom; eu europe european brussels; un nations; france french frenchman frenchmen; shia"
    " shiite shiites; netherlands holland dutch;"
    " switzerland swiss; denmark danish dane; poland polish pole poles; spain spanish; turkey"
    " turkish turk turks turkiye; greece greek; wales welsh; ireland irish; germany german;"
    " kiev kyiv; myanmar burma; peking beijing; czechia czech bohemia"
)
ALIASES = {name: group.split() for group in _ALIAS_GROUPS.split(";") for name in group.split()}
"""By name in lower case, others for the same country, its people or its government."""
TITLES = word_set("dr mr mrs ms prof st gen sen gov rep lt col sgt capt")
"""Words before a name, which end in a dot that ends no sentence."""
SINGULAR_VERBS = word_set("is was has does says")
PAST_TENSES = re.compile(
    r"[A-Z]\w+|\w{2,}ed|said|told|won|bought|sold|went|came|took|gave|made|met|lost|left|led|held|began|wrote"
)
PLAIN_ENDINGS = re.compile(r"(?:ing|ly|ed|ness|tion|ment|ity|ance|ence|ism|er|ship|hood)$")
"""How words end that are no names."""
NEGATIVES = ("never", "no", "none", "nobody", "nothing", "nowhere", "neither", "without")
NEGATION = re.compile(
    rf"\b(?i:not|cannot|{'|'.join(NEGATIVES)})\b"
    r"|(?i:n ?['’´`]t|n ?&apos;t|n&\#39;t|(?<!not )\byet to)\b"
)
NEGATIVE_IDIOMS = re.compile(
    r"\bnot (?P<focus>only|just)\b(?=.* but\b)|\bor not\b|\bnot (?:least|to mention)\b"
    r"|\bnot long (?:before|after|ago)\b|\bif not (?:hundreds|thousands|millions|more|all|most)\b"
    r"|\bno (?:doubt|matter)\b|\bno\.? ?\d|\bnothing (?:but|short)\b",
    re.IGNORECASE,
)
NEGATIVE_PREFIXES = re.compile(
    r"(?:un(?!less)|non-?|i(?:l(?=l)|r(?=r)|m(?=poss|prob|mat|mor|pol|perf|prac|prop)"
    r"|n(?=cap|sec|suff|vis|vali|eff|comp|corr|acc|act|adeq|app|dire|freq|sig|tol|elig|expe))"
    r"|dis(?=agree|appr|hon|obey|sat|qual|loy))(\w{4,})"
)
REVERSALS = re.compile(
    r"un\w{3,}|im(?:poss|prob|mat|pat)\w+|in(?:cap|sec|suff|vis|vali|eff|abil|compl|correct|depend)\w+"
    r"|ir(?:resp|rel)\w+|il(?:leg|log)\w+|dis(?:a|cont|reg|ob|hon|sat)\w+|non[\w-]*|nor"
    r"|hardly|barely|scarcely|rarely|seldom|few|fewer|little|less|least|only|except|until|yet|still"
    r"|lack\w*|fail\w*|refus\w+|den(?:y|ie[sd]|ying|ial)|avoid\w*|prevent\w*|reject\w*|forb\w+"
    r"|stop\w*|ceas\w+|miss\w*|loses?|lost|losing|absen\w+|free|instead|rather|beyond|away|out"
    r"|prohib\w+|ban(?:s|ned)?|against|despite|exclud\w+|neglect\w*|ignor\w+|without|any\w*"
    r"|anonym\w*|forg\w+|\w{3,}less|far|from|too|ever|zero|hard|difficult\w*|nobody|neither|either|wrong|false|no"
)
"""Words that negate without a negation, or take one back."""
