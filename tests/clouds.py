"""Clouds and measures made by hand, so that every answer can be worked out on paper."""

from collections.abc import Sequence

import numpy as np
import torch

from freight.core.metric import measures_of_points
from freight.core.types import Cloud, Kind, Measures, Spans, UnitSpans


def cloud(
    texts: Sequence[str],
    vectors: Sequence[Sequence[Sequence[float]]],
    kinds: Sequence[Sequence[int]] | None = None,
    pieces: Sequence[Sequence[str]] | None = None,
) -> Cloud:
    """One layer; each text's units are its words, or the pieces given ("##x" continues a word)."""
    words = [list(one) for one in pieces] if pieces else [text.split() for text in texts]
    spans, names = [], []
    for text, parts in zip(texts, words, strict=True):
        place = 0
        for part in parts:
            plain = part.removeprefix("##")
            if plain not in text:  # a special token stands nowhere
                spans.append((0, 0, False))
            else:
                start = text.index(plain, place)
                place = start + len(plain)
                spans.append((start, place, part.startswith("##")))
            names.append(plain.lower())
    known = {name: k for k, name in enumerate(dict.fromkeys(names))}
    starts, ends, continued = (np.array(x) for x in zip(*spans, strict=True))
    counts = [len(parts) for parts in words]
    flat = [vector for one in vectors for vector in one]
    kind = np.array([k for one in kinds for k in one] if kinds else [0] * len(names), np.uint8)
    return Cloud(
        texts=tuple(texts),
        layers=torch.tensor(flat, dtype=torch.float32)[:, None, :],
        offsets=np.concatenate(([0], np.cumsum(counts))),
        ids=np.array([known[name] for name in names]),
        places=UnitSpans(lambda: Spans(starts, ends, continued.astype(bool))),
        kind=kind,
        windowed=np.zeros(len(texts), bool),
        halved=np.zeros(len(texts), bool),
    )


def measures(*sides: Sequence[Sequence[float]]) -> Measures:
    """Uniform masses on these points, one measure per side."""
    return measures_of_points([np.array(side, np.float64) for side in sides])


SPECIAL = int(Kind.SPECIAL)
