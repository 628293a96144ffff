import numpy as np
import ot
import pytest

import freight


def layers(texts: int, depth: int, size: int, dim: int, seed: int = 0) -> np.ndarray:
    """Layers of an encoder: each a rotation and a shift of the one before, with noise."""
    rng = np.random.default_rng(seed)
    stack = [rng.normal(size=(texts, size, dim))]
    for _ in range(depth - 1):
        stack.append(0.9 * stack[-1] + 0.4 * rng.normal(size=(texts, size, dim)))
    points = np.stack(stack, axis=1)
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def objective(points: np.ndarray, stack: np.ndarray, mass: np.ndarray) -> float:
    uniform = np.full(len(points), 1 / len(points))
    return float(np.mean([ot.emd2(uniform, mass, ot.dist(points, layer)) for layer in stack]))


@pytest.mark.parity
@pytest.mark.parametrize("uniform", [True, False])
def test_pot_from_the_same_start_is_no_better(uniform: bool) -> None:
    rng = np.random.default_rng(1)
    stack = layers(4, 5, 12, 16)
    mass = np.full((4, 12), 1 / 12) if uniform else rng.dirichlet(np.ones(12), 4)
    found = freight.barycenter(stack, mass)
    for k in range(4):
        theirs = ot.lp.free_support_barycenter(
            list(stack[k]), [mass[k]] * 5, stack[k].mean(axis=0), stopThr=1e-14, numItermax=1000
        )
        ours = objective(found.points[k], stack[k], mass[k])
        assert found.objective[k] == pytest.approx(ours, abs=1e-10)
        assert ours <= objective(theirs, stack[k], mass[k]) + 1e-9


def test_identical_layers_are_their_own_barycentre() -> None:
    one = layers(3, 1, 7, 5)
    found = freight.barycenter(np.repeat(one, 4, axis=1))
    np.testing.assert_allclose(found.points, one[:, 0], atol=1e-14)
    np.testing.assert_allclose(found.objective, 0, atol=1e-14)


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


def test_one_iteration_is_not_enough_and_is_said() -> None:
    rng = np.random.default_rng(6)
    stack, mass = layers(2, 5, 12, 6, seed=6), rng.dirichlet(np.ones(12), 2)
    with pytest.raises(freight.NotConverged, match="2 of 2"):
        freight.barycenter(stack, mass, max_iterations=1)
    assert not freight.barycenter(stack, mass, max_iterations=1, strict=False).converged.any()
