"""Losses equal their metrics up to epsilon, ignore padding, and have correct, finite gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import freight
from freight.core.metric import Metric
from freight.errors import InvalidInput
from freight.loss import BaryScore, Emd, Freight, LazyEmd, Loss, WrdScore

MAKERS: dict[str, Callable[[], Loss]] = {
    "lazy": LazyEmd,
    "lazy transport": lambda: LazyEmd(readout="transport"),
    "lazy exact": lambda: LazyEmd(epsilon=0),
    "emd": Emd,
    "emd exact": lambda: Emd(0),
    "wrd": WrdScore,
    "bary": BaryScore,
    "bary with epsilon": lambda: BaryScore(0.05),
    "freight": Freight,
    "freight with epsilon": lambda: Freight(epsilon=0.02),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
TEXTS = [
    ("the boy in a coat", "the young man in a slicker"),
    ("a stock exchange", "the exchange of a stock in Tokyo"),
    ("the old man", "the old man"),
]


def states(loss: Loss, n: int = 5, m: int = 4, rows: int = 3, seed: int = 0) -> tuple[Tensor, ...]:
    """Rows (row, unit, 6) that are somewhat alike, in two layers where the loss takes layers."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(rows, max(n, m), 6))
    sides = [base[:, :k] + 0.7 * rng.normal(size=(rows, k, 6)) for k in (n, m)]
    if loss.layers:
        sides = [x[:, None] + 0.3 * rng.normal(size=(rows, 2, *x.shape[1:])) for x in sides]
    return tuple(torch.tensor(x) for x in sides)


def masks() -> tuple[Tensor, Tensor]:
    sizes = torch.tensor([5, 2, 1]), torch.tensor([4, 3, 1])
    return torch.arange(5) < sizes[0][:, None], torch.arange(4) < sizes[1][:, None]


def per_row(loss: Loss) -> Loss:
    loss.reduction = "none"
    return loss


def test_lazy_emd_is_the_metric() -> None:
    hyp, ref = states(LazyEmd())
    there, due = masks()
    metric = freight.load("lazy-emd", encoder="hashed").parts[0]
    rows = [x[k].numpy() for x, k in zip(hyp, there, strict=True)]
    result = metric.score_measures(rows, [y[k].numpy() for y, k in zip(ref, due, strict=True)])
    for readout in ("objective", "transport"):
        loss = LazyEmd(readout=readout, reduction="none")(hyp, ref, there, due)
        np.testing.assert_allclose(loss, result[readout], atol=1e-8)


def test_emd_exceeds_the_metric_by_epsilon_at_most() -> None:
    hyp, ref = states(Emd())
    metric = freight.load("emd", encoder="hashed").parts[0]
    exact = metric.score_measures(list(hyp.numpy()), list(ref.numpy()))["transport"]
    np.testing.assert_allclose(Emd(0, "none")(hyp, ref), exact, atol=1e-12)
    for epsilon, seen in ((0.3, 1e-3), (0.009, -1e-9)):
        over = Emd(epsilon, "none")(hyp, ref).numpy() - exact
        assert (over >= -1e-9).all()
        assert (over <= epsilon * np.log(4)).all()
        assert over.max() > seen, "a large epsilon shows"


def test_wrd_score_converges_to_the_metric_as_epsilon_goes_to_0() -> None:
    hyp, ref = states(WrdScore())
    sides = [[(x, np.linalg.norm(x, axis=-1)) for x in side.numpy()] for side in (hyp, ref)]
    exact = 1 - freight.load("wrd-score", encoder="hashed").parts[0].score_measures(*sides)["f1"]
    off = [
        np.abs(WrdScore(epsilon, reduction="none")(hyp, ref).numpy() - exact).max()
        for epsilon in (0.3, 0.009, 0.001)
    ]
    assert off[0] > 0.02 > off[1] > off[2]
    assert off[2] < 1e-4


def encoded(metric: Metric, texts: list[str]) -> tuple[Tensor, Tensor]:
    """States (text, layer, token, dim) of the layers that a metric takes, and their mask."""
    cloud = metric.units(metric.encoder.encode(texts, metric.layers))
    parts = np.split(cloud.layers.numpy(), cloud.offsets[1:-1])
    padded = torch.zeros(len(parts), parts[0].shape[1], 9, parts[0].shape[2])
    mask = torch.zeros(len(parts), 9, dtype=torch.bool)
    for row, part in enumerate(parts):
        padded[row, :, : len(part)] = torch.tensor(part).transpose(0, 1)
        mask[row, : len(part)] = True
    return padded, mask


def test_bary_score_and_freight_are_their_metrics() -> None:
    hyps, refs = map(list, zip(*TEXTS, strict=True))
    bary, house = (
        freight.load(name, encoder="hashed").parts[0] for name in ("bary-score", "freight")
    )
    weighting: Any = house.weighting
    for metric, loss in ((bary, BaryScore()), (house, Freight(pooling=weighting.pooling))):
        (hyp, there), (ref, due) = encoded(metric, hyps), encoded(metric, refs)
        losses = per_row(loss)(hyp, ref, there, due).double().numpy()
        score = metric.score(hyps, refs)[metric.columns[0].name]
        wanted = score if metric is bary else -np.log(score)
        np.testing.assert_allclose(losses, wanted, atol=2e-6)
        assert wanted.max() > 0.1


@every
@pytest.mark.parametrize("left", [False, True], ids=["right", "left and holes"])
def test_padding_changes_nothing(make: Callable[[], Loss], left: bool) -> None:
    loss = per_row(make())
    hyp, ref = states(loss)
    there, due = masks()
    wide = (*hyp.shape[:-2], 9, 6)
    place = torch.tensor([1, 3, 4, 6, 8]) if left else torch.arange(5)
    padded = torch.full(wide, torch.nan, dtype=torch.float64).index_copy(-2, place, hyp)
    mask = torch.zeros(3, 9, dtype=torch.long).index_copy(1, place, there.long())
    values, gradients = [], []
    for x, kept in ((hyp, there), (padded, mask)):
        x.requires_grad_()
        value = loss(x, ref, kept, due)
        (gradient,) = torch.autograd.grad(value.sum(), x)
        values.append(value.detach())
        gradients.append(gradient)
    torch.testing.assert_close(*values, rtol=0, atol=1e-10)
    torch.testing.assert_close(gradients[1].index_select(-2, place), gradients[0])
    outside = [k for k in range(9) if k not in place.tolist()]
    assert (gradients[1][..., outside, :] == 0).all()
    for row, kept in enumerate(there):
        alone = [(x[row][None][..., k, :]) for x, k in ((hyp, kept), (ref, due[row]))]
        torch.testing.assert_close(loss(*alone)[0], values[0][row], rtol=0, atol=1e-9)


@every
def test_gradients_match_finite_differences(make: Callable[[], Loss]) -> None:
    loss = per_row(make())
    loss.tolerance = 1e-13
    given = states(loss, 4, 3, rows=2, seed=1)
    hyp, ref = (x[..., :4].clone().requires_grad_() for x in given)
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 1]])

    def value(x: Tensor, y: Tensor) -> Tensor:
        values: Tensor = loss(x, y, mask)
        return values

    assert torch.autograd.gradcheck(value, (hyp, ref), eps=1e-5, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("make", [LazyEmd, Emd, WrdScore])
def test_weights_have_gradients_and_no_scale(make: Callable[[], Loss]) -> None:
    loss = per_row(make())
    loss.tolerance = 1e-13
    hyp, ref = states(loss, 4, 3, rows=2)
    mass = torch.tensor(np.random.default_rng(2).exponential(size=(2, 4))).requires_grad_()

    def value(weights: Tensor) -> Tensor:
        values: Tensor = loss(hyp, ref, hyp_weights=weights)
        return values

    torch.testing.assert_close(value(7.0 * mass), value(mass))
    assert (value(mass) - loss(hyp, ref)).abs().min() > 1e-4
    assert torch.autograd.gradcheck(value, (mass,), eps=1e-5, atol=1e-4, rtol=1e-3)


def test_a_barycenter_of_unequal_masses_is_differentiated_through() -> None:
    loss = BaryScore(reduction="none")
    hyp, ref = (x.requires_grad_() for x in states(loss, 4, 3, rows=2, seed=3))
    mass = torch.tensor(np.random.default_rng(4).exponential(size=(2, 4)))
    layers = torch.nn.functional.normalize(hyp.detach(), dim=-1)
    points = freight.barycenter(layers, mass).points
    assert (points - layers.mean(1)).abs().max() > 0.05, "these plans are not the identity"
    other = freight.barycenter(torch.nn.functional.normalize(ref.detach(), dim=-1)).points
    even = [np.full((2, k), 1 / k) for k in (4, 3)]
    cost = torch.cdist(points, other).square()
    wanted = freight.solve(freight.Problem(), cost, *even).transport
    torch.testing.assert_close(loss(hyp, ref, hyp_weights=mass).detach(), wanted)

    def value(x: Tensor, y: Tensor) -> Tensor:
        values: Tensor = loss(x, y, hyp_weights=mass)
        return values

    assert torch.autograd.gradcheck(value, (hyp, ref), eps=1e-6, atol=1e-5, rtol=1e-3)


@every
def test_close_texts_have_the_gradients_of_finite_differences(make: Callable[[], Loss]) -> None:
    """Each unit has one counterpart: the plan falls into as many parts as there are units."""
    loss = per_row(make())
    loss.tolerance = 1e-13
    hyp, _ = states(loss, 4, 4, rows=2, seed=5)
    ref = hyp + 0.05 * torch.tensor(np.random.default_rng(6).normal(size=tuple(hyp.shape)))

    def value(x: Tensor) -> Tensor:
        values: Tensor = loss(x, ref.flip(-2))
        return values

    assert torch.autograd.gradcheck(value, hyp.requires_grad_(), eps=1e-6, atol=1e-5, rtol=1e-3)


@every
def test_odd_rows_have_finite_gradients(make: Callable[[], Loss]) -> None:
    loss = per_row(make())
    hyp, ref = (x.float() for x in states(loss, 4, 4, rows=6))
    there, due = torch.ones(6, 4, dtype=torch.bool), torch.ones(6, 4, dtype=torch.bool)
    ref[0] = hyp[0]
    hyp[1] = 0.0
    hyp[2, ..., 1, :] = ref[2, ..., 1, :] = 0.0
    ref[3] = hyp[3] = hyp[3, ..., :1, :].clone()
    there[4], due[4] = torch.arange(4) < 1, torch.arange(4) < 1
    there[5] = False
    for x in (hyp, ref):
        x.requires_grad_()
    value = loss(hyp, ref, there, due)
    value.sum().backward()
    for x in (hyp, ref):
        assert x.grad is not None
        assert x.grad.isfinite().all()
        assert x.grad.abs().max() < 1e3
        assert (x.grad[5] == 0).all()
    assert value[5] == 0
    assert value.isfinite().all()
    assert (value[:5] >= -1e-6).all()


@every
def test_a_batch_of_empty_rows_has_loss_0(make: Callable[[], Loss]) -> None:
    loss = make()
    hyp, ref = states(loss)
    hyp.requires_grad_()
    value = loss(hyp, ref, torch.zeros(3, 5, dtype=torch.bool))
    value.backward()
    assert value == 0
    assert hyp.grad is not None
    assert (hyp.grad == 0).all()


def test_reductions() -> None:
    hyp, ref = states(LazyEmd())
    there, due = masks()
    there[1] = False
    rows = LazyEmd(reduction="none")(hyp, ref, there, due)
    assert rows.shape == (3,)
    torch.testing.assert_close(LazyEmd(reduction="sum")(hyp, ref, there, due), rows.sum())
    torch.testing.assert_close(LazyEmd()(hyp, ref, there, due), rows.sum() / 2)


@every
def test_half_precision_is_single_inside(make: Callable[[], Loss]) -> None:
    loss = make()
    hyp, ref = (x.bfloat16() for x in states(loss))
    hyp.requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(hyp, ref)
    value.backward()
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, loss(hyp.float(), ref.float()))
    assert hyp.grad is not None
    assert hyp.grad.dtype == torch.bfloat16
    assert hyp.grad.abs().max() > 0


@every
@pytest.mark.parametrize("device", DEVICES)
def test_without_a_gradient_and_elsewhere_it_is_the_same(
    make: Callable[[], Loss], device: str
) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    loss = make()
    hyp, ref = states(loss)
    wanted = loss(hyp.requires_grad_(), ref).detach()
    there = (x.detach().to(device).float() for x in (hyp, ref))
    value = loss(*there)
    assert value.device.type == device
    torch.testing.assert_close(value.cpu().double(), wanted, rtol=0, atol=2e-5)


def test_transport_falls_again_for_distant_words() -> None:
    angle = torch.tensor([0.3, 1.0, 1.5, 3.0])
    hyp = torch.stack((angle.cos(), angle.sin()), -1)[:, None]
    ref = torch.tensor([1.0, 0.0]).expand(4, 1, 2)
    transport = LazyEmd(readout="transport", reduction="none")(hyp, ref)
    objective = LazyEmd(reduction="none")(hyp, ref)
    assert transport[1] > transport[3], "the most expensive match transports the least"
    assert (objective.diff() > 0).all()


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda x, y: LazyEmd(reduction="max"), "mean, sum, none"),
        (lambda x, y: LazyEmd(readout="flow"), "objective, transport"),
        (lambda x, y: WrdScore(epsilon=0), "positive epsilon"),
        (lambda x, y: LazyEmd()(x[0], y), "hyp_states has shape"),
        (lambda x, y: LazyEmd()(x[:, None], y), "hyp_states has shape"),
        (lambda x, y: LazyEmd()(x.long(), y), "floating"),
        (lambda x, y: LazyEmd()(x[:2], y), "differ in rows"),
        (lambda x, y: LazyEmd()(x, y[..., :3]), "differ in rows"),
        (lambda x, y: LazyEmd()(x, y, torch.ones(3, 4)), "hyp_mask has shape"),
        (lambda x, y: LazyEmd()(x, y, torch.ones(3, 5)), "hyp_mask holds"),
        (lambda x, y: LazyEmd()(x, y, ref_weights=-torch.ones(3, 4)), "row 0"),
        (lambda x, y: LazyEmd()(x, y / 0), "ref_states is not finite in row 0"),
        (
            lambda x, y: BaryScore()(x, y, hyp_weights=torch.ones(3, 5, requires_grad=True)),
            "detach",
        ),
    ],
)
def test_refusals_name_culprit_and_cure(
    attempt: Callable[[Tensor, Tensor], object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        attempt(*states(LazyEmd()))


def test_it_is_reached_from_the_package_and_prints_its_settings() -> None:
    assert freight.loss.LazyEmd is LazyEmd
    assert "loss" in dir(freight)
    assert "hyp=0.23" in repr(LazyEmd())
