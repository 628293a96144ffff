"""Laws over every transport metric: empty texts, unknown words, and the range of scores."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight.core.flags import FlagKind
from freight.core.scorers import PipelineScorer

TRANSPORT = [name for name in freight.list_metrics() if "encoder" in freight.parameters(name)]
every_metric = pytest.mark.parametrize("name", TRANSPORT)
pytestmark = pytest.mark.filterwarnings("ignore::freight.errors.UnknownVocabulary")
NAN, INF = math.nan, math.inf
FLAT = 0.54 * (1.0 - math.exp(-1.0 / 0.54))  # the objective at cost 1, between two sentences
NOTHING_IN_COMMON: dict[str, dict[str, float]] = {
    "freight": {"score": 0.0},
    "freight-da": {"score": 0.0},
    "lazy-emd": {"objective": FLAT, "transport": math.exp(-1.0 / 0.54)},
    "emd": {"transport": 1.0, "objective": 1.0},
    "doc-lazy-emd": {
        "objective": 0.54 * (1.0 - math.exp(-FLAT / 0.54)),
        "transport": FLAT * math.exp(-FLAT / 0.54),
    },
    "bert-score": {"f1": 0.0, "precision": 0.0, "recall": 0.0},
    "f-alpha": {"f": 0.0, "precision": 0.0, "recall": 0.0},
    "yisi-1": {"f": 0.0, "precision": 0.0, "recall": 0.0},
    "bary-score": {"distance": 2.0},
    "wrd-score": {"f1": 0.0, "precision": 0.0, "recall": 0.0, "wrd": 1.0},
    "wrd-score-code": {"f1": 0.0, "precision": 0.0, "recall": 0.0, "wrd": 1.0},
    "std": {"distance": 1.0, "similarity": 0.0, "unigram": 1.0, "bigram": 1.0},
    "wmd": {"distance": NAN},
    "wmdo": {"distance": NAN},
    "mover-score": {"similarity": 0.0, "distance": math.sqrt(2.0)},
    "sms": {"similarity": 0.0, "distance": NAN},
    "s+wms": {"similarity": 0.0, "distance": NAN},
}
"""What an empty side scores: a text whose every cosine is 0; nan where that has no bound."""

RANGES: dict[str, tuple[float, float]] = {
    "freight:score": (0.0, 1.0),
    "freight-da:score": (0.0, 1.0),
    "emd:transport": (0.0, 2.0),
    "emd:objective": (0.0, 2.0),
    "wrd-score:wrd": (0.0, 2.0),
    "wrd-score-code:wrd": (0.0, 2.0),
    **{f"{name}:similarity": (0.0, 1.0) for name in ("std", "sms", "s+wms")},
    **{f"std:{column}": (0.0, 1.0) for column in ("distance", "unigram", "bigram")},
    **{
        f"{name}:{column}": (-1.0, 1.0)
        for name in ("bert-score", "f-alpha", "yisi-1", "wrd-score", "wrd-score-code")
        for column in ("f1", "f", "precision", "recall")
    },
    "mover-score:similarity": (-INF, 1.0),
}
"""The ranges that the documentation states; all other columns are distances from 0 on."""


def fitted(name: str, encoder: Any, hyps: list[str], refs: list[str]) -> PipelineScorer:
    settings = {"idf": "ref"} if name == "mover-score" else {}
    if name == "freight" and not isinstance(encoder, str):
        settings = {"pooling": "mean"}  # a few words cannot be standardised
    metric = freight.load(name, encoder=encoder, **settings)
    return metric.fit(refs, hyps) if metric.needs_fitting else metric


@every_metric
def test_an_empty_side_has_nothing_in_common_with_any_text(name: str) -> None:
    texts = ["a cat sat", "", " \n"]
    metric = fitted(name, "hashed", texts, texts)
    result = metric.score([*texts, "", "a cat sat"], ["", "a cat sat", "a cat sat", "\t", " "])
    for column in metric.columns:
        expected = NOTHING_IN_COMMON[name][column.name]
        assert column.worst == pytest.approx(expected, nan_ok=True)
        expected_scores = [expected] * 3 + [column.perfect, expected]
        assert result[column.name].tolist() == pytest.approx(expected_scores, nan_ok=True)
    empty = [[(flag.kind, flag.side) for flag in flags] for flags in result.flags]
    hyp, ref = [(FlagKind.EMPTY_SIDE, "hyp")], [(FlagKind.EMPTY_SIDE, "ref")]
    assert empty == [ref, hyp, hyp, [(FlagKind.BOTH_EMPTY, None)], ref]


@pytest.mark.parametrize("name", ["lazy-emd", "emd", "doc-lazy-emd", "bert-score", "wrd-score"])
@pytest.mark.parametrize("penalties", [(0.23, 0.31), (INF, 0.5), (0.0, 0.4), (INF, INF)])
def test_it_is_what_orthogonal_texts_score(name: str, penalties: tuple[float, float]) -> None:
    settings: dict[str, Any] = {"hyp": penalties[0], "ref": penalties[1], "epsilon": 0.0}
    if name == "doc-lazy-emd":
        settings["inner_epsilon"] = 0.0
    settings = settings if "lazy" in name else {}
    metric = freight.load(name, encoder="one-hot", **settings)
    result = metric.score(["left", ""], ["right", "right"])
    for column in metric.columns:
        orthogonal, empty = result[column.name]
        assert orthogonal == pytest.approx(empty, abs=1e-5)


def test_an_empty_line_in_a_hundred_weighs_a_hundredth() -> None:
    hyps = [f"sentence {k} of many" for k in range(100)]
    refs = [f"sentence {k} of a few" for k in range(100)]
    for name in ("emd", "lazy-emd", "bary-score", "bert-score"):
        metric = freight.load(name, encoder="hashed")
        primary = metric.columns[0]
        full = metric.score(hyps, refs)
        shuffled = metric.score(hyps, ["Nothing here is alike !"] * 100)[primary.name]
        one_empty = metric.score(["", *hyps[1:]], refs).system[primary.name]
        one_unrelated = metric.score(["Nothing here is alike !", *hyps[1:]], refs)
        moved = abs(one_empty - full.system[primary.name])
        assert moved < 2.5 * abs(one_unrelated.system[primary.name] - full.system[primary.name])
        assert (
            abs(primary.worst - full.system[primary.name])
            < 2.5 * np.abs(shuffled - full[primary.name]).mean()
        )


VECTORS = "3 2\ncat 1 0\ndog 0.6 0.8\nunk 0 1\n"
UNKNOWN = ("zzqxq wvvkq", "vvbnn ttrwq")


@pytest.mark.parametrize("name", [name for name in TRANSPORT if name != "freight-da"])
@pytest.mark.parametrize("mapped", [False, True])
def test_texts_of_unknown_words_cannot_be_scored(name: str, mapped: bool, tmp_path: Path) -> None:
    path = tmp_path / "small.vec"
    path.write_text(VECTORS)
    encoder = freight.encoder(f"static:{path}", unknown="unk" if mapped else None)
    hyps = [UNKNOWN[0], UNKNOWN[0], UNKNOWN[0], "", "cat dog", "cat zzqxq"]
    refs = [UNKNOWN[1], UNKNOWN[0], "cat", UNKNOWN[0], UNKNOWN[0], "cat dog"]
    metric = fitted(name, encoder, hyps, refs)
    result = metric.score(hyps, refs)
    for column in metric.columns:
        scores = result[column.name]
        assert np.isnan(scores[[0, 2, 3, 4]]).all()
        assert scores[1] == column.perfect
        assert np.isfinite(scores[5])
        assert result.system[column.name] == pytest.approx(
            {"std": result.system}.get(name, {column.name: scores[[1, 5]].mean()})[column.name]
        )
    sides = [
        sorted(flag.side or "" for flag in flags if flag.kind == FlagKind.NO_KNOWN_UNITS)
        for flags in result.flags
    ]
    assert sides == [["hyp", "ref"], ["hyp", "ref"], ["hyp"], ["ref"], ["ref"], []]


def test_unknown_words_with_glove(data: Path) -> None:
    glove = f"static:{data / 'vectors/glove.100d.60k.bin'}"
    for name in ("std", "wrd-score", "wrd-score-code", "wmd", "sms", "s+wms", "wmdo"):
        result = freight.load(name, encoder=glove).score([UNKNOWN[0]] * 2, [UNKNOWN[1], UNKNOWN[0]])
        primary = result.columns[0]
        assert np.isnan(result[primary.name][0]), name
        assert result[primary.name][1] == primary.perfect, name


def test_an_unknown_reference_leaves_the_others_to_count(tmp_path: Path) -> None:
    path = tmp_path / "small.vec"
    path.write_text(VECTORS)
    refs = [["zzqxq", "cat", "dog"]]
    alone = [
        freight.load("wrd-score", encoder=f"static:{path}").score(["cat"], [ref])["f1"][0]
        for ref in ("cat", "dog")
    ]
    for rule, expected in (("best", 1.0), ("mean", np.mean(alone))):
        metric = freight.load("wrd-score", encoder=f"static:{path}", references=rule)
        result = metric.score(["cat"], refs)
        assert result["f1"][0] == pytest.approx(expected)
        assert "no known units (ref)" in result.flags[0]


STRANGE = [
    ("🦖", "🦕"),
    ("👨‍👩‍👧", "👨‍👩‍👦"),
    ("今天天气很好", "我喜欢吃苹果"),
    ("I like 🦖 a lot", "I like 🦕 a lot"),
]


@every_metric
def test_unknown_tokens_are_compared_by_their_characters(name: str) -> None:
    hyps, refs = (list(side) for side in zip(*STRANGE, strict=True))
    metric = fitted(name, "embedded", hyps, refs)
    primary = metric.columns[0].name
    result = metric.score(hyps + hyps, refs + hyps)
    different, same = result[primary][: len(hyps)], result[primary][len(hyps) :]
    assert (different < same - 0.1 if metric.columns[0].higher else different > same + 0.05).all()
    costly = ("wmdo", "lazy-emd", "doc-lazy-emd", "freight", "freight-da")
    if name not in costly:  # entropy and word order cost
        assert same.tolist() == pytest.approx([metric.columns[0].perfect] * len(hyps), abs=1e-6)
    assert metric.score(hyps[:1], refs[:1])[primary][0] == different[0]
    explained = metric.explain(*STRANGE[0])
    assert explained.score == different[0]
    total = sum(side.contributions.sum() for v in explained.views for side in (v.hyp, v.ref))
    assert explained.base + total == pytest.approx(explained.score, abs=1e-9)


def test_two_unknown_tokens_are_orthogonal_or_the_same() -> None:
    emd = freight.load("emd")
    hyps = ["🦖", "🦖 🦕", "🦖 🦕", "a 🦖"]
    refs = ["🦕", "🦕 🦖", "🦖 🦖", "a 🦖"]
    assert emd.score(hyps, refs)["transport"].tolist() == pytest.approx([1, 0, 0.5, 0], abs=1e-6)
    cost = emd.explain("🦖 🦕", "🦕 🦖").views[0].cost
    np.testing.assert_array_equal(cost, [[1.0, 0.0], [0.0, 1.0]])
    far = freight.load("wmd", encoder="embedded", unit=True, stop_words=None, layer=-1)
    assert far.score(["🦖"], ["🦕"])["distance"][0] == pytest.approx(math.sqrt(2.0))


def test_rare_characters_are_rare_one_by_one() -> None:
    fitted_emd = freight.load("emd", idf="ref").fit(["🦖 a", "🦖 b", "🦕 c"])
    weights = fitted_emd.explain("🦖 🦕", "🦖 🦕").views[0].hyp.weights
    expected = np.log([4 / 3, 4 / 2])
    assert weights == pytest.approx(expected / expected.sum())


def test_one_hot_vectors_never_collide() -> None:
    result = freight.load("bert-score", encoder="one-hot").score(
        ["get item count now"], ["get the count"]
    )
    assert result["recall"][0] == pytest.approx(2 / 3)
    assert result["precision"][0] == pytest.approx(2 / 4)
    words = [f"word{k}" for k in range(300)]
    for name, column in (("bert-score", "f1"), ("emd", "transport"), ("wmd", "distance")):
        metric = freight.load(name, encoder="one-hot")
        alone = metric.score([words[0]], ["different"])[column][0]
        scores = metric.score(words[:-1], words[1:])[column]
        assert (scores == alone).all(), name


@every_metric
@pytest.mark.parametrize("encoder", ["hashed", "embedded"])
def test_no_score_leaves_the_range(name: str, encoder: str) -> None:
    texts = ["The cat sat on the mat .", "a", "colourless green ideas sleep furiously", "🦖 .", "?"]
    pairs = [(hyp, ref) for hyp in texts for ref in texts]
    hyps, refs = (list(side) for side in zip(*pairs, strict=True))
    metric = fitted(name, encoder, hyps, refs)
    result = metric.score(hyps, refs)
    for column in metric.columns:
        least, most = RANGES.get(f"{name}:{column.name}", (0.0, INF))
        assert column.bounds == (least, most)
        most = 4.0 if name == "bary-score" else most  # of vectors of length 1
        scores = result[column.name]
        scores = scores[~np.isnan(scores)]
        assert len(scores)
        assert least <= scores.min() <= scores.max() <= most
        assert not np.signbit(scores[scores == 0.0]).any()


def test_opposite_vectors_are_the_end_of_the_range() -> None:
    one, two = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]])
    for name, expected in (("emd", 2.0), ("bary-score", 4.0), ("wrd-score", -1.0)):
        metric = freight.load(name, encoder="hashed").parts[0]
        result = metric.score_measures([one], [two])
        column = "precision" if name == "wrd-score" else metric.columns[0].name
        assert result[column][0] == expected
    hyp = np.array([[0.55, math.sqrt(1 - 0.55**2)], [-1.0, 0.0], [-1.0, 0.0]])
    scores = freight.load("bert-score", encoder="hashed").parts[0].score_measures([hyp], [one])
    assert scores["recall"][0] == pytest.approx(0.55)
    assert scores["precision"][0] == pytest.approx((0.55 - 2.0) / 3)
    assert scores["f1"][0] == -1.0  # 2PR / (P + R) is -8
