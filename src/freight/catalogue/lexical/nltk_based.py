"""NIST and METEOR as nltk computes them.

Doddington, "Automatic Evaluation of Machine Translation Quality Using N-gram Co-occurrence
Statistics", HLT 2002; Lavie and Agarwal, "METEOR", WMT 2007. nltk takes words: ours come from its
own word tokenizer, which needs no data. nltk fails on a hypothesis of fewer words than the highest
order of NIST; here an order without n-grams adds nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from freight.catalogue.lexical import checks
from freight.catalogue.lexical.scorer import Measure, Reading, library
from freight.catalogue.shared import among
from freight.encoding.words import english
from freight.errors import MissingPart

Words = Callable[[str], list[str]]
TOKENIZERS = ("nltk", "none")
"""nltk's word tokenizer, or white space for texts that are words already."""


@dataclass(frozen=True)
class Nist(Measure):
    """N-gram matches weighed by how informative they are in the segment's own references."""

    n: int
    tokenize: str
    package: ClassVar[str] = "nltk"
    together: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.order("n", self.n)
        among("tokenize", self.tokenize, TOKENIZERS)
        super().__post_init__()

    def build(self) -> Any:
        """The library's function for one segment."""
        return library("nltk.translate.nist_score", "nltk").sentence_nist

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> Reading:
        """Scores only: the weights are those of whole corpora, which no sum over segments gives."""
        nist, words = self.build(), _words(self.tokenize)
        scores = np.zeros(len(hyps))
        for k, (hyp, several) in enumerate(zip(hyps, refs, strict=True)):
            found, known = words(hyp), [words(ref) for ref in several]
            if found and any(known):
                scores[k] = nist(known, found, min(self.n, len(found)))
        return Reading(scores)


@dataclass(frozen=True)
class Meteor(Measure):
    """Words matched by form, stem and WordNet synonym, less a penalty for fragments."""

    alpha: float
    beta: float
    gamma: float
    tokenize: str
    package: ClassVar[str] = "nltk"

    def __post_init__(self) -> None:
        checks.number("alpha", self.alpha, 1.0)
        checks.number("beta", self.beta)
        checks.number("gamma", self.gamma, 1.0)
        among("tokenize", self.tokenize, TOKENIZERS)
        super().__post_init__()

    def build(self) -> Any:
        """The library's function for one pair, once its WordNet data is found."""
        module = library("nltk.translate.meteor_score", "nltk")
        try:
            module.wordnet.ensure_loaded()
        except LookupError:
            raise MissingPart(
                "METEOR needs WordNet's data; run  python -m nltk.downloader wordnet"
            ) from None
        return module.single_meteor_score

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> Reading:
        """Scores only; the library too takes the best of several references."""
        meteor, words = self.build(), _words(self.tokenize)
        settings = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma}
        pairs = zip(hyps, refs, strict=True)
        return Reading(
            np.array([meteor(words(ref), words(hyp), **settings) for hyp, (ref,) in pairs])
        )


def _words(tokenize: str) -> Words:
    return str.split if tokenize == "none" else lambda text: english(text).texts
