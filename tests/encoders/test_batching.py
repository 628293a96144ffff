"""The fixed table of batch shapes: little padding, no more tokens than there is room for."""

import numpy as np
import pytest

from freight.encoders.batching import batch_shape, plan_padded_batches


@pytest.mark.parametrize("budget", [1, 256, 512, 4096])
def test_shapes_are_tight(budget: int) -> None:
    for length in range(1, 513):
        rows, rounded = batch_shape(length, 512, budget)
        assert length <= rounded <= 512
        assert rounded - length < max(8, length / 8)
        assert 1 <= rows <= 32
        assert rows == 1 or rows * rounded <= budget


def test_there_are_few_shapes() -> None:
    assert len({batch_shape(length, 512, 512) for length in range(1, 513)}) <= 40


def test_a_window_may_be_of_any_length() -> None:
    assert batch_shape(300, 299, 512).length == 300
    assert batch_shape(61, 62, 512).length == 62


def test_a_shape_depends_on_the_length_alone() -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 200, 3000)
    seen = np.zeros(len(lengths), int)
    for shape, chosen in plan_padded_batches(lengths, 512, 512):
        assert {batch_shape(int(x), 512, 512) for x in lengths[chosen]} == {shape}
        assert len(chosen) <= shape.rows
        seen[chosen] += 1
    assert (seen == 1).all()
