"""Word metrics beside their peers, in one process and one thread.

    python benchmarks/words.py [--pairs 500] [-o results.json]

`wmd` beside gensim's wmdistance, `std` beside a plain transcription of its algorithm, both from
text to score with the same vectors; `mover-score` beside our own bert-score at the same layer. CPU
time of one thread, the best of three for ours. Pairs as in benchmarks/text.py, vectors from
$FREIGHT_DATA.
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gensim
import numpy as np
from nltk.tokenize import NLTKWordTokenizer
from rich.console import Console
from rich.table import Table

import freight
from plain_std import std
from text import DATA, real_pairs

Line = tuple[str, float, float, float]
VECTORS = DATA / "vectors/glove.100d.60k.bin"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/words.json"))
    arguments = parser.parse_args()
    freight.set_threads(1)
    hyps, refs = real_pairs(arguments.pairs)
    keyed = gensim.models.KeyedVectors.load_word2vec_format(str(VECTORS), binary=True)
    rows = [
        wmd(hyps, refs, keyed),
        plain(hyps, refs, keyed),
        mover(hyps, refs),
    ]
    table = Table("what", "ours, us a pair", "peer, us a pair", "ratio", "largest difference")
    for what, ours, theirs, error in rows:
        cells = f"{ours * 1e6:.0f}", f"{theirs * 1e6:.0f}", f"{theirs / ours:.1f}", f"{error:.1e}"
        table.add_row(what, *cells)
    Console().print(table)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(rows, indent=1))


def wmd(hyps: list[str], refs: list[str], keyed: gensim.models.KeyedVectors) -> Line:
    metric = freight.load("wmd", encoder=f"static:{VECTORS}", preset="gensim")
    tokenizer = NLTKWordTokenizer()

    def peer() -> list[float]:
        distances = []
        for hyp, ref in zip(hyps, refs, strict=True):
            sides = [tokenizer.tokenize(text.lower()) for text in (hyp, ref)]
            distances.append(keyed.wmdistance(*sides))
        return distances

    ours, scores = clock(lambda: metric.score(hyps, refs)["distance"], 3)
    theirs, expected = clock(peer, 1)
    error = float(np.nanmax(np.abs(scores - np.array(expected))))
    return "wmd, gensim's wmdistance", ours / len(hyps), theirs / len(hyps), error


def plain(hyps: list[str], refs: list[str], keyed: gensim.models.KeyedVectors) -> Line:
    metric = freight.load("std", encoder=f"static:{VECTORS}")

    def vector(word: str) -> np.ndarray | None:
        return keyed[word].astype(np.float64) if word in keyed else None

    ours, scores = clock(lambda: metric.score(hyps, refs)["distance"], 3)
    some = slice(None, None, max(1, len(hyps) // 50))
    pairs = list(zip(hyps[some], refs[some], strict=True))
    theirs, expected = clock(lambda: [std(hyp, ref, vector) for hyp, ref in pairs], 1)
    error = float(np.abs(scores[some] - np.array(expected)).max())
    return "std, a plain transcription", ours / len(hyps), theirs / len(pairs), error


def mover(hyps: list[str], refs: list[str]) -> Line:
    ours = freight.load("mover-score").fit(refs, hyps)
    peer = freight.load("bert-score", layer=-1)
    mine, _ = clock(lambda: ours.score(hyps, refs), 2)
    other, _ = clock(lambda: peer.score(hyps, refs), 2)
    return "mover-score, our bert-score", mine / len(hyps), other / len(hyps), 0.0


def clock(run: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """CPU seconds of the best round after a first one, and what it gave."""
    result = run() if rounds > 1 else None
    spent = []
    for _ in range(rounds):
        started = time.process_time()
        result = run()
        spent.append(time.process_time() - started)
    return min(spent), result


if __name__ == "__main__":
    main()
