"""Lexical metrics say what their libraries say, for segments and systems, in chunks or whole.

TER takes longer than all others together: every fourth text, and all of them in `make soak`
(FREIGHT_AGREEMENT=all).
"""

import gzip
import json
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import cer
import jiwer
import numpy as np
import pytest
from nltk.tokenize import NLTKWordTokenizer
from nltk.translate import meteor_score
from nltk.translate.nist_score import sentence_nist
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF, TER

import freight
from freight.core.pipeline import ChunkSize, score_stream
from freight.core.scorers import pair_up
from freight.errors import InvalidInput, MissingPart
from freight.metrics import lexical
from freight.metrics.lexical.scorer import Lexical

T = TypeVar("T")

PAIRS = 500
STEPS = {} if os.environ.get("FREIGHT_AGREEMENT") == "all" else {"ter": 4}
ADD_ONE: dict[str, Any] = {"smooth_method": "add-k", "smooth_value": 1, "effective_order": True}


class Direct(NamedTuple):
    """A metric, and its library called without us: a segment with its references, a system."""

    factory: Callable[..., Lexical]
    segment: Callable[[str, Sequence[str]], float]
    system: Callable[[list[str], Any], float] | None = None


def sacre(make: Callable[[], Any], alone: Callable[[], Any], corpus: bool = True) -> Any:
    def segment(hyp: str, refs: Sequence[str]) -> float:
        return float(alone().sentence_score(hyp, refs).score)

    def system(hyps: list[str], streams: Any) -> float:
        return float(make().corpus_score(hyps, streams).score)

    return segment, system if corpus else None


def chrf_plus_plus() -> CHRF:
    return CHRF(word_order=2)


def word_f() -> CHRF:
    return CHRF(char_order=0, word_order=4)


def rouge(kind: str) -> Callable[[str, Sequence[str]], float]:
    scorer = RougeScorer([kind])
    return lambda hyp, refs: float(scorer.score_multi(refs, hyp)[kind].fmeasure)


def nist(hyp: str, refs: Sequence[str]) -> float:
    words = NLTKWordTokenizer().tokenize
    tokens = words(hyp)
    return float(sentence_nist([words(ref) for ref in refs], tokens, min(5, len(tokens))))


def meteor(hyp: str, refs: Sequence[str]) -> float:
    words = NLTKWordTokenizer().tokenize
    return float(meteor_score.meteor_score([words(ref) for ref in refs], words(hyp)))


def wer(hyps: list[str], streams: Sequence[list[str]]) -> float:
    return float(jiwer.wer(streams[0], hyps))


def character(hyp: str, refs: Sequence[str]) -> float:
    return min(cer.calculate_cer(hyp.split(), ref.split()) for ref in refs)


def has_wordnet() -> bool:
    try:
        meteor_score.wordnet.ensure_loaded()
    except LookupError:
        return False
    return True


DIRECT = {
    "bleu": Direct(lexical.bleu, *sacre(BLEU, lambda: BLEU(effective_order=True))),
    "sentence-bleu": Direct(
        lexical.sentence_bleu, *sacre(BLEU, lambda: BLEU(**ADD_ONE), corpus=False)
    ),
    "chrf": Direct(lexical.chrf, *sacre(CHRF, CHRF)),
    "chrf++": Direct(lexical.chrf_plus_plus, *sacre(chrf_plus_plus, chrf_plus_plus)),
    "word-f": Direct(lexical.word_f, *sacre(word_f, word_f)),
    "ter": Direct(lexical.ter, *sacre(TER, TER)),
    "rouge-1": Direct(lexical.rouge_1, rouge("rouge1")),
    "rouge-2": Direct(lexical.rouge_2, rouge("rouge2")),
    "rouge-l": Direct(lexical.rouge_l, rouge("rougeL")),
    "nist": Direct(lexical.nist, nist),
    "meteor": Direct(lexical.meteor, meteor),
    "wer": Direct(lexical.wer, lambda h, refs: min(jiwer.wer(r, h) for r in refs), wer),
    "character": Direct(lexical.character, character),
}
NAMES = [*DIRECT, "per"]
every_library = pytest.mark.parametrize("name", DIRECT)
every_metric = pytest.mark.parametrize("name", NAMES)


def metric(name: str, **settings: Any) -> Lexical:
    if name == "meteor" and not has_wordnet():
        pytest.skip("METEOR needs WordNet's data, which is not here")
    factory = lexical.per if name == "per" else DIRECT[name].factory
    return factory(**settings)


@pytest.fixture(scope="module")
def pairs(data: Path) -> tuple[list[str], list[str]]:
    """Every fifth pair of WMT15: English, and Russian too."""
    with gzip.open(data / "data/wmt15-da.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][:: 2500 // PAIRS]
    return [row["hyp"] for row in rows], [row["refs"][0] for row in rows]


@pytest.fixture(scope="module")
def several(data: Path) -> tuple[list[str], list[list[str]]]:
    """Texts with one to many references, short ones: TER takes long over long ones."""
    with gzip.open(data / "data/webnlg2020-en.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if len(row["hyp"]) < 120][::12]
    assert len(rows) > 80
    assert len({len(row["refs"]) for row in some("ter", rows)}) > 2
    return [row["hyp"] for row in rows], [row["refs"] for row in rows]


def some(name: str, texts: list[T]) -> list[T]:
    """As many of these texts as there is time for with a metric."""
    return texts[:: STEPS.get(name, 1)]


@pytest.mark.parity
@every_library
def test_it_is_what_the_library_says(name: str, pairs: tuple[list[str], list[str]]) -> None:
    scorer, direct = metric(name), DIRECT[name]
    hyps, refs = (some(name, texts) for texts in pairs)
    result = scorer.score(hyps, refs)
    expected = [direct.segment(h, [r]) for h, r in zip(hyps, refs, strict=True)]
    assert result["score"].tolist() == expected
    whole = direct.system(hyps, [refs]) if direct.system else float(np.mean(expected))
    assert result.system["score"] == pytest.approx(whole, abs=1e-12)
    assert len(result) == PAIRS // STEPS.get(name, 1)
    assert not result.winners.any()


@pytest.mark.parity
@every_library
def test_several_references_count_as_the_library_has_it(
    name: str, several: tuple[list[str], list[list[str]]]
) -> None:
    scorer, direct = metric(name), DIRECT[name]
    hyps, refs = some(name, several[0]), some(name, several[1])
    result = scorer.score(hyps, refs)
    expected = [direct.segment(h, r) for h, r in zip(hyps, refs, strict=True)]
    np.testing.assert_allclose(result["score"], expected, rtol=0, atol=1e-12)
    better = np.argmax if scorer.columns[0].higher else np.argmin
    alone = [[direct.segment(h, [r]) for r in rs] for h, rs in zip(hyps, refs, strict=True)]
    assert result.winners.tolist() == [int(better(values)) for values in alone]
    if direct.system and name != "wer":
        most = max(map(len, refs))
        streams = [[r[k] if k < len(r) else None for r in refs] for k in range(most)]
        assert result.system["score"] == pytest.approx(direct.system(hyps, streams), abs=1e-12)
    mean = metric(name, references="mean").score(hyps, refs)
    np.testing.assert_allclose(mean["score"], [np.mean(values) for values in alone], atol=1e-12)


@every_metric
def test_chunks_change_nothing(
    name: str,
    pairs: tuple[list[str], list[str]],
    several: tuple[list[str], list[list[str]]],
) -> None:
    scorer = metric(name)
    hyps = some(name, [*pairs[0][:150], *several[0]])
    refs = some(name, [*pairs[1][:150], *several[1]])
    whole = scorer.score(hyps, refs)
    size = ChunkSize(pairs=37 // STEPS.get(name, 1))
    chunked = freight.score_together([scorer], hyps, refs, size=size)[0]
    assert chunked["score"].tobytes() == whole["score"].tobytes()
    assert chunked.winners.tolist() == whole.winners.tolist()
    assert chunked.flags == whole.flags
    assert chunked.system == pytest.approx(whole.system, abs=1e-12)
    parts = [part for (part,) in score_stream([scorer], pair_up(hyps, refs), size=size)]
    assert len(parts) > 5
    summed = np.sum([part.tally for part in parts], axis=0)
    assert parts[-1].system_of(summed) == pytest.approx(whole.system, abs=1e-12)


def test_the_system_score_of_a_corpus_metric_is_no_mean(
    pairs: tuple[list[str], list[str]],
) -> None:
    for name in ("bleu", "chrf", "chrf++", "word-f", "ter", "wer", "per"):
        result = metric(name).score(*(some(name, texts) for texts in pairs))
        assert abs(result.system["score"] - result["score"].mean()) > 1e-3, name
    sentences = metric("sentence-bleu").score(*pairs)
    assert sentences.system["score"] == pytest.approx(sentences["score"].mean())


def test_the_library_on_a_corpus_with_empty_lines() -> None:
    hyps, refs = ["a b c d", "", "x y", "", "a b"], ["a b c d e", "c d e f", "", "", "b a"]
    for name in ("bleu", "chrf", "chrf++", "word-f", "ter", "wer"):
        system = DIRECT[name].system
        assert system is not None
        score = metric(name).score(hyps, refs).system["score"]
        assert score == pytest.approx(system(hyps, [refs]), abs=1e-12), name


@every_metric
def test_an_empty_side_is_flagged_and_scored_as_declared(name: str) -> None:
    scorer = metric(name)
    column = scorer.columns[0]
    result = scorer.score(["", "", "a cat", "  \n", "a cat"], ["", "a dog", " ", "\t", "a dog"])
    expected = [column.perfect, column.worst, column.worst, column.perfect]
    np.testing.assert_array_equal(result["score"][:4], expected)
    assert np.isfinite(result["score"][4])
    both, hyp, ref = ("both sides empty",), ("empty side (hyp)",), ("empty side (ref)",)
    assert result.flags == (both, hyp, ref, both, ())
    assert np.isfinite(result.system["score"])


@every_metric
def test_nothing_but_empty_sides(name: str) -> None:
    scorer = metric(name)
    for hyp, ref in (("", "a dog"), ("a cat", ""), ("", "")):
        assert scorer.score([hyp], [ref]).system.keys() == {"score"}
    result = scorer.score([""], [["a dog", ""]])
    assert result.flags == (("both sides empty", "empty side (hyp)"),)
    if name != "nist":  # what it has no number for never wins
        assert result["score"].tolist() == [scorer.columns[0].perfect]


@every_metric
def test_an_empty_reference_among_several_leaves_the_others(name: str) -> None:
    scorer = metric(name)
    hyp, ref = "the cat sat on the mat", "the cat lay on the mat"
    result = scorer.score([hyp], [["", ref]])
    assert result.winners.tolist() == [1]
    assert result.flags == (("empty side (ref)",),)
    if name != "ter":  # it divides by the mean length of the references
        np.testing.assert_allclose(result["score"], scorer.score([hyp], [ref])["score"])


@every_metric
def test_identity_is_best(name: str) -> None:
    scorer = metric(name)
    column = scorer.columns[0]
    texts = ["the cat sat on the mat today", "he said nothing about it at all"]
    other = ["a dog lay on the rug that day", "she spoke of it to all of them"]
    same, worse = scorer.score(texts, texts)["score"], scorer.score(other, texts)["score"]
    assert ((same > worse) if column.higher else (same < worse)).all()
    if name not in ("nist", "meteor"):  # no bound; below it by the penalty for one fragment
        np.testing.assert_allclose(same, column.perfect, atol=1e-9)


@every_metric
def test_metrics_and_results_pickle(name: str, pairs: tuple[list[str], list[str]]) -> None:
    scorer = metric(name)
    result = scorer.score(pairs[0][:20], pairs[1][:20])
    again = pickle.loads(pickle.dumps(scorer))
    assert again.signature == scorer.signature == result.signature
    stored = pickle.loads(pickle.dumps(result))
    assert stored.system == result.system == again.score(pairs[0][:20], pairs[1][:20]).system


@every_metric
def test_it_is_signed_with_its_library(name: str) -> None:
    scorer = metric(name)
    assert scorer.name == name
    assert scorer.signature.startswith(f"{name}|measure:")
    assert f"|library:{scorer.measure.origin}|references:best|version:" in scorer.signature
    assert (scorer.parts, scorer.needs_fitting, scorer.fit(["a"])) == ((), False, scorer)


def test_sacrebleus_own_signature_is_inside() -> None:
    own = BLEU(lowercase=True, tokenize="intl")
    own.corpus_score(["a b"], [["a b"]])
    inside = lexical.bleu(lowercase=True, tokenize="intl").signature
    assert ",".join(str(own.get_signature()).split("|")[1:]) in inside


def test_popovics_word_f_by_hand() -> None:
    """The mean of both orders' F, an order without n-grams counting as 0."""
    hyps, refs = ["a b c", "a"], ["a b d e", "a"]
    half = 5 * (2 / 3) * (2 / 4) / (4 * (2 / 3) + 2 / 4), 5 * (1 / 2) * (1 / 3) / (4 / 2 + 1 / 3)
    result = freight.load("word-f", preset="popovic").score(hyps, refs)
    assert result["score"].tolist() == pytest.approx([50 * sum(half), 50.0])
    assert "eps_smoothing=True" in result.signature
    assert lexical.word_f(word_order=2).score(hyps, refs)["score"][1] == 100.0


@pytest.mark.parametrize("beta", [1, 2, 3])
def test_popovics_word_f_has_the_published_agreement(data: Path, beta: int) -> None:
    """STD's Table IV: its text says n-grams up to 4, its figures are the tool's default, 2."""
    tables = json.loads((data / "published/std.json").read_text())["tables"]
    (table,) = [one for one in tables if one["table"] == "Table IV"]
    with gzip.open(data / "data/wmt15-da.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for pair in ("cs-en", "de-en", "fi-en", "ru-en"):
        some = [row for row in rows if row["lang_pair"] == pair]
        human = [row["human"]["da_z"] for row in some]
        texts = [row["hyp"] for row in some], [row["refs"][0] for row in some]
        scores = freight.load("word-f", preset="popovic", beta=beta).score(*texts)["score"]
        published = table["rows"][f"WordF{beta}"][pair]
        assert np.corrcoef(scores, human)[0, 1] == pytest.approx(published, abs=6e-4)


def test_per_by_hand() -> None:
    hyps = ["b a x", "a a a", "a b", "c b a", "x y z w"]
    refs = ["a b c d", "a b", "a b c d", "a b c", "a b"]
    result = lexical.per().score(hyps, refs)
    assert result["score"].tolist() == [0.5, 1.0, 0.5, 0.0, 2.0]
    assert result.system["score"] == (2 + 2 + 2 + 0 + 4) / (4 + 2 + 4 + 3 + 2)


def test_wer_by_hand() -> None:
    hyps = ["the cat sat", "the cat sat", "a b c d e f", "b a"]
    refs = ["the cat sat down", "the dog  sat", "a b", "a b"]
    result = lexical.wer().score(hyps, refs)
    assert result["score"].tolist() == [1 / 4, 1 / 3, 4 / 2, 2 / 2]
    assert result.system["score"] == (1 + 1 + 4 + 2) / (4 + 3 + 2 + 2)


def test_rates_take_the_best_reference_into_the_system_score() -> None:
    for factory in (lexical.wer, lexical.per):
        result = factory().score(["a b c"], [["x y z", "a b d e", "a b c d e f"]])
        assert result.winners.tolist() == [1]
        assert result["score"].tolist() == [0.5] == [result.system["score"]]


def test_nist_of_a_text_shorter_than_its_order() -> None:
    with pytest.raises(ZeroDivisionError):
        sentence_nist([["a", "b"]], ["a", "b"])
    assert lexical.nist().score(["a b"], ["a b"])["score"].tolist() == [1.0]


def test_rouge_reads_recall_and_precision_by_hand() -> None:
    """WRDScore defines ROUGE-N as the matched share of the reference's n-grams."""
    hyps, refs = ["get the long name", "a b c"], ["get long", "a b d e"]
    for factory, recall, precision in (
        (lexical.rouge_1, [2 / 2, 2 / 4], [2 / 4, 2 / 3]),
        (lexical.rouge_2, [0 / 1, 1 / 3], [0 / 3, 1 / 2]),
    ):
        result = factory(readout="recall").score(hyps, refs)
        assert result["score"].tolist() == recall
        assert "readout=recall" in result.signature
        assert factory(readout="precision").score(hyps, refs)["score"].tolist() == precision
        assert factory(readout="recall").score(refs, hyps)["score"].tolist() == precision
    assert lexical.rouge_1().symmetric
    assert not lexical.rouge_1(readout="recall").symmetric


def test_rouge_flags_what_it_cannot_read() -> None:
    hyps, refs = ["кот сидел в 2015", "le café était fermé"], ["кот лежал в 2015", "le café"]
    result = lexical.rouge_1().score(hyps, refs)
    flag = "mostly outside a-z and 0-9"
    assert result.flags == ((f"{flag} (hyp)", f"{flag} (ref)"), ())
    assert result["score"][0] == 1.0  # the year alone


def test_meteor_without_wordnet_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from nltk.corpus.reader import WordNetCorpusReader
    from nltk.corpus.util import LazyCorpusLoader

    absent = LazyCorpusLoader("no-such-wordnet", WordNetCorpusReader, None)
    monkeypatch.setattr(meteor_score, "wordnet", absent)
    with pytest.raises(MissingPart, match=r"run  python -m nltk\.downloader wordnet$"):
        lexical.meteor()


@pytest.mark.parametrize(
    ("module", "package", "names"),
    [
        ("sacrebleu", "sacrebleu", ["bleu", "sentence-bleu", "chrf", "chrf++", "word-f", "ter"]),
        ("rouge_score", "rouge-score", ["rouge-1", "rouge-2", "rouge-l"]),
        ("nltk", "nltk", ["nist", "meteor"]),
        ("jiwer", "jiwer", ["wer"]),
        ("cer", "cer", ["character"]),
    ],
)
def test_a_missing_library_is_named_by_the_factory(
    module: str, package: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for name in names:
        with pytest.raises(MissingPart, match=rf"{package} is not installed; .*freight\[lexical\]"):
            DIRECT[name].factory()


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("bleu", {"tokenize": "moses"}, "tokenize='moses' of bleu: must be one of none, zh, 13a"),
        (
            "bleu",
            {"smooth": "add-1"},
            "smooth='add-1' of bleu: must be one of none, floor, add-k, exp",
        ),
        ("bleu", {"smooth_value": 1.0}, "smooth='exp' takes no smooth_value"),
        ("bleu", {"lowercase": "no"}, "lowercase='no' of bleu: must be true or false"),
        ("sentence-bleu", {"smooth_value": 0}, "smooth_value=0 of sentence-bleu: must be above 0"),
        ("chrf", {"beta": -1}, "beta=-1 of chrf: must be above 0"),
        ("chrf", {"beta": 0}, "beta=0 of chrf: must be above 0"),
        ("chrf", {"char_order": 0}, "char_order=0 of chrf: must be 1 or more"),
        (
            "chrf++",
            {"word_order": 2.5},
            "word_order=2.5 of chrf++: must be a whole number, 1 or more",
        ),
        ("word-f", {"beta": float("inf")}, "beta=inf of word-f: must be above 0 and finite"),
        ("ter", {"no_punct": 1}, "no_punct=1 of ter: must be true or false"),
        ("rouge-1", {"stem": "yes"}, "stem='yes' of rouge-1: must be true or false"),
        ("nist", {"n": True}, "n=True of nist: must be a whole number, 1 or more"),
        ("nist", {"tokenize": "13a"}, "tokenize='13a' of nist: must be one of nltk, none"),
        ("meteor", {"alpha": 1.5}, "alpha=1.5 of meteor: must be 0 to 1"),
        ("meteor", {"gamma": float("nan")}, "gamma=nan of meteor: must be 0 to 1"),
        (
            "wer",
            {"references": "joint"},
            "references='joint' of wer: must be one of best, each, mean",
        ),
    ],
)
def test_bad_parameters_are_named(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        DIRECT[name].factory(**settings)
    assert str(raised.value).startswith(message)


def test_a_tokenizer_that_is_not_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from sacrebleu.tokenizers import tokenizer_ja_mecab

    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    with pytest.raises(MissingPart, match=r"'ja-mecab' cannot be used: .* pip install sacrebleu"):
        lexical.bleu(tokenize="ja-mecab")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bleu", {"tokenize": "none"}), ("bleu", {"lowercase": True}),
        ("bleu", {"smooth": "floor"}), ("bleu", {"smooth": "floor", "smooth_value": 0.3}),
        ("sentence-bleu", {"smooth_value": 0.5}), ("sentence-bleu", {"smooth": "exp"}),
        ("chrf", {"beta": 1}), ("chrf", {"beta": 3}), ("chrf", {"char_order": 4}),
        ("chrf", {"lowercase": True}), ("chrf++", {"word_order": 1}), ("chrf++", {"beta": 1}),
        ("word-f", {"beta": 1}), ("word-f", {"beta": 3}), ("word-f", {"word_order": 2}),
        ("ter", {"case_sensitive": True}), ("ter", {"no_punct": True}),
        ("ter", {"normalized": True}), ("rouge-1", {"stem": True}), ("rouge-l", {"stem": True}),
        ("nist", {"n": 1}), ("nist", {"tokenize": "none"}), ("meteor", {"alpha": 0.5}),
        ("meteor", {"beta": 1.0}), ("meteor", {"gamma": 0.1}), ("meteor", {"tokenize": "none"}),
    ],
)  # fmt: skip
def test_every_knob_turns(name: str, settings: dict[str, Any]) -> None:
    hyps = ["The cats were sitting on the mat, quietly.", "the Cat, the Cat on the mat"]
    refs = ["A Cat was sitting on the mat quietly.", "the cat sits on the mat the cat"]
    usual, turned = metric(name), metric(name, **settings)
    assert usual.signature != turned.signature
    assert usual.score(hyps, refs)["score"].tolist() != turned.score(hyps, refs)["score"].tolist()


def test_no_line_is_kept_by_the_library() -> None:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

    lexical.bleu().score(["a line to forget"], ["another line to forget"])
    kinds: list[Any] = [Tokenizer13a, TokenizerRegexp]
    assert [kind.__call__.cache_info().currsize for kind in kinds] == [0, 0]
