"""Scores of published implementations on real pairs; each stored key says what made it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight.core.types import Encoder

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
def test_bert_score(
    published: Published, embedded: Encoder, key: str, parameters: dict[str, Any]
) -> None:
    result = score(published, "bert-score", encoder=embedded, **parameters)
    for column, expected in published["scores"][key].items():
        np.testing.assert_allclose(result[column], expected, rtol=0, atol=1e-5)


def glove(data: Path) -> str:
    return f"static:{data / 'vectors/glove.100d.60k.bin'}"


def test_std(published: Published, data: Path) -> None:
    result = score(published, "std", encoder=glove(data))
    stored = published["scores"]["std"]
    for column in ("unigram", "bigram", "distance"):
        np.testing.assert_allclose(result[column], stored[column], rtol=0, atol=1e-6)
    assert result.system["distance"] == pytest.approx(stored["system"], abs=1e-6)


@pytest.mark.parametrize(("unit", "key"), [(False, "raw"), (True, "unit")])
def test_wmd(published: Published, data: Path, unit: bool, key: str) -> None:
    result = score(published, "wmd", encoder=glove(data), stop_words=None, unit=unit)
    stored = published["scores"]["wmd (gensim, no stop words dropped)"]
    expected = stored[f"distance, {key} vectors"]
    np.testing.assert_allclose(result["distance"], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["wrd-score", "wrd-score-code"])
def test_wrd_score(published: Published, data: Path, name: str) -> None:
    result = score(published, name, encoder=glove(data))
    key = next(key for key in published["scores"] if key.startswith(f"{name} ("))
    for column, expected in published["scores"][key].items():
        np.testing.assert_allclose(result[column], expected, rtol=0, atol=1e-6)


def test_mover_score(published: Published, embedded: Encoder) -> None:
    result = score(published, "mover-score", encoder=embedded)
    expected = published["scores"]["mover-score second version"]["similarity"]
    np.testing.assert_allclose(result["similarity"], expected, rtol=0, atol=5e-4)


@pytest.mark.parametrize("layer", [4, 6])
def test_emd(published: Published, embedded: Encoder, layer: int) -> None:
    result = score(published, "emd", encoder=embedded, layer=layer)
    expected = published["scores"][f"emd layer {layer}"]["distance"]
    np.testing.assert_allclose(result["transport"], expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(result["objective"], result["transport"])


@pytest.mark.parametrize("layer", [4, 6])
@pytest.mark.parametrize(("hyp", "ref"), PENALTIES)
def test_lazy_emd(
    published: Published, embedded: Encoder, layer: int, hyp: float, ref: float
) -> None:
    settings = {"encoder": embedded, "layer": layer, "hyp": hyp, "ref": ref}
    result = score(published, "lazy-emd", **settings)
    stored = published["scores"]
    key = f"lazy-emd {hyp} {ref} layer {layer}"
    for column, expected in stored[f"{key}, entropy kernel, no cut (POT)"].items():
        np.testing.assert_allclose(result[column], expected, rtol=0, atol=1e-6)
    authors = score(published, "lazy-emd", **settings, preset="authors")
    theirs = np.array(stored[key]["distance"])
    np.testing.assert_allclose(authors["transport"], theirs, rtol=0, atol=1e-6)
    assert (authors["transport"] <= result["transport"] + 1e-9).all()
