"""STD, semantic travel distance: Li et al., "STD: An Automatic Evaluation Metric for Machine
Translation Based on Word Embeddings", IEEE/ACM TASLP 2019. Departures from the paper and from the
authors' code are described at the factory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from freight.errors import InvalidInput
from freight.metrics.declaration import HIGHER, LOWER, declare
from freight.metrics.parameter_types import (
    EncoderName,
    Language,
    LayerChoice,
    NotNegative,
    OrderShare,
    Punctuation,
    ReferencesRule,
    TagKind,
    TagPipeline,
    TagShare,
)

if TYPE_CHECKING:
    from freight.core.metric import Blend
    from freight.transport.types import Array

MASSES = {"nsim": ("nsim", None), "nbow": ("own", None), "tfidf": ("own", "ref")}
"""By name: how the pairing weighs n-grams, and whether IDF multiplies it."""


@declare(
    "std",
    columns={"distance": LOWER, "similarity": HIGHER, "unigram": LOWER, "bigram": LOWER},
    presets={
        "authors": {"centroid": "list", "shared": "stays"},
        "paper": {"centroid": "set", "shared": "moved"},
    },
    paper='Li et al., "STD: An Automatic Evaluation Metric for Machine Translation Based on Word'
    ' Embeddings", IEEE/ACM TASLP 2019.',
    choose_when="word order counts and there is no time for an encoder",
)
def std(
    encoder: EncoderName = "distilled",
    layer: LayerChoice = None,
    lang: Language = None,
    unigram: Annotated[NotNegative, Field(description="Weight of unigrams in a segment.")] = 0.5,
    bigram: Annotated[NotNegative, Field(description="Weight of bigrams in a segment.")] = 0.5,
    system_unigram: Annotated[
        NotNegative, Field(description="Weight of unigrams in the score of a system.")
    ] = 0.3,
    system_bigram: Annotated[
        NotNegative, Field(description="Weight of bigrams in the score of a system.")
    ] = 0.7,
    order: OrderShare = 0.4,
    short: Annotated[int, Field(ge=1, description="Words in the shorter n-grams.")] = 1,
    long: Annotated[int, Field(ge=1, description="Words in the longer n-grams.")] = 2,
    mass: Annotated[
        Literal["nsim", "nbow", "tfidf"],
        Field(
            description="Mass of an n-gram: by similarity to the centroid of its text, by count, or"
            " by TF-IDF."
        ),
    ] = "nsim",
    centroid: Annotated[
        Literal["list", "set"],
        Field(
            description="Whether the centroid of a text averages the list of its n-grams, repeats"
            " included, as in the authors' code, or their set, as in the paper."
        ),
    ] = "list",
    shared: Annotated[
        Literal["stays", "moved"],
        Field(
            description="Whether mass that both texts put on the same n-gram stays in place, as in"
            " the authors' code, or takes part in the transport, as in the paper."
        ),
    ] = "stays",
    unknown: Annotated[
        Literal["unk", "dropped"],
        Field(
            description="Whether words without a vector become the word unk where a file of vectors"
            " has it, as in the authors' code, or are dropped."
        ),
    ] = "unk",
    tags: TagPipeline = None,
    tag: TagKind = "pos",
    tag_share: TagShare = 0.1,
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Blend":
    """Transport of words and word pairs by meaning and position, on the vocabulary of both texts.

    By default as the authors' code computes it: mass that both texts put on the same n-gram stays
    in place, so that word order never affects shared n-grams, and the centroid averages a text's
    n-grams, repeats included. `preset="paper"` solves the linear program as the paper writes it,
    and averages the set of n-grams. A word without a vector becomes the word `unk` where the
    vectors have it, again as in the code, and is dropped elsewhere. With `lang="characters"` the
    n-grams are of characters.
    """
    from freight.metrics.parts import (
        Blend,
        Column,
        Joint,
        Metric,
        Ngrams,
        Problem,
        add_tags,
        costs,
        readouts,
        word_source,
    )

    if short > long:
        raise InvalidInput(f"short={short} and long={long} of std: short must not exceed long")
    kind, idf = MASSES[mass]
    plain = word_source(
        encoder, layer, lang, idf=idf, punctuation=punctuation, map_unknown=unknown == "unk"
    )
    words = add_tags(plain, tags, tag, tag_share, apart=True)
    parts = tuple(
        Metric(
            name=f"std-{n}",
            **replace(words, units=Ngrams(n, words.units)).fields(),
            cost=costs.Mix(((1.0 - order, costs.clipped_cosine), (order, costs.order))),
            problems=(Problem(),),
            readout=readouts.distance,
            columns=(Column("distance", False, 0.0, 1.0, (0.0, 1.0)),),
            pairing=Joint(kind, shared, centroid),
        )
        for n in (short, long)
    )
    most = unigram + bigram
    columns = (
        Column("distance", False, 0.0, most, (0.0, most)),
        Column("similarity", True, 1.0, 1.0 - most, (1.0 - most, 1.0)),
        Column("unigram", False, 0.0, 1.0, (0.0, 1.0)),
        Column("bigram", False, 0.0, 1.0, (0.0, 1.0)),
    )
    mixture = Weights((unigram, bigram), (system_unigram, system_bigram))
    return Blend("std", parts, mixture, columns, references)


@dataclass(frozen=True)
class Weights:
    """Weights of unigrams and bigrams, which differ between a segment and a system."""

    segment: tuple[float, float]
    system: tuple[float, float]

    def __call__(self, parts: "Sequence[dict[str, Array]]") -> "dict[str, Array]":
        """The columns of a segment."""
        one, two = (part["distance"] for part in parts)
        far = self.segment[0] * one + self.segment[1] * two
        return {"distance": far, "similarity": 1.0 - far, "unigram": one, "bigram": two}

    def total(self, means: dict[str, float]) -> dict[str, float]:
        """The scores of a system."""
        far = self.system[0] * means["unigram"] + self.system[1] * means["bigram"]
        return {**means, "distance": far, "similarity": 1.0 - far}

    def factors(self, column: str) -> tuple[float, tuple[float, ...]]:
        """The constant of a column, and the factors of unigrams and bigrams in it."""
        one, two = self.segment
        return {
            "distance": (0.0, (one, two)),
            "similarity": (1.0, (-one, -two)),
            "unigram": (0.0, (1.0, 0.0)),
            "bigram": (0.0, (0.0, 1.0)),
        }[column]
