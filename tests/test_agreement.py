"""Agreement with people on real judgements: lower than a prototype measured means a bug."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import freight
from freight.data.judgement_files import read_judgements
from freight.judge import judge

PAIRS = ("cs-en", "de-en", "fi-en", "ru-en")
E5_SMALL = {
    "cs-en": (76.3, 74.7),
    "de-en": (76.6, 73.6),
    "fi-en": (82.2, 79.9),
    "ru-en": (75.8, 74.4),
}
"""The least r of freight and of bert-score with this encoder."""
JUDGED = PAIRS if "FREIGHT_AGREEMENT" in os.environ else PAIRS[:1]
"""Those with the slower encoder: all four in `make soak`."""


def agreement(data: Path, names: Sequence[str], encoder: str, pairs: Sequence[str]) -> list[float]:
    """Pearson's r with the human scores, the mean over language pairs, x 100, of each metric."""
    rated = read_judgements(data / "data/wmt15-da.jsonl.gz").split()
    wanted = [one for one in rated if one.name.endswith(tuple(pairs))]
    metrics = [freight.load(name, encoder=encoder) for name in names]
    study = judge(metrics, wanted, resamples=9, sentinels=False)
    values = np.array([one.value for one in study.agreements]).reshape(len(pairs), len(names))
    assert [one.metric.split(":")[0] for one in study.agreements[: len(names)]] == list(names)
    return [100 * float(r) for r in values.mean(axis=0)]


def test_embedded(data: Path) -> None:
    names = "freight", "bert-score", "lazy-emd", "bary-score"
    ours, bert_score, lazy_emd, bary_score = agreement(data, names, "embedded", PAIRS)
    assert ours >= 73.2
    assert bert_score == pytest.approx(69.90, abs=0.1)
    assert lazy_emd >= 69.3
    assert bary_score >= 69.8


@pytest.mark.parametrize("pair", JUDGED)
def test_e5_small(data: Path, pair: str) -> None:
    folder = data / "models/e5-small"
    if not folder.is_dir():
        pytest.skip("e5-small does not lie beside the project")
    assert freight.load("bert-score", encoder=str(folder)).parts[0].layers == (8,)
    ours, bert_score = agreement(data, ("freight", "bert-score"), str(folder), [pair])
    assert ours >= E5_SMALL[pair][0]
    assert bert_score >= E5_SMALL[pair][1]
