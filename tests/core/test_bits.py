"""A real text has the same score to the bit whatever its neighbours, order and chunks are.

`FREIGHT_BITS` is the number of pairs.
"""

import gzip
import json
import os
from pathlib import Path

import numpy as np

import freight
from freight.core.pipeline import ChunkSize

PAIRS = int(os.environ.get("FREIGHT_BITS", "60"))
ALONE = 5  # every fifth pair is also scored by itself, which takes long


def test_the_bits_of_a_score_do_not_depend_on_its_neighbours(data: Path) -> None:
    with gzip.open(data / "data/wmt15-da.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][: 4 * PAIRS : 4]
    hyps, refs = [row["hyp"] for row in rows], [row["refs"][0] for row in rows]
    metrics = [freight.load(name) for name in ("lazy-emd", "bert-score", "bary-score")]
    together = freight.score_together(metrics, hyps, refs)
    order = np.random.default_rng(0).permutation(PAIRS)
    shuffled = freight.score_together(metrics, [hyps[k] for k in order], [refs[k] for k in order])
    chunked = freight.score_together(metrics, hyps, refs, size=ChunkSize(pairs=37))
    by_itself = range(0, PAIRS, ALONE)
    alone = [freight.score_together(metrics, [hyps[k]], [refs[k]]) for k in by_itself]
    for place, result in enumerate(together):
        for column, values in result.segments.items():
            assert len(np.unique(values)) > 0.9 * PAIRS, "real texts differ"
            assert shuffled[place][column].tobytes() == values[order].tobytes()
            assert chunked[place][column].tobytes() == values.tobytes()
            assert [one[place][column][0] for one in alone] == values[::ALONE].tolist()
