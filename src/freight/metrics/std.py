"""STD, semantic travel distance: Li et al., "STD: An Automatic Evaluation Metric for Machine
Translation Based on Word Embeddings", IEEE/ACM TASLP 2019.

By default as the authors' code computes it: what both texts put on the same n-gram stays where it
is, so that word order never touches shared n-grams. `shared="moved"` solves the linear program as
the paper writes it. The centroid averages a text's n-grams, repeats included, as in the code.
`short` and `long` are how many words the two kinds of n-grams have; with `lang="characters"` they
are n-grams of characters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from freight.core import costs, readouts
from freight.core.joint_vocabulary import Joint
from freight.core.metric import Blend, Metric
from freight.core.result import Column
from freight.core.units import Ngrams
from freight.encoders import DISTILLED
from freight.errors import InvalidInput
from freight.metrics.sources import Chosen, Layer, among, word_source
from freight.transport.types import Array, Problem

PRESETS = {"authors": {"shared": "stays"}, "paper": {"shared": "moved"}}
MASSES = {"nsim": ("nsim", None), "nbow": ("own", None), "tfidf": ("own", "ref")}


def std(
    encoder: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    unigram: float = 0.5,
    bigram: float = 0.5,
    system_unigram: float = 0.3,
    system_bigram: float = 0.7,
    order: float = 0.4,
    short: int = 1,
    long: int = 2,
    mass: str = "nsim",
    shared: str = "stays",
    references: str = "best",
) -> Blend:
    """Words and pairs of words moved by meaning and by place, on the words of both texts."""
    among("mass", mass, MASSES)
    among("shared", shared, ("stays", "moved"))
    if not 1 <= short <= long:
        raise InvalidInput(
            f"short={short} and long={long}: n-grams have 1 or more, short the fewer"
        )
    kind, idf = MASSES[mass]
    parts = tuple(
        Metric(
            f"std-{n}",
            *word_source(encoder, layer, lang, idf=idf, which=Ngrams(n)),
            cost=costs.Mix(((1.0 - order, costs.clipped_cosine), (order, costs.order))),
            problems=(Problem(),),
            readout=readouts.distance,
            columns=(Column("distance", False, 0.0, 1.0),),
            pairing=Joint(kind, shared),
        )
        for n in (short, long)
    )
    columns = (
        Column("distance", False, 0.0, 1.0),
        Column("similarity", True, 1.0, 0.0),
        Column("unigram", False, 0.0, 1.0),
        Column("bigram", False, 0.0, 1.0),
    )
    mixture = Weights((unigram, bigram), (system_unigram, system_bigram))
    return Blend("std", parts, mixture, columns, references)


@dataclass(frozen=True)
class Weights:
    """Unigrams and bigrams weigh otherwise in a segment than in a system."""

    segment: tuple[float, float]
    system: tuple[float, float]

    def __call__(self, parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
        """The columns of a segment."""
        one, two = (part["distance"] for part in parts)
        far = self.segment[0] * one + self.segment[1] * two
        return {"distance": far, "similarity": 1.0 - far, "unigram": one, "bigram": two}

    def total(self, means: dict[str, float]) -> dict[str, float]:
        """The scores of a system."""
        far = self.system[0] * means["unigram"] + self.system[1] * means["bigram"]
        return {**means, "distance": far, "similarity": 1.0 - far}

    def factors(self, column: str) -> tuple[float, tuple[float, ...]]:
        """What a column starts from, and how often it counts unigrams and bigrams."""
        one, two = self.segment
        return {
            "distance": (0.0, (one, two)),
            "similarity": (1.0, (-one, -two)),
            "unigram": (0.0, (1.0, 0.0)),
            "bigram": (0.0, (0.0, 1.0)),
        }[column]
