"""Scores of published implementations on real pairs; each stored key says what made it."""

from typing import Any

import numpy as np
import pytest

import freight

Published = dict[str, Any]
PENALTIES = [(0.23, 0.31), (0.009, 0.95), (0.018, 0.97)]


def score(published: Published, name: str, **parameters: Any) -> freight.Result:
    hyps, refs = ([pair[side] for pair in published["pairs"]] for side in ("hyp", "ref"))
    return freight.load(name, **parameters).score(hyps, refs)


@pytest.mark.parametrize(
    ("key", "parameters"),
    [
        ("bert-score layer 4", {"layer": 4}),
        ("bert-score layer 6", {"layer": -1}),
        ("bert-score layer 4 idf", {"layer": 4, "idf": "ref"}),
    ],
)
def test_bert_score(published: Published, key: str, parameters: dict[str, Any]) -> None:
    result = score(published, "bert-score", **parameters)
    for column, expected in published["scores"][key].items():
        np.testing.assert_allclose(result[column], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("layer", [4, 6])
def test_emd(published: Published, layer: int) -> None:
    result = score(published, "emd", layer=layer)
    expected = published["scores"][f"emd layer {layer}"]["distance"]
    np.testing.assert_allclose(result["transport"], expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(result["objective"], result["transport"])


@pytest.mark.parametrize("layer", [4, 6])
@pytest.mark.parametrize(("hyp", "ref"), PENALTIES)
def test_lazy_emd(published: Published, layer: int, hyp: float, ref: float) -> None:
    result = score(published, "lazy-emd", layer=layer, hyp=hyp, ref=ref)
    stored = published["scores"]
    key = f"lazy-emd {hyp} {ref} layer {layer}"
    for column, expected in stored[f"{key}, entropy kernel, no cut (POT)"].items():
        np.testing.assert_allclose(result[column], expected, rtol=0, atol=1e-6)
    authors = score(published, "lazy-emd", layer=layer, hyp=hyp, ref=ref, preset="authors")
    theirs = np.array(stored[key]["distance"])
    np.testing.assert_allclose(authors["transport"], theirs, rtol=0, atol=1e-6)
    assert (authors["transport"] <= result["transport"] + 1e-9).all()
