"""Minimum-Bayes-risk decoding is what scoring every pair by itself would choose, for less."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import freight
from freight.core.pipeline import ChunkSize
from freight.core.types import Cloud, Progress
from freight.encoders.hashed import Hashed
from freight.metrics.lexical.libraries import Rouge

SAMPLES = [
    "The boy wears a coat.",
    "A boy is wearing a coat.",
    "The boy wears a coat.",
    "A lad in a long coat",
    "Bananas are yellow. They are sweet, too.",
]
OTHERS = ["He went home.", "He went to his home.", "Home he went."]
METRICS = ["freight", "lazy-emd", "bert-score", "bary-score", "std", "wmd", "sms", "f-alpha"]
LEXICAL = ["bleu", "chrf", "ter", "rouge-1", "rouge-l", "character"]


def brute_force(metric: Any, hyps: Sequence[str], refs: Sequence[str]) -> Any:
    """Every pair as a segment of its own, higher being better."""
    pairs = [(hyp, ref) for hyp in hyps for ref in refs]
    column = metric.columns[0]
    values = metric.score([hyp for hyp, _ in pairs], [ref for _, ref in pairs])[column.name]
    return (values if column.higher else 0.0 - values).reshape(len(hyps), len(refs))


def hashed(name: str) -> Any:
    return freight.load(name, **({} if name in LEXICAL else {"encoder": "hashed"}))


@pytest.mark.parametrize("name", [*METRICS, *LEXICAL])
def test_it_is_brute_force_to_the_bit(name: str) -> None:
    metric = hashed(name)
    both = freight.mbr([SAMPLES, OTHERS], metric, matrix=True, size=ChunkSize(pairs=1))
    for texts, choice in zip((SAMPLES, OTHERS), both, strict=True):
        expected = brute_force(metric, texts, texts)
        assert choice.matrix is not None
        assert choice.matrix.tobytes() == expected.tobytes()
        assert choice.utilities.tobytes() == expected.mean(axis=1).tobytes()
        assert choice.index == int(expected.mean(axis=1).argmax())
        assert choice.text == texts[choice.index]
        assert choice.utility == choice.utilities[choice.index]
        assert choice.signature == metric.signature
    assert freight.mbr(SAMPLES, metric).utilities.tolist() == both[0].utilities.tolist()


@pytest.mark.parametrize("name", ["lazy-emd", "bert-score"])
def test_a_real_encoder(name: str) -> None:
    metric = freight.load(name)
    choice = freight.mbr(SAMPLES, metric, references=OTHERS, matrix=True)
    assert choice.matrix is not None
    assert choice.matrix.tobytes() == brute_force(metric, SAMPLES, OTHERS).tobytes()
    assert freight.mbr(SAMPLES, name).text == SAMPLES[0]


@dataclass(frozen=True)
class Counting(Hashed):
    """Counts how often it encodes each text."""

    seen: ClassVar[Counter[str]] = Counter()

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        self.seen.update(texts)
        return super().encode(texts, layers, progress)


@pytest.mark.parametrize("name", ["lazy-emd", "std", "freight"])
def test_every_distinct_text_is_encoded_once(name: str) -> None:
    texts = [f"sentence number {k} of {k * k}" for k in range(60)]  # 3600 pairs: several chunks
    lists = [[*texts, texts[0]], ["another list", "of three", texts[1]]]
    metric = freight.load(name, encoder=Counting())
    metric.score(["what it learns"], ["before the first score"])
    Counting.seen.clear()
    freight.mbr(lists, metric)
    assert Counting.seen == dict.fromkeys({text for one in lists for text in one}, 1)


def test_repeats_are_samples() -> None:
    metric = hashed("lazy-emd")
    distinct = [SAMPLES[0], SAMPLES[1], SAMPLES[3], SAMPLES[4]]
    weighed = freight.mbr(distinct, metric, weights=[2, 1, 1, 1])
    repeated = freight.mbr(SAMPLES, metric)
    assert repeated.utilities[[0, 1, 3, 4]] == pytest.approx(weighed.utilities, rel=1e-15)
    assert repeated.utilities[0] == repeated.utilities[2]
    assert repeated.index == 0
    by_share = freight.mbr(distinct, metric, weights=np.array([0.4, 0.2, 0.2, 0.2]))
    assert by_share.utilities == pytest.approx(weighed.utilities, rel=1e-15)


def test_a_weight_may_decide() -> None:
    metric = hashed("bert-score")
    assert freight.mbr(SAMPLES, metric).index == 0
    assert freight.mbr(SAMPLES, metric, weights=[0, 0, 0, 0, 1.0]).index == 4


def test_itself_left_out_is_its_own_sample_alone() -> None:
    metric = hashed("bert-score")
    choice = freight.mbr(SAMPLES, metric, itself=False, matrix=True)
    assert choice.matrix is not None
    for k in range(len(SAMPLES)):
        rest = np.delete(choice.matrix[k], k)
        assert choice.utilities[k] == pytest.approx(rest.mean(), rel=1e-15)
    assert choice.matrix[0, 2] == pytest.approx(1.0)  # the same text, another sample
    alone = freight.mbr(["one"], metric, itself=False)
    assert alone.index == 0
    assert np.isnan(alone.utility)
    with pytest.raises(freight.InvalidInput, match="itself=False"):
        freight.mbr(SAMPLES, metric, references=OTHERS, itself=False)


def test_what_cannot_be_compared_is_not_flattered() -> None:
    metric = hashed("wmd")  # an empty side has no worst distance: nan
    choice = freight.mbr(["", *OTHERS], metric, matrix=True)
    assert choice.matrix is not None
    assert choice.matrix[0, 0] == 0.0
    assert np.isnan(choice.matrix[0, 1:]).all()
    assert np.isnan(choice.utilities[0])
    assert choice.index > 0
    assert choice.flags == ("both sides empty", "empty side")
    without = freight.mbr(OTHERS, metric)
    assert choice.utilities[1:].tolist() == without.utilities.tolist()
    assert choice.text == without.text


def test_another_column_another_choice() -> None:
    texts = ["a b c d e f", "a b c", "a b c x"]
    metric = hashed("bert-score")
    precision, recall = (freight.mbr(texts, metric, column) for column in ("precision", "recall"))
    assert (precision.text, recall.text) == ("a b c", "a b c d e f")
    with pytest.raises(freight.InvalidInput, match="no column 'nothing'"):
        freight.mbr(texts, metric, "nothing")


def test_idf_is_fitted_to_all_the_lists() -> None:
    metric = freight.load("mover-score", encoder="hashed")
    choices = freight.mbr([SAMPLES, OTHERS], metric, matrix=True)
    fitted = metric.fit([*SAMPLES, *OTHERS], [*SAMPLES, *OTHERS], "given texts")
    for texts, choice in zip((SAMPLES, OTHERS), choices, strict=True):
        assert choice.signature == fitted.signature != metric.signature
        assert choice.matrix is not None
        assert choice.matrix.tobytes() == brute_force(fitted, texts, texts).tobytes()


WORDS = st.lists(st.sampled_from(["a", "b", "cat", "sat", "running"]), max_size=8).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(WORDS, WORDS, st.sampled_from(["rouge-1", "rouge-2", "rouge-l"]), st.booleans())
def test_symmetric_means_to_the_bit(one: str, two: str, name: str, stem: bool) -> None:
    metric = freight.load(name, stem=stem)
    there, back = metric.score([one, two], [two, one])["score"]
    assert there == back


def test_symmetric_metrics_score_half_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[str] = []
    plain = Rouge.__call__

    def counting(self: Rouge, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> Any:
        scored.extend(hyps)
        return plain(self, hyps, refs)

    monkeypatch.setattr(Rouge, "__call__", counting)
    texts = [f"the {k} cats" for k in range(9)]
    freight.mbr(texts, "rouge-1")
    assert len(scored) == 45


@pytest.mark.parametrize("name", ["lazy-emd", "rouge-1"])
def test_progress_adds_up_to_the_lists(name: str) -> None:
    size = ChunkSize(pairs=1, characters=60)  # a group ends: two of them
    told: list[float] = []
    lists = [SAMPLES, OTHERS, OTHERS, SAMPLES[::-1]]
    freight.mbr(lists, hashed(name), progress=told.append, size=size)
    assert len(told) > 3
    assert sum(told) == pytest.approx(4.0)


def test_groups_change_nothing() -> None:
    lists = [SAMPLES, OTHERS, SAMPLES[::-1]]
    together = freight.mbr(lists, hashed("std"))
    apart = freight.mbr(lists, hashed("std"), size=ChunkSize(characters=1))
    for one, other in zip(together, apart, strict=True):
        assert one.utilities.tolist() == other.utilities.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one text",), "candidates is one text"),
        (([],), "give a list of texts"),
        ((["a", 3],), r"mbr: candidates\[1\] is 3"),
        (([["a"], []],), "list 1: there are no candidates"),
        (([["a"], "b"],), "list 1: candidates is 'b'"),
        ((["a"], "nothing"), "no metric 'nothing'"),
    ],
)
def test_mistakes_are_named(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(freight.InvalidInput, match=message):
        freight.mbr(*arguments)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"weights": [1]}, "1 weights for 2 texts"),
        ({"weights": [1, -1]}, r"weights\[1\] is -1"),
        ({"weights": [1, float("nan")]}, r"weights\[1\] is nan"),
        ({"weights": [0, 0]}, "all weights are 0"),
        ({"weights": ["x", "y"]}, "not a list of numbers"),
        ({"references": []}, "there are no references"),
        ({"references": ["a"], "weights": [1, 2]}, "2 weights for 1 texts"),
    ],
)
def test_mistakes_in_what_candidates_are_compared_with(said: Any, message: str) -> None:
    with pytest.raises(freight.InvalidInput, match=message):
        freight.mbr(["a", "b"], "chrf", **said)


def test_lists_of_lists_agree_in_number() -> None:
    with pytest.raises(freight.InvalidInput, match="2 lists of candidates but 1 of weights"):
        freight.mbr([["a"], ["b"]], "chrf", weights=[[1]])
    choices = freight.mbr(
        [["a", "b"], ["a", "b"]], "chrf", references=[["b"], None], weights=[None, [3, 1]]
    )
    assert [choice.text for choice in choices] == ["b", "a"]
