"""The metric `freight` and the stages that only it has."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

import freight
from freight.core import costs
from freight.core.costs import PointPairs
from freight.core.types import Kind
from freight.core.weightings import Standardised, sentences
from freight.encoders import PACKAGED, adapters
from freight.encoders.adapters import read_adapter, shipped_adapter

HYPS = ["the cat sat on the mat", "a dog barked loudly .", "he said nothing", "one"]
REFS = ["a cat was sitting on the mat", "the dog was barking .", "he did not speak", "three"]


def pairs(hyp: torch.Tensor, ref: torch.Tensor, sizes: tuple[list[int], list[int]]) -> PointPairs:
    masses = [np.ones(side.shape[:2]) / side.shape[1] for side in (hyp, ref)]
    counts = [np.array(size) for size in sizes]
    which = np.arange(len(hyp))
    return PointPairs(
        which, masses[0], masses[1], counts[0], counts[1], np.zeros(len(hyp)), (hyp, ref)
    )


def random_pairs(seed: int = 0) -> PointPairs:
    rng = np.random.default_rng(seed)
    hyp, ref = (torch.as_tensor(rng.normal(size=(2, 5, 8)) + 1.0) for _ in range(2))
    return pairs(hyp, ref, ([5, 3], [4, 5]))


def test_scores_lie_between_0_and_1_and_identical_texts_get_1() -> None:
    metric = freight.load("freight")
    result = metric.score([*HYPS, *REFS, "", "a"], [*REFS, *REFS, "a", "a"])["score"]
    assert (result >= 0.0).all()
    assert (result <= 1.0).all()
    np.testing.assert_allclose(result[4:8], 1.0, atol=1e-4)  # the plan is entropic
    assert result[8] == 0.0
    assert result[:4].max() < 0.95


def test_the_upper_half_of_the_layers_is_taken() -> None:
    assert freight.load("freight").parts[0].layers == (3, 4, 5, 6)
    assert freight.load("freight", encoder="hashed").parts[0].layers == (2, 3, 4)
    assert freight.load("freight", encoder="distilled").parts[0].layers == (0,)
    assert freight.load("freight", layer=2).parts[0].layers == (2,)


@pytest.mark.parametrize(
    "setting",
    [
        {"hyp": 0.2},
        {"ref": 0.2},
        {"greedy": 0.0},
        {"recall": 1.0},
        {"neighbours": 0.0},
        {"floor": 0.9},
        {"pooling": "unit-mean"},
        {"mass": "norm"},
        {"unit": "words"},
        {"layer": 1},
    ],
    ids=str,
)
def test_every_knob_changes_the_score(setting: dict[str, Any]) -> None:
    hyps, refs = ["the jumbled-up cats slept"], ["cats that were jumbled up had slept"]
    scores = [freight.load("freight", **s).score(hyps, refs)["score"][0] for s in ({}, setting)]
    assert abs(scores[0] - scores[1]) > 1e-5


def test_the_cost_is_the_logarithm_of_the_cosine_down_to_a_floor() -> None:
    given = random_pairs()
    assert given.points is not None
    hyp, ref = given.points
    expected = cosine_similarity(hyp[:, :, None], ref[:, None], dim=-1).clamp(0.3, 1.0)
    torch.testing.assert_close(torch.exp(-costs.LogCosine(0.3)(given)), expected)


def test_neighbours_are_averaged_where_both_sides_have_one() -> None:
    given = random_pairs()
    plain = costs.LogCosine(0.05)(given)
    averaged = costs.Neighbours(costs.LogCosine(0.05), 0.25)(given)
    for k, (n, m) in enumerate(zip(given.hyp_sizes, given.ref_sizes, strict=True)):
        for i in range(n):
            for j in range(m):
                beside = [(i + d, j + d) for d in (-1, 1) if 0 <= i + d < n and 0 <= j + d < m]
                total = plain[k, i, j] + 0.25 * sum(plain[k, a, b] for a, b in beside)
                assert averaged[k, i, j] == pytest.approx(float(total / (1 + 0.25 * len(beside))))


def test_standardised_cosines_are_means_over_layers_with_no_mean_left() -> None:
    encoder = freight.encoder("embedded")
    standard = Standardised(encoder, (2, 5))
    cloud = encoder.encode(sentences(), (2, 5))
    layers = cloud.layers[~cloud.having(Kind.SPECIAL)].double()
    scaled = (layers - layers.mean(dim=0)) / layers.std(dim=0, correction=0)
    each = cosine_similarity(scaled[:1], scaled[1:7], dim=-1).mean(dim=-1)
    points = standard(layers.float())
    together = cosine_similarity(points[:1], points[1:7], dim=-1)
    np.testing.assert_allclose(together, each, atol=1e-5)


def test_order_of_words_counts() -> None:
    metric = freight.load("freight")
    same, turned = metric.score(["man bites dog"] * 2, ["man bites dog", "dog bites man"])["score"]
    assert same - turned > 0.1


def test_the_preset_for_summaries_forgives_what_the_reference_does_not_have() -> None:
    ref = "The bridge is closed."
    hyps = ["The bridge is closed, and ships wait in the harbour.", "The bridge is"]
    plain, recall = (
        freight.load("freight", **given).score(hyps, [ref] * 2)["score"]
        for given in ({}, {"preset": "recall"})
    )
    assert plain[0] < plain[1]
    assert recall[0] > max(0.8, recall[1])


def test_greedy_matching_weighs_both_sides_as_told() -> None:
    hyps, refs = ["the cat slept on"], ["cats had slept"]

    def distance(recall: float) -> float:
        scores = freight.load("freight", greedy=1.0, recall=recall).score(hyps, refs)["score"]
        return -float(np.log(scores[0]))

    precision, recall = distance(0.0), distance(1.0)
    assert precision != recall
    assert distance(0.25) == pytest.approx(0.75 * precision + 0.25 * recall)
    assert distance(0.5) == pytest.approx((precision + recall) / 2)


SHIPPED = sorted((Path(adapters.__file__).parent / "shipped").glob("*.safetensors"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_adapters_are_small_and_say_where_they_come_from(path: Path) -> None:
    assert path.stat().st_size <= 300_000
    adapter = read_adapter(path.stem)
    assert adapter == read_adapter(path)
    assert (adapter.name, adapter.metric) == ("freight-da", "freight")
    assert path.stem == f"freight-da.{adapter.encoder}"
    assert {"data", "seed", "licence", "tests", "held_out"} <= set(adapter.provenance)
    assert all(one["rows"] and len(one["sha256"]) == 64 for one in adapter.provenance["data"])
    trained_on = {one["name"] for one in adapter.provenance["data"]}
    assert not trained_on & {one["set"].split()[0] for one in adapter.provenance["tests"]}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_adapters_are_for_the_weights_in_the_packages(path: Path) -> None:
    adapter = read_adapter(path.stem)
    if not PACKAGED[adapter.encoder].is_installed:
        pytest.skip(f"{adapter.encoder} is not installed")
    packaged = freight.encoder(adapter.encoder, device="cpu")
    assert shipped_adapter("freight-da", packaged) == adapter


def test_every_packaged_encoder_has_an_adapter() -> None:
    assert {path.stem.removeprefix("freight-da.") for path in SHIPPED} == set(PACKAGED)


def test_the_trained_metric_is_the_default_one_with_its_adapter() -> None:
    hyps, refs = ["A cat sat.", "He went home."], ["The cat is sitting.", "He goes to bed."]
    trained = freight.load("freight-da")
    scores = trained.score(hyps, refs)["score"]
    adapted = freight.load("freight", adapter="freight-da.embedded")
    assert scores.tolist() == adapted.score(hyps, refs)["score"].tolist()
    assert scores.tolist() != freight.load("freight").score(hyps, refs)["score"].tolist()
    assert trained.signature == adapted.signature.replace("freight|", "freight-da|", 1)
    lighter = freight.load("freight-da", greedy=0.1)
    assert "LazyAndGreedy(greedy=0.1,recall=0.5)" in lighter.signature
    assert trained.explain(hyps[0], refs[0]).score == scores[0]


@pytest.mark.parametrize("encoder", ["distilled", "tiny"])
def test_an_encoder_without_a_shipped_adapter_is_refused(encoder: str, tiny_model: Path) -> None:
    name = str(tiny_model) if encoder == "tiny" else encoder
    known = ", ".join(path.stem.removeprefix("freight-da.") for path in SHIPPED)
    with pytest.raises(freight.InvalidInput, match=f"for {known}, not for") as error:
        freight.load("freight-da", encoder=name)
    assert "\n" not in str(error.value)
