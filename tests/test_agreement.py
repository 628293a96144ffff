"""Agreement with people on real judgements: lower than a prototype measured means a bug."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import freight
from freight.core.scorers import PipelineScorer

PAIRS = ("cs-en", "de-en", "fi-en", "ru-en")


def agreement(data: Path, metrics: Mapping[str, PipelineScorer]) -> dict[str, float]:
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
    names = "freight", "bert-score", "lazy-emd", "bary-score"
    found = agreement(data, {name: freight.load(name) for name in names})
    assert found["freight:score"] >= 73.2
    assert found["bert-score:f1"] >= 69.6
    assert found["lazy-emd:objective"] >= 69.3
    assert found["bary-score:distance"] >= 69.8


def test_e5_small(data: Path) -> None:
    if not (data / "models/e5-small").is_dir():
        pytest.skip("e5-small does not lie beside the project")
    folder = str(data / "models/e5-small")
    metrics = {name: freight.load(name, encoder=folder) for name in ("freight", "bert-score")}
    assert metrics["bert-score"].parts[0].layers == (8,)
    found = agreement(data, metrics)
    assert found["bert-score:f1"] >= 75.4
    assert found["freight:score"] >= 77.6
