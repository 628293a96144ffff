"""Which units are kept or merged, and what becomes of their vectors, ids and spans."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from clouds import SPECIAL, cloud
from freight.core import units
from freight.core.types import Cloud, Kind, Spans, UnitSpans

PUNCTUATION, ABSENT, UNKNOWN = int(Kind.PUNCTUATION), int(Kind.ABSENT), int(Kind.UNKNOWN)
LITERAL = int(Kind.LITERAL) | UNKNOWN
TEXT = cloud(
    ["unhappy cat."],
    [[[9.0], [1.0], [3.0], [5.0], [7.0], [9.0]]],
    kinds=[[SPECIAL, 0, 0, 0, PUNCTUATION, SPECIAL]],
    pieces=[["[CLS]", "un", "##happy", "cat", ".", "[SEP]"]],
)


def vectors(texts: Cloud) -> list[float]:
    return texts.layers[:, 0, 0].tolist()


def words_of(texts: Cloud) -> list[str]:
    spans = zip(texts.owner, texts.start, texts.end, strict=True)
    return [texts.texts[k][a:b] for k, a, b in spans]


def test_tokens_leave_special_ones_out() -> None:
    assert vectors(units.tokens(TEXT)) == [1.0, 3.0, 5.0, 7.0]
    assert vectors(units.all_tokens(TEXT)) == [9.0, 1.0, 3.0, 5.0, 7.0, 9.0]


def test_words_are_the_means_of_their_pieces() -> None:
    words = units.words(TEXT)
    assert vectors(words) == [2.0, 5.0, 7.0]
    assert words_of(words) == ["unhappy", "cat", "."]
    assert words.count.tolist() == [2, 1, 1]


def test_heads_are_first_pieces_without_ascii_punctuation() -> None:
    assert vectors(units.heads(TEXT)) == [9.0, 1.0, 5.0, 9.0]


def test_heads_and_words_of_a_tokenizer_that_knows_continuations_need_no_spans() -> None:
    def find() -> Spans:
        raise AssertionError("spans are expensive")

    places = UnitSpans(find, np.array([False, False, True, False, False, False]))
    known = replace(TEXT, places=places)
    assert vectors(units.heads(known)) == [9.0, 1.0, 5.0, 9.0]
    assert vectors(units.words(known)) == [2.0, 5.0, 7.0]
    typographic = replace(
        known, kind=known.kind | np.where(known.kind == PUNCTUATION, int(Kind.TYPOGRAPHIC), 0)
    )
    assert vectors(units.heads(typographic)) == [9.0, 1.0, 5.0, 7.0, 9.0]


def test_units_without_a_vector_are_dropped_unless_whole_words_are_asked_for() -> None:
    texts = cloud(["a zzz b"], [[[1.0], [0.0], [2.0]]], kinds=[[0, ABSENT, 0]])
    assert vectors(units.words(texts)) == [1.0, 2.0]
    assert vectors(units.whole_words(texts)) == [1.0, 0.0, 2.0]


def test_a_merged_unit_is_unknown_or_punctuation_if_all_parts_are() -> None:
    for kinds, expected in (
        ([UNKNOWN, 0, PUNCTUATION], 0),
        ([UNKNOWN, UNKNOWN, UNKNOWN], UNKNOWN),
        ([PUNCTUATION] * 3, PUNCTUATION),
    ):
        vectors = [[[1.0], [2.0], [3.0]]]
        texts = cloud(["ab."], vectors, kinds=[kinds], pieces=[["a", "##b", "##."]])
        assert units.words(texts).kind.tolist() == [expected]


def strange(text: str, kinds: list[int], pieces: list[str] | None = None) -> Cloud:
    """Unknown units of length 2, which all have the same vector, and known ones of length 1."""
    known, unknown = [1.0, *[0.0] * 63], [0.0, 2.0, *[0.0] * 62]
    vectors = [unknown if kind & UNKNOWN else known for kind in kinds]
    return cloud([text], [vectors], [kinds], [pieces] if pieces else None)


def test_unknown_literal_units_are_averaged_by_their_characters() -> None:
    one, other = (strange(f"so {x}", [0, LITERAL], ["so", f"##{x}"]) for x in ("xx", "yy"))
    one = replace(one, ids=np.array([0, 11]))
    other = replace(other, ids=np.array([0, 12]))
    merged, again = units.words(one), units.words(other)
    assert merged.kind.tolist() == [0]
    assert merged.layers[0, 0, 0] == pytest.approx(0.5, abs=0.5)
    assert not torch.allclose(merged.layers, again.layers, atol=0.1)
    drawn = one.spelled().layers[1, 0]
    assert drawn.norm() == pytest.approx(2.0)
    assert abs(float(drawn @ other.spelled().layers[1, 0])) < 4.0 * 0.5
    assert one.spelled().layers[0].tolist() == one.layers[0].tolist()
    alone = units.words(strange("so xx", [0, LITERAL]))
    assert alone.kind.tolist() == [0, LITERAL], "a unit by itself stays what it is"
    assert alone.layers[1, 0, 1] == 2.0


def test_n_grams_of_unknown_literal_units_differ() -> None:
    one, other = (
        replace(strange(f"so {x}", [0, LITERAL]), ids=np.array([0, k]))
        for x, k in (("xx", 11), ("yy", 12))
    )
    singles = units.Ngrams(1)(one)
    assert singles.kind.tolist() == [0, LITERAL]
    both = [units.Ngrams(2)(texts) for texts in (one, other)]
    assert [texts.kind.tolist() for texts in both] == [[0], [0]]
    cosine = torch.cosine_similarity(both[0].layers[0, 0], both[1].layers[0, 0], dim=0)
    assert float(cosine) == pytest.approx(1 / 5, abs=0.4)  # 1 of 1 + 4 is shared


def test_sentences_end_at_a_full_stop_and_white_space() -> None:
    texts = cloud(["a b. c", "d"], [[[1.0], [3.0], [5.0]], [[7.0]]])
    sentences = units.sentences(texts)
    assert vectors(sentences) == [2.0, 5.0, 7.0]
    assert sentences.count.tolist() == [2, 1, 1]
    assert np.diff(sentences.offsets).tolist() == [2, 1]
    assert vectors(units.sentences_and_words(texts)) == [2.0, 5.0, 1.0, 3.0, 5.0, 7.0, 7.0]


def test_ngrams_lay_vectors_end_to_end_and_repeat_the_last_word_of_a_short_text() -> None:
    texts = cloud(["a b a b", "a"], [[[1.0], [2.0], [1.0], [2.0]], [[1.0]]])
    bigrams = units.Ngrams(2)(texts)
    expected = [[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 1.0]]
    assert bigrams.layers[:, 0].tolist() == expected
    assert bigrams.ids[0] == bigrams.ids[2]
    assert len(set(bigrams.ids.tolist())) == 3
    assert words_of(bigrams) == ["a b", "b a", "a b", "a"]


def test_stop_words_are_dropped_in_any_case() -> None:
    texts = cloud(["The cat the end"], [[[1.0], [2.0], [3.0], [4.0]]])
    assert vectors(units.Without(frozenset({"the"}))(texts)) == [2.0, 4.0]


def test_a_plain_function_is_a_unit() -> None:
    def every_other(texts: Cloud) -> Cloud:
        return texts.only(np.arange(len(texts.ids)) % 2 == 0)

    assert vectors(every_other(units.tokens(TEXT))) == [1.0, 5.0]
