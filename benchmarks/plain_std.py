"""STD written down plainly, word by word, as its algorithm reads: slow, and the oracle of ours."""

from collections.abc import Callable

import numpy as np
import ot
from nltk.tokenize import NLTKWordTokenizer

from freight.transport.types import Array

Gram = tuple[str, ...]


def std(hyp: str, ref: str, vector: Callable[[str], Array | None], shared: str = "stays") -> float:
    """The segment score of a pair; `vector` is None for a word that has none."""
    return 0.5 * std_n(hyp, ref, vector, 1, shared) + 0.5 * std_n(hyp, ref, vector, 2, shared)


def std_n(
    hyp: str,
    ref: str,
    vector: Callable[[str], Array | None],
    n: int,
    shared: str = "stays",
    centroid: str = "list",
) -> float:
    """The part of it that n-grams of one length make."""
    sides = [grams(text, vector, n) for text in (hyp, ref)]
    every = sorted(set(sides[0]) | set(sides[1]))
    points = {gram: np.concatenate([vector(word) for word in gram]) for gram in every}
    masses = [softmax(similarities(every, side, points, centroid)) for side in sides]
    cost = np.zeros((len(every), len(every)))
    for i, one in enumerate(every):
        for j, other in enumerate(every):
            near = max(cosine(points[one], points[other]), 0.0)
            cost[i, j] = 0.6 * (1.0 - near) + 0.4 * order(one, other, sides[0], sides[1])
    if shared == "stays":
        common = np.minimum(masses[0], masses[1])
        masses = [mass - common for mass in masses]
        if masses[0].sum() < 1e-14:
            return 0.0
    share = float(masses[0].sum())
    return share * float(ot.emd2(masses[0] / share, masses[1] / masses[1].sum(), cost))


def grams(text: str, vector: Callable[[str], Array | None], n: int) -> list[Gram]:
    words = NLTKWordTokenizer().tokenize(text.lower())
    if vector("unk") is not None:
        words = [word if vector(word) is not None else "unk" for word in words]
    words = [word for word in words if vector(word) is not None]
    while len(words) < n:
        words.append(words[-1])
    return [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]


def similarities(
    every: list[Gram], text: list[Gram], points: dict[Gram, Array], centroid: str
) -> list[float]:
    averaged = sorted(set(text)) if centroid == "set" else text
    mean = np.mean([points[gram] for gram in averaged], axis=0)
    return [1.0 if gram in text else cosine(points[gram], mean) for gram in every]


def softmax(values: list[float]) -> Array:
    powers = np.exp(values)
    return powers / powers.sum()


def cosine(one: Array, other: Array) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def order(one: Gram, other: Gram, hyp: list[Gram], ref: list[Gram]) -> float:
    """How far apart a unit of the hypothesis and one of the reference stand."""
    far = 0.0
    if one in hyp and other in ref:
        far = abs(place(one, hyp) - place(other, ref))
    if far == 0.0 and one in ref and other in hyp:
        far = abs(place(one, ref) - place(other, hyp))
    return far


def place(gram: Gram, text: list[Gram]) -> float:
    last = len(text) - 1 - text[::-1].index(gram)
    return (last + 1) / len(text)
