"""Critical differences of two texts: numbers, negations, names, text that is foreign or cut off.

They are read off the texts alone, by rules that have no parameters: a metric of meaning hardly
notices them, and people mind them most. Number words, negations and names are those of English;
digits, scripts, cut-off and repeated text are found in any language. A difference has a span in
each text; in a text that lacks the words it is empty, and is where they would stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from freight.core.flags import CriticalDifference, FlagKind, Span
from freight.core.quantities import Number, has_numbers, read_numbers, recounted, unequal_numbers
from freight.data import languages
from freight.data.languages import ALIASES, FUNCTION_WORDS, NO_NAMES, fold_word, word_set


def critical_differences(
    hyp: str, refs: str | Sequence[str], winner: int = 0
) -> tuple[CriticalDifference, ...]:
    """What differs critically between a hypothesis and its reference, or its references.

    With several references a difference counts only if no reference agrees with the hypothesis;
    its spans are those in the hypothesis and in the reference `winner`.
    """
    refs = [refs] if isinstance(refs, str) else refs
    if hyp == refs[winner] or not hyp.strip() or not refs[winner].strip():
        return ()
    own = _read(hyp)
    differences = _compare(own, _read(refs[winner]))
    for k, ref in enumerate(refs):
        if differences and k != winner:
            same = {_topic(difference) for difference in _compare(own, _read(ref))}
            differences = tuple(one for one in differences if _topic(one) in same)
    return differences


def _topic(one: CriticalDifference) -> tuple[str, Span | str]:
    """What has to be the same with another reference: the words added, or those left out."""
    added = one.hyp[0] < one.hyp[1] or one.kind == FlagKind.TRUNCATED
    return one.kind, one.hyp if added else one.words[1].lower()


@lru_cache(maxsize=4096)
def _compare(hyp: _Text, ref: _Text) -> tuple[CriticalDifference, ...]:
    rules = _numbers, _negations, _names, _foreign, _cut_off, _repeated
    return () if hyp is ref else tuple(each for rule in rules for each in rule(hyp, ref))


class _Word(NamedTuple):
    """A run of letters: as it is compared, its place, and whether it could begin a sentence."""

    text: str
    folded: str
    start: int
    end: int
    first: bool

    @property
    def span(self) -> Span:
        return self.start, self.end


@dataclass(frozen=True, eq=False)
class _Text:
    """A text and what is compared of it, each computed when it is first asked for."""

    text: str

    @cached_property
    def words(self) -> list[_Word]:
        words: list[_Word] = []
        end = 0
        for run in _WORD.finditer(self.text):
            between = self.text[end : run.start()]
            titled = words and between == ". " and words[-1].folded in languages.TITLES
            first = not words or (not titled and _SENTENCE_MARK.search(between) is not None)
            words.append(_Word(run[0], fold_word(run[0]), run.start(), run.end(), first))
            end = run.end()
        return words

    @cached_property
    def folded(self) -> Counter[str]:
        return Counter(word.folded for word in self.words)

    @cached_property
    def english(self) -> bool:
        """Whether it can be read as English: by its commonest words, or as a short answer."""
        common = sum(count for word, count in self.folded.items() if word in FUNCTION_WORDS)
        short = self.text.isascii() and (common > 0 or len(self.words) < 4) and len(self.words) < 10
        return common >= _COMMON * len(self.words) or short

    @cached_property
    def numbers(self) -> list[Number]:
        return list(read_numbers(self.text))

    @cached_property
    def counted(self) -> list[tuple[Number, str]]:
        """Each number with the word behind it."""
        behind = ((one, _BEHIND.match(self.text, one.span[1])) for one in self.numbers)
        return [(one, fold_word(word[1]) if word else "") for one, word in behind]

    @cached_property
    def negations(self) -> list[_Negation]:
        negations = []
        for run in languages.NEGATION.finditer(self.text):
            idiom = languages.NEGATIVE_IDIOMS.search(self.text, max(run.start() - 3, 0))
            idiomatic = idiom is not None and idiom.start() <= run.start() < idiom.end()
            word = run[0].lower()
            plain = word if word in languages.NEGATIVES else "not"
            escape = (idiom["focus"] or "") if idiom is not None and idiomatic else None
            negations.append(_Negation(plain, run.span(), escape and escape.lower()))
        return negations

    @cached_property
    def names(self) -> list[_Word]:
        """Capitalised words that begin no sentence, unless most words are capitalised."""
        inside = [word for word in self.words if not word.first]
        capital = [word for word in inside if word.text[0].isupper()]
        if 2 * len(capital) > len(inside) + 2:
            return []
        named = [word for word in capital if not re.fullmatch("[A-Z]|[IVX]+", word.text)]
        return [word for word in named if word.folded not in NO_NAMES]

    @property
    def words_and_names(self) -> Iterator[tuple[str, Span, bool]]:
        """The words with their places, neighbours with capital letters as one, which is a name."""
        named = [x for x in self.words if x.text[0].isupper() and x.folded not in NO_NAMES]
        words = [(x.folded, x.span, False) for x in self.words if x not in named]
        names = [(self.text[slice(*span)].lower(), span, True) for span in _phrases(named)]
        yield from sorted(words + names, key=lambda one: one[1])

    def place_of(self, other: _Text, span: Span) -> Span:
        """Where in this text something of the other one would stand: behind what is before it."""
        before = sum(word.end <= span[0] for word in other.words)
        own, theirs = ([word.folded for word in text.words] for text in (self, other))
        end = 0
        for block in SequenceMatcher(None, theirs, own).get_matching_blocks():
            common = min(block.size, before - block.a)
            if common > 0:
                end = self.words[block.b + common - 1].end
        return end, end


@lru_cache(maxsize=4096)
def _read(text: str) -> _Text:
    return _Text(text)


_LOWER, _LETTER = "[^\\W\\d_A-Z]", "[^\\W\\d_]"
_WORD = re.compile(  # parts of a name that are joined by hyphens are words of their own
    rf"{_LOWER}+(?:['\u2019-]{_LOWER}+)*(?!{_LETTER})|{_LETTER}+(?:['\u2019]{_LETTER}+)*"
)
_SENTENCE_MARK = re.compile(r"[.!?:;…\"“”„«»()\[\]|*•]|(?<!\w)['‘’`]|--|[–—]|\d\s*$|\n|&quot;")
_COMMON = 0.15  # of all words: English has twice as many of these, other languages half as many


# Numbers.


def _numbers(hyp: _Text, ref: _Text) -> Iterator[CriticalDifference]:
    if not any(has_numbers(text.text, text.folded) for text in (hyp, ref)):
        return
    english = hyp.english and ref.english
    pairs = [*unequal_numbers(hyp.numbers, ref.numbers, english)]
    for own, other in pairs or recounted(hyp.counted, ref.counted):
        yield _difference(FlagKind.NUMBER, hyp, ref, own and own.span, other and other.span)
    written = [{run[1]: run for run in _TWO_NUMBERS.finditer(text.text)} for text in (hyp, ref)]
    for before, run in () if pairs else written[0].items():
        if before in written[1] and _is_rewritten(run, written[1][before]):
            spans = (one.span("both") for one in (run, written[1][before]))
            yield _difference(FlagKind.NUMBER, hyp, ref, *spans)


def _is_rewritten(one: re.Match[str], other: re.Match[str]) -> bool:
    """Whether the same digits behind the same word say something else: a result, a version."""
    if "." not in (one["mark"], other["mark"]):
        return (one["a"], one["b"]) == (other["b"], other["a"]) != (one["b"], one["a"])
    word, same = one[1], one["mark"] == other["mark"] and one["a"] == other["a"]
    named = word.istitle() and word.lower() not in NO_NAMES
    return same and one["b"] != other["b"] and (named or word in _VERSIONED)


# Negations: on one side only.


class _Negation(NamedTuple):
    """A negation and its place; an idiom, such as "not only", has the word it goes with, or ""."""

    word: str
    span: Span
    idiom: str | None


def _negations(hyp: _Text, ref: _Text) -> Iterator[CriticalDifference]:
    if not (hyp.english and ref.english):
        return
    if not hyp.negations and not ref.negations:
        yield from _prefixed(hyp, ref)
        return
    ours, theirs = _surplus(hyp, ref), _surplus(ref, hyp)
    if bool(ours) == bool(theirs) or len(hyp.negations) == len(ref.negations):
        return
    text, other = (hyp, ref) if ours else (ref, hyp)
    single = [span for span in ours or theirs if not _is_doubled(text, other, span)]
    for span in single[_count_reversals(other, text) :]:
        spans = (span, None) if ours else (None, span)
        yield _difference(FlagKind.NEGATION, hyp, ref, *spans)


def _prefixed(hyp: _Text, ref: _Text) -> Iterator[CriticalDifference]:
    """A word with a negating prefix in one text, the bare word in the other: illegal, legal."""
    for text, other, sign in ((hyp, ref, 1), (ref, hyp, -1)):
        for word in () if _count_reversals(other, text) else text.words:
            bare = languages.NEGATIVE_PREFIXES.fullmatch(word.folded)
            if bare and word.folded not in other.folded and bare[1] not in text.folded:
                for same in [one for one in other.words if one.folded == bare[1]][:1]:
                    spans = (word.span, same.span)[::sign]
                    yield _difference(FlagKind.NEGATION, hyp, ref, *spans)


def _surplus(text: _Text, other: _Text) -> list[Span]:
    """The negations of a text without an equal one in the other.

    Where the other has the same word too, one counts only if it was inserted, so that the words
    around it are adjacent there: a text may negate each of two things, the other both at once.
    """
    known = Counter(one.word for one in other.negations)
    own = Counter(one.word for one in text.negations)
    surplus: dict[str, list[Span]] = {}
    for one in text.negations:
        if one.idiom == "" or (one.idiom and one.idiom not in other.folded):
            own[one.word] -= 1
        elif not known[one.word] or _is_inserted(text, other, one.span):
            surplus.setdefault(one.word, []).append(one.span)
    return [
        span for word, spans in surplus.items() for span in spans[: max(own[word] - known[word], 0)]
    ]


def _is_inserted(text: _Text, other: _Text, span: Span) -> bool:
    """Whether the words around a span are neighbours in the other text."""
    start, end = span
    before = [word.folded for word in text.words if word.end <= start][-1:]
    if text.text[start:end].lower() == "cannot":
        before = ["can"]
    after = [word.folded for word in text.words if word.start >= end][:1]
    return any([a.folded] == before and [b.folded] == after for a, b in pairwise(other.words))


def _count_reversals(text: _Text, other: _Text) -> int:
    """How many words of a text, and not of the other one, negate without a negation."""
    return sum(
        1
        for word in text.folded
        if word not in other.folded and languages.REVERSALS.fullmatch(word)
    )


def _is_doubled(text: _Text, other: _Text, negation: Span) -> bool:
    """Whether a negation stands before a word that undoes it: "not unlike"."""
    following = [word.folded for word in text.words if word.start >= negation[1]][:2]
    return any(
        languages.REVERSALS.fullmatch(word) and word not in other.folded for word in following
    )


_TWO_NUMBERS = re.compile(
    r"\b(\w+) v?(?P<both>(?P<a>\d{1,2})(?P<mark>[-–.])(?P<b>\d{1,2}))"
    r"(?![\w-]|[.,]\d|\s?(?:%|[mb]illion|per))"
)
_VERSIONED = word_set("version release chapter section article paragraph figure table")


# Names: replaced by another one, or missing.


def _names(hyp: _Text, ref: _Text) -> Iterator[CriticalDifference]:
    if not (hyp.english and ref.english):
        return
    ours = _phrases([name for name in hyp.names if not _has_name(ref, name, hyp)])
    theirs = _phrases([name for name in ref.names if not _has_name(hyp, name, ref)])
    exchanged = _exchanged_names(hyp, ref) if hyp.folded == ref.folded else ()
    for own, other in (*exchanged, *_first_names(hyp, ref), *zip(ours, theirs, strict=False)):
        yield _difference(FlagKind.NAME, hyp, ref, own, other)
    ends, starts = {name.end for name in ref.names}, {name.start for name in ref.names}
    for other in theirs[len(ours) :]:
        part_of_name = other[0] - 1 in ends or other[1] + 1 in starts  # Barack, of Barack Obama
        if not part_of_name and _is_inserted(ref, hyp, other):
            yield _difference(FlagKind.NAME, hyp, ref, None, other)


def _has_name(text: _Text, name: _Word, own: _Text) -> bool:
    """Whether a text has a name of the other one in any form."""
    aliases = name.folded, *ALIASES.get(name.folded, ())
    if any(alias in text.folded for alias in aliases) or _abbreviated(name, own, text):
        return True
    return any(_alike(name, word) for word in text.words)


def _alike(name: _Word, word: _Word) -> bool:
    """Whether two words may be forms of one name: an ending, a short form, a transliteration."""
    one, other = sorted((languages.sound_of(name.folded), languages.sound_of(word.folded)), key=len)
    if other.startswith(one[:4] if len(one) > 3 else one):
        return len(one) > 2 or (len(one) == 2 and word.text[0].isupper())
    if len(one) < 4 and len(other) > 4 and word.text[0].isupper():
        letters = iter(other)  # those of an abbreviation, such as Md. or Fla., in their order
        return one[0] == other[0] and all(letter in letters for letter in one)
    if len(one) < 4 or (word.text[0].islower() and word.folded[0] != name.folded[0]):
        return False
    least = 0.6 if one[:1] == other[:1] else 0.75
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.real_quick_ratio() >= least and matcher.quick_ratio() >= least <= matcher.ratio()


def _abbreviated(name: _Word, own: _Text, text: _Text) -> bool:
    """Whether the other text has the name's initial in a word of capitals, or spells it out."""
    if name.text.isupper():
        initials = "".join(word.folded[0] for word in text.words)
        return name.folded in initials or name.folded[:2] in initials
    capitals = [word.folded for word in text.words if word.text.isupper() and len(word.text) > 1]
    return any(name.folded[0] in word for word in capitals if word not in own.folded)


def _first_names(hyp: _Text, ref: _Text) -> Iterator[tuple[Span, Span]]:
    """Two names at the beginning, as in "Lyon is" and "Paris is"."""
    if min(len(hyp.words), len(ref.words)) < 2:
        return
    (one, verb), (other, same) = hyp.words[:2], ref.words[:2]
    if verb.folded != same.folded or _alike(one, other):
        return
    rest = [[word.folded for word in text.words[1:]] for text in (hyp, ref)]
    if len({*rest[0]} & {*rest[1]}) < _SAME * min(map(len, rest)):
        return
    if verb.folded not in languages.SINGULAR_VERBS:  # all is the same, and neither is a plural
        plural = "s" in (one.folded[-1], other.folded[-1])
        if rest[0] != rest[1] or plural or not languages.PAST_TENSES.fullmatch(verb.text):
            return
    new = one.folded not in ref.folded and other.folded not in hyp.folded
    if new and _may_be_name(one) and _may_be_name(other):
        yield one.span, other.span


def _exchanged_names(hyp: _Text, ref: _Text) -> Iterator[tuple[Span, Span]]:
    """Two names that have changed places in texts of the same words: "A beat B", "B beat A"."""
    ours, theirs = ([*text.words_and_names] for text in (hyp, ref))
    same = len(ours) == len(theirs) and zip(ours, theirs, strict=True)
    places = [k for k, (a, b) in enumerate(same or ()) if a[0] != b[0]]
    if len(places) != 2:
        return
    first, second = places
    between = {word for word, _, is_name in ours[first + 1 : second] if not is_name}
    swapped = ours[first][0] == theirs[second][0] and ours[second][0] == theirs[first][0]
    if swapped and ours[first][2] and ours[second][2] and not between <= _SYMMETRIC:
        yield from ((ours[k][1], theirs[k][1]) for k in places)


def _may_be_name(first: _Word) -> bool:
    """Whether the first word of a text, before a verb in the singular, may be a name."""
    plain = first.folded in NO_NAMES or languages.PLAIN_ENDINGS.search(first.folded)
    return first.text.istitle() and not plain


def _phrases(words: list[_Word]) -> list[Span]:
    """The spans of neighbouring words, joined."""
    spans: list[Span] = []
    for word in words:
        if spans and word.start - spans[-1][1] <= 1:
            spans[-1] = spans[-1][0], word.end
        else:
            spans.append(word.span)
    return spans


_SAME = 0.6  # of the words behind two names, for them to be of the same thing
_SYMMETRIC = word_set("and or nor with plus v vs versus met meets meet married plays played faces")
_BEHIND = re.compile(r"[ -]([^\W\d_]+)")


# Text in a foreign script, cut off, or repeated.


def _foreign(hyp: _Text, ref: _Text) -> Iterator[CriticalDifference]:
    """Words of the hypothesis in a script that the reference has not a letter of."""
    if hyp.text.isascii() or not ref.words:
        return
    known = {languages.script_of(word.text[0]) for word in ref.words}
    strange = [word for word in hyp.words if languages.script_of(word.text[0]) not in known]
    for span in _phrases([word for word in strange if len(word.text) > 1]):
        yield _difference(FlagKind.UNTRANSLATED, hyp, ref, span, None)


def _cut_off(hyp: _Text, ref: _Text) -> Iterator[CriticalDifference]:
    """The reference goes on where the hypothesis ends without a mark."""
    ours, theirs = hyp.text.rstrip(), ref.text.rstrip()
    if not ours or len(theirs) < _LONG or len(ours) > _MOST * len(theirs):
        return
    if _END.search(ours) or not _END.search(theirs):
        return
    after, _ = ref.place_of(hyp, (len(ours), len(ours)))
    if after <= _MOST * len(theirs):
        after, end = len(theirs) - len(theirs[after:].lstrip()), (len(ours), len(ours))
        yield _difference(FlagKind.TRUNCATED, hyp, ref, end, (after, len(theirs)))


def _repeated(hyp: _Text, ref: _Text) -> Iterator[CriticalDifference]:
    """A word three times in a row, a phrase twice: more often than in the reference."""
    if not hyp.folded - ref.folded:
        return
    last = 0
    for run in _LOOP.finditer(hyp.text):
        if run.start() < last or ref.text.lower().count(run[0].lower().strip()):
            continue
        phrase = run["phrase"] or run["word"] or run["run"]
        if not any(map(str.isalpha, phrase)):
            continue
        last = run.end()
        yield _difference(FlagKind.REPEATED, hyp, ref, run.span(), None)


_LONG, _MOST = 20, 0.7  # characters of the reference; the share of it that is there
_END = re.compile(r"[.!?…。！？।؟]\s*['\"“”’»)\]]*$")
_LOOP = re.compile(
    r"\b(?P<word>\w+)(?:[\s,]+(?P=word)\b){2,}"
    r"|\b(?P<phrase>\w+(?:[\s,]+\w+){1,12}?)(?:[\s,.!?;]+(?P=phrase)\b)+"
    r"|(?P<run>[^\W\d_]{3,20}?)(?P=run){3,}",
    re.IGNORECASE,
)


def _difference(
    kind: FlagKind, hyp: _Text, ref: _Text, own: Span | None, other: Span | None
) -> CriticalDifference:
    """The difference between two spans; for one that is lacking, the place where it would be."""
    if own is None:
        assert other is not None
        own = hyp.place_of(ref, other)
    elif other is None:
        other = ref.place_of(hyp, own)
    assert other is not None
    return CriticalDifference.between(kind, hyp.text, own, ref.text, other)
