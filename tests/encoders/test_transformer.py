"""Real encoders: the embedded one, and tiny random ones made on the spot."""

import pickle
import shutil
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bert_score.utils
import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

import freight
from freight.core.types import Kind
from freight.encoders import BERT_SCORE_LAYERS, packaged_folder
from freight.encoders.batching import TokenBatch, batch_shape
from freight.encoders.transformer import Transformer
from freight.errors import UntunedLayer

TEXTS = ["A cat sat on the mat.", "Unbelievable, isn't it?", "", "  spaces around \n", "one"]


def test_states_are_those_of_transformers(embedded_transformer: Transformer) -> None:
    cloud = embedded_transformer.encode(TEXTS, [0, 3, 6])
    model = AutoModel.from_pretrained(packaged_folder("embedded"))
    tokenizer = AutoTokenizer.from_pretrained(packaged_folder("embedded"))
    for k, text in enumerate(TEXTS):
        with torch.inference_mode():
            inputs = tokenizer(text.strip(), return_tensors="pt")
            states = model(**inputs, output_hidden_states=True).hidden_states
        mine = cloud.layers[cloud.offsets[k] : cloud.offsets[k + 1]]
        for place, layer in enumerate((0, 3, 6)):
            torch.testing.assert_close(mine[:, place], states[layer][0], rtol=0, atol=1e-5)


def test_units_know_their_place(embedded_transformer: Transformer) -> None:
    text = "  Unbelievably good, 🦖!"
    cloud = embedded_transformer.encode([text], [0])
    pieces = [text[a:b] for a, b in zip(cloud.start, cloud.end, strict=True)]
    assert pieces == ["", "Un", "bel", "ie", "va", "bly", "good", ",", "🦖", "!", ""]
    special, unknown = cloud.having(Kind.SPECIAL), cloud.having(Kind.UNKNOWN)
    assert special.tolist() == [True] + [False] * 9 + [True]
    assert np.flatnonzero(unknown).tolist() == [8]
    assert np.flatnonzero(cloud.having(Kind.CONTINUATION)).tolist() == [2, 3, 4, 5]
    assert np.flatnonzero(cloud.having(Kind.PUNCTUATION)).tolist() == [7, 9]


def test_continuations_and_marks_are_known_without_spans(embedded_transformer: Transformer) -> None:
    texts = [
        "Unbelievably “good”… a ##b, [MASK]ing é!",
        "",
        "x" * 300,
        "日本 don't-stop 🦖🦖",
        "foo[SEP]bar",
    ]
    cloud = embedded_transformer.encode(texts, [0])
    np.testing.assert_array_equal(cloud.places.continued, cloud.places.spans.continued)
    marks = np.flatnonzero(cloud.having(Kind.PUNCTUATION))
    spans = zip(cloud.owner[marks], cloud.start[marks], cloud.end[marks], strict=True)
    assert [bool(kind & Kind.TYPOGRAPHIC) for kind in cloud.kind[marks]] == [
        not set(texts[k][a:b]) <= set(string.punctuation) for k, a, b in spans
    ]


def test_bits_do_not_depend_on_neighbours(embedded_transformer: Transformer) -> None:
    texts = [" ".join(["word", "and", "so", "on"] * k) + f" {k}" for k in range(1, 40)]
    together = embedded_transformer.encode(texts, [4])
    order = np.random.default_rng(0).permutation(len(texts))
    shuffled = embedded_transformer.encode([texts[k] for k in order], [4])
    shapes = set()
    for place, k in enumerate(order):
        mine = together.layers[together.offsets[k] : together.offsets[k + 1]]
        other = shuffled.layers[shuffled.offsets[place] : shuffled.offsets[place + 1]]
        assert torch.equal(mine, other)
        shape = batch_shape(len(mine), 512, 512)
        if shape not in shapes:  # one text of each batch shape is encoded alone, too
            shapes.add(shape)
            assert torch.equal(mine, embedded_transformer.encode([texts[k]], [4]).layers)
    assert len(shapes) > 10


def test_a_long_text_is_windowed_and_averaged(tiny_model: Path) -> None:
    encoder = freight.encoder(str(tiny_model))
    words = ["cat", "dog", "house", "tree", "river", "stone", "cloud"]
    text = " ".join(words[k % 7] for k in range(50))
    cloud = encoder.encode([text, "short"], [2])
    assert cloud.windowed.tolist() == [True, False]
    assert np.diff(cloud.offsets).tolist() == [52, 3]
    model, tokenizer = (
        AutoModel.from_pretrained(tiny_model),
        AutoTokenizer.from_pretrained(tiny_model),
    )
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    total, seen = torch.zeros(50, 16), torch.zeros(50, 1)
    for start in (0, 11, 22, 33):
        window = torch.tensor([[101, *ids[start : start + 22], 102]])
        with torch.inference_mode():
            states = model(window, output_hidden_states=True).hidden_states[2][0]
        part = slice(start, start + window.shape[1] - 2)
        total[part] += states[1:-1]
        seen[part] += 1
        if start == 0:
            torch.testing.assert_close(cloud.layers[0, 0], states[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(cloud.layers[1:51, 0], total / seen, rtol=0, atol=1e-5)


def test_memory_that_runs_out_halves_the_batch(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Transformer(str(tiny_model))
    texts = [f"text number {k}" for k in range(40)]
    expected = encoder.encode(texts, [1])
    forward = Transformer._forward

    def short_of_memory(
        self: Transformer, batch: TokenBatch, layers: Sequence[int]
    ) -> torch.Tensor:
        if len(batch.arrays["input_ids"]) > 8:
            raise torch.OutOfMemoryError("no room")
        return forward(self, batch, layers)

    monkeypatch.setattr(Transformer, "_forward", short_of_memory)
    cloud = encoder.encode(texts, [1])
    assert cloud.halved.all()
    torch.testing.assert_close(cloud.layers, expected.layers, rtol=0, atol=1e-5)


class Deep:
    """An encoder of a name and a depth, to choose a layer of."""

    def __init__(self, name: str, depth: int) -> None:
        self.name, self.depth, self.identity = name, depth, f"{name}@here"

    def encode(self, *_: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("name", BERT_SCORE_LAYERS)
def test_layers_of_well_known_encoders_are_those_of_bert_score(name: str) -> None:
    assert BERT_SCORE_LAYERS[name] == bert_score.utils.model2layers[name]
    for place in (name, f"/models/{name.rpartition('/')[2]}/", f"google-bert/{name}"):
        metric = freight.load("emd", encoder=Deep(place, 48))
        assert metric.parts[0].layers == (BERT_SCORE_LAYERS[name],)
        assert "tuned" not in metric.signature


def test_a_layer_that_nobody_tuned_is_called_a_guess() -> None:
    with pytest.warns(UntunedLayer, match="layer 8 of new-model is two thirds of its depth, not"):
        metric = freight.load("emd", encoder=Deep("new-model", 12))
    assert metric.parts[0].layers == (8,)
    assert "|layers:8 (two thirds of the depth: not tuned)|" in metric.signature
    chosen = freight.load("emd", encoder=Deep("new-model", 12), layer=8)
    assert "|layers:8|" in chosen.signature
    freight.load("bary-score", encoder=Deep("new-model", 12))  # a rule of its own: no warning


def test_a_specification_pickles_and_compares_by_value(tiny_model: Path) -> None:
    encoder = Transformer(str(tiny_model))
    before = encoder.encode(["a cat"], [3]).layers
    again = pickle.loads(pickle.dumps(encoder))
    assert again == encoder
    assert len(pickle.dumps(encoder)) < 1000
    assert torch.equal(again.encode(["a cat"], [3]).layers, before)
    assert encoder.identity.startswith("folder@sha256-")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_near(embedded_transformer: Transformer, dtype: str) -> None:
    half = freight.encoder("embedded", dtype=dtype).encode(TEXTS, [4]).layers
    assert half.dtype == torch.float32
    near = torch.cosine_similarity(half, embedded_transformer.encode(TEXTS, [4]).layers, dim=-1)
    assert near.min() > 0.99


def test_another_tokenizer_is_another_encoder(tiny_model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_model, other)
    assert Transformer(str(other)).version == Transformer(str(tiny_model)).version
    (other / "tokenizer.json").write_text((tiny_model / "tokenizer.json").read_text() + "\n")
    assert Transformer(str(other)).version != Transformer(str(tiny_model)).version


def test_no_texts_make_an_empty_cloud(tiny_model: Path) -> None:
    cloud = Transformer(str(tiny_model)).encode([], [1])
    assert cloud.layers.shape == (0, 1, 16)
    assert cloud.offsets.tolist() == [0]


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    with pytest.raises(freight.InvalidInput, match="no folder"):
        freight.encoder(str(tmp_path / "nowhere")).encode(["a"], [0])
    with pytest.raises(freight.MissingPart, match="could not be loaded"):
        freight.encoder("nobody/nothing").encode(["a"], [0])
    with pytest.raises(freight.InvalidInput, match="float32, bfloat16, float16"):
        freight.encoder("embedded", dtype="float8")
    with pytest.raises(freight.InvalidInput, match="no option speed"):
        freight.encoder("embedded", speed=1)
    with pytest.raises(freight.InvalidInput, match=r"0\.\.6"):
        freight.encoder("embedded").encode(["a"], [7])
    with pytest.raises(freight.InvalidInput, match="device='abacus'; there is auto"):
        freight.encoder("embedded", device="abacus").encode(["a"], [0])
    with pytest.raises(freight.InvalidInput, match="GPUs can be seen; try cpu"):
        freight.encoder("embedded", device="cuda:99").encode(["a"], [0])
