"""The example of training with a loss: a short run already separates the two variants."""

from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
import torch
from torch.nn.functional import normalize, one_hot

from examples.example_files import load_example
from freight.loss import LazyEmd


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_example("train_with_loss")


def test_transport_beats_cross_entropy_alone(example: ModuleType, tmp_path: Path) -> None:
    picture = tmp_path / "curve.svg"
    options = ["--steps", "100", "--seeds", "1", "--rows", "300", "-o", str(picture)]
    curves = example.main(options)
    alone, both = (curves[variant][0][-1] for variant in (example.ALONE, example.BOTH))
    assert alone.step == both.step == 100
    assert both.distance < 0.8 * alone.distance
    assert both.chrf > alone.chrf + 3
    panels = [e for e in ElementTree.parse(picture).iter() if e.get("id", "").startswith("axes_")]
    assert len(panels) == 3


def test_the_test_set_was_never_seen(example: ModuleType) -> None:
    corpus, facts, refs = example.make_corpora(300, 100, seed=0)
    seen = {tuple(row) for row in corpus.facts.tolist()}
    assert len(seen) == 300
    assert not seen & {tuple(row) for row in facts.tolist()}
    assert all(len(set(wordings)) > 2 for wordings in refs)


def test_moved_words_cost_less_than_repeated_words(example: ModuleType) -> None:
    words = torch.tensor([[3, 5, 2, 7, 0, 0]])
    vectors = normalize(torch.randn(9, 6, generator=torch.Generator().manual_seed(0)), dim=-1)
    vectors[0] = 0.0
    said = torch.tensor([[3, 5, 2, 7, 0, 0]]), torch.tensor([[2, 7, 3, 5, 0, 0]])
    twice = torch.tensor([[3, 3, 2, 2, 0, 0]])
    same, moved, repeated = (
        example.transport_loss(LazyEmd(epsilon=1e-3), 40.0 * one_hot(k, 9).float(), words, vectors)
        for k in (*said, twice)
    )
    assert same < 0.02
    assert same + 0.02 < moved < repeated
