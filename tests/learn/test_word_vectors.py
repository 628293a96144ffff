"""Trained vectors: counts and axes that are known, the same bits twice, every file read back."""

import gzip
import itertools
import json
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import freight
from freight import learn
from freight.learn import PackedCorpus
from freight.learn.word_vectors import WRITERS, SentenceStream, count_pairs

JAVA_NAMES = f"{Path(__file__).parents[2]}/examples/java_methods.py:method_names"
NAMES = "get size|set size|get count|set count|max size|max count|open door|close door|open gate"
METHODS = {"cooccurrence": {"dim": 4}, "word2vec": {"dim": 6, "epochs": 2}}


@pytest.fixture(scope="module")
def corpus() -> PackedCorpus:
    return learn.pack_texts(NAMES.split("|"))


def test_a_corpus_is_packed_by_how_frequent_words_are(corpus: PackedCorpus) -> None:
    assert corpus.words[:4] == ("count", "size", "door", "get")
    assert corpus.counts[:4].tolist() == [3, 3, 2, 2]
    assert (corpus.texts, corpus.tokens) == (9, 18)
    read = [corpus.words[word] for ids, _ in corpus.chunks(5) for word in ids]
    assert read == NAMES.replace("|", " ").split()
    rare = learn.pack_texts(NAMES.split("|"), min_count=2)
    assert set(corpus.words) - set(rare.words) == {"close", "gate"}
    kept = [rare.words[word] for ids, _ in rare.chunks() for word in ids]
    assert kept[-4:] == ["open", "door", "door", "open"]


def test_pairs_of_distinct_positions() -> None:
    corpus = learn.pack_texts(["a a b", "a c", "c", ""])
    assert corpus.words == ("a", "c", "b")
    expected = [[2, 1, 2], [1, 0, 0], [2, 0, 0]]
    assert count_pairs(corpus).toarray().tolist() == expected
    near = [[2, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert count_pairs(corpus, window=1).toarray().tolist() == near


@pytest.mark.parametrize("window", [None, 1, 2, 7])
def test_counts_are_those_of_a_plain_loop(
    window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(list("abcdefg"), size)) for size in rng.integers(0, 9, 60)]
    corpus = learn.pack_texts(texts, min_count=2)
    plain: Counter[tuple[str, str]] = Counter()
    for text in texts:
        for (i, a), (j, b) in itertools.permutations(enumerate(text.split()), 2):
            plain[a, b] += window is None or abs(i - j) <= window
    whole = PackedCorpus.chunks
    monkeypatch.setattr(PackedCorpus, "chunks", lambda self: whole(self, 20))
    counts = count_pairs(corpus, window).toarray()
    expected = [[plain[a, b] for b in corpus.words] for a in corpus.words]
    assert counts.tolist() == expected


def test_half_the_singular_vectors_in_closed_form() -> None:
    """A star of three words: the singular values are √2, √2 and 0, and 4 VVᵀ is C²."""
    model = learn.cooccurrence(learn.pack_texts(["a b", "a c"]), dim=2)
    assert model.words == ("a", "b", "c")
    quarter = model.vectors @ model.vectors.T * 4
    np.testing.assert_allclose(quarter, [[2, 0, 0], [0, 1, 1], [0, 1, 1]], atol=1e-6)
    neighbours, similarities = zip(*model.nearest("b"), strict=True)
    assert neighbours == ("c", "a")
    assert similarities == (pytest.approx(1), pytest.approx(0, abs=1e-6))
    assert (model.vectors[np.abs(model.vectors).argmax(axis=0), [0, 1]] > 0).all()


def test_many_words_have_the_axes_of_a_dense_svd() -> None:
    rng = np.random.default_rng(2)
    weights = 1 / np.arange(1, 1301)
    picks = rng.choice(1300, (6000, 4), p=weights / weights.sum())
    corpus = learn.pack_texts(" ".join(f"w{word}" for word in row) for row in picks)
    assert len(corpus.words) > 1000
    model = learn.cooccurrence(corpus, dim=6)
    axes, values, _ = np.linalg.svd(count_pairs(corpus).toarray())
    kept = [corpus.words.index(word) for word in model.words]
    expected = (axes[:, :6] * values[:6] / 2)[kept]
    np.testing.assert_allclose(np.abs(model.vectors), np.abs(expected), atol=1e-4)
    again = learn.cooccurrence(corpus, dim=6)
    np.testing.assert_array_equal(model.vectors, again.vectors)


def test_a_word_beside_no_other_has_no_vector() -> None:
    model = learn.cooccurrence(learn.pack_texts(["a b", "a c", "alone"]), dim=2)
    assert model.words == ("a", "b", "c")


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("method", METHODS)
def test_files_come_back_and_have_the_same_bytes_twice(
    corpus: PackedCorpus, method: str, ending: str, tmp_path: Path
) -> None:
    bytes_of = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}{ending}"
        model = getattr(learn, method)(corpus, **METHODS[method])
        model.save(path)
        cloud = freight.encoder(f"static:{path}").encode(["open the door"], [0])
        rows = [model.words.index(word) for word in ("open", "door")]
        np.testing.assert_array_equal(cloud.layers[[0, 2], 0].numpy(), model.vectors[rows])
        assert not cloud.layers[1].any()
        bytes_of.append(path.read_bytes())
        if ending == ".npz":
            with np.load(path) as arrays:
                about = json.loads(str(arrays["provenance"]))
        else:
            about = json.loads((tmp_path / f"{name}{ending}.json").read_text())
        assert about == model.provenance
        assert about["options"].items() >= METHODS[method].items()
    assert bytes_of[0] == bytes_of[1]
    assert not list(tmp_path.glob("*.part"))


def test_options_of_word2vec_change_the_vectors() -> None:
    corpus = learn.pack_texts(["a b c d e", "e d c", "b a"] * 60)
    plain = learn.word2vec(corpus, 6).vectors
    for options in ({"epochs": 20}, {"seed": 1}, {"skip_gram": True}, {"window": 1}):
        assert np.abs(learn.word2vec(corpus, 6, **options).vectors - plain).max() > 1e-6


def test_a_text_of_any_length_is_seen_whole() -> None:
    """gensim would leave out what a text has beyond 10,000 words."""
    corpus = learn.pack_texts(["a b " * 6000 + "x y " * 500, "", "x"])
    pieces = list(SentenceStream(corpus, None))
    assert [len(piece) for piece in pieces] == [10_000, 3000, 1]
    assert pieces[1][-2:] == ["x", "y"]


def test_what_a_corpus_is_made_of(tmp_path: Path) -> None:
    folder = tmp_path / "sources" / "inner"
    folder.mkdir(parents=True)
    (folder / "A.java").write_text("class A { void openDoor() { } int getSize() { return 1; } }")
    (folder.parent / "notes.md").write_text("not Java")
    with zipfile.ZipFile(tmp_path / "src.zip", "w") as archive:
        archive.writestr("b/B.java", "class B { void closeDoor() { } }")
        archive.writestr("b/readme", "void notThis() { }")
    with gzip.open(tmp_path / "c.java.gz", "wt") as stream:
        stream.write("class C { void set_size() { } }")
    paths = [str(tmp_path / name) for name in ("sources", "src.zip", "c.java.gz")]
    names = learn.read_corpus(paths, JAVA_NAMES, "code", "*.java")
    texts = [names.words[word] for ids, _ in names.chunks() for word in ids]
    assert texts == ["open", "door", "get", "size", "close", "door", "set", "size"]
    assert names.origin["take"] == JAVA_NAMES
    assert [one["texts"] for one in names.origin["files"]] == [2, 1, 1]
    assert all(len(one["sha256"]) == 64 for one in names.origin["files"])
    whole = learn.read_corpus(paths, "files", "code", "*.java")
    assert whole.texts == 3
    assert {"class", "return", "door"} <= set(whole.words)
    lines = learn.read_corpus([str(folder)], glob="*.java", lower=False)
    assert "openDoor" in lines.words


def test_a_function_takes_the_texts_of_a_file(tmp_path: Path) -> None:
    def titles(content: str) -> list[str]:
        return [line[2:] for line in content.splitlines() if line.startswith("# ")]

    (tmp_path / "notes.md").write_text("# open the door\ntext\n# close it\n")
    corpus = learn.read_corpus([str(tmp_path / "notes.md")], titles)
    assert set(corpus.words) == {"open", "the", "door", "close", "it"}
    assert corpus.texts == 2
    assert corpus.origin["take"].endswith(":titles")


def test_a_mistake_in_a_function_is_one_line_with_its_line_number(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def texts(content):\n    return content.nothing\n")
    (tmp_path / "notes.txt").write_text("a b\n")
    with pytest.raises(freight.InvalidInput, match=r"mine\.py, line 2: AttributeError") as caught:
        learn.read_corpus([str(tmp_path / "notes.txt")], f"{tmp_path}/mine.py:texts")
    assert "\n" not in str(caught.value)


def test_names_of_a_small_program(tmp_path: Path) -> None:
    """WRDScore's experiment in small: names without a word in common, closer than ROUGE can see."""
    things, doors = ("size", "count", "length"), ("door", "gate", "hatch")
    names = [f"{verb}{thing.title()}" for verb in ("get", "set", "max", "min") for thing in things]
    names += [
        f"{verb}{door.title()}" for verb in ("open", "close", "lock", "knock") for door in doors
    ]
    body = "".join(f"    void {name}(int x) {{ }}\n" for name in names)
    (tmp_path / "Depot.java").write_text(f"class Depot {{\n{body}}}\n")
    path = tmp_path / "names.kv"
    learn.cooccurrence(
        learn.read_corpus([str(tmp_path)], JAVA_NAMES, "code", "*.java"), dim=4
    ).save(path)
    hyps, refs = ["size", "getCount", "size"], ["count", "setLength", "lockDoor"]
    assert freight.load("rouge-1").score(hyps[:1], refs[:1])["score"][0] == 0
    for name in ("wrd-score", "wrd-score-code"):
        metric = freight.load(name, encoder=f"static:{path}", lang="code")
        near, alike, far = metric.score(hyps, refs)["f1"]
        assert near == pytest.approx(1, abs=1e-5)
        assert alike == pytest.approx(1, abs=1e-5)
        assert far == pytest.approx(0, abs=1e-5)


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no words": (lambda: learn.pack_texts(["", " "]), "the corpus has no words"),
    "rare": (lambda: learn.pack_texts(["a b"], min_count=2), "lower --min-count"),
    "few words": (lambda: learn.cooccurrence(learn.pack_texts(["a b"]), 3), "2 words cannot"),
    "no pair": (lambda: learn.cooccurrence(learn.pack_texts(["a", "b"]), 1), "two words"),
    "window": (lambda: learn.cooccurrence(learn.pack_texts(["a b"]), 1, 0), "window is 0"),
    "epochs": (lambda: learn.word2vec(learn.pack_texts(["a b"]), epochs=0), "epochs is 0"),
    "take": (lambda: learn.read_corpus(["x"], "words"), "there is lines, files, or FILE.py"),
    "no file": (lambda: learn.read_corpus(["x"], "no.py:f"), "the file no.py"),
    "no function": (
        lambda: learn.read_corpus(["x"], JAVA_NAMES.replace("method_names", "names")),
        "no function 'names'",
    ),
    "nearest": (
        lambda: learn.cooccurrence(learn.pack_texts(["a b"]), 1).nearest("c"),
        "'c' has no vector",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_what_cannot_be_trained(mistake: str) -> None:
    call, message = WRONG[mistake]
    with pytest.raises(freight.InvalidInput, match=message):
        call()


def test_one_endless_word_does_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freight.learn.word_vectors._NPZ_LETTERS", 100)
    model = learn.cooccurrence(learn.pack_texts([f"a {'x' * 60}"]), dim=2)
    with pytest.raises(freight.InvalidInput, match=r"xxx\.\.\. has 60 letters.*write a \.bin"):
        model.save(tmp_path / "v.npz")
    model.save(tmp_path / "v.bin")
    assert not (tmp_path / "v.npz").exists()
