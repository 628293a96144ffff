"""Lexical metrics through their well-known libraries, as scorers beside the transport metrics.

Each has one column, `score`. Several references count as the library has it: together where it
takes several, otherwise the best one; the winner is the one that is best alone. The papers stand
at the factories. Scores are the libraries' own; what each computes is in `libraries`.
"""

import math
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from freight.errors import InvalidInput
from freight.metrics.declaration import HIGHER, LOWER, ByLanguage, Slider, declare
from freight.metrics.parameter_types import (
    CharacterOrder,
    EpsSmoothing,
    FBeta,
    Language,
    Lowercase,
    NltkTokenizer,
    ReferencesRule,
    RougeReadout,
    SacrebleuTokenizer,
    Share,
    Smoothing,
    SmoothValue,
    Stem,
    WordOrder,
)

if TYPE_CHECKING:
    from freight.core.result import Column
    from freight.metrics.lexical.scorer import Lexical, Measure

TOKENIZER = ByLanguage({"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}, other="13a")
"""sacrebleu's tokenizer for a target language."""

_CHRF_2 = 'Popović, "chrF++: words helping character n-grams", WMT 2017.'
_ROUGE = (
    'Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", Text Summarization Branches'
    " Out, 2004."
)


@declare(
    "bleu",
    columns={"score": HIGHER},
    paper='Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation",'
    " ACL 2002.",
    page="lexical",
)
def bleu(
    tokenize: Annotated[SacrebleuTokenizer, TOKENIZER] = None,
    lowercase: Lowercase = False,
    smooth: Smoothing = "exp",
    smooth_value: SmoothValue = None,
    references: ReferencesRule = "best",
    lang: Language = None,
) -> "Lexical":
    """N-gram precision with a brevity penalty, over the corpus (sacrebleu).

    A segment's score is sacrebleu's sentence BLEU; a system's is corpus BLEU, not a mean.
    """
    from freight.metrics.lexical.libraries import Bleu

    tokenizer = _check_tokenizer("bleu", tokenize or TOKENIZER.choose(lang))
    return _percent("bleu", Bleu(tokenizer, lowercase, smooth, smooth_value), references)


@declare(
    "sentence-bleu",
    columns={"score": HIGHER},
    paper='Lin and Och, "ORANGE: a Method for Evaluating Automatic Evaluation Metrics for Machine'
    ' Translation", COLING 2004.',
    page="lexical",
)
def sentence_bleu(
    tokenize: Annotated[SacrebleuTokenizer, TOKENIZER] = None,
    lowercase: Lowercase = False,
    smooth: Smoothing = "add-k",
    smooth_value: SmoothValue = None,
    references: ReferencesRule = "best",
    lang: Language = None,
) -> "Lexical":
    """BLEU of each segment with add-one smoothing, and their mean (sacrebleu)."""
    from freight.metrics.lexical.libraries import SentenceBleu

    tokenizer = _check_tokenizer("sentence-bleu", tokenize or TOKENIZER.choose(lang))
    measure = SentenceBleu(tokenizer, lowercase, smooth, smooth_value, effective_order=True)
    return _percent("sentence-bleu", measure, references)


@declare(
    "chrf",
    columns={"score": HIGHER},
    paper='Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015.',
    page="lexical",
)
def chrf(
    beta: FBeta = 2,
    char_order: CharacterOrder = 6,
    lowercase: Lowercase = False,
    eps_smoothing: EpsSmoothing = False,
    references: ReferencesRule = "best",
) -> "Lexical":
    """F-score of character n-grams, recall counting more (sacrebleu)."""
    from freight.metrics.lexical.libraries import Chrf

    return _percent("chrf", Chrf(char_order, 0, beta, lowercase, eps_smoothing), references)


@declare("chrf++", columns={"score": HIGHER}, paper=_CHRF_2, page="lexical")
def chrf_plus_plus(
    beta: FBeta = 2,
    char_order: CharacterOrder = 6,
    word_order: WordOrder = 2,
    lowercase: Lowercase = False,
    eps_smoothing: EpsSmoothing = False,
    references: ReferencesRule = "best",
) -> "Lexical":
    """F-score of character and word n-grams (sacrebleu)."""
    from freight.metrics.lexical.libraries import Chrf

    measure = Chrf(char_order, word_order, beta, lowercase, eps_smoothing)
    return _percent("chrf++", measure, references)


@declare(
    "word-f",
    columns={"score": HIGHER},
    presets={"popovic": {"word_order": 2, "eps_smoothing": True}},
    paper=_CHRF_2,
    page="lexical",
)
def word_f(
    beta: FBeta = 2,
    word_order: WordOrder = 4,
    lowercase: Lowercase = False,
    eps_smoothing: EpsSmoothing = False,
    references: ReferencesRule = "best",
) -> "Lexical":
    """F-score of word n-grams: chrF++ without characters (sacrebleu).

    `preset="popovic"` is what Popović's chrF++.py computes at its default, words and word pairs.
    """
    from freight.metrics.lexical.libraries import Chrf

    return _percent("word-f", Chrf(0, word_order, beta, lowercase, eps_smoothing), references)


@declare(
    "ter",
    columns={"score": LOWER},
    paper='Snover et al., "A Study of Translation Edit Rate with Targeted Human Annotation",'
    " AMTA 2006.",
    page="lexical",
)
def ter(
    normalized: Annotated[bool, Field(description="Whether texts are tokenized first.")] = False,
    no_punct: Annotated[bool, Field(description="Whether punctuation is removed.")] = False,
    asian_support: Annotated[
        bool, Field(description="Whether Asian characters are tokenized one by one.")
    ] = False,
    case_sensitive: Annotated[
        bool, Field(description="Whether upper and lower case differ.")
    ] = False,
    references: ReferencesRule = "best",
) -> "Lexical":
    """Edits, with shifts of phrases, per hundred reference words (sacrebleu)."""
    from freight.core.result import Column
    from freight.metrics.lexical.libraries import Ter

    column = Column("score", False, 0.0, math.nan)  # TER has no upper bound
    measure = Ter(normalized, no_punct, asian_support, case_sensitive)
    return _lexical("ter", column, measure, references)


@declare("rouge-1", columns={"score": HIGHER}, paper=_ROUGE, page="lexical")
def rouge_1(
    stem: Stem = False, readout: RougeReadout = "f1", references: ReferencesRule = "best"
) -> "Lexical":
    """F-score of common words (rouge-score)."""
    return _rouge("rouge-1", "rouge1", stem, readout, references)


@declare("rouge-2", columns={"score": HIGHER}, paper=_ROUGE, page="lexical")
def rouge_2(
    stem: Stem = False, readout: RougeReadout = "f1", references: ReferencesRule = "best"
) -> "Lexical":
    """F-score of common word pairs (rouge-score)."""
    return _rouge("rouge-2", "rouge2", stem, readout, references)


@declare("rouge-l", columns={"score": HIGHER}, paper=_ROUGE, page="lexical")
def rouge_l(
    stem: Stem = False, readout: RougeReadout = "f1", references: ReferencesRule = "best"
) -> "Lexical":
    """F-score of the longest common subsequence of words (rouge-score)."""
    return _rouge("rouge-l", "rougeL", stem, readout, references)


@declare(
    "nist",
    columns={"score": HIGHER},
    paper='Doddington, "Automatic Evaluation of Machine Translation Quality Using N-gram'
    ' Co-Occurrence Statistics", HLT 2002.',
    page="lexical",
)
def nist(
    n: Annotated[int, Field(ge=1, description="Longest word n-grams."), Slider(1, 9)] = 5,
    tokenize: NltkTokenizer = "nltk",
    references: ReferencesRule = "best",
) -> "Lexical":
    """N-gram matches weighed by how rare they are in the segment's references (nltk)."""
    from freight.core.result import Column
    from freight.metrics.lexical.libraries import Nist

    column = Column("score", True, math.nan, 0.0)  # identical texts have no common NIST
    return _lexical("nist", column, Nist(n, tokenize), references)


@declare(
    "meteor",
    columns={"score": HIGHER},
    paper='Banerjee and Lavie, "METEOR: An Automatic Metric for MT Evaluation with Improved'
    ' Correlation with Human Judgments", ACL workshop on evaluation measures, 2005.',
    page="lexical",
)
def meteor(
    alpha: Annotated[Share, Field(description="Weight of recall.")] = 0.9,
    beta: Annotated[
        float,
        Field(ge=0.0, allow_inf_nan=False, description="Exponent of the fragmentation penalty."),
        Slider(0.01, 10.0),
    ] = 3.0,
    gamma: Annotated[Share, Field(description="Factor of the fragmentation penalty.")] = 0.5,
    tokenize: NltkTokenizer = "nltk",
    references: ReferencesRule = "best",
) -> "Lexical":
    """Words matched by form, stem and synonym, with a fragmentation penalty (nltk, WordNet).

    The penalty is `gamma` (chunks / matches) ** `beta`.
    """
    from freight.metrics.lexical.libraries import Meteor

    return _share("meteor", Meteor(alpha, beta, gamma, tokenize), references)


@declare(
    "wer",
    columns={"score": LOWER},
    paper='Morris, Maier and Green, "From WER and RIL to MER and WIL: improved evaluation measures'
    ' for connected speech recognition", Interspeech 2004.',
    page="lexical",
)
def wer(references: ReferencesRule = "best") -> "Lexical":
    """Word edits per reference word (jiwer)."""
    from freight.metrics.lexical.libraries import Wer

    return _rate("wer", Wer(), references)


@declare(
    "per",
    columns={"score": LOWER},
    paper='Tillmann et al., "Accelerated DP Based Search for Statistical Translation",'
    " Eurospeech 1997.",
    page="lexical",
)
def per(references: ReferencesRule = "best") -> "Lexical":
    """Word edits per reference word, whatever the order of the words."""
    from freight.metrics.lexical.libraries import Per

    return _rate("per", Per(), references)


@declare(
    "character",
    columns={"score": LOWER},
    paper='Wang et al., "CharacTer: Translation Edit Rate on Character Level", WMT 2016.',
    page="lexical",
)
def character(references: ReferencesRule = "best") -> "Lexical":
    """CharacTER: character edits after shifts of words, per hypothesis character (cer)."""
    from freight.metrics.lexical.libraries import Character

    return _rate("character", Character(), references)


def _check_tokenizer(metric: str, name: str) -> str:
    """The tokenizer, if the installed sacrebleu has it."""
    from freight.metrics.lexical.libraries import sacrebleu_metrics

    there = sacrebleu_metrics().BLEU.TOKENIZERS
    if name not in there:
        raise InvalidInput(f"tokenize={name!r} of {metric}: must be one of {', '.join(there)}")
    return name


def _rouge(name: str, kind: str, stem: bool, readout: RougeReadout, references: str) -> "Lexical":
    from freight.metrics.lexical.libraries import Rouge

    return _share(name, Rouge(kind, stem, readout), references)


def _percent(name: str, measure: "Measure", references: str) -> "Lexical":
    from freight.core.result import Column

    return _lexical(name, Column("score", True, 100.0, 0.0), measure, references)


def _share(name: str, measure: "Measure", references: str) -> "Lexical":
    from freight.core.result import Column

    return _lexical(name, Column("score", True, 1.0, 0.0), measure, references)


def _rate(name: str, measure: "Measure", references: str) -> "Lexical":
    from freight.core.result import Column

    return _lexical(name, Column("score", False, 0.0, 1.0), measure, references)


def _lexical(name: str, column: "Column", measure: "Measure", references: str) -> "Lexical":
    from freight.metrics.lexical.scorer import Lexical

    return Lexical(name, (column,), measure, references)
