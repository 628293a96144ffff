"""Word vectors from files of every format, and what is said of a file that is none."""

import gzip
import os
import pickle
import re
import shutil
import unicodedata
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gensim
import numpy as np
import pytest
import torch

import freight
from freight.core.types import Kind
from freight.encoders import static
from freight.encoders.static import Static
from freight.encoders.word_vectors import open_vectors
from freight.errors import UnknownVocabulary

WORDS = ["the", "cat", "dog", "näive", "cat", ". . ."]
VECTORS = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
ENDINGS = ["bin", "vec", "txt", "kv", "npz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same vectors in every format; the second `cat` is to be ignored."""
    where = tmp_path_factory.mktemp("vectors")
    rows = list(zip(WORDS, VECTORS, strict=True))
    lines = [f"{word} {' '.join(map(repr, map(float, vector)))}" for word, vector in rows]
    (where / "v.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (where / "v.vec").write_text("6 5\r\n" + "\r\n".join(lines), encoding="utf-8")
    binary = [word.replace(" ", "_").encode() + b" " + vector.tobytes() for word, vector in rows]
    (where / "v.bin").write_bytes(b"6 5\n" + b"\n".join(binary))
    np.savez(where / "v.npz", words=np.array(WORDS[:4]), vectors=VECTORS[:4])
    keyed = gensim.models.KeyedVectors(5)
    keyed.add_vectors(WORDS[:4], VECTORS[:4])
    keyed.save(str(where / "v.kv"))
    return where


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format(
    folder: Path, ending: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = folder / f"v.{ending}"
    if packed:
        path = tmp_path / f"v.{ending}.gz"
        with gzip.open(path, "wb") as stream:
            stream.write((folder / f"v.{ending}").read_bytes())
    known, vectors = open_vectors(path).look_up(["dog", "nothing", "näive", "cat", "", "the"])
    assert known.tolist() == [True, False, True, True, False, True]
    np.testing.assert_array_equal(vectors[known], VECTORS[[2, 3, 1, 0]])
    assert not vectors[~known].any()


def test_a_word_with_spaces(folder: Path) -> None:
    known, vectors = open_vectors(folder / "v.txt").look_up([". . ."])
    assert known.all()
    np.testing.assert_array_equal(vectors[0], VECTORS[5])


def test_sub_words_make_up_a_vector(tmp_path: Path) -> None:
    sentences = [["running", "runner", "runs"], ["cat", "cats", "dog"]] * 20
    model = gensim.models.FastText(
        sentences, vector_size=8, min_count=1, epochs=1, workers=1, seed=0
    )
    gensim.models.fasttext.save_facebook_model(model, str(tmp_path / "model.bin"))
    model.wv.save(str(tmp_path / "model.kv"))
    for name in ("model.bin", "model.kv"):
        known, vectors = open_vectors(tmp_path / name).look_up(["cat", "runningly"])
        assert known.all()
        np.testing.assert_allclose(vectors[0], model.wv["cat"], atol=1e-6)
        np.testing.assert_allclose(vectors[1], model.wv["runningly"], atol=1e-6)


def test_vectors_that_gensim_stores_apart_and_old_pickles(tmp_path: Path) -> None:
    keyed = gensim.models.KeyedVectors(5)
    keyed.add_vectors(WORDS[:4], VECTORS[:4])
    keyed.save(str(tmp_path / "apart.kv"), separately=["vectors"])
    keyed.save(str(tmp_path / "old.kv"), pickle_protocol=2)
    assert (tmp_path / "apart.kv.vectors.npy").is_file()
    for name in ("apart.kv", "old.kv"):
        known, vectors = open_vectors(tmp_path / name).look_up(["dog", "nothing"])
        assert known.tolist() == [True, False]
        np.testing.assert_array_equal(vectors[0], VECTORS[2])


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    """Neither as the file itself, nor among its vectors, nor in a part that is stored apart."""
    keyed = gensim.models.KeyedVectors(5)
    keyed.add_vectors(WORDS[:4], VECTORS[:4])
    (tmp_path / "alone.kv").write_bytes(pickle.dumps(Harmful(tmp_path / "made")))
    keyed.more = Harmful(tmp_path / "made")
    keyed.save(str(tmp_path / "inside.kv"))
    keyed.more = None
    vars(keyed)["__scipys"] = ["harm"]
    (tmp_path / "apart.kv").write_bytes(pickle.dumps(keyed))
    (tmp_path / "apart.kv.harm.npy").write_bytes(pickle.dumps(Harmful(tmp_path / "made")))
    for name, message in (
        ("alone.kv", r"alone.kv .* it names \w+.mkdir, which may run code"),
        ("inside.kv", "inside.kv .* save_word2vec_format"),
        ("apart.kv", "apart.kv .* parts that are no arrays"),
    ):
        with pytest.raises(freight.InvalidInput, match=message):
            freight.load("wmd", encoder=f"static:{tmp_path / name}").score(["a"], ["b"])
    assert not (tmp_path / "made").exists()


def test_packed_files_are_told_apart_by_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = [tmp_path / name / "v.txt.gz" for name in ("one", "two", "copy")]
    for path, line in zip(paths, ("cat 1 2\n", "cat 3 4\n", "cat 1 2\n"), strict=True):
        path.parent.mkdir()
        path.write_bytes(gzip.compress(line.encode(), mtime=0))
        os.utime(path, ns=(0, 0))
    assert len({path.stat().st_size for path in paths}) == 1
    vectors = [open_vectors(path).look_up(["cat"])[1].tolist() for path in paths]
    assert vectors == [[[1, 2]], [[3, 4]], [[1, 2]]]
    unpacked = list((tmp_path / "cache" / "freight" / "unpacked").iterdir())
    assert {path.read_bytes() for path in unpacked} == {b"cat 1 2\n", b"cat 3 4\n"}
    assert len(unpacked) == 2, "the copy is not unpacked again, and nothing unfinished is left"


def test_a_packed_file_that_cannot_be_unpacked_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_bytes(b"no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "v.txt.gz").write_bytes(gzip.compress(b"cat 1 2\n"))
    with pytest.raises(freight.InvalidInput, match="cannot be unpacked into"):
        open_vectors(tmp_path / "v.txt.gz")


BAD = {
    "text.kv": (b"no pickle", "is no pickle of word vectors"),
    "list.kv": (pickle.dumps([1]), "a pickle of list, not of word vectors"),
    "cut.bin": (b"6 5\nthe " + VECTORS[0].tobytes(), "is cut short: 1 of 6 words"),
    "cut.txt": (b"3 2\ncat 1 2\n", "is cut short: 1 of 3 words"),
    "short.txt": (b"3 2\ncat 1 2\ndog 1\ncow 3 4\n", "no 2 numbers in its line 'dog 1'"),
    "glove.txt": (b"cat 1 2\ndog 1\ncow 3 4\n", "no 2 numbers in its line 'dog 1'"),
    "none.bin": (b"no header at all\n", "first line"),
    "line.bin": (b"no line", "has no first line"),
    "one.txt": (b"word\n", "first line"),
    "odd.npz": (b"not a zip", "is not a file of vectors"),
    "broken.npz": (b"PK\x03\x04 no more", "broken.npz is not a file of vectors"),
    "minus.bin": (b"-5 -5\nthe ", "minus.bin .* its first line says -5 words of -5 dimensions"),
    "huge.txt": (b"99999999999999 5\nthe 1 2 3 4 5\n", "huge.txt .* says 99999999999999 words"),
    "v.xyz": (b"", "ends in none of .bin .vec .txt .kv .npz"),
    "v.bin.gz": (b"not packed", "is not a whole gzip file"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_file_of_vectors_says_so(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(freight.InvalidInput, match=message):
        open_vectors(tmp_path / name)


def test_a_vector_that_is_no_numbers_is_named(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("2 3\na 1 2 3\nthe 1 2 x\n")
    source = open_vectors(path)
    with pytest.raises(freight.InvalidInput, match=r"v\.txt has no 3 numbers for 'the'"):
        source.look_up(["a", "the"])


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(freight.InvalidInput, match="there is no file of vectors"):
        freight.load("wmd", encoder=f"static:{tmp_path / 'no.bin'}").score(["a"], ["b"])


def test_units_of_words(folder: Path) -> None:
    encoder = freight.encoder(f"static:{folder / 'v.bin'}")
    cloud = encoder.encode(["The cat, zzz", "", "cat"], [0])
    assert np.diff(cloud.offsets).tolist() == [4, 0, 1]
    absent = cloud.having(Kind.ABSENT)
    assert absent.tolist() == [False, False, True, True, False]
    assert cloud.having(Kind.PUNCTUATION).tolist() == [False, False, True, False, False]
    torch.testing.assert_close(cloud.layers[0, 0], torch.as_tensor(VECTORS[0]))
    assert not cloud.layers[3].any()
    assert cloud.ids[1] == cloud.ids[4]
    assert encoder.encode(["The cat"], []).layers.shape == (2, 0, 5)
    with pytest.raises(freight.InvalidInput, match="one layer"):
        encoder.encode(["a"], [1])


def test_unknown_words_are_flagged_or_stand_in(folder: Path) -> None:
    name = f"static:{folder / 'v.bin'}"
    with pytest.warns(UnknownVocabulary):
        result = freight.load("wmd", encoder=name).score(["cat zzz", "zzz"], ["cat", "cat"])
    assert result.flags == (
        ("unknown units 50% (hyp)",),
        ("no known units (hyp)", "unknown units 100% (hyp)"),
    )
    assert np.isnan(result["distance"][1])
    assert result.system["distance"] == pytest.approx(0.0)
    standing = freight.encoder(name, unknown="dog")
    cloud = standing.encode(["zzz dog"], [0])
    assert torch.equal(cloud.layers[0], cloud.layers[1])
    with pytest.raises(freight.InvalidInput, match="no word 'nope'"):
        freight.encoder(name, unknown="nope").encode(["a"], [0])


@pytest.mark.parametrize("metric", ["wmd", "std", "sms", "wrd-score"])
@pytest.mark.parametrize("kind", ["file", "distilled"])
def test_a_lone_surrogate_reads_as_the_replacement_character(
    folder: Path, metric: str, kind: str
) -> None:
    name = f"static:{folder / 'v.bin'}" if kind == "file" else kind
    scorer, other = freight.load(metric, encoder=name), freight.load(metric, encoder=name)
    primary = scorer.columns[0].name
    hyps, refs = ["the cat \ud800 dog", "new\udc00 cat"], ["the dog cat", "dog \udfff"]
    replaced = [[re.sub("[\ud800-\udfff]", "\ufffd", x) for x in side] for side in (hyps, refs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownVocabulary)
        scores = scorer.score(hyps, refs)[primary]
        np.testing.assert_array_equal(scores, other.score(*replaced)[primary])
    later = scorer.score(["the cat"], ["the dog"])[primary]
    alone = freight.load(metric, encoder=name).score(["the cat"], ["the dog"])[primary]
    np.testing.assert_array_equal(later, alone)


def test_words_that_cannot_be_added_leave_no_trace(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Static(f"static:{folder / 'v.bin'}")
    encoder.encode(["the"], [0])
    with monkeypatch.context() as patch:
        patch.setattr(static, "_word_id", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            encoder.encode(["cat näive"], [0])
    cloud = encoder.encode(["dog cat the"], [0])
    np.testing.assert_array_equal(cloud.layers[:, 0].numpy(), VECTORS[[2, 1, 0]])


def test_a_specification_pickles_and_is_signed_by_its_file(folder: Path, tmp_path: Path) -> None:
    encoder = Static(f"static:{folder / 'v.bin'}")
    before = encoder.encode(["cat dog"], [0]).layers
    again = pickle.loads(pickle.dumps(encoder))
    assert again == encoder
    assert torch.equal(again.encode(["cat dog"], [0]).layers, before)
    shutil.copy(folder / "v.bin", tmp_path / "v.bin")
    other = Static(f"static:{tmp_path / 'v.bin'}")
    assert other.identity.split("@")[1] == encoder.identity.split("@")[1]


def test_static_vectors_where_contextual_ones_are_expected(folder: Path) -> None:
    name = f"static:{folder / 'v.bin'}"
    for metric in ("lazy-emd", "emd", "bert-score", "bary-score", "mover-score"):
        result = freight.load(metric, encoder=name).score(
            ["the cat", "zzz dog"], ["the dog", "dog"]
        )
        assert np.isfinite(result[result.columns[0].name]).all()


def test_vectors_distilled_from_an_encoder() -> None:
    encoder = freight.encoder("distilled")
    cloud = encoder.encode(["Unbelievably unbelievably 🦖", ""], [0])
    assert cloud.ids[0] == cloud.ids[1]
    assert cloud.having(Kind.ABSENT).tolist() == [False, False, True]
    inner = freight.encoder("embedded").encode(["unbelievably"], [0]).layers[1:-1, 0]
    torch.testing.assert_close(cloud.layers[0, 0], inner.mean(dim=0), rtol=0, atol=1e-6)
    result = freight.load("wmd").score(["Obama speaks to the media"], ["The president greets"])
    assert result.flags == ((),)
    assert "distilled(embedded@sha256-" in result.signature
    assert pickle.loads(pickle.dumps(encoder)).encode(["a cat"], [0]).ids.tolist()


@pytest.mark.parametrize("name", ["e5-small", "some/all-MiniLM-L6-v2", "other"])
def test_word_vectors_have_one_layer_whatever_they_are_distilled_from(name: str) -> None:
    """Some encoders are known by name, for which layer of theirs is the best."""
    assert freight.load("std", encoder=f"distilled:{name}").parts[0].layers == (0,)
    assert freight.load("wrd-score", encoder=f"distilled:{name}").parts[0].layers == (0,)


def test_a_word_is_found_whatever_its_case_and_marks(tmp_path: Path) -> None:
    lines = "4 2\nışık 1 0\nkůň 0 1\nmodl\u0065\u0301 1 1\nstraße 1 2\n"
    (tmp_path / "v.vec").write_text(lines, encoding="utf-8")
    vectors = f"static:{tmp_path}/v.vec"
    turkish = Static(vectors, lang="tr").encode(["IŞIK ışık"], [0])
    assert turkish.layers[:, 0].tolist() == [[1, 0], [1, 0]]
    decomposed = unicodedata.normalize("NFD", "Kůň")
    czech = Static(vectors, lang="cs").encode([f"{decomposed} kůň modl\u0065\u0301"], [0])
    assert czech.layers[:, 0].tolist() == [[0, 1], [0, 1], [1, 1]]
    assert czech.ids[0] == czech.ids[1]
    assert czech.flags == [()]
    german = Static(vectors, lang="de").encode(["STRASSE Straße"], [0])
    assert german.flags == [("unknown units 50%",)]  # ß is not undone
