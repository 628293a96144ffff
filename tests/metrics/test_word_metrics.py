"""Metrics of words: against plain transcriptions, their peers, and cases worked by hand."""

import gzip
import json
from pathlib import Path
from typing import Any

import gensim
import numpy as np
import pytest
from nltk.tokenize import NLTKWordTokenizer

import freight
from freight.errors import UnknownVocabulary
from plain_std import std_n

BITES = ["man bites dog"], ["dog bites man"]


@pytest.fixture(scope="module")
def vectors(data: Path) -> Path:
    return data / "vectors/glove.100d.60k.bin"


@pytest.fixture(scope="module")
def keyed(vectors: Path) -> Any:
    return gensim.models.KeyedVectors.load_word2vec_format(str(vectors), binary=True)


@pytest.fixture(scope="module")
def pairs(data: Path) -> list[tuple[str, str]]:
    with gzip.open(data / "data/wmt15-da.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [(row["hyp"], row["refs"][0]) for row in rows if row["lang_pair"] != "en-ru"][::4]


@pytest.fixture
def written(tmp_path: Path) -> str:
    """Vectors that can be worked with by hand."""
    vectors = {"a": (1, 0), "b": (0, 1), "c": (-1, 0), "half": (0.6, 0.8), "long": (0, 3)}
    lines = [f"{word} {x} {y}" for word, (x, y) in vectors.items()]
    (tmp_path / "hand.txt").write_text("\n".join(lines))
    return f"static:{tmp_path / 'hand.txt'}"


@pytest.mark.parametrize(("preset", "settings"), freight.presets("std").items())
def test_std_is_its_plain_transcription(
    vectors: Path, keyed: Any, pairs: list[tuple[str, str]], preset: str, settings: dict[str, str]
) -> None:
    def vector(word: str) -> Any:
        return keyed[word].astype(np.float64) if word in keyed else None

    some = [*pairs[:25], ("cat", "dog"), ("the cat", "cat cat cat the"), BITES_PAIR]
    result = freight.load("std", encoder=f"static:{vectors}", preset=preset).score(
        *map(list, zip(*some, strict=True))
    )
    for k, (hyp, ref) in enumerate(some):
        for column, n in (("unigram", 1), ("bigram", 2)):
            expected = std_n(hyp, ref, vector, n, **settings)
            assert result[column][k] == pytest.approx(expected, abs=1e-7)


BITES_PAIR = (BITES[0][0], BITES[1][0])


def test_order_touches_shared_words_only_where_they_move(vectors: Path) -> None:
    encoder = f"static:{vectors}"
    stays = freight.load("std", encoder=encoder).score(*BITES)
    moved = freight.load("std", encoder=encoder, preset="paper").score(*BITES)
    assert stays["unigram"][0] == 0.0
    assert moved["unigram"][0] == pytest.approx(0.174, abs=1e-3)
    assert stays["bigram"][0] > 0.01


def test_the_papers_centroid_averages_the_set_of_words(written: str) -> None:
    hyps, refs = ["a a a b"], ["half"]
    shares = {}
    for centroid, mean in (("list", (3, 1)), ("set", (1, 1))):
        metric = freight.load("std", encoder=written, centroid=centroid, shared="moved")
        near = np.dot((0.6, 0.8), mean) / np.linalg.norm(mean)
        view = metric.explain(hyps[0], refs[0]).views[0]
        shares[centroid] = view.hyp.weights[view.hyp.names.index("half")]
        assert shares[centroid] == pytest.approx(np.exp(near) / (2 * np.e + np.exp(near)))
        assert f"centroid={centroid}" in metric.signature
    assert shares["set"] > shares["list"]


def test_std_maps_unknown_words_to_unk_as_the_authors_code_does(
    keyed: Any, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    """Their code replaces a word without a vector by the word `unk`, where the vectors have one."""
    some = pairs[:30]
    tokenize = NLTKWordTokenizer().tokenize
    words = sorted({word for pair in some for text in pair for word in tokenize(text.lower())})
    kept = [word for k, word in enumerate(words) if k % 6]
    left = {word: keyed[word].astype(np.float64) for word in kept if word in keyed}
    left["unk"] = np.mean(list(left.values()), axis=0).astype(np.float32).astype(np.float64)
    lines = (f"{word} {' '.join(map(repr, x.tolist()))}" for word, x in left.items())
    (tmp_path / "unk.txt").write_text("\n".join(lines), encoding="utf-8")
    texts = [list(side) for side in zip(*some, strict=True)]
    encoder = f"static:{tmp_path / 'unk.txt'}"
    mapped = freight.load("std", encoder=encoder).score(*texts)
    assert "/unknown=unk" in mapped.signature
    for k, (hyp, ref) in enumerate(some):
        for column, n in (("unigram", 1), ("bigram", 2)):
            expected = std_n(hyp, ref, left.get, n)
            assert mapped[column][k] == pytest.approx(expected, abs=1e-6)
    dropped = freight.load("std", encoder=encoder, unknown="dropped").score(*texts)
    assert "/unknown" not in dropped.signature
    assert np.abs(mapped["distance"] - dropped["distance"]).max() > 0.01
    assert mapped.flags == dropped.flags


def test_unk_is_one_word_and_no_other_metrics_business(written: str) -> None:
    path = Path(written.removeprefix("static:"))
    path.write_text(f"{path.read_text()}\nunk 0.8 0.6")
    pair = ["a zzz b half"], ["a yyy b half"]
    result = freight.load("std", encoder=written).score(*pair)
    assert result["distance"].tolist() == [0.0]
    assert "unknown units 25%" in str(result.flags)
    named = freight.load("std", encoder=written).score(pair[0], ["a unk b half"])
    assert named["distance"].tolist() == [0.0]
    assert "unknown=" not in freight.load("wmd", encoder=written).signature
    with pytest.warns(UnknownVocabulary):
        lost = freight.load("std", encoder=written).score(["zzz"], ["yyy"])
    assert np.isnan(lost["distance"]).all()
    assert "no known units" in str(lost.flags)


def test_system_weights_differ_from_segment_weights(vectors: Path) -> None:
    hyps, refs = ["the cat sat", "a dog", "rain"], ["a cat sat", "the dogs", "snow fell"]
    result = freight.load("std", encoder=f"static:{vectors}").score(hyps, refs)
    segment = 0.5 * result["unigram"] + 0.5 * result["bigram"]
    np.testing.assert_allclose(result["distance"], segment)
    system = 0.3 * result["unigram"].mean() + 0.7 * result["bigram"].mean()
    assert result.system["distance"] == pytest.approx(system)
    assert result.system["similarity"] == pytest.approx(1 - system)


def test_wmd_is_gensims_on_500_real_pairs(
    vectors: Path, keyed: Any, pairs: list[tuple[str, str]]
) -> None:
    hyps, refs = map(list, zip(*pairs[:500], strict=True))
    metric = freight.load("wmd", encoder=f"static:{vectors}", preset="gensim")
    ours = metric.score(hyps, refs)["distance"]
    tokenizer = NLTKWordTokenizer()
    theirs = [
        keyed.wmdistance(tokenizer.tokenize(hyp.lower()), tokenizer.tokenize(ref.lower()))
        for hyp, ref in zip(hyps, refs, strict=True)
    ]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


def test_stop_words_are_left_out(written: str) -> None:
    metric = freight.load("wmd", encoder=written, stop_words=["b"])
    assert metric.score(["a B"], ["c b"])["distance"][0] == pytest.approx(2.0)
    with pytest.raises(freight.InvalidInput, match="stop_words='de'"):
        freight.load("wmd", encoder=written, stop_words="de")


def test_wmdo_by_hand(written: str) -> None:
    metric = freight.load("wmdo", encoder=written)
    assert metric.score(["a b"], ["a b"])["distance"][0] == pytest.approx(0.18 * 1 / 2)
    # b comes first and is not behind the beginning, a is not behind b: three chunks of two words
    assert metric.score(["a b"], ["b a"])["distance"][0] == pytest.approx(0.18)
    # one word of four has no vector: its cost is 1, and a tenth of its share is charged
    result = metric.score(["a b half zzz"], ["a b half a"])
    assert result["distance"][0] == pytest.approx(0.25 + 0.18 * 1 / 4 + 0.10 / 4)
    assert result.flags == (("unknown units 25% (hyp)",),)


def test_wrd_score_by_hand(written: str) -> None:
    result = freight.load("wrd-score", encoder=written).score(["a long"], ["a"])
    assert result["wrd"][0] == pytest.approx(0.75)  # mass 1/4 and 3/4, cosines 1 and 0
    assert result["precision"][0] == pytest.approx(0.5)
    assert result["recall"][0] == pytest.approx(0.25)
    code = freight.load("wrd-score-code", encoder=written).score(["a long"], ["a"])
    assert code["recall"][0] == pytest.approx(0.25)
    assert code["precision"][0] == pytest.approx(0.25)
    for preset, same in (("paper", result), ("authors", code)):
        again = freight.load("wrd-score", encoder=written, preset=preset).score(["a long"], ["a"])
        assert again.segments == same.segments
    opposite = freight.load("wrd-score", encoder=written).score(["a"], ["c"])
    assert opposite["wrd"][0] == pytest.approx(2.0)
    assert opposite.flags == (("no similarity",),)
    clipped = freight.load("wrd-score", encoder=written, clip=True).score(["a"], ["c"])
    assert clipped["wrd"][0] == pytest.approx(1.0)


def test_sentences_move_as_wholes(written: str) -> None:
    hyps, refs = ["a b. a a"], ["a a. b a"]
    sms = freight.load("sms", encoder=written).score(hyps, refs)
    # two sentences a side, of two words each: (.5, .5) and (1, 0), only their order differs
    assert sms["distance"][0] == pytest.approx(0.0, abs=1e-7)
    assert sms["similarity"][0] == pytest.approx(1.0)
    uneven = freight.load("sms", encoder=written).score(["a. b b b"], ["a"])
    assert uneven["distance"][0] == pytest.approx(0.75 * np.sqrt(2))
    both = freight.load("s+wms", encoder=written).score(["a. b b b"], ["a"])
    assert both["distance"][0] == pytest.approx(0.75 * np.sqrt(2))
    assert both["similarity"][0] == pytest.approx(np.exp(-0.75 * np.sqrt(2)))


def test_runs_of_words_really_work() -> None:
    hyps, refs = ["the cat sat on a mat"], ["on a mat the cat sat"]
    scores = {
        (version, n): freight.load(
            "mover-score", version=version, ngram=n, idf=None, encoder="hashed"
        ).score(hyps, refs)["distance"][0]
        for version in (1, 2)
        for n in (1, 2, 9)
    }
    for version in (1, 2):
        assert scores[version, 1] == pytest.approx(0, abs=1e-6)  # the same words
        assert scores[version, 2] > 0.01  # but not the same pairs of words
        assert scores[version, 9] == pytest.approx(0, abs=1e-6)  # one run with the same mean


def test_idf_of_one_pair_does_not_make_anything_perfect() -> None:
    result = freight.load("mover-score").score(["a cat sat", ""], ["stocks fell", ""])
    assert result["similarity"][0] < 0.7
    assert result["similarity"][1] == 1.0
    assert result.flags[1] == ("both sides empty",)
    alone = freight.load("mover-score").score(["a cat"], ["a cat"])
    assert alone["similarity"][0] == pytest.approx(1.0, abs=1e-6)
    assert alone.flags == (("IDF empty (hyp)", "IDF empty (ref)"),)


@pytest.mark.parametrize("name", ["std", "wmd", "wrd-score", "wmdo", "sms"])
def test_contextual_encoders_are_accepted(name: str) -> None:
    metric = freight.load(name, encoder="embedded")
    hyps, refs = ["The cat sat.", "Unbelievable noise"], ["A cat was sitting.", "silence"]
    result = metric.score(hyps, refs)
    column = result.columns[0]
    assert np.isfinite(result[column.name]).all()
    better = result[column.name][0] - result[column.name][1]
    assert better > 0 if column.higher else better < 0


def test_languages_choose_the_words() -> None:
    chinese = freight.load("std", lang="zh")
    encoder: Any = chinese.parts[0].encoder
    assert encoder.lang == "zh"
    assert "/zh/" in chinese.signature
