"""BERT without `transformers`: the same hidden states, the same tokens, and none of its imports."""

import json
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer, BertConfig, BertForMaskedLM

from freight.encoders import packaged_folder
from freight.encoders.batching import BatchShape, make_packed_batch, split_into_windows
from freight.encoders.bert import Bert
from freight.encoders.bert import BertConfig as OurConfig
from freight.encoders.tokenizer import Tokenizer, open_tokenizer
from freight.encoders.transformer import Transformer, hidden_states
from freight.errors import MissingPart

ODD_TEXTS = [
    "",
    "  Unbelievably good, 🦖!  ",
    "Naïve CAFÉ — déjà-vu… “quoted” don't",
    "你好，世界 mixed with 漢字 and カタカナ",
    "[CLS] written out [SEP] and [MASK] [UNK] ##ing",
    "tabs\tand\nlines\r\nand\u00a0spaces\u200bof all\u2003kinds",
    "e\u0301 combining \u0337 marks, İstanbul, ﬁne ligature, Ⅷ",
    "x" * 150 + " " + "ab" * 60,
    "control \x00\x07\x1b characters and \ufffd",
    " ".join(["long"] * 700),
]


def folder_of(name: str, tiny_model: Path) -> Path:
    return tiny_model if name == "tiny" else packaged_folder("embedded")


def padded_batch(rows: int, length: int) -> dict[str, torch.Tensor]:
    drawn = torch.Generator().manual_seed(rows)
    mask = torch.ones(rows, length, dtype=torch.long)
    for row in range(rows):
        mask[row, max(1, length - 3 * row) :] = 0
    ids = torch.randint(0, 30_000, (rows, length), generator=drawn)
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["embedded", "tiny"])
def test_states_of_every_layer_are_those_of_transformers(
    name: str, dtype: torch.dtype, tiny_model: Path
) -> None:
    folder = folder_of(name, tiny_model)
    config = OurConfig.read(folder)
    assert config is not None
    ours, theirs = Bert.load(folder, config, dtype), AutoModel.from_pretrained(folder, dtype=dtype)
    layers = list(range(config.num_hidden_layers + 1))
    for shape in ((1, 8), (5, 24), (32, 16)):
        inputs = padded_batch(*shape)
        inside = inputs["attention_mask"].bool()
        with torch.inference_mode():
            expected = theirs(**inputs, output_hidden_states=True).hidden_states
        states = hidden_states(ours, inputs, layers)
        for layer in layers:
            torch.testing.assert_close(
                states[layer][inside], expected[layer][inside], rtol=0, atol=1e-6
            )
        assert torch.equal(hidden_states(ours, inputs, [2, 0]), states[[2, 0]])


def test_packed_texts_have_the_states_of_padded_ones(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With attention inside the bounds, written out, since the kernel for it needs a GPU."""

    def attend(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bounds: Any, longest: int
    ) -> torch.Tensor:
        parts = [
            torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
            for first, last in pairwise(bounds.tolist())
            for q, k, v in [[side[:, :, first:last] for side in (query, key, value)]]
        ]
        assert longest == max(part.shape[2] for part in parts)
        return torch.cat(parts, 2).transpose(1, 2)

    monkeypatch.setattr("freight.encoders.bert.attend_packed", attend)
    encoder = Transformer(str(tiny_model))
    tokens = encoder._tokenizer(["A cat sat.", "one", "Nobody knows why, though."])
    windows = split_into_windows(tokens.ids, tokens.offsets, encoder._tokenizer.special, 24)
    batch = make_packed_batch(BatchShape(1, 40), windows, np.arange(3), 0, 16, "bert")
    arrays = {name: torch.as_tensor(array) for name, array in batch.arrays.items()}
    longest = int(np.diff(batch.arrays["cu_seq_lens_q"]).max())
    states = hidden_states(encoder._model, {**arrays, "max_length_q": longest}, [0, 2, 3])
    expected = encoder.encode(tokens, [0, 2, 3]).layers
    packed = states[:, 0, batch.position].transpose(0, 1)
    torch.testing.assert_close(packed, expected[windows.units[batch.source]], rtol=0, atol=1e-6)


def test_parameters_have_the_names_of_transformers(tiny_model: Path) -> None:
    ours = Transformer(str(tiny_model))._model
    theirs = AutoModel.from_pretrained(tiny_model).state_dict()
    expected = {name for name in theirs if not name.startswith("pooler.")}
    assert isinstance(ours, Bert)
    assert {name for name, _ in ours.named_parameters()} == expected
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.state_dict().items())


def test_gradients_reach_the_parameters(tiny_model: Path) -> None:
    model = Transformer(str(tiny_model))._model
    bias = model.get_parameter("encoder.layer.0.output.dense.bias").requires_grad_(True)
    model(**padded_batch(2, 8), layers=[1, 3])[1].square().sum().backward()
    assert bias.grad is not None
    assert bias.grad.abs().sum() > 0


@pytest.mark.parametrize("name", ["embedded", "tiny"])
def test_tokens_are_those_of_transformers(name: str, tiny_model: Path) -> None:
    folder = folder_of(name, tiny_model)
    ours, loaded = open_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    assert ours is not None
    theirs = Tokenizer(loaded.backend_tokenizer, loaded.unk_token_id, loaded.pad_token_id)
    assert (ours.special, ours.padding) == (theirs.special, theirs.padding)
    one, other = ours(ODD_TEXTS), theirs(ODD_TEXTS)
    for part in ("offsets", "ids", "unit_ids", "kind"):
        assert np.array_equal(getattr(one, part), getattr(other, part)), part
    for mine, expected in zip(one.places.spans, other.places.spans, strict=True):
        assert np.array_equal(mine, expected)
    for k, text in enumerate(ODD_TEXTS):
        ids = loaded(text.strip(), truncation=False, padding=False, verbose=False)["input_ids"]
        assert one.ids[one.offsets[k] : one.offsets[k + 1]].tolist() == ids


def test_settings_that_contradict_the_tokenizer_are_left_to_transformers(
    tiny_model: Path, tmp_path: Path
) -> None:
    folder = copy_of(tiny_model, tmp_path)
    change_json(folder / "tokenizer_config.json", do_lower_case=False)
    assert open_tokenizer(folder) is None
    tokens = Transformer(str(folder))._tokenizer(["A cat"])
    assert tokens.ids.tolist() == AutoTokenizer.from_pretrained(folder)("A cat")["input_ids"]


@pytest.mark.parametrize(
    "other",
    [
        {"model_type": "electra"},
        {"position_embedding_type": "relative_key"},
        {"hidden_act": "silu"},
        {"is_decoder": True},
    ],
)
def test_other_models_are_left_to_transformers(
    other: dict[str, Any], tiny_model: Path, tmp_path: Path
) -> None:
    folder = copy_of(tiny_model, tmp_path)
    assert OurConfig.read(folder) is not None
    change_json(folder / "config.json", **other)
    assert OurConfig.read(folder) is None


def test_weights_of_a_model_with_a_head_are_read(tmp_path: Path) -> None:
    """Their names have a prefix, and in old files norms have gamma and beta."""
    torch.manual_seed(0)
    settings = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=24,
    )  # fmt: skip
    BertForMaskedLM(settings).save_pretrained(tmp_path)
    config = OurConfig.read(tmp_path)
    assert config is not None
    weights = tmp_path / "model.safetensors"
    stored = load_file(weights)
    assert "bert.embeddings.LayerNorm.weight" in stored
    current = Bert.load(tmp_path, config, torch.float32).state_dict()
    norms = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    for new, old in norms.items():
        stored = {name.replace(new, old): tensor for name, tensor in stored.items()}
    save_file(stored, weights)
    old_style = Bert.load(tmp_path, config, torch.float32).state_dict()
    assert all(torch.equal(tensor, old_style[name]) for name, tensor in current.items())


def test_weights_that_do_not_fit_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    folder = copy_of(tiny_model, tmp_path)
    change_json(folder / "config.json", num_hidden_layers=4)
    with pytest.raises(MissingPart, match=r"no parameter 'encoder\.layer\.3\."):
        Transformer(str(folder)).encode(["a"], [0])
    change_json(folder / "config.json", num_hidden_layers=3, max_position_embeddings=512)
    with pytest.raises(MissingPart, match=r"positions \(24, 16\), unlike config\.json"):
        Transformer(str(folder)).encode(["a"], [0])
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(MissingPart, match="could not be read"):
        Transformer(str(folder)).encode(["a"], [0])


def test_the_embedded_encoder_does_not_import_transformers() -> None:
    code = """
import sys, freight
freight.load("lazy-emd").score(["A cat sat."], ["The cat sat down."]).signature
heavy = {"transformers", "scipy", "sympy", "torch._dynamo"} & {*sys.modules}
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def copy_of(model: Path, parent: Path) -> Path:
    folder = parent / "copy"
    shutil.copytree(model, folder)
    return folder


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
