"""BLEU, chrF, word-F and TER as sacrebleu computes them.

Papineni et al., "BLEU", ACL 2002; Popović, "chrF", WMT 2015, and "chrF++", WMT 2017; Snover et al.,
"A Study of Translation Edit Rate", AMTA 2006; Post, "A Call for Clarity in Reporting BLEU Scores",
WMT 2018. The library's statistics of segments add up, so that a corpus scored in chunks has the
score of the whole. They are not part of its public interface: a test holds us to its public scores.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np

from freight.errors import InvalidInput, MissingPart
from freight.metrics.lexical import scorer
from freight.metrics.lexical.scorer import LexicalReading, Measure, library
from freight.metrics.sources import among
from freight.transport.types import Array


@dataclass(frozen=True)
class Sacre(Measure):
    """A metric of sacrebleu; the fields are what its class is called with."""

    package: ClassVar[str] = "sacrebleu"
    together: ClassVar[bool] = True
    kind: ClassVar[str]

    def build(self) -> Any:
        """The library's metric."""
        return getattr(_metrics(), self.kind)(**asdict(self))

    def build_for_segments(self) -> Any:
        """The same as it scores one segment."""
        return self.build()

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores and statistics of each segment; there may be more references for some."""
        streams = list(zip_longest(*refs))
        whole, metric = self.build(), self.build_for_segments()
        rows = whole._extract_corpus_statistics(hyps, streams)
        _forget(whole)
        scores = [metric._compute_score_from_stats(row).score for row in rows]
        return LexicalReading(np.array(scores), np.array(rows, dtype=float), self.total)

    def total(self, tally: Array) -> dict[str, float]:
        """The corpus score out of summed statistics."""
        return {"score": float(self.build()._compute_score_from_stats(tally.tolist()).score)}

    @property
    def origin(self) -> str:
        """sacrebleu's own signature, less the number of references, which is the data's."""
        metric = self.build()
        metric.num_refs = None
        return f"sacrebleu({metric.get_signature().format().replace('|', ',')})"


def _forget(metric: Any) -> None:
    """Its tokenizers keep thousands of lines for good, which a service would see as a leak."""
    tokenizer = getattr(metric, "tokenizer", None)
    for part in (tokenizer, getattr(tokenizer, "_post_tokenizer", None)):
        remembered = getattr(type(part).__call__, "cache_clear", None)
        if remembered is not None:
            remembered()


@dataclass(frozen=True)
class Bleu(Sacre):
    """Corpus BLEU; segments have only the orders of which they have n-grams."""

    tokenize: str
    lowercase: bool
    smooth_method: str
    smooth_value: float | None
    effective_order: bool = False
    kind: ClassVar[str] = "BLEU"

    def __post_init__(self) -> None:
        known = _metrics().BLEU
        among("tokenize", self.tokenize, known.TOKENIZERS)
        among("smooth", self.smooth_method, known.SMOOTH_DEFAULTS)
        scorer.switch("lowercase", self.lowercase)
        if self.smooth_value is not None:
            if known.SMOOTH_DEFAULTS[self.smooth_method] is None:
                raise InvalidInput(f"smooth={self.smooth_method!r} takes no smooth_value")
            scorer.number("smooth_value", self.smooth_value, zero=False)
        super().__post_init__()

    def build(self) -> Any:
        """The library's metric; some tokenizers need packages or models of their own."""
        settings = {**asdict(self), "force": True}  # no warning a chunk of what looks tokenized
        try:
            return _metrics().BLEU(**settings)
        except (ImportError, OSError, RuntimeError, SystemExit) as error:
            reason = " ".join(str(error).split())
            raise MissingPart(f"tokenize={self.tokenize!r} cannot be used: {reason}") from error

    def build_for_segments(self) -> Any:
        """As sacrebleu's sentence BLEU: a short text is not punished for its missing orders."""
        return replace(self, effective_order=True).build()


@dataclass(frozen=True)
class SentenceBleu(Bleu):
    """Smoothed BLEU of each segment by itself; that of a system is their mean."""

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores only."""
        return LexicalReading(super().__call__(hyps, refs).scores)


@dataclass(frozen=True)
class Chrf(Sacre):
    """F-score of character n-grams, word n-grams, or both; without characters it is word-F."""

    char_order: int
    word_order: int
    beta: float
    lowercase: bool
    kind: ClassVar[str] = "CHRF"

    def __post_init__(self) -> None:
        scorer.number("beta", self.beta, zero=False)
        scorer.switch("lowercase", self.lowercase)
        super().__post_init__()


@dataclass(frozen=True)
class Ter(Sacre):
    """Edits, with shifts of phrases, over the mean length of the references."""

    normalized: bool
    no_punct: bool
    asian_support: bool
    case_sensitive: bool
    kind: ClassVar[str] = "TER"

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            scorer.switch(name, value)
        super().__post_init__()


def _metrics() -> Any:
    return library("sacrebleu.metrics", "sacrebleu")
