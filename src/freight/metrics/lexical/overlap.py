"""ROUGE as rouge-score computes it: Lin, "ROUGE", Text Summarization Branches Out, 2004."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from freight.encoders.words import english
from freight.errors import MissingPart
from freight.metrics.lexical import scorer
from freight.metrics.lexical.scorer import LexicalReading, Measure, library
from freight.metrics.sources import among


@dataclass(frozen=True)
class Rouge(Measure):
    """The F-measure of one kind of ROUGE."""

    kind: str
    stem: bool
    package: ClassVar[str] = "rouge-score"
    symmetric: ClassVar[bool] = True  # 2PR / (P + R): precision and recall change places

    def __post_init__(self) -> None:
        scorer.switch("stem", self.stem)
        super().__post_init__()

    def build(self) -> Any:
        """The library's scorer."""
        module = library("rouge_score.rouge_scorer", "rouge-score")
        return module.RougeScorer([self.kind], use_stemmer=self.stem)

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """F-measures."""
        scorer = self.build()
        pairs = zip(hyps, refs, strict=True)
        found = [scorer.score(ref, hyp)[self.kind].fmeasure for hyp, (ref,) in pairs]
        return LexicalReading(np.array(found, dtype=float))

    def notes(self, text: str) -> set[str]:
        """The library keeps a-z and 0-9 alone: a text in Russian has no words, and scores 0."""
        letters = [letter for letter in text.lower() if letter.isalnum()]
        kept = sum(letter.isascii() for letter in letters)
        return {"mostly outside a-z and 0-9"} if 2 * kept <= len(letters) else set()


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
        scorer.order("n", self.n)
        among("tokenize", self.tokenize, TOKENIZERS)
        super().__post_init__()

    def build(self) -> Any:
        """The library's function for one segment."""
        return library("nltk.translate.nist_score", "nltk").sentence_nist

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores only: the weights are those of whole corpora, which no sum over segments gives."""
        nist, words = self.build(), _words(self.tokenize)
        scores = np.zeros(len(hyps))
        for k, (hyp, several) in enumerate(zip(hyps, refs, strict=True)):
            found, known = words(hyp), [words(ref) for ref in several]
            if found and any(known):
                scores[k] = nist(known, found, min(self.n, len(found)))
        return LexicalReading(scores)


@dataclass(frozen=True)
class Meteor(Measure):
    """Words matched by form, stem and WordNet synonym, less a penalty for fragments."""

    alpha: float
    beta: float
    gamma: float
    tokenize: str
    package: ClassVar[str] = "nltk"

    def __post_init__(self) -> None:
        scorer.number("alpha", self.alpha, 1.0)
        scorer.number("beta", self.beta)
        scorer.number("gamma", self.gamma, 1.0)
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

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores only; the library too takes the best of several references."""
        meteor, words = self.build(), _words(self.tokenize)
        settings = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma}
        pairs = zip(hyps, refs, strict=True)
        return LexicalReading(
            np.array([meteor(words(ref), words(hyp), **settings) for hyp, (ref,) in pairs])
        )


def _words(tokenize: str) -> Words:
    return str.split if tokenize == "none" else lambda text: english(text).texts
