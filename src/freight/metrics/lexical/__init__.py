"""Lexical metrics through their well-known libraries, as scorers beside the transport metrics.

Each has one column, `score`. Several references count as the library has it: together where it
takes several, otherwise the best one; the winner is the one that is best alone.
"""

import math

from freight.core.result import Column
from freight.metrics.lexical import scorer
from freight.metrics.lexical.error_rates import Character, Per, Wer
from freight.metrics.lexical.overlap import Meteor, Nist, Rouge
from freight.metrics.lexical.sacre import Bleu, Chrf, SentenceBleu, Ter
from freight.metrics.lexical.scorer import Lexical, Measure

__all__ = [
    "Lexical",
    "bleu",
    "character",
    "chrf",
    "chrf_plus_plus",
    "meteor",
    "nist",
    "per",
    "rouge_1",
    "rouge_2",
    "rouge_l",
    "sentence_bleu",
    "ter",
    "wer",
    "word_f",
]

PERCENT = Column("score", True, 100.0, 0.0)
SHARE = Column("score", True, 1.0, 0.0)
INFORMATION = Column("score", True, math.nan, 0.0)  # identical texts have no common NIST
RATE = Column("score", False, 0.0, 1.0)
PERCENT_RATE = Column("score", False, 0.0, math.nan)  # TER has no upper bound

_CHRF_2 = 'Popović, "chrF++: words helping character n-grams", WMT 2017.'
_ROUGE = (
    'Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", Text Summarization Branches'
    " Out, 2004."
)
PAPERS = {
    "bleu": 'Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation",'
    " ACL 2002.",
    "sentence-bleu": 'Lin and Och, "ORANGE: a Method for Evaluating Automatic Evaluation Metrics'
    ' for Machine Translation", COLING 2004.',
    "chrf": 'Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015.',
    "chrf++": _CHRF_2,
    "word-f": _CHRF_2,
    "ter": 'Snover et al., "A Study of Translation Edit Rate with Targeted Human Annotation",'
    " AMTA 2006.",
    "rouge-1": _ROUGE,
    "rouge-2": _ROUGE,
    "rouge-l": _ROUGE,
    "nist": 'Doddington, "Automatic Evaluation of Machine Translation Quality Using N-gram'
    ' Co-Occurrence Statistics", HLT 2002.',
    "meteor": 'Banerjee and Lavie, "METEOR: An Automatic Metric for MT Evaluation with Improved'
    ' Correlation with Human Judgments", ACL workshop on evaluation measures, 2005.',
    "wer": 'Morris, Maier and Green, "From WER and RIL to MER and WIL: improved evaluation measures'
    ' for connected speech recognition", Interspeech 2004.',
    "per": 'Tillmann et al., "Accelerated DP Based Search for Statistical Translation",'
    " Eurospeech 1997.",
    "character": 'Wang et al., "CharacTer: Translation Edit Rate on Character Level", WMT 2016.',
}


def bleu(
    tokenize: str | None = None,
    lowercase: bool = False,
    smooth: str = "exp",
    smooth_value: float | None = None,
    references: str = "best",
    lang: str | None = None,
) -> Lexical:
    """N-gram precision with a brevity penalty, over the corpus (sacrebleu).

    A segment's score is sacrebleu's sentence BLEU; a system's is corpus BLEU, not a mean. Without
    a tokenizer it is sacrebleu's for the language, 13a for most.
    """
    measure = Bleu(tokenize or _tokenizer(lang), lowercase, smooth, smooth_value)
    return _lexical("bleu", PERCENT, measure, references)


def sentence_bleu(
    tokenize: str | None = None,
    lowercase: bool = False,
    smooth: str = "add-k",
    smooth_value: float | None = None,
    references: str = "best",
    lang: str | None = None,
) -> Lexical:
    """BLEU of each segment by itself with add-one smoothing, and their mean (sacrebleu)."""
    chosen = tokenize or _tokenizer(lang)
    measure = SentenceBleu(chosen, lowercase, smooth, smooth_value, effective_order=True)
    return _lexical("sentence-bleu", PERCENT, measure, references)


def chrf(
    beta: float = 2, char_order: int = 6, lowercase: bool = False, references: str = "best"
) -> Lexical:
    """F-score of character n-grams, recall counting more (sacrebleu)."""
    measure = Chrf(scorer.order("char_order", char_order), 0, beta, lowercase)
    return _lexical("chrf", PERCENT, measure, references)


def chrf_plus_plus(
    beta: float = 2,
    char_order: int = 6,
    word_order: int = 2,
    lowercase: bool = False,
    references: str = "best",
) -> Lexical:
    """chrF with word n-grams besides (sacrebleu)."""
    orders = scorer.order("char_order", char_order), scorer.order("word_order", word_order)
    return _lexical("chrf++", PERCENT, Chrf(*orders, beta, lowercase), references)


def word_f(
    beta: float = 2, word_order: int = 4, lowercase: bool = False, references: str = "best"
) -> Lexical:
    """F-score of word n-grams: chrF++ without characters (sacrebleu)."""
    measure = Chrf(0, scorer.order("word_order", word_order), beta, lowercase)
    return _lexical("word-f", PERCENT, measure, references)


def ter(
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
    references: str = "best",
) -> Lexical:
    """Edits with shifts of phrases, per hundred reference words (sacrebleu)."""
    measure = Ter(normalized, no_punct, asian_support, case_sensitive)
    return _lexical("ter", PERCENT_RATE, measure, references)


def rouge_1(stem: bool = False, references: str = "best") -> Lexical:
    """F-score of words in common (rouge-score)."""
    return _lexical("rouge-1", SHARE, Rouge("rouge1", stem), references)


def rouge_2(stem: bool = False, references: str = "best") -> Lexical:
    """F-score of word pairs in common (rouge-score)."""
    return _lexical("rouge-2", SHARE, Rouge("rouge2", stem), references)


def rouge_l(stem: bool = False, references: str = "best") -> Lexical:
    """F-score of the longest common subsequence of words (rouge-score)."""
    return _lexical("rouge-l", SHARE, Rouge("rougeL", stem), references)


def nist(n: int = 5, tokenize: str = "nltk", references: str = "best") -> Lexical:
    """N-gram matches weighed by how rare they are in the segment's references (nltk)."""
    return _lexical("nist", INFORMATION, Nist(n, tokenize), references)


def meteor(
    alpha: float = 0.9,
    beta: float = 3.0,
    gamma: float = 0.5,
    tokenize: str = "nltk",
    references: str = "best",
) -> Lexical:
    """Words matched by form, stem and synonym, less a penalty for fragments (nltk, WordNet).

    `alpha` is the weight of recall; the penalty is `gamma` (chunks / matches) ** `beta`.
    """
    return _lexical("meteor", SHARE, Meteor(alpha, beta, gamma, tokenize), references)


def wer(references: str = "best") -> Lexical:
    """Word edits per reference word (jiwer)."""
    return _lexical("wer", RATE, Wer(), references)


def per(references: str = "best") -> Lexical:
    """Word edits per reference word, whatever the order of the words."""
    return _lexical("per", RATE, Per(), references)


def character(references: str = "best") -> Lexical:
    """CharacTER: character edits after shifts of words, per hypothesis character (cer)."""
    return _lexical("character", RATE, Character(), references)


def _tokenizer(lang: str | None) -> str:
    """What sacrebleu takes for a target language."""
    return {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}.get(lang or "", "13a")


def _lexical(name: str, column: Column, measure: Measure, references: str) -> Lexical:
    return Lexical(name, (column,), measure, references)
