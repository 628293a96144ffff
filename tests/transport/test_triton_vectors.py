"""The kernels for vectors give what torch gives, and each vector its own bits."""

import pytest
import torch
from torch.nn.functional import normalize

from freight.core.weightings import end_to_end
from freight.transport.devices import add_states, vectors_on_device

pytestmark = pytest.mark.gpu


def random(*shape: int) -> torch.Tensor:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).cuda()


def test_cosines_are_those_of_torch() -> None:
    points, others = random(90, 70), random(80, 70).flip(0)
    points[3] = 0.0
    first = torch.tensor([[0, 5, 7, 20], [5, 1, 13, 70]]).cuda()
    second = torch.tensor([[40, 0, 9, 3], [3, 6, 20, 77]]).cuda()
    hyp, ref = (points, first, 80), (others, second, 96)
    made = vectors_on_device().cosines(hyp, ref)
    assert made.shape == (4, 80, 96)
    for k in range(4):
        x, y = points[first[0, k] :][: first[1, k]], others[second[0, k] :][: second[1, k]]
        expected = normalize(x, dim=-1) @ normalize(y, dim=-1).mT
        torch.testing.assert_close(made[k, : len(x), : len(y)], expected, atol=2e-6, rtol=0)
        assert not made[k, len(x) :].any()
    alone = vectors_on_device().cosines((points, first[:, 3:], 80), (others, second[:, 3:], 96))
    assert torch.equal(alone[0], made[3])


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
