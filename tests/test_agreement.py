"""Agreement with people on real judgements: lower than a prototype measured means a bug."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import freight

PAIRS = ("cs-en", "de-en", "fi-en", "ru-en")


def agreement(data: Path, metrics: dict[str, freight.Metric]) -> dict[str, float]:
    """Pearson's r with the human scores, the mean over language pairs, x 100, by metric:column."""
    with gzip.open(data / "data/wmt15-da.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["lang_pair"] in PAIRS]
    hyps, refs = [row["hyp"] for row in rows], [row["refs"] for row in rows]
    results = freight.score_together(list(metrics.values()), hyps, refs)
    human = np.array([row["human"]["da_z"] for row in rows])
    pair = np.array([row["lang_pair"] for row in rows])
    found = {}
    for result in results:
        for column in result.columns:
            signed = result[column.name] if column.higher else -result[column.name]
            r = [np.corrcoef(signed[pair == p], human[pair == p])[0, 1] for p in PAIRS]
            found[f"{result.name}:{column.name}"] = 100 * float(np.mean(r))
    return found


def test_embedded(data: Path) -> None:
    found = agreement(data, {n: freight.load(n) for n in ("bert-score", "lazy-emd", "bary-score")})
    assert found["bert-score:f1"] >= 69.6
    assert found["lazy-emd:objective"] >= 69.3
    assert found["bary-score:distance"] >= 69.8


def test_e5_small(data: Path) -> None:
    if not (data / "models/e5-small").is_dir():
        pytest.skip("e5-small does not lie beside the project")
    metric = freight.load("bert-score", encoder=str(data / "models/e5-small"))
    assert metric.layers == (8,)
    assert agreement(data, {"bert-score": metric})["bert-score:f1"] >= 75.4
