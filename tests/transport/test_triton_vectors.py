"""The kernels for vectors give what torch gives, and each vector its own bits."""

import pytest
import torch
from torch.nn.functional import normalize

from freight.core.weightings import end_to_end
from freight.transport.devices import add_states, scale_to_unit_length, vectors_on_device

pytestmark = pytest.mark.gpu


def random(*shape: int) -> torch.Tensor:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).cuda()


def test_directions_have_unit_length() -> None:
    vectors = random(40, 3, 70)
    vectors[2] = 0.0
    unit = scale_to_unit_length(vectors)
    torch.testing.assert_close(unit, normalize(vectors, dim=-1))
    assert torch.equal(scale_to_unit_length(vectors[7:8]), unit[7:8])


def test_standardised_layers_are_those_of_torch() -> None:
    layers, mean, spread = random(40, 3, 70), random(3, 70), random(3, 70).abs() + 0.1
    layers[1] = mean
    made = vectors_on_device().standardise(layers, mean, spread)
    torch.testing.assert_close(made, end_to_end((layers - mean) / spread))
    assert torch.equal(vectors_on_device().standardise(layers[7:8], mean, spread)[0], made[7])


@pytest.mark.parametrize("alone", [True, False])
def test_states_are_put_in_their_place(alone: bool) -> None:
    states, store = random(3, 20, 70).bfloat16(), torch.zeros(9, 3, 70, device="cuda")
    target, position = (torch.tensor(x, device="cuda") for x in ([4, 1, 7], [0, 13, 5]))
    add_states(store, states, target, position, alone=alone)
    expected = torch.zeros_like(store)
    expected[target] = states[:, position].transpose(0, 1).float()
    assert torch.equal(store, expected)
