"""What sacrebleu, rouge-score, nltk, jiwer and cer measure, and position-independent error rate.

BLEU, chrF, word-F and TER as sacrebleu computes them (Post, "A Call for Clarity in Reporting BLEU
Scores", WMT 2018): the library's statistics of segments add up, so that a corpus scored in chunks
has the score of the whole. They are not part of its public interface; a test compares with its
public scores. ROUGE is rouge-score's, NIST and METEOR are nltk's, WER jiwer's, CharacTER cer's. For
the error rates words are what white space separates; for jiwer, spaces.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from threading import RLock
from typing import Any, ClassVar, Literal

import numpy as np

from freight.encoders.words import english
from freight.errors import InvalidInput, MissingPart
from freight.metrics.lexical.scorer import LexicalReading, Measure, import_library
from freight.transport.types import Array


@dataclass(frozen=True)
class SacrebleuMeasure(Measure):
    """A metric of sacrebleu; the fields are the arguments of its class."""

    package: ClassVar[str] = "sacrebleu"
    together: ClassVar[bool] = True
    kind: ClassVar[str]

    def build(self) -> Any:
        """The library's metric."""
        return getattr(sacrebleu_metrics(), self.kind)(**asdict(self))

    def build_for_segments(self) -> Any:
        """The library's metric as it scores one segment."""
        return self.build()

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores and statistics of each segment; there may be more references for some."""
        streams = list(zip_longest(*refs))
        whole, metric = self.build(), self.build_for_segments()
        rows = whole._extract_corpus_statistics(hyps, streams)
        _clear_tokenizer_cache(whole)
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


def _clear_tokenizer_cache(metric: Any) -> None:
    """The library's tokenizers keep thousands of lines for good: a leak in a service."""
    tokenizer = getattr(metric, "tokenizer", None)
    for part in (tokenizer, getattr(tokenizer, "_post_tokenizer", None)):
        clear = getattr(type(part).__call__, "cache_clear", None)
        if clear is not None:
            clear()


@dataclass(frozen=True)
class Bleu(SacrebleuMeasure):
    """Corpus BLEU; a segment is scored by the orders of which it has n-grams."""

    tokenize: str
    lowercase: bool
    smooth_method: str
    smooth_value: float | None
    effective_order: bool = False
    kind: ClassVar[str] = "BLEU"

    def __post_init__(self) -> None:
        known = sacrebleu_metrics().BLEU.SMOOTH_DEFAULTS
        if self.smooth_value is not None and known[self.smooth_method] is None:
            raise InvalidInput(f"smooth={self.smooth_method!r} takes no smooth_value")
        super().__post_init__()

    def build(self) -> Any:
        """The library's metric; some tokenizers need further packages or models."""
        settings = {**asdict(self), "force": True}  # no warning per chunk about tokenized text
        try:
            return sacrebleu_metrics().BLEU(**settings)
        except (ImportError, OSError, RuntimeError, SystemExit) as error:
            reason = " ".join(str(error).split())
            raise MissingPart(f"tokenize={self.tokenize!r} cannot be used: {reason}") from error

    def build_for_segments(self) -> Any:
        """As sacrebleu's sentence BLEU: a short text has no penalty for missing orders."""
        return replace(self, effective_order=True).build()


@dataclass(frozen=True)
class SentenceBleu(Bleu):
    """Smoothed BLEU of each segment; the score of a system is their mean."""

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores only."""
        return LexicalReading(super().__call__(hyps, refs).scores)


@dataclass(frozen=True)
class Chrf(SacrebleuMeasure):
    """F-score of character n-grams, word n-grams, or both; without characters it is word-F."""

    char_order: int
    word_order: int
    beta: float
    lowercase: bool
    eps_smoothing: bool
    kind: ClassVar[str] = "CHRF"


@dataclass(frozen=True)
class Ter(SacrebleuMeasure):
    """Edits, with shifts of phrases, over the mean length of the references."""

    normalized: bool
    no_punct: bool
    asian_support: bool
    case_sensitive: bool
    kind: ClassVar[str] = "TER"


def sacrebleu_metrics() -> Any:
    """The module of sacrebleu that holds its metrics."""
    return import_library("sacrebleu.metrics", "sacrebleu")


@dataclass(frozen=True)
class Rouge(Measure):
    """One kind of ROUGE: its F1, precision or recall."""

    kind: str
    stem: bool
    readout: Literal["f1", "precision", "recall"]
    package: ClassVar[str] = "rouge-score"

    @property
    def symmetric(self) -> bool:
        """F1 is: where the sides change places, so do precision and recall in 2PR / (P + R)."""
        return self.readout == "f1"

    def build(self) -> Any:
        """The library's scorer."""
        module = import_library("rouge_score.rouge_scorer", "rouge-score")
        return module.RougeScorer([self.kind], use_stemmer=self.stem)

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """What is read of the library's scores."""
        rouge = self.build()
        name = "fmeasure" if self.readout == "f1" else self.readout
        pairs = zip(hyps, refs, strict=True)
        scores = [getattr(rouge.score(ref, hyp)[self.kind], name) for hyp, (ref,) in pairs]
        return LexicalReading(np.array(scores, dtype=float))

    def notes(self, text: str) -> set[str]:
        """The library keeps only a-z and 0-9: a text in Russian has no words, and scores 0."""
        letters = [letter for letter in text.lower() if letter.isalnum()]
        kept = sum(letter.isascii() for letter in letters)
        return {"mostly outside a-z and 0-9"} if 2 * kept <= len(letters) else set()


Words = Callable[[str], list[str]]


@dataclass(frozen=True)
class Nist(Measure):
    """N-gram matches weighed by how informative they are in the segment's own references."""

    n: int
    tokenize: str
    package: ClassVar[str] = "nltk"
    together: ClassVar[bool] = True

    def build(self) -> Any:
        """The library's function for one segment."""
        return import_library("nltk.translate.nist_score", "nltk").sentence_nist

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores only: corpus weights cannot be summed over segments."""
        nist, words = self.build(), _words(self.tokenize)
        scores = np.zeros(len(hyps))
        for k, (hyp, several) in enumerate(zip(hyps, refs, strict=True)):
            ours, theirs = words(hyp), [words(ref) for ref in several]
            if ours and any(theirs):
                scores[k] = nist(theirs, ours, min(self.n, len(ours)))
        return LexicalReading(scores)


_WORDNET = RLock()
"""Held while WordNet is used: it is loaded in place, and read by seeking in one open file."""


@dataclass(frozen=True)
class Meteor(Measure):
    """Words matched by form, stem and WordNet synonym, with a penalty for fragmentation."""

    alpha: float
    beta: float
    gamma: float
    tokenize: str
    package: ClassVar[str] = "nltk"

    def build(self) -> Any:
        """The library's function for one pair; its WordNet data has to be installed."""
        module = import_library("nltk.translate.meteor_score", "nltk")
        try:
            with _WORDNET:
                module.wordnet.ensure_loaded()
        except LookupError:
            raise MissingPart(
                "METEOR needs WordNet's data; run  python -m nltk.downloader wordnet"
            ) from None
        return module.single_meteor_score

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores only; the library also takes the best of several references."""
        words = _words(self.tokenize)
        settings = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma}
        pairs = zip(hyps, refs, strict=True)
        with _WORDNET:
            meteor = self.build()
            scores = [meteor(words(ref), words(hyp), **settings) for hyp, (ref,) in pairs]
        return LexicalReading(np.array(scores))


def _words(tokenize: str) -> Words:
    return str.split if tokenize == "none" else lambda text: english(text).texts


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
        """The rate of the corpus; 1 where no reference has a word and there are errors."""
        errors, words = tally.tolist()
        return {"score": errors / words if words else float(errors > 0)}


@dataclass(frozen=True)
class Wer(Rate):
    """Levenshtein distance between words."""

    package: ClassVar[str] = "jiwer"

    def build(self) -> Any:
        """The library's alignment of many segments at once."""
        return import_library("jiwer", "jiwer").process_words

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
        """Nothing: no library is needed."""

    def count(self, hyps: Sequence[str], refs: Sequence[str]) -> Array:
        """Errors from the word counts of both texts."""
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
        return import_library("cer", "cer").calculate_cer

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> LexicalReading:
        """Scores only; a side without words scores 1, since the library divides by their number."""
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
