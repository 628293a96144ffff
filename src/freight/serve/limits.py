"""How much one request may ask for, and how many may ask at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from freight.errors import InvalidInput
from freight.pipeline import Segment

METRICS = 8
"""The most metrics of a request."""


@dataclass(frozen=True)
class Limits:
    """What is refused, and when: sizes of a request, its seconds, and how much may wait.

    `queue` counts pairs that wait to be scored, `concurrency` requests that are being read,
    waited for or answered.
    """

    body: int = 2**20
    texts: int = 512
    characters: int = 2000
    seconds: float = 30.0
    concurrency: int = 256
    queue: int = 512

    def check(self, segments: Sequence[Segment]) -> None:
        """Refuse too many texts, too long ones, and what is no text; the cure is said."""
        count = sum(1 + len(refs) for _, refs in segments)
        if count > self.texts:
            raise InvalidInput(
                f"there are {count:,} texts; send at most {self.texts:,} at once, in several"
                " requests, or start the service with a larger --texts"
            )
        for k, (hyp, refs) in enumerate(segments):
            self._check_text(hyp, f"pairs.{k}.hyp")
            for r, ref in enumerate(refs):
                self._check_text(ref, f"pairs.{k}.refs.{r}")

    def _check_text(self, text: str, where: str) -> None:
        if len(text) > self.characters:
            raise InvalidInput(
                f"{where} has {len(text):,} characters; a text has at most {self.characters:,}, or"
                " start the service with a larger --characters"
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput(
                f"{where} has half a character, which is no text; send whole ones (a lone"
                " surrogate)"
            ) from None
