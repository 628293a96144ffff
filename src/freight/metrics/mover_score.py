"""MoverScore: Zhao et al., "MoverScore: Text Generation Evaluating with Contextualized Embeddings
and Earth Mover Distance", EMNLP 2019, in its two released versions.

The second version ignores its n-gram argument; ours does not. It takes each side's own IDF, and so
do we. Both drop continuations of words and the punctuation of ASCII, and keep typographic quotes.
Transport is exact here: identical texts score 1.
"""

from freight.core import costs, readouts, units
from freight.core.metric import Metric
from freight.core.result import Column
from freight.core.weightings import Mass, Weighting, Windows
from freight.encoders import EMBEDDED
from freight.encoders import encoder as find
from freight.errors import InvalidInput
from freight.metrics.sources import Chosen, Layer, source
from freight.transport.types import Problem

PRESETS = {"v1": {"version": 1}, "v2": {"version": 2}}


def mover_score(
    encoder: Chosen = EMBEDDED,
    layer: Layer = None,
    version: int = 2,
    ngram: int = 1,
    idf: str | None = "own",
    references: str = "best",
) -> Metric:
    """Earth mover's distance between words, or runs of them, weighed by IDF."""
    if version not in (1, 2):
        raise InvalidInput(f"version={version}; there is 1 and 2")
    if ngram < 1:
        raise InvalidInput(f"ngram={ngram}; it is at least 1")
    found = find(encoder)
    first = version == 1
    layer = (f"-{min(5, found.depth + 1)}:" if first else -1) if layer is None else layer
    join = "power-means" if first else "unit-mean"
    taken = source(found, layer, join=join, idf=idf, special=True, weighed=True)
    weighting = _windows(taken.weighting, ngram)
    own = weighting if taken.ref_weighting else None
    return Metric(
        "mover-score",
        *taken._replace(units=units.heads, weighting=weighting, ref_weighting=own),
        cost=costs.squared_euclidean if first else costs.euclidean,
        problems=(Problem(),),
        readout=readouts.Similarity("complement" if first else "inverse"),
        columns=(
            Column("similarity", True, 1.0, 0.0),
            Column("distance", False, 0.0, 4.0 if first else 2.0),
        ),
        references=references,
    )


def _windows(weighting: Weighting, ngram: int) -> Weighting:
    return Windows(weighting, ngram) if ngram > 1 and isinstance(weighting, Mass) else weighting
