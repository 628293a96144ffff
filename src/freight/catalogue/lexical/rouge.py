"""ROUGE as rouge-score computes it: Lin, "ROUGE", Text Summarization Branches Out, 2004."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from freight.catalogue.lexical import checks
from freight.catalogue.lexical.scorer import Measure, Reading, library


@dataclass(frozen=True)
class Rouge(Measure):
    """The F-measure of one kind of ROUGE."""

    kind: str
    stem: bool
    package: ClassVar[str] = "rouge-score"
    symmetric: ClassVar[bool] = True  # 2PR / (P + R): precision and recall change places

    def __post_init__(self) -> None:
        checks.switch("stem", self.stem)
        super().__post_init__()

    def build(self) -> Any:
        """The library's scorer."""
        module = library("rouge_score.rouge_scorer", "rouge-score")
        return module.RougeScorer([self.kind], use_stemmer=self.stem)

    def __call__(self, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> Reading:
        """F-measures."""
        scorer = self.build()
        pairs = zip(hyps, refs, strict=True)
        found = [scorer.score(ref, hyp)[self.kind].fmeasure for hyp, (ref,) in pairs]
        return Reading(np.array(found, dtype=float))

    def notes(self, text: str) -> set[str]:
        """The library keeps a-z and 0-9 alone: a text in Russian has no words, and scores 0."""
        letters = [letter for letter in text.lower() if letter.isalnum()]
        kept = sum(letter.isascii() for letter in letters)
        return {"mostly outside a-z and 0-9"} if 2 * kept <= len(letters) else set()
