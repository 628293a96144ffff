"""Word vectors from which words stand in one text: the truncated SVD of their counts.

The first embedding of WRDScore (Mussabayev, 2024), there over the words of a method's name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freight.clouds import Tick
from freight.errors import InvalidInput, NotConverged
from freight.train.packed import Packed
from freight.train.vectors import WordVectors, provenance
from freight.types import Array

_DENSE = 1000  # below this many words all eigenvectors are as quick as a few
_NOTHING = 1e-7  # of the longest vector: what rounding leaves of a word that has none


def cooccurrence(
    corpus: Packed, dim: int = 50, window: int | None = None, tick: Tick | None = None
) -> WordVectors:
    """C ≈ UΣV, vectors ½UΣ; C counts ordered pairs of distinct positions in one text.

    `window` is how far apart the two may stand, by default as far as the text is long. A word that
    never stands beside another has no vector, nor has one of which `dim` dimensions keep nothing.
    """
    if len(corpus.words) < dim:
        raise InvalidInput(
            f"{len(corpus.words)} words cannot have {dim} dimensions; lower --dim or --min-count,"
            " or give a larger corpus"
        )
    if window is not None and window < 1:
        raise InvalidInput(f"window is {window}; a pair of words is at least 1 apart")
    vectors = _half_scaled(count_pairs(corpus, window, tick), dim)
    lengths = np.linalg.norm(vectors, axis=1)
    kept = np.flatnonzero(lengths > _NOTHING * lengths.max())
    if not len(kept):
        raise InvalidInput("no text of the corpus has two words; there is nothing to count")
    about = provenance("cooccurrence", {"dim": dim, "window": window}, corpus.origin)
    words = tuple(corpus.words[row] for row in kept)
    return WordVectors(words, vectors[kept].astype(np.float32), about)


def count_pairs(corpus: Packed, window: int | None = None, tick: Tick | None = None) -> Any:
    """How often two words stand in one text, both ways round (word, word), sparse."""
    from scipy.sparse import csr_array

    words = len(corpus.words)
    total = csr_array((words, words))
    for ids, texts in corpus.chunks():
        total = total + (_whole(ids, texts, words) if window is None else
                         _near(ids, texts, words, window))  # fmt: skip
        if tick:
            tick(len(ids))
    return total


def _whole(ids: Array, texts: Array, words: int) -> Any:
    """Every pair of a text, less each position with itself."""
    from scipy.sparse import csr_array

    if not len(ids):
        return csr_array((words, words))
    rows = texts - texts[0]
    present = csr_array((np.ones(len(ids)), (rows, ids)), shape=(rows[-1] + 1, words))
    alone = csr_array((np.ones(len(ids)), (ids, ids)), shape=(words, words))
    pairs = present.T @ present - alone
    pairs.eliminate_zeros()
    return pairs


def _near(ids: Array, texts: Array, words: int, window: int) -> Any:
    """Pairs at most `window` apart: those one apart, those two apart, and so on."""
    from scipy.sparse import csr_array

    pairs = csr_array((words, words))
    for apart in range(1, window + 1):
        same = np.flatnonzero(texts[:-apart] == texts[apart:])
        if not len(same):
            break
        where = ids[same], ids[same + apart]
        pairs = pairs + csr_array((np.ones(len(same)), where), shape=(words, words))
    return pairs + pairs.T


def _half_scaled(counts: Any, dim: int) -> Array:
    """½UΣ of a symmetric matrix, whose singular values are its eigenvalues less their signs.

    Eigenvectors tell λ from -λ, which have one singular value and so no singular vectors of their
    own. They begin from a fixed vector, and the largest entry of each is positive.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    words = counts.shape[0]
    if words <= _DENSE or dim > words // 2:
        values, axes = np.linalg.eigh(counts.toarray())
    else:
        start = np.random.default_rng(0).uniform(0.5, 1.0, words)
        try:
            values, axes = eigsh(counts, dim, which="LM", v0=start)
        except ArpackNoConvergence as error:
            raise NotConverged(f"the SVD of {words} words in {dim} dimensions: {error}") from None
    largest = np.argsort(-np.abs(values), kind="stable")[:dim]
    values, axes = values[largest], axes[:, largest]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(dim)])
    return axes * (signs * np.abs(values) / 2)
