"""A score is placed where its scale was measured, and nowhere else."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import freight
import scale
from freight.core.scale import AgreementRate, Scale, find_scale, scale_key, shuffle_references

ROOT = Path(__file__).parents[2]
SCALES = json.loads(files("freight.core").joinpath("scale.json").read_text("utf-8"))["scales"]
STEPS = (0.0, 25.0, 50.0, 75.0, 100.0)
MADE = Scale(
    higher=True,
    texts="made",
    steps=STEPS,
    unrelated=(0.1, 0.2, 0.3),
    near=(0.9, 0.95, 0.99),
    typical=(0.0, 0.5, 0.6, 0.7, 1.0),
    systems=(0.4, 0.5, 0.7),
    unrelated_system=0.2,
    is_mean=True,
    agreement=(100.0, 50.0, 200.0, 300.0, 400.0),
)


def test_percentiles_are_read_off_between_steps() -> None:
    assert MADE.better_than(0.6) == 0.5
    assert MADE.better_than(0.55) == pytest.approx(0.375)
    assert MADE.better_than(2.0) == 1.0
    lower = Scale(**{**vars(MADE), "higher": False})
    assert lower.better_than(0.55) == pytest.approx(0.625)


def test_the_sentence() -> None:
    assert MADE.describe(0.64) == (
        "0.64: better than 60 % of WMT system outputs; unrelated texts: 0.20,"
        " one word different: 0.95"
    )
    assert "and 2 of 3 WMT systems;" in MADE.describe(0.65, 100)
    corpus = Scale(**{**vars(MADE), "is_mean": False, "unrelated_system": 0.15})
    assert corpus.describe(0.65, 8) == "0.65: unrelated texts: 0.15"
    assert corpus.describe(0.65, 500) == (
        "0.65: better than 2 of 3 WMT systems; unrelated texts: 0.15"
    )


def test_agreement_grows_with_difference_and_segments() -> None:
    none, small, large = (MADE.agree(x, 300) for x in (0.0, 0.01, -0.03))
    assert none == (0.5, 0.5, 0.5)
    assert small is not None
    assert large is not None
    assert small.value == pytest.approx(1 / (1 + np.exp(-1 / np.sqrt(2))))
    assert small.low < small.value < small.high < large.high
    fewer = MADE.agree(0.01, 20)
    assert fewer is not None
    assert fewer.value < small.value
    assert MADE.agree(0.01, 400) == MADE.agree(0.01, 4000), "more were not measured"
    assert MADE.agree(float("nan"), 300) is None
    assert str(small) == "59–80 %"
    assert str(MADE.agree(1.0, 300)) == "> 99 %"
    assert str(AgreementRate(0.99, 0.987, 0.999)) == "99 %"


def test_a_scale_is_for_its_settings_alone() -> None:
    metric = freight.load("freight")
    known = find_scale(metric.signature, "score")
    assert known is not None
    assert known.unrelated[1] < known.typical[12] < known.near[1]
    assert find_scale(metric.signature, "other") is None
    for other in (
        freight.load("freight", layer=5),
        freight.load("freight", encoder="hashed"),
        freight.load("lazy-emd", hyp=0.5),
        freight.load("freight", references="mean"),
    ):
        assert find_scale(other.signature, other.columns[0].name) is None


def test_what_moves_no_percentile_is_no_setting() -> None:
    signature = freight.load("freight").signature
    elsewhere = signature.replace("/float32/on:", "/bfloat16/on:cuda/packed/9").split("|")
    elsewhere[1] = elsewhere[1].partition("9cpu")[0]
    assert scale_key("|".join(elsewhere)) == scale_key(signature)
    assert scale_key(signature.replace("version:0.1.0", "version:9.9.9")) == scale_key(signature)
    assert scale_key(signature.replace("53aa51172d14", "53aa51172d15")) != scale_key(signature)
    fitted = [freight.load("yisi-1").fit(texts).signature for texts in (["a cat"], ["a", "dog"])]
    assert fitted[0] != fitted[1]
    assert scale_key(fitted[0]) == scale_key(fitted[1])
    assert find_scale(fitted[0], "f") is not None
    reordered = freight.load("lazy-emd", column="transport")
    assert find_scale(reordered.signature, "objective") is not None


def test_scores_of_several_references_have_no_scale() -> None:
    metric = freight.load("bert-score")
    one = metric.score(["A cat sat."], ["A cat sat down."])
    assert one.scale is not None
    assert one.meaning.startswith(f"{one.system['f1']:.2f}: better than ")
    assert one.meaning in one._repr_html_()
    two = metric.score(["A cat sat."], [["A dog ran.", "A cat sat down."]])
    assert two.scale is None
    assert two.meaning == ""


@pytest.mark.filterwarnings("ignore::freight.errors.UnreadLanguage")
def test_scores_of_texts_that_the_encoder_does_not_read_have_no_scale() -> None:
    metric = freight.load("freight")
    english = "The new bridge will not open before winter, the minister said."
    german = "Der Minister sagte, dass die neue Brücke nicht vor dem Winter eröffnet wird."
    assert metric.score([english], [english]).meaning
    assert not metric.score([german], [german]).meaning
    assert not metric.explain(german, german).meaning
    assert metric.explain(english, english).meaning
    assert metric.score([english] * 10 + [german], [english] * 10 + [german]).meaning


def test_the_scales_are_those_of_metrics_that_there_are() -> None:
    content = json.loads(files("freight.core").joinpath("scale.json").read_text("utf-8"))
    assert content["percentiles"] == sorted(content["percentiles"])
    names = {one["metric"] for one in content["scales"].values()}
    contextual = {"freight", "lazy-emd", "emd", "bert-score", "yisi-1", "bary-score"}
    assert names >= contextual | {"wmd", "std", "sms", "bleu", "chrf"}
    assert names <= {*freight.list_metrics()}
    for one in content["scales"].values():
        for column in one["columns"].values():
            assert column["typical"] == sorted(column["typical"])
            assert column["systems"] == sorted(column["systems"])
            low, middle, high = column["near"][1], column["typical"][12], column["unrelated"][1]
            ordered = low >= middle >= high if column["higher"] else low <= middle <= high
            assert ordered, one


@pytest.mark.parametrize("name", ["wmd", "std", "wrd-score", "chrf"])
def test_scales_are_found_with_default_settings(name: str) -> None:
    metric = freight.load(name)
    assert all(find_scale(metric.signature, column.name) for column in metric.columns)


def test_unrelated_texts_score_as_the_scale_says() -> None:
    hyps = ["The boy in a coat.", "Prices rose by two percent in May.", "She plays the violin."]
    result = freight.load("freight").score(hyps, [hyps[1], hyps[2], hyps[0]])
    known = result.scale
    assert known is not None
    assert (result["score"] < dict(zip(known.steps, known.typical, strict=True))[5]).all()


def test_references_are_shuffled_by_segment() -> None:
    refs = ["a", "b", "c", "a", "d"]
    shuffled = shuffle_references(refs)
    assert {*shuffled} <= {*refs}
    assert all(new != own for new, own in zip(shuffled, refs, strict=True))
    assert shuffled == shuffle_references(refs)
    assert any(shuffled != shuffle_references(refs, seed=k) for k in range(1, 9))
    systems = shuffle_references(["a", "b", "a", "b"], [0, 1, 0, 1])
    assert systems == ["b", "a", "b", "a"]
    assert shuffle_references(["a", "a"]) == ["a", "a"]


def test_the_calibration_on_the_page_is_the_measured_one() -> None:
    figures = json.loads((ROOT / "benchmarks/results/meaning.json").read_text())["agreement"]
    assert scale.calibration_table(figures) in (ROOT / "docs/meaning.md").read_text("utf-8")
    for name, fitted in figures.items():
        metric = name.split("|")[0]
        shipped = [one for one in SCALES.values() if one["citation"].startswith(f"{name}|")]
        assert len(shipped) == 1, metric
        columns = shipped[0]["columns"].values()
        kept = [one["agreement"] for one in columns if "agreement" in one]
        expected = [fitted["parameters"]] if scale.largest_gap(fitted) <= 0.05 else []
        assert kept == expected
