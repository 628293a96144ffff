"""Barycentres out of inner products are those out of the points."""

import numpy as np
import pytest

import freight
from freight.transport.barycenters import mixtures


@pytest.mark.parametrize("weighed", [False, True])
def test_mixtures_are_the_barycentres(weighed: bool) -> None:
    random = np.random.default_rng(1)
    texts, depth, size, dim = 12, 4, 9, 16
    layers = random.normal(size=(texts, 1, size, dim)) + random.normal(
        scale=0.6, size=(texts, depth, size, dim)
    )
    weights = (
        random.dirichlet(np.ones(size), texts) if weighed else np.full((texts, size), 1 / size)
    )
    if weighed:
        weights[0, 2] = 0.0
        weights[0] /= weights[0].sum()
    expected = freight.barycenter(layers, weights)
    flat = layers.reshape(texts, depth * size, dim)
    shares, settled = mixtures(flat @ flat.swapaxes(1, 2), weights)
    assert settled.all()
    np.testing.assert_allclose(shares @ flat, expected.points, atol=1e-5)
    np.testing.assert_allclose(shares.sum(axis=2), 1.0, atol=1e-6)


def test_what_is_not_finite_does_not_settle() -> None:
    _, settled = mixtures(np.full((1, 4, 4), np.nan), np.full((1, 2), 0.5))
    assert not settled.any()
