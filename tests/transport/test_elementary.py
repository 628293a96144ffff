"""exp and log over arrays, beside numpy's."""

import numpy as np
import pytest

from freight.transport.elementary import column_sums, exp_in_place, log_in_place, row_sums


@pytest.mark.parametrize("size", [1, 7, 23, 24, 100, 511, 513, 5000])
def test_exp_and_log_are_right_to_the_last_bits(size: int) -> None:
    rng = np.random.default_rng(size)
    for spread in (1e-9, 1.0, 690.0):
        x = rng.uniform(-spread, spread, size)
        y = x.copy()
        exp_in_place(y)
        np.testing.assert_allclose(y, np.exp(x), rtol=4e-16)
        positive = np.exp(x)
        z = positive.copy()
        log_in_place(z)
        np.testing.assert_allclose(z, np.log(positive), rtol=4e-16, atol=0)


@pytest.mark.parametrize("size", [3, 30])
def test_exp_stays_a_number(size: int) -> None:
    x = np.array([-1e5, 1e5, 0.0] * (size // 3))
    exp_in_place(x)
    assert np.isfinite(x).all()
    assert (x > 0).all()
    assert x[2] == 1.0


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 4), (9, 21), (30, 17)])
def test_sums(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    matrix, columns, rows = (
        rng.uniform(size=shape),
        rng.uniform(size=shape[1]),
        rng.uniform(size=shape[0]),
    )
    out = np.empty(shape[0])
    row_sums(matrix, columns, out)
    np.testing.assert_allclose(out, matrix @ columns)
    out = np.empty(shape[1])
    column_sums(matrix, rows, out)
    np.testing.assert_allclose(out, rows @ matrix)
