"""Which units are kept or merged, and what becomes of their vectors, ids and spans."""

import numpy as np

from clouds import SPECIAL, cloud
from freight.core import units
from freight.core.types import Cloud, Kind

PUNCTUATION, ABSENT, UNKNOWN = int(Kind.PUNCTUATION), int(Kind.ABSENT), int(Kind.UNKNOWN)
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


def test_units_without_a_vector_are_dropped_unless_whole_words_are_asked_for() -> None:
    texts = cloud(["a zzz b"], [[[1.0], [0.0], [2.0]]], kinds=[[0, ABSENT, 0]])
    assert vectors(units.words(texts)) == [1.0, 2.0]
    assert vectors(units.whole_words(texts)) == [1.0, 0.0, 2.0]


def test_a_merged_unit_is_unknown_if_any_part_is_and_punctuation_if_all_are() -> None:
    texts = cloud(["ab."], [[[1.0], [2.0], [3.0]]],
                  kinds=[[UNKNOWN, 0, PUNCTUATION]], pieces=[["a", "##b", "##."]])  # fmt: skip
    (kind,) = units.words(texts).kind
    assert kind == UNKNOWN


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
