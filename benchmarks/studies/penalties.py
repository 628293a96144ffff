"""Why Lazy-EMD's best penalties differ between encoders and languages, as a page.

    python benchmarks/studies/penalties.py [--rows 150] [--threads 1] [--seed 0]

Finds the best symmetric penalty for several encoders and layers on WMT15 in $FREIGHT_DATA (by
default ../shared), with the e5-small of its `models`, and sets it beside how the costs are spread.
Writes docs/studies/penalties.md and penalties.svg.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import freight
from freight.core.metric import Metric
from freight.core.pipeline import compute_costs, weigh
from freight.core.sweep_cache import SharedEncodings, SweepCache
from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.judge.correlation import pearson
from freight.transport.types import Array
from penalties_page import COLUMNS, PENALTIES, Measurement, written_page

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
OUTPUT = Path(__file__).parents[2] / "docs/studies"
E5 = str(DATA / "models/e5-small")
CHOICES: dict[str, dict[str, Any]] = {
    **{f"MiniLM {layer}": {"layer": layer} for layer in range(1, 7)},
    "MiniLM 4, standardised": {"layer": 4, "pooling": "standardised"},
    "MiniLM 3–6, standardised": {"layer": "3:", "pooling": "standardised"},
    **{f"e5-small {layer}": {"encoder": E5, "layer": layer} for layer in (4, 8, 12)},
    "distilled words": {"encoder": "distilled"},
}
BY_PAIR = ("MiniLM 4", "e5-small 8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=150, help="of each language pair")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    judged = sampled(arguments.rows, arguments.seed)
    english = judged.only([pair.endswith("-en") for pair in judged.lang_pairs])
    memories = SharedEncodings()
    results = studies(english, "en", list(CHOICES), memories)
    for part in judged.split():
        results += studies(part, part.lang_pairs[0], BY_PAIR, memories)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name, content in written_page(results).items():
        (OUTPUT / name).write_text(content, encoding="utf-8")


def sampled(rows: int, seed: int) -> Judgements:
    """So many rows of each language pair."""
    judged = read_judgements(DATA / "data/wmt15-da.jsonl.gz")
    rng = np.random.default_rng(seed)
    pairs = np.array(judged.lang_pairs)
    of = [np.flatnonzero(pairs == pair) for pair in dict.fromkeys(judged.lang_pairs)]
    chosen = np.concatenate([rng.choice(one, rows, replace=False) for one in of])
    return judged.only(np.sort(chosen))


def studies(
    judged: Judgements, rows: str, names: Sequence[str], memories: SharedEncodings
) -> list[Measurement]:
    """Costs and agreement with people under every penalty."""
    rehearsal = SweepCache(zip(judged.hyps, judged.refs, strict=True))
    rehearsal.encode([lazy(name, 1.0, memories) for name in names])
    results = []
    for name in names:
        scores = [rehearsal.score(lazy(name, p, memories)) for p in PENALTIES.tolist()]
        curves = {
            column: np.array([agreement(-one[column], judged) for one in scores])
            for column in COLUMNS
        }
        results.append(Measurement(name, rows, *levels(lazy(name, 1.0, memories), judged), curves))
    return results


def lazy(name: str, penalty: float, memories: SharedEncodings) -> Metric:
    """Lazy-EMD of this choice with one penalty for both sides."""
    metric = freight.load("lazy-emd", hyp=penalty, ref=penalty, **CHOICES[name])
    wrapped = memories.wrap(metric)
    assert isinstance(wrapped, Metric)
    return wrapped


def agreement(scores: Array, judged: Judgements) -> float:
    """Pearson x 100 with people, the mean over language pairs."""
    human, pairs = judged.human[judged.criterion()], np.array(judged.lang_pairs)
    correlations = [
        pearson(scores[pairs == pair], human[pairs == pair]) for pair in np.unique(pairs)
    ]
    return 100 * float(np.mean(correlations))


def levels(metric: Metric, judged: Judgements) -> tuple[float, float]:
    """The median cost between a unit and the nearest of its pair, and between unrelated units."""
    refs = [several[0] for several in judged.refs]
    rows = np.arange(len(refs))
    cloud = metric.encoder.encode([*judged.hyps, *refs], metric.layers)
    near = [
        np.concatenate((cost.min(axis=0), cost.min(axis=1)))
        for cost in _costs(metric, cloud, np.stack((rows, len(refs) + rows), axis=1))
    ]
    others = np.stack((rows, len(refs) + np.roll(rows, len(rows) // 2)), axis=1)
    far = [cost.ravel() for cost in _costs(metric, cloud, others)]
    return float(np.median(np.concatenate(near))), float(np.median(np.concatenate(far)))


def _costs(metric: Metric, cloud: Any, index: Array) -> Iterator[Array]:
    """The cost matrix of each pair."""
    for pairs, batch in compute_costs(metric, *weigh(metric, cloud), index).batches:
        sizes = zip(batch.numpy(), pairs.hyp_sizes, pairs.ref_sizes, strict=True)
        yield from (cost[:hyp, :ref] for cost, hyp, ref in sizes)


if __name__ == "__main__":
    main()
