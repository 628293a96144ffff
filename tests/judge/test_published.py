"""What was measured with other programs on real judgements comes out of ours.

et-en, which is larger than all others together, in `make soak` (FREIGHT_AGREEMENT=all).
"""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

import freight
from freight.judge.pairwise import darr_tau

TAU = {
    "sentence-bleu": {"et-en": 0.284, "cs-en": 0.225, "tr-en": 0.130, "en-cs": 0.400},
    "chrf": {"et-en": 0.331, "cs-en": 0.290, "tr-en": 0.216, "en-cs": 0.509},
}


LARGE = ["et-en"] if os.environ.get("FREIGHT_AGREEMENT") == "all" else []


@pytest.mark.parametrize("lang_pair", [*LARGE, "cs-en", "tr-en", "en-cs"])
def test_preferences_of_wmt18(data: Path, lang_pair: str) -> None:
    with gzip.open(data / f"data/wmt18-darr.{lang_pair}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    judged = [(row[side], row["ref"]) for row in rows for side in ("better", "worse")]
    distinct = {pair: k for k, pair in enumerate(dict.fromkeys(judged))}
    preferences = np.array([distinct[pair] for pair in judged]).reshape(-1, 2)
    metrics = [freight.load(name) for name in TAU]
    hyps, refs = map(list, zip(*distinct, strict=True))
    for result in freight.score_together(metrics, hyps, refs):
        tau = darr_tau(result["score"], preferences)
        assert tau == pytest.approx(TAU[result.name][lang_pair], abs=0.002)
