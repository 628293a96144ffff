"""Numbers as texts write them: digits, words, dates, with their units, and how those of two differ.

Number words, months and units are those of English.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from freight.core.flags import Span


class Number(NamedTuple):
    """What a number may stand for, its place and its unit; `end` is where the unit ends.

    `strong` if it counts on its own; "one" and "first" often say something else. `digits` if it is
    written so.
    """

    values: frozenset[float]
    span: Span
    unit: str = ""
    strong: bool = True
    digits: bool = True
    end: int = 0

    @property
    def with_unit(self) -> Number:
        """The same number, its unit within its span."""
        return self._replace(span=(self.span[0], max(self.span[1], self.end)))


def unequal_numbers(
    ours: list[Number], theirs: list[Number], words_known: bool
) -> Iterator[tuple[Number | None, Number | None]]:
    """Numbers of two texts that differ, each with what stands for it in the other, or nothing.

    A number alone counts only if it is in digits, and if number words are known in the language.
    """
    own_rest, other_rest = _without_equal(ours, theirs), _without_equal(theirs, ours)
    if not own_rest and not other_rest:
        yield from _repeated(ours, theirs)
        yield from _other_units(ours, theirs)
        return
    measured = {(x.unit, x.values): x for x in (*ours, *theirs) if x.unit}.values()
    for own, other in _pair_up(own_rest, other_rest):
        alone = own or other
        if own is not None and other is not None:
            if own.strong or other.strong or own.unit == other.unit in (_ORDINAL, _FRACTION):
                yield own, other
        elif alone is None or not (alone.strong and alone.digits and words_known):
            continue
        elif not any(_is_converted(alone, one, _EQUIVALENT) for one in measured):
            yield own, other


def _without_equal(numbers: list[Number], others: list[Number]) -> list[Number]:
    """Those that none of the others equals."""
    known = frozenset[float]().union(*(other.values for other in others))
    return [x for x in numbers if known.isdisjoint(x.values) and x.unit != _ARTICLE]


def _repeated(ours: list[Number], theirs: list[Number]) -> Iterator[tuple[Number, Number]]:
    """Of equally many numbers of the same values, those that one text has more often."""
    if len(ours) != len(theirs):
        return
    own, other = (Counter(min(x.values) for x in side if x.strong) for side in (ours, theirs))
    pairs = zip((own - other).elements(), (other - own).elements(), strict=False)
    for value, missing in pairs if own.keys() == other.keys() else ():
        last = [x for x in ours if value in x.values][-1]
        yield last, [x for x in theirs if missing in x.values][-1]


def _other_units(ours: list[Number], theirs: list[Number]) -> Iterator[tuple[Number, Number]]:
    """The same number of something else: 10 mg, 10 g."""
    for own in ours:
        same = [other for other in theirs if own.values & other.values]
        units = {other.unit for other in same}
        known = {own.unit, *units} <= _MEASURES - {"degree"}
        if known and own.unit not in units and len(same) == 1:
            yield own.with_unit, same[0].with_unit


def _pair_up(
    ours: list[Number], theirs: list[Number]
) -> Iterator[tuple[Number | None, Number | None]]:
    """In order, those of the same unit first; a month is paired with a month."""
    rest = list(theirs)
    for own in ours:
        fitting = [one for one in rest if _comparable(own, one)]
        other = min(fitting, key=lambda one: one.unit != own.unit, default=None)
        if other is not None:
            rest.remove(other)
        if other is None or not _is_converted(own, other):
            yield own, other
    for other in rest:
        yield None, other


def _comparable(one: Number, other: Number) -> bool:
    return one.unit == other.unit or not {one.unit, other.unit} & {_MONTH, _WEEKDAY, _TIMES}


def _is_converted(one: Number, other: Number, rounding: float = 0.04) -> bool:
    """Whether the two are one quantity in two units, but for rounding."""
    for own, their in ((one, other), (other, one)):
        both = [(x, y) for x in own.values for y in their.values]
        factor = _CONVERSIONS.get((own.unit, their.unit))
        if factor is not None and any(abs(x * factor - y) <= rounding * y for x, y in both):
            return True
        warm = {own.unit, their.unit} <= _TEMPERATURES
        if warm and any(abs(x * 1.8 + 32 - y) <= _ROUNDED_DEGREES and x != -y for x, y in both):
            return True
    return False


def read_numbers(text: str) -> Iterator[Number]:
    """The numbers of a text, in order; words that may stand for one are among them."""
    end = 0
    for run in _QUANTITY.finditer(text):
        if run.start() < end:
            continue
        if run["digits"]:
            yield from _digits(text, run)
        elif run["words"]:
            yield from _number_words(run["words"], run.start(), text)
        elif run["fraction"]:
            yield _fraction(text, run)
        elif run["nth"]:
            tens, ones = re.split("[ -]", run["nth"].lower())
            values = frozenset([_CARDINALS[tens] + _ORDINALS[ones]])
            yield Number(values, run.span(), _ORDINAL, digits=False)
        elif run["weak"] or run["roman"]:
            name = (run["weak"] or "").lower()
            value = _WEAK[name] if name else _roman(run["roman"])
            unit = _TIMES if name in ("once", "twice") else _ARTICLE
            yield Number(frozenset([value]), run.span(), unit, strong=False, digits=False)
        elif run["ordinal"]:
            value = _ORDINALS[run["ordinal"].lower()]
            yield Number(frozenset([value]), run.span(), _ORDINAL, value > 3, False)
        elif run["date"] and not _no_date(text, run):
            yield _calendar(run)
        end = run.end()


def _digits(text: str, run: re.Match[str]) -> Iterator[Number]:
    """The number of some digits; dates and results of races are several."""
    written = run["digits"]
    parts = _SEPARATORS.split(written)
    grouped = _GROUPED.fullmatch(written) is not None
    whole = "/" not in written and (":" not in written or _CLOCK.fullmatch(written) is not None)
    if whole and (len(parts) < 3 or grouped):
        parts = [written]
    ratio = _RATIO.fullmatch(written)
    if ratio and float(ratio[1]) < float(ratio[2]):
        parts = [written]
    scale_name = (run["scale"] or "").lower()
    scale = _SCALES.get(scale_name, 1.0)
    unit = _UNITS.get((run["unit"] or run["currency"] or "").lower().rstrip("."), "")
    unit = unit or (_HALF_DAYS[run["clock"][0].lower()] if run["clock"] else "")
    if not unit and _UNIT_TIMES.match(text, run.end()):
        unit = _TIMES
    start = run.start("digits")
    part_of_word = _PART_OF_WORD.search(text, max(start - 2, 0), start) is not None
    for k, part in enumerate(parts):
        span = start, start + len(part)
        start = span[1] + 1
        values = _values(part)
        last = k == len(parts) - 1
        if last and scale != 1.0:
            kept = values if scale_name in _DOUBTFUL_SCALES else set()
            values = {value * scale for value in values} | kept
        if (run["clock"] or "").lower().startswith("p"):
            values |= {value + 12 for value in values}
        if ":" in part and min(values) > 12:
            values |= {value - 12 for value in values}
        if len(parts) == 3 and max(values) <= 12:
            values |= {_month(value) for value in values}
        century = _CENTURY.search(text, max(span[0] - 5, 0), span[0])
        if century and len(part) == 2:
            values |= {100 * float(century[1]) + value for value in values}
        if run["decade"] and max(values) < 100:
            values |= {1900 + value for value in values}
        known = _below_zero(text, span, unit, frozenset(round(x, 6) for x in values))
        stop = run.end("unit" if run["unit"] else "clock") if last else 0
        yield Number(known, span, unit if last else "", digits=not part_of_word, end=stop)


def _values(written: str) -> set[float]:
    """What digits with separators may mean: 1.500 is 1500 or 1.5."""
    if ratio := _RATIO.fullmatch(written):
        share, denominator = float(ratio[1]) / float(ratio[2]), float(ratio[2])
        return {share, float(round(100 * share)), denominator}
    fraction = _FRACTIONS.get(written[-1], 0.0)
    if ":" in written:
        hours, minutes = (re.sub(r"\D", "", part) for part in written.split(":"))
        return {float(f"{hours}.{minutes}")}
    bare = re.sub(r"[^\d.,]", "", written.rstrip("½¼¾⅓⅔"))
    if not bare:
        return {fraction}
    values = set()
    if _GROUPED.fullmatch(bare):
        values.add(float(re.sub(r"\D", "", bare)))
    if len(re.findall(r"[.,]", bare)) <= 1:
        values.add(float(bare.replace(",", ".")))
    elif not values or re.search(r"[.,]\d+$", bare):
        whole, _, part = bare.replace(",", ".").rpartition(".")
        values.add(float(whole.replace(".", "") + "." + part))
    return {value + fraction for value in values}


def _number_words(words: str, start: int, text: str) -> Iterator[Number]:
    """Cardinals: "two hundred and five" is one number, "two three" are two."""
    total = group = 0.0
    last = 0.0
    begin = None
    end = 0
    for run in re.finditer(r"[^\W\d_]+", words):
        word = run[0].lower()
        if word == "and" or (word == "a" and begin is not None):
            continue
        if word == "half":
            group, end = group + 0.5, run.end()
            continue
        if word == "a":
            begin, group, last, end = run.start(), 1.0, 1.0, run.end()
            continue
        value = _CARDINALS.get(word, _SCALES.get(word, 0.0))
        if word in _SCALES or word in ("hundred", "dozen"):
            if value >= 1000:
                total, group = total + max(group, 1.0) * value, 0.0
            else:
                group = max(group, 1.0) * value
        elif begin is not None and last and not (last >= 20 and value < 10) and last < 100:
            yield _cardinal(total + group, start + (begin or 0), start + end, text)
            total, group, begin = 0.0, value, run.start()
        else:
            group += value
        begin = run.start() if begin is None else begin
        last, end = value, run.end()
    if begin is not None:
        yield _cardinal(total + group, start + begin, start + end, text)


def _cardinal(value: float, start: int, end: int, text: str) -> Number:
    unit = _UNIT_AFTER.match(text, end)
    name = _UNITS.get(unit[1].lower(), "") if unit else ""
    name = name or (_TIMES if _UNIT_TIMES.match(text, end) else "")
    decades = _LONG_TIMES.match(text, end)
    values = {value, value * _SCALES[decades[1].lower()]} if decades else {value}
    known = _below_zero(text, (start, end), name, frozenset(values))
    return Number(known, (start, end), name, value != 1.0, False, unit.end() if unit else 0)


def _below_zero(text: str, span: Span, unit: str, values: frozenset[float]) -> frozenset[float]:
    """The values of a temperature, negative behind a minus or before "below zero"."""
    before = _MINUS.search(text, max(span[0] - 9, 0), span[0])
    if unit in _TEMPERATURES and (before or _UNDER.match(text, span[1])):
        return frozenset(-value for value in values)
    return values


def _fraction(text: str, run: re.Match[str]) -> Number:
    """A third, two-thirds, half an hour: as a share, in percent, and by its denominator."""
    count, _, part = run["fraction"].lower().replace("-", " ").rpartition(" ")
    denominator = _PARTS[part.rstrip("s")]
    share = _CARDINALS.get(count, 1.0) / denominator
    unit = _UNIT_OF_PART.match(text, run.end())
    values = frozenset([share, round(100 * share), denominator])
    name = _UNITS.get(unit[1].lower(), "") if unit else ""
    return Number(values, run.span(), name or _FRACTION, False, False, unit.end() if unit else 0)


def _roman(numeral: str) -> float:
    digits = [{"I": 1, "V": 5, "X": 10}[letter] for letter in numeral]
    signed = [-a if a < b else a for a, b in zip(digits, [*digits[1:], 0], strict=True)]
    return float(sum(signed))


def _no_date(text: str, run: re.Match[str]) -> bool:
    """Whether May, March or the like is no date: no number is beside it, and no "in" before it."""
    word = run["date"].rstrip(".").lower()
    if word not in _DOUBTFUL:
        return False
    around = text[max(run.start() - 8, 0) : run.start()], text[run.end() : run.end() + 6]
    return not (_BEFORE_DATE.search(around[0]) or re.match(r" ?\d", around[1]))


def _calendar(run: re.Match[str]) -> Number:
    word = run["date"].rstrip(".").lower()
    if word[:3] in _MONTHS:
        return Number(
            frozenset([_month(_MONTHS.index(word[:3]) + 1)]), run.span(), _MONTH, True, False
        )
    return Number(frozenset([1e6 + _DAYS.index(word[:3]) + 0.5]), run.span(), _WEEKDAY, True, False)


def _month(number: float) -> float:
    """The value of a month's name, which no other number has."""
    return 2e6 + 0.5 + number


def _split(names: str) -> list[str]:
    return names.split()


_TEENS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_CARDINALS = {name: float(value) for value, name in enumerate(_split(_TEENS))}
_CARDINALS |= {name: 20.0 + 10 * k for k, name in enumerate(_split(_TENS))}
_CARDINALS |= {"hundred": 100.0, "dozen": 12.0}
_SCALES = {
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6,
    "mn": 1e6, "mln": 1e6, "b": 1e9, "bn": 1e9, "bln": 1e9, "tn": 1e12, "万": 1e4, "亿": 1e8,
    "億": 1e8, "千": 1e3, "decade": 10.0, "decades": 10.0, "century": 100.0, "centuries": 100.0,
}  # fmt: skip
_DOUBTFUL_SCALES = ("m", "k", "b", "decade", "decades", "century", "centuries")
_LONG_TIMES = re.compile(r" (decades|centuries)\b", re.IGNORECASE)
_FRACTIONS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}
_PARTS = {"half": 2.0, "halve": 2.0, "third": 3.0, "quarter": 4.0, "fifth": 5.0, "tenth": 10.0}
_MINUS = re.compile(r"(?:(?:^|(?<=[\s(]))[-−–]|\b(?:minus|negative) )$", re.IGNORECASE)
_UNDER = re.compile(r".{0,20}\bbelow (?:zero|freezing)", re.IGNORECASE)
_RATIO = re.compile(r"([1-9]) ?/ ?([2-9]|10)")
_PART_OF_WORD = re.compile(r"[^\W\d_]-$")
_UNIT_TIMES = re.compile(r"[ -]times?\b", re.IGNORECASE)
_HALF_DAYS = {"a": "am", "p": "pm"}
_SEPARATORS = re.compile(r"[/:.-]")
_CENTURY = re.compile(r"(\d\d)\d\d[-–/]$")
_CLOCK = re.compile(r"(?:[01]?\d|2[0-4]): ?[0-5]\d")
_MONTH, _WEEKDAY, _ORDINAL, _TIMES, _FRACTION = _split("month-name weekday ordinal times fraction")
_ARTICLE = "article"
"""The unit of words that may stand for a number but are none: a, both, no."""
_NTH = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ORDINALS = {name: float(k + 1) for k, name in enumerate(_split(_NTH))}
_ORDINALS |= {f"{name[:-1]}ieth": 20.0 + 10 * k for k, name in enumerate(_split(_TENS))}
_WEAK = {
    "once": 1.0, "single": 1.0, "both": 2.0, "couple": 2.0, "pair": 2.0, "twice": 2.0,
    "double": 2.0, "doubled": 2.0, "two-thirds": 2.0, "half": 0.5, "triple": 3.0, "tripled": 3.0,
    "quarter": 4.0, "decade": 10.0, "century": 100.0, "no": 0.0, "none": 0.0, "nil": 0.0,
    "an": 1.0, "a": 1.0, "alone": 1.0, "trio": 3.0, "duo": 2.0,
    "twenties": 1920.0, "thirties": 1930.0, "forties": 1940.0, "fifties": 1950.0,
    "sixties": 1960.0, "seventies": 1970.0, "eighties": 1980.0, "nineties": 1990.0,
}  # fmt: skip
_MONTHS = _split("jan feb mar apr may jun jul aug sep oct nov dec")
_DAYS = _split("mon tue wed thu fri sat sun")
_DOUBTFUL = {"may", "march", "mar", "sun", "sat", "jan"}
_BEFORE_DATE = re.compile(
    r"(?:\d|\b(?:in|of|on|since|until|till|last|next|by|before|after|from|to|this|mid|and)) $|\d$"
)
_UNIT_SPELLINGS = (
    "percent: % percent per_cent pct; dollar: $ us$ usd dollars; euro: € eur euros; pound: £ gbp"
    " pounds; yen: ¥ jpy; yuan: cny rmb renminbi; rupee: ₹ rs inr rupees; rouble: ₽ rub roubles"
    " ruble rubles; franc: chf francs; krone: krona kronor kroner koruna crowns; lira: ₺ liras;"
    " peso: pesos; lb: lbs; degree: ° degrees; mg: milligram milligrams; mcg: µg microgram"
    " micrograms; g: gram grams gramme grammes; kg: kilo kilos kilogram kilograms; tonne: tonnes"
    " ton tons; ml: millilitre millilitres milliliter milliliters; l: litre litres liter liters;"
    " mm: millimetre millimetres millimeter millimeters; cm: centimetre centimetres centimeter"
    " centimeters; metre: metres meter meters; km: kilometre kilometres kilometer kilometers;"
    " mile: miles; foot: feet ft; inch: inches; celsius: °c; fahrenheit: °f; second: seconds sec;"
    " minute: minutes min; hour: hours h; day: days; week: weeks; month: months; year: years"
)
_UNITS = {
    spelling.replace("_", " "): unit
    for unit, spellings in (group.split(": ") for group in _UNIT_SPELLINGS.split("; "))
    for spelling in (unit, *spellings.split())
}
_CONVERSIONS = {
    ("kg", "lb"): 2.2046, ("kg", "pound"): 2.2046, ("km", "mile"): 0.6214, ("metre", "foot"): 3.281,
    ("cm", "inch"): 0.3937, ("metre", "inch"): 39.37, ("tonne", "kg"): 1000.0, ("kg", "g"): 1000.0,
    ("km", "metre"): 1000.0, ("metre", "cm"): 100.0, ("cm", "mm"): 10.0, ("g", "mg"): 1000.0,
    ("l", "ml"): 1000.0, ("hour", "minute"): 60.0, ("day", "hour"): 24.0, ("week", "day"): 7.0,
    ("year", "month"): 12.0, ("minute", "second"): 60.0,
}  # fmt: skip
_EQUIVALENT, _ROUNDED_DEGREES = 0.12, 2.0  # 3,000 pounds (1,300 kg)
_TEMPERATURES = {"degree", "celsius", "fahrenheit"}
_MEASURES = frozenset(_UNITS.values()) | frozenset(_HALF_DAYS.values())
_UNIT_NAMES = "|".join(
    re.escape(name) for name in sorted(_UNITS, key=len, reverse=True) if name[0] not in "$€£¥₹₽₺"
)
_UNIT_AFTER = re.compile(rf"[ \u00a0-]?({_UNIT_NAMES})(?!\w)", re.IGNORECASE)
_UNIT_OF_PART = re.compile(rf"(?: of)? an? ({_UNIT_NAMES})(?!\w)", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*|\d{4,}|\d{1,3}(?:\d{3})+")
_CARDINAL_NAMES = "|".join(sorted(_CARDINALS, key=len, reverse=True))
_CURRENCIES = "USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|Rs"
_PART_NAMES = "half|halves|thirds?|quarters?|fifths?|tenths?"
_ONES = "|".join(list(_ORDINALS)[:9])
_MONTH_NAMES = (
    "January|February|March|April|May|June|July|August|September|October|November|December"
)
_DAY_NAMES = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_SCALE_NAMES = "thousand|million|billion|trillion"
_QUANTITY = re.compile(
    rf"""&\#?\w+;
    |(?P<currency>US\$|[$€£¥₹₽₺]|\b(?:{_CURRENCIES})\b\.?)?\s?
      (?P<digits>\d{{4}}-\d\d-\d\d(?![\d-])|\d{{1,3}}[ ]thousand[ ]\d{{3}}(?!\d)
        |\d{{1,3}}(?:(?:[ \u00a0\u202f]|,[ ](?=000))\d{{3}})+(?!\d)
        |[1-9][ ]/[ ][2-9](?!\d)|\d+(?:(?:[.,'’/]|:[ ]?)\d+)*[½¼¾⅓⅔]?|[½¼¾⅓⅔])
      (?:[ \u00a0-]?(?P<scale>(?i:{_SCALE_NAMES}|mln|mn|bln|bn|tn|decades|centuries)(?!\w)
        |[kKmMbB](?!\w)|[万亿億千]))?
      (?P<decade>['’]?s(?!\w))?
      (?:[ \u00a0]?(?P<clock>(?i:[ap]\.?m\b)))?
      (?:[ \u00a0-]?(?P<unit>(?i:{_UNIT_NAMES}))(?!\w))?
    |\b(?P<fraction>(?i:(?:a(?![ -]half)|one|two|three|four)[ -](?:{_PART_NAMES})
      |half(?=[ ](?:of|the|an?|all)\b)))\b
    |\b(?P<nth>(?i:(?:{_TENS.replace(" ", "|")})[ -](?:{_ONES})))\b
    |\b(?P<words>(?i:(?:a(?=[ ](?:hundred|dozen|{_SCALE_NAMES})\b)|(?:{_CARDINAL_NAMES})\b)
      (?:[ -](?:and[ ])?(?:{_CARDINAL_NAMES}|{_SCALE_NAMES})\b)*
      (?:[ -]and[ -]a[ -]half\b(?:[ ](?:{_SCALE_NAMES})\b)?)?))
    |\b(?P<ordinal>(?i:{"|".join(_ORDINALS)}))\b
    |\b(?P<date>{_MONTH_NAMES}|{_DAY_NAMES}
      |(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun)
        \b\.?(?=[ ]\d|,))
    |\b(?P<roman>X{{0,3}}(?:IX|IV|VI{{0,3}}|I{{1,3}})|X{{2,3}})\b(?<=[IVX]{{2}})
    |\b(?P<weak>(?i:{"|".join(sorted(_WEAK, key=len, reverse=True))}))\b
    """,
    re.VERBOSE,
)
_DIGIT = re.compile(r"\d|[½¼¾⅓⅔]")
_NUMBER_NAMES = (
    frozenset(_CARDINALS)
    | frozenset(_ORDINALS) - {"first"}
    | frozenset(_SCALE_NAMES.split("|"))
    | {"half", "quarter", "twice"}
    | {name.lower() for name in f"{_MONTH_NAMES}|{_DAY_NAMES}".split("|")}
)


def has_numbers(text: str, words: Iterable[str]) -> bool:
    """Whether a text of these words in lower case has a number that counts on its own."""
    parts = (part for word in words for part in word.split("-"))
    return _DIGIT.search(text) is not None or not _NUMBER_NAMES.isdisjoint(parts)


def recounted(
    ours: Iterable[tuple[Number, str]], theirs: Iterable[tuple[Number, str]]
) -> Iterator[tuple[Number, Number]]:
    """Numbers, each with the word behind it, that count other things: two sons, two daughters."""
    sides = [{noun: one for one, noun in side if noun and one.strong} for side in (ours, theirs)]
    pairs = [(own, sides[1][noun]) for noun, own in sides[0].items() if noun in sides[1]]
    unlike = [(own, other) for own, other in pairs if own.values.isdisjoint(other.values)]
    yield from unlike if len(unlike) > 1 else ()
