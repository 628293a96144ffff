"""Laws that every metric in the table keeps, and the traps that others fall into."""

import pickle
import unicodedata
from typing import Any

import numpy as np
import ot
import pytest

import freight
from freight.core.pipeline import ChunkSize
from freight.core.scorers import PipelineScorer
from freight.errors import UnknownVocabulary

HYPS = ["the cat sat on the mat", "a dog barked loudly .", "he said nothing", "rain in spain falls"]
REFS = ["a cat was sitting on the mat", "the dog was barking .", "he did not speak", "it is sunny"]
TRANSPORT = [name for name in freight.list_metrics() if "encoder" in freight.parameters(name)]
every_metric = pytest.mark.parametrize("name", TRANSPORT)
IMPERFECT = {"transport", "wmdo:distance"}  # what is not at its best for identical texts


def fitted(name: str, **parameters: Any) -> PipelineScorer:
    metric = freight.load(name, encoder="hashed", **parameters)
    return metric.fit(REFS, HYPS) if metric.needs_fitting else metric


@every_metric
def test_identity_is_best(name: str) -> None:
    metric = fitted(name, **({"idf": "ref"} if name == "mover-score" else {}))
    same, other = metric.score(REFS, REFS), metric.score(HYPS, REFS)
    for column in metric.columns:
        if not {column.name, f"{name}:{column.name}"} & IMPERFECT:
            np.testing.assert_allclose(same[column.name], column.perfect, atol=0.02)
        better = same[column.name] > other[column.name]
        assert (better if column.higher else ~better).all()


@every_metric
def test_neighbours_order_and_chunks_change_no_bit(name: str) -> None:
    metric = fitted(name)
    result = metric.score(HYPS, REFS)
    primary = metric.columns[0].name
    order = [2, 0, 3, 1]
    shuffled = metric.score([HYPS[k] for k in order], [REFS[k] for k in order])
    alone = [metric.score([h], [r])[primary][0] for h, r in zip(HYPS, REFS, strict=True)]
    chunked = freight.score_together([metric], HYPS, REFS, size=ChunkSize(pairs=2))[0]
    assert shuffled[primary].tolist() == result[primary][order].tolist()
    assert alone == result[primary].tolist() == chunked[primary].tolist()


ACCENTED = [
    "Der Ministér sagte, die Brücke öffnet.",
    "Ministr říká, že se to stalo podruhé.",
    "大臣はガラスが初めてと述べた。",
    "장관은 다리가 열린다고 말했다.",
    "Bộ trưởng nói cây cầu sẽ mở cửa.",
    "नया क़लम",  # a letter that NFC takes apart
]


@pytest.mark.filterwarnings("ignore::freight.errors.UnreadLanguage")
@pytest.mark.filterwarnings("ignore::freight.errors.UnknownVocabulary")
@pytest.mark.parametrize("name", freight.list_metrics())
def test_how_letters_and_marks_are_coded_changes_no_bit(name: str) -> None:
    try:
        metric = fitted(name) if name in TRANSPORT else freight.load(name)
    except freight.MissingPart as missing:
        pytest.skip(str(missing))
    refs = [f"{text} {text[:-1]}" for text in ACCENTED[1:] + ACCENTED[:1]]
    plain, same = metric.score(ACCENTED, refs), metric.score(ACCENTED, ACCENTED)
    apart, joined = (
        [[unicodedata.normalize(form, text) for text in texts] for texts in (ACCENTED, refs)]
        for form in ("NFD", "NFC")
    )
    assert apart[0] != joined[0]
    for hyps, others in ((apart[0], joined[1]), (joined[0], apart[1]), apart):
        again = metric.score(hyps, others)
        itself = metric.score(hyps, ACCENTED)
        for column in metric.columns:
            np.testing.assert_array_equal(again[column.name], plain[column.name])
            np.testing.assert_array_equal(itself[column.name], same[column.name])


@every_metric
def test_explanations_point_into_the_texts_as_they_were_given(name: str) -> None:
    metric = fitted(name)
    hyp, ref = ACCENTED[0], f"Ein Ministér sagt: {ACCENTED[0]}"
    plain = metric.explain(hyp, ref)
    given = [unicodedata.normalize("NFD", text) for text in (hyp, ref)]
    explained = metric.explain(*given)
    assert explained.scores == plain.scores
    for view, before in zip(explained.views, plain.views, strict=True):
        assert (view.hyp.text, view.ref.text) == tuple(given)
        for side, other in ((view.hyp, before.hyp), (view.ref, before.ref)):
            composed = [unicodedata.normalize("NFC", one) for one in side.names]
            assert composed == list(other.names)
            inside = side.spans[:, 0] >= 0
            assert (inside == (other.spans[:, 0] >= 0)).all()
            for k in np.flatnonzero(inside):
                assert side.text[slice(*side.spans[k])] == side.names[k]
            for (unit, start, end), (_, a, b) in zip(side.repeats, other.repeats, strict=True):
                assert unicodedata.normalize("NFC", side.text[start:end]) == other.text[a:b], unit


@every_metric
def test_it_pickles_and_repeats(name: str) -> None:
    metric = fitted(name)
    again = pickle.loads(pickle.dumps(metric))
    assert again.signature == metric.signature
    for column in metric.columns:
        first, second = metric.score(HYPS, REFS), again.score(HYPS, REFS)
        assert first[column.name].tolist() == second[column.name].tolist()


def test_an_empty_text_without_idf_mass_has_no_barycenter_and_is_flagged() -> None:
    result = freight.load("bary-score", idf="ref").score(
        ["", "one", "two"], ["four", "five", "six"]
    )
    assert result.flags[0] == ("empty side (hyp)",)
    assert np.isfinite(result["distance"]).all()


@every_metric
def test_the_best_of_several_references_wins(name: str) -> None:
    metric = fitted(name)
    several = metric.score(HYPS, [[REFS[3], hyp, REFS[0]] for hyp in HYPS])
    assert several.winners.tolist() == [1, 1, 1, 1]
    primary = metric.columns[0]
    assert several[primary.name].tolist() == metric.score(HYPS, HYPS)[primary.name].tolist()


def test_columns_from_one_winner_or_each_its_own() -> None:
    refs = [["the cat", "the cat sat on the mat and then slept all day long"]]
    hyps = ["the cat sat"]
    best = freight.load("bert-score", encoder="one-hot", references="best").score(hyps, refs)
    each = freight.load("bert-score", encoder="one-hot").score(hyps, refs)
    mean = freight.load("bert-score", encoder="one-hot", references="mean").score(hyps, refs)
    assert best["precision"][0] == pytest.approx(2 / 3)
    assert best["recall"][0] == 1.0
    assert each["precision"][0] == each["recall"][0] == 1.0
    assert mean["precision"][0] == pytest.approx((2 / 3 + 1) / 2)


def test_one_hot_precision_and_recall_are_the_classical_ones() -> None:
    metric = freight.load("bert-score", encoder="one-hot")
    result = metric.score(["a b c d"], ["c d e"])
    assert result["precision"][0] == pytest.approx(2 / 4)
    assert result["recall"][0] == pytest.approx(2 / 3)
    assert result["f1"][0] == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))


KNOBS: dict[str, list[dict[str, Any]]] = {
    "lazy-emd": [{"hyp": 1.0}, {"ref": 1.0}, {"epsilon": 0.1}, {"lang": "zh"}, {"lang": "de"}],
    "emd": [{"layer": 0}, {"idf": "own"}],
    "bert-score": [{"layer": -1}, {"idf": "ref"}],
    "f-alpha": [{"alpha": 0.9}, {"lang": "zh"}, {"idf": "own"}],
    "yisi-1": [{"alpha": 0.2}, {"layer": 0}],
    "wrd-score": [{"idf": "ref"}, {"clip": True}, {"layer": 0}, {"order": 0.2}],
    "wrd-score-code": [{"idf": "ref"}, {"clip": True}, {"order": 0.2}],
    "std": [
        {"unigram": 0.9},
        {"bigram": 0.9},
        {"order": 0.1},
        {"mass": "nbow"},
        {"mass": "tfidf"},
        {"shared": "moved"},
        {"long": 3},
        {"short": 2},
    ],
    "wmd": [{"stop_words": None}, {"unit": True}, {"stop_words": ["cat"]}, {"idf": "ref"}],
    "wmdo": [{"order": 0.5}, {"layer": 0}],
    "mover-score": [{"version": 1}, {"ngram": 2}, {"idf": None}, {"idf": "ref"}],
    "sms": [{"layer": 0}],
    "s+wms": [{"layer": 0}],
    "doc-lazy-emd": [
        {"hyp": 1.0},
        {"ref": 1.0},
        {"epsilon": 0.1},
        {"inner_hyp": 1.0},
        {"inner_ref": 1.0},
        {"inner_epsilon": 0.1},
        {"inner_readout": "transport"},
        {"mass": "norm"},
        {"idf": "own"},
    ],
    "bary-score": [{"layer": "-2:"}, {"layer": "all"}, {"idf": "ref"}, {"epsilon": 0.1}],
}


@pytest.mark.parametrize(("name", "knob"), [(n, k) for n, ks in KNOBS.items() for k in ks])
def test_every_knob_changes_the_score_and_the_signature(name: str, knob: dict[str, Any]) -> None:
    plain = freight.load(name, encoder="hashed").score(HYPS, REFS)
    turned = freight.load(name, encoder="hashed", **knob).score(HYPS, REFS)
    primary = plain.columns[0].name
    assert np.abs(plain[primary] - turned[primary]).max() > 1e-6
    assert plain.signature != turned.signature


def test_metrics_together_are_the_metrics_alone_in_one_encoding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics = [freight.load(name, encoder="hashed") for name in TRANSPORT]
    alone = [metric.score(HYPS, REFS) for metric in metrics]
    calls = []
    hashed = freight.encoder("hashed")
    encode = type(hashed).encode

    def counted(self: Any, texts: Any, layers: Any, progress: Any) -> Any:
        calls.append(layers)
        return encode(self, texts, layers)

    fitted_already = [m.fit(REFS, HYPS) if m.needs_fitting else m for m in metrics]
    monkeypatch.setattr(type(hashed), "encode", counted)
    together = freight.score_together(fitted_already, HYPS, REFS)
    assert calls == [[0, 1, 2, 3, 4]]
    for one, other in zip(alone, together, strict=True):
        for column in one.segments:
            assert one[column].tolist() == other[column].tolist()


def test_measures_of_ones_own() -> None:
    rng = np.random.default_rng(0)
    hyp = [(rng.normal(size=(n, 8)), rng.dirichlet(np.ones(n))) for n in (3, 5)]
    ref = [rng.normal(size=(n, 8)) for n in (4, 20)]
    result = freight.load("emd", encoder="hashed").parts[0].score_measures(hyp, ref)
    for k in range(2):
        cost = 1 - _cosine(hyp[k][0], ref[k])
        mass = np.full(len(ref[k]), 1 / len(ref[k]))
        assert result["transport"][k] == pytest.approx(ot.emd2(hyp[k][1], mass, cost), abs=1e-9)
    metric = freight.load("emd", encoder="hashed").parts[0]
    empty = metric.score_measures([np.zeros((0, 8))], [ref[0]])
    assert empty.flags == (("empty side (hyp)",),)
    with pytest.raises(freight.InvalidInput, match="measure 0"):
        metric.score_measures([np.full((2, 8), np.nan)], [ref[0]])
    with pytest.raises(freight.InvalidInput, match="same dimension"):
        metric.score_measures([np.ones((2, 3))], [ref[0]])


def _cosine(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (
        y / np.linalg.norm(y, axis=1, keepdims=True)
    ).T


def test_idf_of_one_pair_is_flagged_and_uniform() -> None:
    metric = freight.load("bert-score", encoder="hashed", idf="ref")
    result = metric.score(["the cat"], ["the cat"])
    assert result["f1"][0] == pytest.approx(1.0)
    assert result.flags == (("IDF empty (hyp)", "IDF empty (ref)"),)
    assert "table=given texts" in result.signature
    assert "table=given texts" not in metric.fit(REFS).score(HYPS, REFS).signature


def test_unknown_units_are_flagged() -> None:
    with pytest.warns(UnknownVocabulary, match="more than 30% of the units are unknown"):
        result = freight.load("bert-score").score(["🦖 🦕"], ["🐘 🐁"])
    assert result.flags == (("unknown units 100% (hyp)", "unknown units 100% (ref)"),)


def test_bary_score_is_that_of_pot() -> None:
    metric = freight.load("bary-score").parts[0]
    result = metric.score(HYPS[:2], REFS[:2])
    for k in range(2):
        clouds = []
        for text in (HYPS[k], REFS[k]):
            layers = metric.encoder.encode([text], metric.layers).layers.double().numpy()
            stack = (layers / np.linalg.norm(layers, axis=-1, keepdims=True)).swapaxes(0, 1)
            mass = np.full(stack.shape[1], 1 / stack.shape[1])
            clouds.append(
                ot.lp.free_support_barycenter(
                    list(stack), [mass] * 5, stack.mean(axis=0), numItermax=1000, stopThr=1e-14
                )
            )
        expected = ot.emd2(*(np.full(len(c), 1 / len(c)) for c in clouds), ot.dist(*clouds))
        assert result["distance"][k] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: freight.load("lazy-edm"), "did you mean lazy-emd"),
        (
            lambda: freight.load("nothing"),
            "no metric 'nothing'; there is freight, freight-da, lazy-emd,",
        ),
        (lambda: freight.load("emd", penalty=3), "no parameter 'penalty'; there is encoder, layer"),
        (lambda: freight.load("emd", layer=9), r"0\.\.6"),
        (lambda: freight.load("emd", idf="both"), "ref, own"),
        (lambda: freight.load("emd", references="all"), "best, each, mean"),
        (lambda: freight.load("std", references="all"), "best, each, mean"),
        (lambda: freight.load("chrf", references="all"), "best, each, mean"),
        (lambda: freight.load("bary-score", layer="-9:"), r"0\.\.6"),
        (lambda: fitted("emd").score("a text", ["b"]), "hyps is one text"),
        (lambda: fitted("emd").score(["a"], "b"), "refs is one text"),
        (lambda: fitted("emd").score(["a", "b"], ["c"]), "2 hypotheses but 1 references"),
        (lambda: fitted("emd").score([], []), "nothing to score"),
        (
            lambda: fitted("emd").score([None], ["c"]),  # type: ignore[list-item]
            r"hyps\[0\] is None",
        ),
        (
            lambda: fitted("emd").score(["a"], [float("nan")]),  # type: ignore[list-item]
            r"refs\[0\] is nan",
        ),
        (lambda: fitted("emd").score(["a"], [[]]), "at least one reference"),
        (
            lambda: fitted("emd").score(["a"], [["b", 3]]),  # type: ignore[list-item]
            r"refs\[0\]\[1\] is 3",
        ),
    ],
)
def test_bad_input_names_the_culprit(attempt: Any, message: str) -> None:
    with pytest.raises(freight.InvalidInput, match=message):
        attempt()
