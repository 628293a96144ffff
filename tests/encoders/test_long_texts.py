"""A document of ten thousand tokens is scored whole; a GPU scores as the CPU does."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import freight

pytestmark = pytest.mark.filterwarnings("ignore::freight.errors.UntunedLayer")
WORDS = ["cat", "dog", "house", "tree", "river", "stone", "cloud", "the", "a", "of", "runs", "old"]
SAME = int(os.environ.get("FREIGHT_LONG", "2500"))
"""How long a text is that is scored against itself; `make soak` has longer ones."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of 64 positions, whose vocabulary is made here."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    library: Any = transformers  # it does not declare every name it has
    library.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = library.BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    library.BertModel(config).save_pretrained(folder)
    return folder


def document(length: int, seed: int) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, length))


def test_ten_thousand_tokens(tiny: Path) -> None:
    metrics = [freight.load(name, encoder=str(tiny)) for name in ("lazy-emd", "emd", "bert-score")]
    long, middle, short = document(10_000, 0), document(SAME, 2), document(300, 1)
    cloud = metrics[0].parts[0].encoder.encode([long], [2])
    assert len(cloud.ids) == 10_002
    assert not torch.isnan(cloud.layers).any()
    results = freight.score_together(metrics, [long, middle], [short, middle])
    for result in results:
        primary = result.columns[0]
        assert result.flags == (("windowed (hyp)", "windowed (ref)"),) * 2
        better = result[primary.name][1] - result[primary.name][0]
        assert better > 0 if primary.higher else better < 0
    assert results[1]["transport"][1] == pytest.approx(0, abs=1e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", ["lazy-emd", "emd", "bert-score", "bary-score"])
def test_a_gpu_scores_as_the_cpu_does(tiny: Path, name: str) -> None:
    hyps = [document(length, length) for length in (3, 20, 70, 200)]
    refs = [document(length, length + 1) for length in (4, 18, 90, 150)]
    results = [
        freight.load(name, encoder=freight.encoder(str(tiny), device=device)).score(hyps, refs)
        for device in ("cpu", "cuda")
    ]
    for column in results[0].segments:
        np.testing.assert_allclose(results[0][column], results[1][column], atol=2e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_neighbours_change_no_bit_on_a_gpu(tiny: Path, dtype: str) -> None:
    encoder = freight.encoder(str(tiny), device="cuda", dtype=dtype)
    metrics = [freight.load(name, encoder=encoder) for name in ("lazy-emd", "emd", "bert-score")]
    lengths = [5 + k * 7 % 90 for k in range(400)]
    hyps = [document(length, k) for k, length in enumerate(lengths)]
    refs = [document(length + k % 5, 400 + k) for k, length in enumerate(lengths)]
    together = freight.score_together(metrics, hyps, refs)
    for k in range(0, 400, 40):
        alone = freight.score_together(metrics, [hyps[k]], [refs[k]])
        for one, all_of_them in zip(alone, together, strict=True):
            for column, values in one.segments.items():
                assert values[0] == all_of_them[column][k], (column, k)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_long_stream_changes_no_bit_on_a_gpu(tiny: Path) -> None:
    """Chunk after chunk, with recordings, and tokens from a process of its own."""
    encoder: Any = freight.encoder(str(tiny), device="cuda", dtype="bfloat16")
    metrics = [freight.load(name, encoder=encoder) for name in ("lazy-emd", "emd")]
    texts = [document(5 + k % 50, k) for k in range(40_000)]
    encoder.prepare(texts[:5000])
    assert encoder._tokenizer.processes.wait_until_started()
    together = freight.score_together(metrics, texts[::2], texts[1::2])
    assert encoder._tokenizer.processes.wait_until_started()
    assert encoder.cuda_graphs.captured
    assert encoder.cuda_graphs.enabled
    memory = torch.cuda.memory_stats()
    assert memory["active_bytes.all.current"] == memory["allocated_bytes.all.current"]
    for k in range(0, 20_000, 1999):
        alone = freight.score_together(metrics, texts[2 * k : 2 * k + 1], texts[2 * k + 1 :][:1])
        for one, all_of_them in zip(alone, together, strict=True):
            for column, values in one.segments.items():
                assert values[0] == all_of_them[column][k], (column, k)
