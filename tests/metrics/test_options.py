"""Layers and their joins, words, masses, baselines, presets, read-outs."""

from pathlib import Path
from typing import Any

import bert_score
import numpy as np
import pytest
import torch

import freight
import freight.loss
from freight.encoders import packaged_folder
from freight.interop.rewards import reward
from freight.judge.scores import study_columns

HYPS = ["Unbelievably, the cat sat.", "a dog barked loudly"]
REFS = ["The unbelievable cat was sitting.", "the dogs were barking"]


def loaded(name: str, **parameters: Any) -> freight.Metric:
    metric = freight.load(name, encoder="hashed", **parameters)
    assert isinstance(metric, freight.Metric)
    return metric


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (0, (0,)), (-1, (4,)), ("2", (2,)), ("-2:", (3, 4)), ("all", (1, 2, 3, 4)),
        ("1:3", (1, 2)), (":2", (0, 1)), ([4, 0], (4, 0)), (":", (0, 1, 2, 3, 4)), (None, (3,)),
    ],
)  # fmt: skip
def test_layers_by_number_and_by_slice(layer: Any, expected: tuple[int, ...]) -> None:
    assert loaded("emd", layer=layer).layers == expected


@pytest.mark.parametrize("layer", [5, -6, "5", "-6:", "9:", "last", "", [], [1, 7], "1:1"])
def test_layers_that_are_not_there(layer: Any) -> None:
    with pytest.raises(freight.InvalidInput, match="layer"):
        loaded("emd", layer=layer)


@pytest.mark.parametrize("name", ["lazy-emd", "emd", "bert-score", "f-alpha", "yisi-1"])
def test_every_pooling_is_a_score_of_its_own(name: str) -> None:
    primary = loaded(name).columns[0].name
    seen = {}
    for pooling in ("mean", "unit-mean", "power-means", "barycenter"):
        metric = loaded(name, layer="all", pooling=pooling, idf="ref").fit(
            [*REFS, "the cat", "a dog"]
        )
        seen[pooling] = metric.score(HYPS, REFS)[primary]
    seen["one layer"] = loaded(name).score(HYPS, REFS)[primary]
    for one, values in seen.items():
        assert np.isfinite(values).all()
        for other, others in seen.items():
            assert one == other or np.abs(values - others).max() > 1e-5, (one, other)


def test_poolings_of_one_layer_are_that_layer() -> None:
    plain = loaded("emd", layer=2).score(HYPS, REFS)["transport"]
    for pooling in ("unit-mean", "barycenter"):
        joined = loaded("emd", layer=2, pooling=pooling).score(HYPS, REFS)["transport"]
        np.testing.assert_allclose(joined, plain, atol=1e-6)


def test_under_equal_masses_a_barycenter_is_the_mean_of_the_unit_layers() -> None:
    """A token is nearest to itself in the next layer, so that the plans are the identity."""
    means, barycenters = (
        freight.load("emd", layer="all", pooling=pooling).score(HYPS, REFS)["transport"]
        for pooling in ("unit-mean", "barycenter")
    )
    np.testing.assert_allclose(means, barycenters, atol=1e-6)


def test_words_are_the_means_of_their_tokens() -> None:
    words = freight.load("emd", unit="words").parts[0]
    text = "Unbelievably good, 🦖!"
    cloud = words.encoder.encode([text, "", "one"], [4])
    merged = words.units(cloud)
    pieces = [text[a:b] for a, b in zip(merged.start[:5], merged.end[:5], strict=True)]
    assert pieces == ["Unbelievably", "good", ",", "🦖", "!"]
    assert np.diff(merged.offsets).tolist() == [5, 0, 1]
    torch.testing.assert_close(merged.layers[0], cloud.layers[1:6].mean(dim=0))
    special = freight.load("bert-score", unit="words").parts[0].units(cloud)
    assert np.diff(special.offsets).tolist() == [7, 2, 3]


@pytest.mark.parametrize(
    "name", [n for n in freight.list_metrics() if "punctuation" in freight.parameters(n)]
)
def test_punctuation_is_dropped_on_request(name: str) -> None:
    """As if the marks had never been written; emoji are none."""
    hyps, refs = ["«the cat», (sat) + 🦖…", "a dog - barked, loudly"], ["the cat 🦖", "the - dogs"]
    bare = str.maketrans("", "", "«»,()+-…")
    clean = [[text.translate(bare) for text in side] for side in (hyps, refs)]
    settings = (
        {} if name == "yisi-1" else {"idf": None} if "idf" in freight.parameters(name) else {}
    )
    dropped = freight.load(name, encoder="hashed", punctuation=False, **settings)
    kept = freight.load(name, encoder="hashed", **settings)
    for column, expected in kept.score(*clean).segments.items():
        np.testing.assert_allclose(dropped.score(hyps, refs)[column], expected, atol=1e-6)
    primary = kept.columns[0].name
    assert np.abs(dropped.score(hyps, refs)[primary] - kept.score(hyps, refs)[primary]).max() > 1e-3
    assert "WithoutPunctuation(" in dropped.signature
    assert "WithoutPunctuation(" not in kept.signature


def test_tokens_of_a_real_encoder_lose_their_marks() -> None:
    text = "Don't stop: 50% off!"
    metric = freight.load("bert-score", punctuation=False).parts[0]
    left = metric.units(metric.encoder.encode([text], [4]))
    assert [text[a:b] for a, b in zip(left.start, left.end, strict=True)] == [
        "", "Don", "t", "stop", "50", "off", "",
    ]  # fmt: skip


def test_words_have_idf_of_their_own() -> None:
    metric = freight.load("emd", unit="words", idf="ref").fit([*REFS, "unbelievable"]).parts[0]
    again = metric.units(metric.encoder.encode(REFS, ()))
    weighting: Any = metric.weighting
    table = weighting.idf.table
    assert table(again.ids).tolist() == [2, 2, 1, 1, 1, 1, 2, 1, 1, 1]
    assert metric.score(HYPS, HYPS)["transport"] == pytest.approx([0, 0], abs=1e-6)


def test_norm_mass_is_the_length_of_the_vector() -> None:
    metric = loaded("emd", mass="norm")
    cloud = metric.encoder.encode(HYPS, metric.layers)
    length = cloud.layers[:, 0].double().norm(dim=-1).numpy()
    for k, (first, last) in enumerate(zip(cloud.offsets[:-1], cloud.offsets[1:], strict=True)):
        expected = length[first:last] / length[first:last].sum()
        np.testing.assert_allclose(metric.weighting(cloud).weights[first:last], expected)
        assert k < 2
    both = loaded("emd", mass="norm", idf="ref").fit(REFS).score(HYPS, REFS)["transport"]
    assert np.abs(both - metric.score(HYPS, REFS)["transport"]).max() > 1e-4


def test_baselines_are_those_of_the_package(tmp_path: Path) -> None:
    path = tmp_path / "baseline.tsv"
    path.write_text("LAYER,P,R,F\n0,0,0,0\n4,0.21,0.22,0.23\n")
    package = bert_score.BERTScorer(
        model_type=str(packaged_folder("embedded")), num_layers=4, lang="en",
        rescale_with_baseline=True, baseline_path=str(path), batch_size=1,
    )  # fmt: skip
    package._baseline_vals = torch.tensor([0.21, 0.22, 0.23])
    theirs = package.score(HYPS, REFS)
    for baseline in (str(path), [0.21, 0.22, 0.23]):
        ours = freight.load("bert-score", baseline=baseline).score(HYPS, REFS)
        for column, expected in zip(("precision", "recall", "f1"), theirs, strict=True):
            np.testing.assert_allclose(ours[column], expected.numpy(), atol=1e-5)
    one = loaded("bert-score", baseline=0.5).score(["", "a"], ["a", "a"])
    assert one["f1"].tolist() == pytest.approx([-1.0, 1.0])


@pytest.mark.parametrize("baseline", [1.0, [0.1, 0.2], "nowhere.tsv", -3])
def test_baselines_that_make_no_sense(baseline: Any) -> None:
    with pytest.raises(freight.InvalidInput, match="baseline"):
        loaded("bert-score", baseline=baseline)


@pytest.mark.parametrize(
    "name", [n for n in freight.list_metrics() if "encoder" in freight.parameters(n)]
)
def test_presets_load_and_what_is_set_comes_first(name: str) -> None:
    for preset, settings in freight.presets(name).items():
        by_name = freight.load(name, encoder="hashed", preset=preset)
        assert by_name.signature == freight.load(name, encoder="hashed", **settings).signature
    with pytest.raises(freight.InvalidInput, match="no preset 'best'"):
        freight.load(name, encoder="hashed", preset="best")


def test_former_presets_say_what_to_write_instead() -> None:
    for name, former, now in (
        ("lazy-emd", "paper-zh", {"preset": "paper", "lang": "zh"}),
        ("f-alpha", "paper-zh", {"lang": "zh"}),
        ("bary-score", "plus", {"preset": "last-three-idf"}),
        ("doc-lazy-emd", "held", {"preset": "hard"}),
    ):
        assert former not in freight.presets(name)
        instead = ", ".join(f"{setting}='{value}'" for setting, value in now.items())
        with pytest.warns(FutureWarning, match=f"preset {former} of {name} is {instead} now"):
            same = loaded(name, preset=former)
        assert same.signature == loaded(name, **now).signature


@pytest.mark.parametrize(
    ("lang", "hyp", "ref"),
    [(None, 0.23, 0.31), ("en", 0.23, 0.31), ("zh", 0.018, 0.97), ("de", 0.009, 0.95)],
)
def test_lazy_emd_of_the_paper_is_its_text(lang: str | None, hyp: float, ref: float) -> None:
    metric = loaded("lazy-emd", preset="paper", lang=lang)
    assert metric.problems == (freight.Problem(hyp, ref, 0.009),)
    assert metric.columns[0].name == "transport"
    assert "cut=None" in metric.signature


def test_bary_score_of_the_paper_is_its_text() -> None:
    """All layers, masses by IDF, and the root of the squared distance."""
    metric = loaded("bary-score", preset="paper")
    assert metric.layers == (1, 2, 3, 4)
    assert metric.needs_fitting
    assert "readout:root of the distance|" in metric.signature
    squared = loaded("bary-score", layer="all", idf="ref").fit(REFS)
    both = [one.fit(REFS).score(HYPS, REFS)["distance"] for one in (metric, squared)]
    np.testing.assert_allclose(both[0], np.sqrt(both[1]), rtol=1e-12)
    assert (both[1] > 0.01).all()
    points = np.eye(2)
    rooted = loaded("bary-score", root=True).score_measures([points[:1]], [3 * points[1:]])
    assert rooted["distance"][0] == pytest.approx(np.sqrt(10.0))
    worst = loaded("bary-score").columns[0].worst
    assert metric.columns[0].worst == pytest.approx(np.sqrt(worst))


def test_the_root_of_bary_score_is_explained_in_full() -> None:
    explanation = loaded("bary-score", root=True).explain(HYPS[0], REFS[0])
    view = explanation.views[0]
    total = explanation.base + view.hyp.contributions.sum() + view.ref.contributions.sum()
    assert total == pytest.approx(explanation.score, abs=1e-12)


def test_a_setting_overrides_a_preset() -> None:
    metric = loaded("bary-score", preset="last-three-idf", layer=1)
    assert metric.layers == (1,)
    assert metric.needs_fitting


def test_the_readout_decides_which_reference_wins() -> None:
    refs = [["stock exchange rules", "a dog"]]  # what is unrelated is hardly moved
    hyps = ["a cat"]
    by_objective = freight.load("lazy-emd", layer=-1)
    assert [c.name for c in by_objective.columns] == ["objective", "transport"]
    assert by_objective.score(hyps, refs).winners.tolist() == [1]
    for preset in ("paper", "authors"):
        as_printed = freight.load("lazy-emd", layer=-1, preset=preset)
        assert [c.name for c in as_printed.columns] == ["transport", "objective"]
        assert as_printed.score(hyps, refs).winners.tolist() == [0]


def test_loss_reward_decoding_and_judging_read_what_the_metric_reads() -> None:
    metric = freight.load("lazy-emd", encoder="hashed")
    (primary, *_) = metric.columns
    score = metric.score(HYPS, REFS)[primary.name]
    assert freight.loss.LazyEmd().readout == primary.name
    assert reward(metric)(completions=HYPS, reference=REFS) == (-score).tolist()
    matrix = freight.mbr([HYPS[0], REFS[0]], metric, matrix=True).matrix
    assert matrix is not None
    assert matrix[0, 1] == -score[0]
    judged = study_columns({"lazy-emd": metric})[0]
    assert judged.column == primary


def test_languages_are_the_papers() -> None:
    for lang, hyp, ref in (("en", 0.23, 0.31), ("zh", 0.018, 0.97), ("cs", 0.009, 0.95)):
        assert loaded("lazy-emd", lang=lang).problems == (freight.Problem(hyp, ref, 0.009),)
    for lang, alpha in (("en", 0.48), ("zh", 0.9), ("cs", 0.96)):
        assert f"alpha={alpha}," in loaded("f-alpha", lang=lang).signature


def test_no_similarity_is_flagged() -> None:
    points = np.eye(2)
    result = loaded("bert-score").score_measures([points[:1]], [-points[:1]])
    assert result["f1"][0] == 0.0
    assert result.flags == (("no similarity",),)
    with pytest.raises(freight.InvalidInput, match="alpha=2"):
        loaded("f-alpha", alpha=2)
