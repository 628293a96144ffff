"""Error rates: WER (jiwer), position-independent PER, CharacTER (cer).

Tillmann et al., "Accelerated DP Based Search for Statistical Translation", Eurospeech 1997, for
PER; Wang et al., "CharacTER", WMT 2016. Words are what white space separates; for jiwer, spaces.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from freight.metrics.lexical.scorer import LexicalReading, Measure, library
from freight.transport.types import Array


@dataclass(frozen=True)
class Rate(Measure):
    """Errors over words of the reference, both summed over a system's segments."""

    @abstractmethod
    def count(self, hyps: Sequence[str], refs: Sequence[str]) -> Array:
        """Errors and words of the reference (segment, 2)."""

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Rates and counts."""
        counts = self.count(hyps, [ref for (ref,) in refs])
        errors, words = counts.T
        return LexicalReading(errors / np.maximum(words, 1.0), counts, self.total)

    def total(self, tally: Array) -> dict[str, float]:
        """The rate of all together; 1 where no reference has a word and there are errors."""
        errors, words = tally.tolist()
        return {"score": errors / words if words else float(errors > 0)}


@dataclass(frozen=True)
class Wer(Rate):
    """Levenshtein distance between words."""

    package: ClassVar[str] = "jiwer"

    def build(self) -> Any:
        """The library's alignment of many segments at once."""
        return library("jiwer", "jiwer").process_words

    def count(self, hyps: Sequence[str], refs: Sequence[str]) -> Array:
        """Errors read off the library's alignments."""
        aligned = self.build()(list(refs), list(hyps))
        errors = [sum(_errors(piece) for piece in pieces) for pieces in aligned.alignments]
        words = [len(ref) for ref in aligned.references]
        return np.array([errors, words], dtype=float).T


@dataclass(frozen=True)
class Per(Rate):
    """Words without a counterpart, wherever they stand: (max(n_hyp, n_ref) - matches) / n_ref."""

    package: ClassVar[str] = "freight"

    def build(self) -> None:
        """Nothing: the formula is a line."""

    def count(self, hyps: Sequence[str], refs: Sequence[str]) -> Array:
        """Errors out of two bags of words."""
        rows = np.zeros((len(hyps), 2))
        for k, (hyp, ref) in enumerate(zip(hyps, refs, strict=True)):
            ours, theirs = Counter(hyp.split()), Counter(ref.split())
            longer = max(ours.total(), theirs.total())
            rows[k] = longer - (ours & theirs).total(), theirs.total()
        return rows


@dataclass(frozen=True)
class Character(Measure):
    """Character edits after words have been shifted, over the length of the hypothesis."""

    package: ClassVar[str] = "cer"

    def build(self) -> Any:
        """The library's function for one pair."""
        return library("cer", "cer").calculate_cer

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores only; the library divides by the number of words, so none is not for it."""
        rate = self.build()
        pairs = [(hyp.split(), ref.split()) for hyp, (ref,) in zip(hyps, refs, strict=True)]
        return LexicalReading(
            np.array([rate(hyp, ref) if hyp and ref else 1.0 for hyp, ref in pairs])
        )


def _errors(piece: Any) -> int:
    if piece.type == "equal":
        return 0
    hyp, ref = piece.hyp_end_idx - piece.hyp_start_idx, piece.ref_end_idx - piece.ref_start_idx
    return max(hyp, ref)
