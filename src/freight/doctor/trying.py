"""Whether texts become vectors and vectors become scores, here and now."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

from freight.doctor.troubles import Trouble
from freight.errors import FreightError

_HYP, _REF = "The boy in a coat.", "The young man in a slicker."
_EXPECTED = 0.6
_TOLERANCE = 0.005


@dataclass(frozen=True)
class Encoding:
    """The encoder that is used where none is named, loaded and tried."""

    name: str
    folder: str
    identity: str
    layers: int
    dimensions: int
    seconds: float


@dataclass(frozen=True)
class Trial:
    """The score of two sentences, what it should be, and how long it took at first and again."""

    metric: str
    encoder: str
    score: float
    expected: float
    seconds: float
    again: float

    @property
    def trouble(self) -> Trouble | None:
        """What to do where the score is another than anywhere else."""
        if abs(self.score - self.expected) <= _TOLERANCE:
            return None
        what = f"two sentences score {self.score:.4f} by {self.metric}, not {self.expected:.4f}"
        return Trouble(what, "pip install --force-reinstall 'freight[embedded]'")


def encoding() -> Encoding:
    """Load the default encoder and encode a sentence."""
    from freight.encoding import EMBEDDED, encoder
    from freight.encoding.embedded import embedded_folder

    folder = embedded_folder()
    start = time.perf_counter()
    chosen = encoder()
    cloud = chosen.encode([_HYP], [chosen.depth])
    seconds = round(time.perf_counter() - start, 3)
    shape = cloud.layers.shape
    return Encoding(EMBEDDED, str(folder), chosen.identity, chosen.depth, shape[-1], seconds)


def trial() -> Trial:
    """Score two sentences; equal ones of hashed words where the default encoder is not here."""
    from freight.catalogue import load
    from freight.encoding import EMBEDDED
    from freight.encoding.embedded import embedded_folder

    try:
        embedded_folder()
        name, hyp, expected = EMBEDDED, _HYP, _EXPECTED
    except FreightError:
        name, hyp, expected = "hashed", _REF, 1.0
    metric, laps = load("freight", encoder=name), [time.perf_counter()]
    for _ in range(2):
        score = float(metric.score([hyp], [_REF])["score"][0])
        laps.append(time.perf_counter())
    first, again = (round(end - start, 3) for start, end in pairwise(laps))
    return Trial("freight", name, score, expected, first, again)
