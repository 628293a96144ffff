"""The kernels for vectors give what torch gives, and each vector its own bits."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from freight.core.weightings import end_to_end
from freight.transport.barycenters import packed_barycenters
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


@pytest.mark.parametrize("spread", [0.1, 0.6, 1.0, 2.0])
def test_points_keep_their_units_only_where_nothing_is_cheaper(spread: float) -> None:
    """Barycenters of equal masses: the mean over the layers, where that is proved, else matched."""
    units = normalize(random(40 * 12, 1, 6) + spread * random(40 * 12, 3, 6).flip(0), dim=-1)
    offsets, mass = np.arange(0, 481, 12), np.full(480, 1 / 12)
    kept = vectors_on_device().keep_their_units(
        units, units.mean(1), offsets[:-1], np.diff(offsets)
    )
    points, settled = packed_barycenters(units, offsets, mass)
    expected, _ = packed_barycenters(units.cpu().double(), offsets, mass)
    far = (expected - units.mean(1).cpu()).abs().reshape(40, -1).amax(1).numpy()
    assert settled.all()
    assert not far[kept].max(initial=0.0) > 1e-6
    assert kept.any() or spread > 0.5
    assert not kept.all() or spread < 0.5
    np.testing.assert_allclose(points.cpu(), expected, atol=1e-6)


def test_of_long_texts_nothing_is_proved() -> None:
    layers = normalize(random(200, 2, 8), dim=-1)
    kept = vectors_on_device().keep_their_units(
        layers, layers.mean(1), np.array([0, 5]), np.array([200, 3])
    )
    assert not kept[0]


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
