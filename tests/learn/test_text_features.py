"""Texts as rows of one length."""

import numpy as np
import pytest

import freight

TEXTS = ["The cat sat on the mat.", "A dog came by, wet and cold.", ""]


def test_features_are_pooled_points() -> None:
    encoder = freight.encoder("hashed", dim=8)
    metric = freight.load("emd", encoder=encoder, layer=0)
    layers = encoder.encode(TEXTS, [0])
    first = layers.layers[: layers.offsets[1], 0].double().numpy()
    mean = freight.features(metric, TEXTS)
    np.testing.assert_allclose(mean[0], first.mean(axis=0), atol=1e-6)
    assert not mean[2].any()
    spread = freight.features(metric, TEXTS, pool="deviation")
    np.testing.assert_allclose(spread[0, 8:], first.std(axis=0), atol=1e-6)
    powers = freight.features(metric, TEXTS, pool="power-means")
    np.testing.assert_allclose(powers[0, :8], first.min(axis=0), atol=1e-6)
    np.testing.assert_allclose(powers[0, 16:], first.max(axis=0), atol=1e-6)


def test_the_mean_of_a_barycenter_is_that_of_its_layers() -> None:
    bary = freight.load("bary-score", encoder="hashed", layer="all")
    flat = freight.load("emd", encoder="hashed", layer="all", pooling="unit-mean")
    of_bary, of_flat = freight.features(bary, TEXTS), freight.features(flat, TEXTS)
    np.testing.assert_allclose(of_bary, of_flat, atol=1e-5)


def test_what_gives_no_points_is_refused() -> None:
    with pytest.raises(freight.InvalidInput, match="std gives no points"):
        freight.features(freight.load("std", encoder="hashed"), TEXTS)
    with pytest.raises(freight.InvalidInput, match="power-means"):
        freight.features(freight.load("emd", encoder="hashed"), TEXTS, pool="max")
    with pytest.raises(freight.InvalidInput, match="list of texts"):
        freight.features(freight.load("emd", encoder="hashed"), "one text")
