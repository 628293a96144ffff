"""Free-support barycenters, from the points and from their inner products, beside POT's."""

import numpy as np
import ot
import pytest

import freight
from freight.transport.barycenters import barycenter_coefficients
from problems import Floats


def layers(texts: int, depth: int, size: int, dim: int, seed: int = 0) -> Floats:
    """Layers of an encoder: each a rotation and a shift of the one before, with noise."""
    rng = np.random.default_rng(seed)
    stack = [rng.normal(size=(texts, size, dim))]
    for _ in range(depth - 1):
        stack.append(0.9 * stack[-1] + 0.4 * rng.normal(size=(texts, size, dim)))
    points = np.stack(stack, axis=1)
    unit: Floats = points / np.linalg.norm(points, axis=-1, keepdims=True)
    return unit


def objective(points: Floats, stack: Floats, mass: Floats) -> float:
    uniform = np.full(len(points), 1 / len(points))
    return float(np.mean([ot.emd2(uniform, mass, ot.dist(points, layer)) for layer in stack]))


@pytest.mark.parity
@pytest.mark.parametrize("uniform", [True, False])
def test_pot_from_the_same_start_is_no_better(uniform: bool) -> None:
    rng = np.random.default_rng(1)
    stack = layers(4, 5, 12, 16)
    mass = np.full((4, 12), 1 / 12) if uniform else rng.dirichlet(np.ones(12), 4)
    result = freight.barycenter(stack, mass)
    for k in range(4):
        theirs = ot.lp.free_support_barycenter(
            list(stack[k]), [mass[k]] * 5, stack[k].mean(axis=0), stopThr=1e-14, numItermax=1000
        )
        ours = objective(result.points[k], stack[k], mass[k])
        assert result.objective[k] == pytest.approx(ours, abs=1e-10)
        assert ours <= objective(theirs, stack[k], mass[k]) + 1e-9


def test_identical_layers_are_their_own_barycenter() -> None:
    one = layers(3, 1, 7, 5)
    result = freight.barycenter(np.repeat(one, 4, axis=1))
    np.testing.assert_allclose(result.points, one[:, 0], atol=1e-14)
    np.testing.assert_allclose(result.objective, 0, atol=1e-14)


def test_the_result_is_a_fixed_point() -> None:
    stack, rng = layers(1, 5, 9, 6)[0], np.random.default_rng(2)
    mass = rng.dirichlet(np.ones(9))
    points = freight.barycenter(stack, mass).points
    uniform = np.full(9, 1 / 9)
    moved = np.mean([9 * ot.emd(uniform, mass, ot.dist(points, x)) @ x for x in stack], axis=0)
    assert ((moved - points) ** 2).sum() < 1e-12


def test_the_order_of_units_does_not_matter() -> None:
    stack, rng = layers(1, 5, 11, 8, seed=3)[0], np.random.default_rng(3)
    mass, order = rng.dirichlet(np.ones(11)), rng.permutation(11)
    one = freight.barycenter(stack, mass)
    other = freight.barycenter(stack[:, order], mass[order])
    np.testing.assert_allclose(other.points, one.points[order], atol=1e-9)
    assert other.objective == pytest.approx(one.objective, abs=1e-12)


def test_padding_and_batch_change_nothing() -> None:
    stack = layers(3, 4, 10, 6, seed=4)
    rng, sizes = np.random.default_rng(5), np.array([10, 4, 7])
    mass = rng.dirichlet(np.ones(10), 3)
    stack[1, :, 4:] = np.nan
    mass[1, 4:] = np.nan
    together = freight.barycenter(stack, mass, sizes)
    for k, size in enumerate(sizes):
        alone = freight.barycenter(stack[k, :, :size], mass[k, :size])
        np.testing.assert_allclose(together.points[k, :size], alone.points, atol=1e-12)
        assert together.objective[k] == pytest.approx(alone.objective, abs=1e-12)


def test_one_iteration_is_not_enough_and_raises() -> None:
    rng = np.random.default_rng(6)
    stack, mass = layers(2, 5, 12, 6, seed=6), rng.dirichlet(np.ones(12), 2)
    with pytest.raises(freight.NotConverged, match="2 of 2"):
        freight.barycenter(stack, mass, max_iterations=1)
    assert not freight.barycenter(stack, mass, max_iterations=1, strict=False).converged.any()


def test_two_points_meet_halfway() -> None:
    """The barycenter of two clouds on a line is made of the midpoints of their sorted points."""
    stack = np.array([[[0.0], [10.0]], [[12.0], [4.0]]])
    # The unit-wise means are 6 and 7: the first point is matched to 0 and 4, the second to 10, 12.
    result = freight.barycenter(stack)
    np.testing.assert_allclose(result.points, [[2.0], [11.0]])
    assert result.objective == pytest.approx(((2.0**2 + 2.0**2) / 2 + (1.0 + 1.0) / 2) / 2)


@pytest.mark.parametrize("weighed", [False, True])
def test_barycenters_from_inner_products_are_those_from_the_points(weighed: bool) -> None:
    random = np.random.default_rng(1)
    texts, depth, size, dim = 12, 4, 9, 16
    points = random.normal(size=(texts, 1, size, dim)) + random.normal(
        scale=0.6, size=(texts, depth, size, dim)
    )
    weights = (
        random.dirichlet(np.ones(size), texts) if weighed else np.full((texts, size), 1 / size)
    )
    if weighed:
        weights[0, 2] = 0.0
        weights[0] /= weights[0].sum()
    expected = freight.barycenter(points, weights)
    flat = points.reshape(texts, depth * size, dim)
    coefficients, converged = barycenter_coefficients(flat @ flat.swapaxes(1, 2), weights)
    assert converged.all()
    np.testing.assert_allclose(coefficients @ flat, expected.points, atol=1e-5)
    np.testing.assert_allclose(coefficients.sum(axis=2), 1.0, atol=1e-6)


def test_inner_products_that_are_not_finite_do_not_converge() -> None:
    _, converged = barycenter_coefficients(np.full((1, 4, 4), np.nan), np.full((1, 2), 0.5))
    assert not converged.any()
