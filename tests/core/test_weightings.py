"""Masses and points of measures, worked out by hand."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

import freight
from clouds import SPECIAL, cloud
from freight.core import weightings
from freight.core.flags import FlagKind
from freight.core.idf import Frequencies, Idf
from freight.core.metric import measures_of_points
from freight.core.types import Cloud, Measures, NestedMeasures
from freight.core.weightings import (
    MOMENTS,
    Barycenter,
    Mass,
    Moments,
    Sentences,
    Standardised,
    Windows,
    measures,
)
from freight.encoders import EMBEDDED, PACKAGED
from freight.encoders.adapters import Adapter, weights_of
from freight.encoders.cache import MemoryCached
from freight.encoders.transformer import Transformer
from freight.transport import barycenters
from sharing import need_encoder

TEXTS = cloud(["[CLS] a b", "a"], [[[9.0, 0.0], [3.0, 4.0], [0.0, 15.0]], [[1.0, 0.0]]],
              kinds=[[SPECIAL, 0, 0], [0]], pieces=[["[CLS]", "a", "b"], ["a"]])  # fmt: skip


def test_uniform_mass_leaves_special_tokens_without_any() -> None:
    result = Mass()(TEXTS)
    assert result.weights.tolist() == [0.0, 0.5, 0.5, 1.0]
    assert result.empty.tolist() == [False, False]
    assert Mass(special=True)(TEXTS).weights[:3].tolist() == pytest.approx([1 / 3] * 3)


def test_norm_mass_is_proportional_to_the_length_of_the_vector() -> None:
    assert Mass(by="norm")(TEXTS).weights.tolist() == [0.0, 0.25, 0.75, 1.0]


def test_a_function_of_ones_own_gives_the_mass() -> None:
    def first_coordinate(units: Cloud, points: torch.Tensor) -> Any:
        return points[:, 0].double().numpy()

    assert Mass(by=first_coordinate)(TEXTS).weights.tolist() == [0.0, 1.0, 0.0, 1.0]


def test_idf_mass_is_the_logarithm_of_rarity() -> None:
    table = Frequencies.of([TEXTS])  # a in both texts, b and [CLS] in one
    weights = Mass(Idf(table))(TEXTS).weights
    assert weights.tolist() == [0.0, 0.0, 1.0, 1.0]  # log(3 / 3) = 0 for a
    one_added = Mass(Idf(table, one_added=True))(TEXTS).weights
    a, b = math.log(2.0), math.log(1.0 + 3.0 / 2.0)
    np.testing.assert_allclose(one_added[1:3], [a / (a + b), b / (a + b)])


def test_a_text_whose_idf_is_all_0_is_uniform_and_flagged() -> None:
    result = Mass(Idf(Frequencies.of([TEXTS])))(TEXTS)
    assert [[flag.kind for flag in flags] for flags in result.flags] == [[], [FlagKind.IDF_EMPTY]]


def test_a_metric_is_fitted_once_it_has_a_table() -> None:
    mass = Mass(Idf())
    with pytest.raises(freight.InvalidInput, match="not fitted"):
        mass(TEXTS)
    table = Frequencies.of([TEXTS])
    fitted = mass.fitted(table)
    assert fitted.idf is not None
    assert fitted.idf.table is table
    assert Mass().fitted(table) == Mass()


def test_windows_have_weighted_means_and_summed_masses() -> None:
    texts = cloud(["a b c", "a"], [[[1.0, 0.0], [0.0, 1.0], [4.0, 0.0]], [[1.0, 0.0]]])
    result = Windows(Mass(by="norm"), 2)(texts)  # masses 1/6, 1/6, 4/6
    np.testing.assert_allclose(result.points.numpy(), [[0.5, 0.5], [3.2, 0.2], [1.0, 0.0]])
    np.testing.assert_allclose(result.weights, [2 / 7, 5 / 7, 1.0])
    assert result.extent.tolist() == [[0, 1], [1, 2], [3, 3]]


def test_sentences_weigh_as_much_as_their_words() -> None:
    texts = cloud(["a b. c"], [[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    result = Sentences(Mass())(texts)
    assert isinstance(result, NestedMeasures)
    np.testing.assert_allclose(result.weights, [2 / 3, 1 / 3])
    np.testing.assert_allclose(result.points.numpy(), [[0.5, 0.5], [1.0, 1.0]])
    assert result.parts.weights.tolist() == [0.5, 0.5, 1.0]


def test_the_barycenter_of_equal_layers_is_the_layer_scaled_to_unit_length() -> None:
    texts = cloud(["a b"], [[[2.0, 0.0], [0.0, 3.0]]])
    layers = texts.layers.repeat(1, 3, 1)
    several = Cloud(**{**vars(texts), "layers": layers})
    result = Barycenter(Mass())(several)
    np.testing.assert_allclose(result.points.numpy(), [[1.0, 0.0], [0.0, 1.0]], atol=1e-12)
    assert result.weights.tolist() == [0.5, 0.5]


def test_a_plain_function_is_a_weighting() -> None:
    def longer_words(units: Cloud) -> Measures:
        return measures(units, (units.end - units.start).astype(float))

    metric: Any = freight.load("emd", encoder="hashed")
    own = type(metric)(**{**vars(metric), "name": "own", "weighting": longer_words})
    assert not own.needs_fitting
    assert own.fit(["a"]) == own
    texts = cloud(["aaa b"], [[[1.0, 0.0], [0.0, 1.0]]])
    assert longer_words(texts).weights.tolist() == [0.75, 0.25]
    assert own.score(["a bee"], ["a bee"])["transport"][0] == pytest.approx(0.0, abs=1e-6)
    assert own.score(["a bee"], ["a"])["transport"][0] == pytest.approx(
        0.75 * metric.score(["bee"], ["a"])["transport"][0], abs=1e-6
    )
    assert (
        own.explain("a bee", "a").scores["transport"] == own.score(["a bee"], ["a"])["transport"][0]
    )
    assert "weighting:longer_words" in own.signature


def test_points_of_ones_own_are_checked() -> None:
    point = np.ones((1, 2))
    assert measures_of_points([(np.ones((2, 2)), [1.0, 3.0])]).weights.tolist() == [0.25, 0.75]
    for wrong, message in (
        ([np.full((1, 2), np.nan)], "finite"),
        ([(point, [-1.0])], "none < 0"),
        ([(point, [0.0])], "all 0"),
        ([point, np.ones((1, 3))], "same dimension"),
    ):
        with pytest.raises(freight.InvalidInput, match=message):
            measures_of_points(wrong)


def test_barycenters_from_inner_products_settle_where_units_are_close() -> None:
    """As on a GPU; two units differ by less than single precision tells of their products."""
    generator = torch.Generator().manual_seed(0)
    layers = torch.randn(4, 5, 24, 32, generator=generator)
    layers[:, :, 1] = layers[:, :, 0] + 1e-4 * torch.randn(4, 5, 32, generator=generator)
    layers = torch.nn.functional.normalize(layers, dim=-1)
    texts, units = np.arange(4), np.zeros((4, 24), np.int64)
    batches = [
        barycenters._SameSize(texts[k : k + 1], units[k : k + 1] + k, torch.zeros(1), one[None])
        for k, one in enumerate(layers)
    ]
    rows = np.full(4, 1 / 24)
    exact = list(barycenters._exact(batches, rows))
    for (same, (points, settled)), (_, (expected, _)) in zip(
        barycenters._mixed(batches, rows), exact, strict=True
    ):
        assert settled.all()
        assert points.shape == same.layers.shape[:1] + same.layers.shape[2:]
        np.testing.assert_allclose(points, expected, atol=1e-6)


@pytest.fixture
def unable(unshared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No encoder can encode."""

    def refuse(*arguments: object, **options: object) -> Cloud:
        raise AssertionError("something was encoded")

    monkeypatch.setattr(Transformer, "encode", refuse)


def test_the_shipped_moments_are_those_of_the_encoder(unshared: None) -> None:
    pooling = Standardised(freight.encoder(EMBEDDED, device="cpu"), (0, 3, 6))
    shipped = pooling._shipped()
    assert shipped is not None
    for own, measured in zip(shipped, pooling.measure(), strict=True):
        assert own.shape == measured.shape
        torch.testing.assert_close(own, measured, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PACKAGED)
def test_every_encoder_in_a_package_has_moments_of_all_its_layers(name: str, unable: None) -> None:
    need_encoder(name)
    encoder = freight.encoder(name, device="cpu")
    moments = Standardised(encoder, tuple(range(encoder.depth + 1)))._moments
    removed = 8 if name == "multilingual" else 0
    assert moments.mean.shape == moments.spread.shape
    assert moments.directions.shape == (encoder.depth + 1, removed, moments.mean.shape[1])
    assert bool((moments.spread > 0).all())


def test_a_cache_and_an_adapter_change_no_moments(unable: None) -> None:
    plain = Transformer(EMBEDDED, device="cpu")
    own = Standardised(plain, (4,))._moments
    for other in (MemoryCached(plain), replace(plain, adapter=some_adapter(plain))):
        assert all(map(torch.equal, Standardised(other, (4,))._moments, own))


def some_adapter(encoder: Transformer) -> Adapter:
    differences = {"encoder.layer.0.output.dense.bias": torch.ones(384)}
    return Adapter("a", "freight", encoder.name, encoder.weights_hash, differences)


def test_reduced_precision_and_other_encoders_have_moments_of_their_own() -> None:
    halved = freight.encoder(EMBEDDED, device="cpu", dtype="bfloat16")
    for encoder in (halved, freight.encoder("hashed")):
        assert Standardised(encoder, (0,))._shipped() is None


def test_moments_on_other_sentences_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pooling = Standardised(freight.encoder(EMBEDDED, device="cpu"), (4,))
    assert pooling._shipped() is not None
    other = tmp_path / "sentences.txt"
    other.write_text("One.\n")
    monkeypatch.setattr(weightings, "SENTENCES", other)
    assert pooling._shipped() is None


def test_the_file_of_moments_holds_nothing_else() -> None:
    with safe_open(MOMENTS, framework="pt") as stored:
        names = {*stored.keys()}
    assert len(names) == len(PACKAGED) * len(Moments._fields)
    weights = weights_of(freight.encoder(EMBEDDED))
    assert {f"{weights}/{part}" for part in Moments._fields} <= names
    assert MOMENTS.stat().st_size < 400 * 1024
