"""Adapters: what is added to an encoder's weights, the file that holds it, and what is refused."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModel

import freight
from freight.encoders.adapters import adapter_of, with_adapter, without_adapter
from freight.encoders.cache import MemoryCached
from freight.learn import Adapter, read_adapter
from made_adapters import made_adapter, transformer

HYPS = ["A cat sat on the mat.", "Nobody came to the station."]
REFS = ["The cat is sitting on a mat.", "There was no one at the station."]


def vectors(encoder: Any) -> torch.Tensor:
    layers: torch.Tensor = encoder.encode(HYPS, [1, 3]).layers
    return layers


def test_the_vectors_are_those_of_the_changed_model(tiny_model: Path, tmp_path: Path) -> None:
    adapter = made_adapter(tiny_model)
    model = AutoModel.from_pretrained(tiny_model)
    for name, parameter in model.named_parameters():
        if name in adapter.tensors:
            parameter.data += adapter.tensors[name].float()
    model.save_pretrained(tmp_path)
    for file in tiny_model.glob("*token*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    changed = vectors(freight.encoder(str(tmp_path)))
    assert torch.equal(vectors(with_adapter(str(tiny_model), adapter)), changed)
    assert not torch.allclose(vectors(freight.encoder(str(tiny_model))), changed)


def test_a_pair_of_factors_is_a_difference_of_low_rank(tiny_model: Path) -> None:
    name = "encoder.layer.1.intermediate.dense.weight"
    torch.manual_seed(0)
    left, right = torch.randn(32, 2).half(), torch.randn(2, 16).half()
    factors = made_adapter(tiny_model)
    low = Adapter(
        "low", "freight", "tiny", factors.weights, {f"{name}.a": left, f"{name}.b": right}
    )
    model = AutoModel.from_pretrained(tiny_model)
    before = dict(model.named_parameters())[name].clone()
    low.scaled(0.5).apply(model)
    after = dict(model.named_parameters())[name]
    torch.testing.assert_close(after - before, 0.5 * (left.float() @ right.float()))


def test_a_file_holds_what_is_in_memory(tiny_model: Path, tmp_path: Path) -> None:
    adapter = made_adapter(tiny_model, provenance={"seed": 3, "data": [{"name": "x", "rows": 5}]})
    file = adapter.save(tmp_path / "made" / "mine")
    assert file == tmp_path / "made/mine/adapter.safetensors"
    for source in (file, file.parent, str(file.parent), adapter):
        read = read_adapter(source)
        assert read == adapter
        assert hash(read) == hash(adapter)
        assert read.provenance == adapter.provenance
        assert {name: t.tolist() for name, t in read.tensors.items()} == {
            name: t.tolist() for name, t in adapter.tensors.items()
        }
    assert file.read_bytes() == adapter.save(tmp_path / "again.safetensors").read_bytes()
    scores = [
        freight.load("freight", encoder=str(tiny_model), adapter=one).score(HYPS, REFS)["score"]
        for one in (adapter, file.parent)
    ]
    assert scores[0].tolist() == scores[1].tolist()
    copied = pickle.loads(pickle.dumps(with_adapter(str(tiny_model), adapter)))
    assert copied == with_adapter(str(tiny_model), adapter)


def test_strength_leads_from_the_untrained_metric_to_the_trained_one(tiny_model: Path) -> None:
    adapter, name = made_adapter(tiny_model), str(tiny_model)
    plain = freight.load("freight", encoder=name)
    none = freight.load("freight", encoder=name, adapter=adapter.scaled(0))
    assert plain.score(HYPS, REFS)["score"].tolist() == none.score(HYPS, REFS)["score"].tolist()
    half, full = (
        freight.load("freight", encoder=name, adapter=adapter.scaled(s)) for s in (0.5, 1.0)
    )
    assert "LogCosine(floor=0.075" in half.signature
    assert "LogCosine(floor=0.1)" in full.signature
    assert "layers:1,2|" in full.signature
    assert "layers:1,2|" in half.signature
    scores = [one.score(HYPS, REFS)["score"] for one in (plain, half, full)]
    assert len({tuple(one.tolist()) for one in scores}) == 3
    own = freight.load("freight", encoder=name, adapter=adapter, floor=0.2, layer=3)
    assert "LogCosine(floor=0.2)" in own.signature
    assert "layers:3|" in own.signature


def test_signature_and_cache_tell_adapters_apart(tiny_model: Path, tmp_path: Path) -> None:
    adapter, name = made_adapter(tiny_model), str(tiny_model)
    plain = freight.with_cache(name, str(tmp_path))
    adapted = with_adapter(plain, adapter)
    assert adapter_of(adapted) == adapter
    assert adapter_of(plain) is None
    assert without_adapter(adapted) == plain
    first = vectors(plain)
    assert not torch.allclose(vectors(adapted), first)
    assert torch.equal(vectors(adapted), vectors(with_adapter(name, adapter)))
    assert torch.equal(vectors(plain), first)
    remembered = with_adapter(MemoryCached(freight.encoder(name)), adapter)
    assert torch.equal(vectors(remembered), vectors(adapted))
    signatures = {
        freight.load("bert-score", layer=1, encoder=name).signature,
        freight.load(
            "bert-score", layer=1, encoder=with_adapter(name, adapter.scaled(0.5))
        ).signature,
        freight.load("bert-score", layer=1, encoder=with_adapter(name, adapter)).signature,
    }
    assert len(signatures) == 3
    assert f"+mine-{adapter.digest[:8]}/" in max(signatures, key=lambda one: "+mine-" in one)


def test_an_adapter_works_at_half_precision(tiny_model: Path) -> None:
    adapter = made_adapter(tiny_model)
    exact, rounded = (
        vectors(freight.encoder(str(tiny_model), adapter=adapter, dtype=dtype))
        for dtype in ("float32", "bfloat16")
    )
    np.testing.assert_allclose(rounded, exact, atol=0.1)
    assert not torch.equal(rounded, exact)


def test_explanations_are_those_of_the_trained_metric(tiny_model: Path) -> None:
    metric = freight.load("freight", encoder=str(tiny_model), adapter=made_adapter(tiny_model))
    explained = metric.explain(HYPS[0], REFS[0])
    assert explained.scores["score"] == metric.score(HYPS[:1], REFS[:1])["score"][0]


@pytest.mark.parametrize(
    ("metric", "settings", "message"),
    [
        ("freight", {}, "the adapter mine is for tiny .weights .*not for embedded .weights 53aa"),
        ("freight", {"encoder": "hashed"}, "mine is for tiny, and hashed.* has no weights"),
        ("wmd", {"encoder": "distilled"}, "mine is for tiny, and distilled has no weights"),
        ("chrf", {}, "chrf has no encoder that the adapter mine could change"),
    ],
)
def test_an_adapter_for_another_encoder_is_refused(
    tiny_model: Path, metric: str, settings: dict[str, Any], message: str
) -> None:
    adapter = made_adapter(tiny_model, parameters={})
    with pytest.raises(freight.InvalidInput, match=message) as error:
        freight.load(metric, adapter=adapter, **settings)
    assert "\n" not in str(error.value)


def test_settings_of_another_metric_are_refused(tiny_model: Path) -> None:
    adapter, name = made_adapter(tiny_model), str(tiny_model)
    with pytest.raises(freight.InvalidInput, match=r"for freight, not for bert-score: .*'floor'"):
        freight.load("bert-score", encoder=name, adapter=adapter)
    fits = made_adapter(tiny_model, parameters={"layer": 2})
    assert "layers:2|" in freight.load("bert-score", encoder=name, adapter=fits).signature
    loading = made_adapter(tiny_model, parameters={"encoder": "elsewhere"})
    with pytest.raises(freight.InvalidInput, match="sets 'encoder', which it cannot set"):
        freight.load("freight", encoder=name, adapter=loading)


def test_files_that_are_no_adapters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(freight.InvalidInput, match=r"there is no adapter .*nowhere; give a folder"):
        read_adapter(tmp_path / "nowhere")
    other, text = tmp_path / "other.safetensors", tmp_path / "text.safetensors"
    text.write_text("hello")
    with pytest.raises(freight.InvalidInput, match=r"text.safetensors is no adapter"):
        read_adapter(text)
    one = {"x": torch.ones(2)}
    save_file(one, other)
    with pytest.raises(freight.InvalidInput, match="do not say what it was fitted on"):
        read_adapter(other)
    save_file(one, other, {"freight": json.dumps({"name": "x"})})
    with pytest.raises(freight.InvalidInput, match=r"other.safetensors is no adapter"):
        read_adapter(other)
    said: dict[str, Any] = {"name": "x", "metric": "freight", "encoder": "e", "weights": "0" * 64}
    save_file({"x": torch.tensor([np.nan])}, other, {"freight": json.dumps(said)})
    with pytest.raises(freight.InvalidInput, match="not finite"):
        read_adapter(other)
    with pytest.raises(freight.InvalidInput, match="no name of an adapter"):
        Adapter(**{**said, "name": "a|b"}, tensors={})
    with pytest.raises(freight.InvalidInput, match="strength=-1"):
        Adapter(**said, tensors={}, strength=-1.0)


def test_a_parameter_that_the_encoder_lacks_is_named(tiny_model: Path) -> None:
    weights = transformer(tiny_model).weights_hash
    adapter = Adapter("odd", "freight", "tiny", weights, {"pooler.nothing": torch.ones(3)})
    with pytest.raises(freight.InvalidInput, match=r"odd changes pooler.nothing \(3,\)"):
        vectors(with_adapter(str(tiny_model), adapter))
