"""Word vectors from a corpus: co-occurrence counts reduced by a truncated SVD, or word2vec.

They are the two embeddings of WRDScore (Mussabayev, 2024), whose corpus is names of methods, and
are saved in any format that the encoder `static:FILE` reads, together with how they were made.

`features` gives vectors of whole texts, for classifiers: the points of a metric's measure, pooled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from freight.core.types import Progress
from freight.data.output import check_path, open_output, write_whole
from freight.errors import InvalidInput, MissingPart, NotConverged
from freight.learn.corpus import PackedCorpus
from freight.transport.types import Array

if TYPE_CHECKING:
    from torch import Tensor

    from freight.core.metric import Metric
    from freight.core.scorers import Scorer

_DENSE = 1000  # up to this many words, all eigenvectors take no longer than a few
_ZERO = 1e-7  # of the longest vector: what rounding leaves of a vector that is zero
_LONGEST_TEXT = 10_000  # gensim ignores the words of a text beyond this many
_NPZ_LETTERS = 2**28  # in an .npz, where each takes four bytes


def cooccurrence(
    corpus: PackedCorpus,
    dim: int = 50,
    window: int | None = None,
    progress: Progress | None = None,
) -> WordVectors:
    """Vectors ½UΣ of C ≈ UΣV; C counts ordered pairs of distinct positions in one text.

    `window` is the largest distance of the two positions, by default any. A word that is never
    beside another has no vector, and neither has one whose projection on `dim` dimensions is zero.
    """
    if len(corpus.words) < dim:
        raise InvalidInput(
            f"{len(corpus.words)} words cannot have {dim} dimensions; lower --dim or --min-count,"
            " or give a larger corpus"
        )
    if window is not None and window < 1:
        raise InvalidInput(f"window is {window}; a pair of words is at least 1 apart")
    vectors = _half_scaled_vectors(count_pairs(corpus, window, progress), dim)
    lengths = np.linalg.norm(vectors, axis=1)
    kept = np.flatnonzero(lengths > _ZERO * lengths.max())
    if not len(kept):
        raise InvalidInput("no text of the corpus has two words; there is nothing to count")
    about = provenance("cooccurrence", {"dim": dim, "window": window}, corpus.origin)
    words = tuple(corpus.words[row] for row in kept)
    return WordVectors(words, vectors[kept].astype(np.float32), about)


def count_pairs(
    corpus: PackedCorpus, window: int | None = None, progress: Progress | None = None
) -> Any:
    """How often two words are in one text, in both orders: a sparse matrix (word, word)."""
    from scipy.sparse import csr_array

    words = len(corpus.words)
    total = csr_array((words, words))
    for ids, texts in corpus.chunks():
        total = total + (
            _pairs_in_texts(ids, texts, words)
            if window is None
            else _pairs_in_window(ids, texts, words, window)
        )
        if progress:
            progress(len(ids))
    return total


def _pairs_in_texts(ids: Array, texts: Array, words: int) -> Any:
    """Every pair of a text, except each position with itself."""
    from scipy.sparse import csr_array

    if not len(ids):
        return csr_array((words, words))
    rows = texts - texts[0]
    present = csr_array((np.ones(len(ids)), (rows, ids)), shape=(rows[-1] + 1, words))
    alone = csr_array((np.ones(len(ids)), (ids, ids)), shape=(words, words))
    pairs = present.T @ present - alone
    pairs.eliminate_zeros()
    return pairs


def _pairs_in_window(ids: Array, texts: Array, words: int, window: int) -> Any:
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


def _half_scaled_vectors(counts: Any, dim: int) -> Array:
    """½UΣ of a symmetric matrix, whose singular values are the absolute values of its eigenvalues.

    Eigenvectors separate λ from -λ, which share a singular value and so have no singular vectors
    of their own. The iteration starts from a fixed vector, and the largest entry of each axis is
    positive, so that the result is deterministic.
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


def word2vec(
    corpus: PackedCorpus,
    dim: int = 100,
    window: int = 2,
    epochs: int = 5,
    seed: int = 0,
    threads: int = 1,
    skip_gram: bool = False,
    progress: Progress | None = None,
) -> WordVectors:
    """Vectors that predict a word from its neighbours; deterministic with one thread."""
    models = gensim_models()
    for name, value in {"dim": dim, "window": window, "epochs": epochs, "threads": threads}.items():
        if value < 1:
            raise InvalidInput(f"{name} is {value}; it is at least 1")
    if seed < 0:
        raise InvalidInput(f"seed is {seed}; it is at least 0")
    model = models.Word2Vec(
        vector_size=dim,
        window=window,
        min_count=1,
        sorted_vocab=0,
        seed=seed,
        workers=threads,
        sg=int(skip_gram),
    )
    frequencies = dict(zip(corpus.words, corpus.counts.tolist(), strict=True))
    model.build_vocab_from_freq(frequencies, corpus_count=corpus.texts)
    model.train(SentenceStream(corpus, progress), total_words=corpus.tokens, epochs=epochs)
    options = {
        "dim": dim, "window": window, "epochs": epochs, "seed": seed, "threads": threads,
        "skip_gram": skip_gram,
    }  # fmt: skip
    about = provenance("word2vec", options, corpus.origin)
    return WordVectors(tuple(model.wv.index_to_key), np.asarray(model.wv.vectors), about)


@dataclass(frozen=True)
class SentenceStream:
    """The texts as lists of words, as often as they are iterated over."""

    corpus: PackedCorpus
    progress: Progress | None

    def __iter__(self) -> Iterator[list[str]]:
        names = np.array(self.corpus.words, dtype=object)
        for ids, texts in self.corpus.chunks():
            words = names[ids].tolist()
            bounds = [0, *(np.flatnonzero(np.diff(texts)) + 1).tolist(), len(words)]
            for begin, end in pairwise(bounds):
                for at in range(begin, end, _LONGEST_TEXT):
                    yield words[at : min(end, at + _LONGEST_TEXT)]
            if self.progress:
                self.progress(len(ids))


@dataclass(frozen=True, eq=False)
class WordVectors:
    """One vector per word, the most frequent word first, and how the vectors were made."""

    words: tuple[str, ...]
    vectors: Array
    provenance: dict[str, Any]

    def nearest(self, word: str, count: int = 5) -> list[tuple[str, float]]:
        """The words of the highest cosine with this one."""
        if word not in self.words:
            raise InvalidInput(f"{word!r} has no vector")
        row = self.words.index(word)
        lengths = np.linalg.norm(self.vectors, axis=1)
        cosines = self.vectors @ self.vectors[row] / np.maximum(lengths * lengths[row], 1e-30)
        cosines[row] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(count, len(self.words) - 1)]
        return [(self.words[at], float(cosines[at])) for at in best]

    def save(self, path: str | Path) -> None:
        """Write a file that `static:FILE` reads, in the format of its ending, atomically.

        The provenance is written beside it as FILE.json; in an .npz it is inside.
        """
        path = Path(path)
        check_ending(path)
        about = json.dumps(self.provenance, indent=1, ensure_ascii=False) + "\n"
        with open_output(path) as stream:
            WRITERS[path.suffix](stream, self, about)
        if path.suffix != ".npz":
            write_whole(path.with_name(f"{path.name}.json"), about.encode())


def provenance(method: str, options: dict[str, Any], corpus: dict[str, Any]) -> dict[str, Any]:
    """How vectors were made; without a date, so that the same input gives the same file."""
    from freight import __version__

    packages = "numpy", "gensim" if method == "word2vec" else "scipy"
    versions = {"freight": __version__, **{name: version(name) for name in packages}}
    return {"method": method, "options": options, "corpus": corpus, "versions": versions}


def check_ending(path: Path) -> None:
    """Refuse a file that could not be written, before any work is done."""
    check_path(path, tuple(WRITERS))
    if path.suffix == ".kv":
        gensim_models()


def gensim_models() -> Any:
    """gensim's models, if it is installed."""
    try:
        from gensim import models
    except ImportError:
        raise MissingPart.extra("gensim", "train") from None
    return models


def _write_gensim(stream: BinaryIO, vectors: WordVectors, about: str) -> None:
    keyed = gensim_models().KeyedVectors(vectors.vectors.shape[1])
    keyed.add_vectors(list(vectors.words), vectors.vectors)
    keyed.lifecycle_events = None  # they would put the date into the file
    keyed.save(stream)  # one file, so that its hash identifies all of it


def _write_numpy(stream: BinaryIO, vectors: WordVectors, about: str) -> None:
    longest = max(vectors.words, key=len)
    if len(longest) * len(vectors.words) > _NPZ_LETTERS:
        raise InvalidInput(
            f"{longest[:20]}... has {len(longest):,} letters, and an .npz gives every word as much"
            " room; write a .bin, or raise --min-count"
        )
    np.savez(stream, words=np.array(vectors.words), vectors=vectors.vectors, provenance=about)


def _write_binary(stream: BinaryIO, vectors: WordVectors, about: str) -> None:
    stream.write(b"%d %d\n" % vectors.vectors.shape)
    for word, vector in zip(vectors.words, vectors.vectors, strict=True):
        stream.write(word.encode() + b" " + vector.tobytes() + b"\n")


def _write_text(stream: BinaryIO, vectors: WordVectors, about: str) -> None:
    form = " ".join(["%.9g"] * vectors.vectors.shape[1])  # nine digits identify a float32
    stream.write(f"{len(vectors.words)} {vectors.vectors.shape[1]}\n".encode())
    for word, vector in zip(vectors.words, vectors.vectors, strict=True):
        stream.write(f"{word} {form % tuple(vector)}\n".encode())


WRITERS: dict[str, Callable[[BinaryIO, WordVectors, str], None]] = {
    ".kv": _write_gensim,
    ".npz": _write_numpy,
    ".bin": _write_binary,
    ".vec": _write_text,
    ".txt": _write_text,
}
"""How vectors are written, by the ending of the file."""


_TEXTS = 512


def features(scorer: Scorer, texts: Sequence[str], pool: str = "mean") -> Array:
    """One row per text (text, feature): the points of its measure, weighted by their masses.

    `pool` is "mean", "deviation" (the mean, and the standard deviation of the points in each
    dimension) or "power-means" (minimum, mean and maximum). A text without units is all zeros. The
    mean of a barycenter is the mean of all layers' units, so `bary-score` needs another pool.
    """
    from freight.core.metric import Metric

    if pool not in POOLS:
        raise InvalidInput(f"pool={pool!r}; there is {', '.join(POOLS)}")
    if not isinstance(scorer, Metric) or scorer.needs_fitting:
        raise InvalidInput(f"{scorer.name} gives no points; take a fitted metric, as in bary-score")
    if isinstance(texts, str) or not len(texts):
        raise InvalidInput("give a list of texts, one or more")
    parts = (list(texts[at : at + _TEXTS]) for at in range(0, len(texts), _TEXTS))
    return np.concatenate([_pool_texts(scorer, part, pool) for part in parts])


def _pool_texts(metric: Metric, texts: list[str], pool: str) -> Array:
    import torch

    with torch.inference_mode():
        measures = metric.weighting(metric.units(metric.encoder.encode(texts, metric.layers)))
        points = measures.points.double().cpu()
    rows = []
    for first, last in zip(measures.offsets[:-1], measures.offsets[1:], strict=True):
        weights = torch.as_tensor(measures.weights[first:last])[:, None]
        here = points[first:last] if first < last else points.new_zeros((1, points.shape[1]))
        rows.append(POOLS[pool](here, weights if first < last else torch.ones(1, 1)))
    stacked: Array = torch.stack(rows).numpy()
    return stacked


def _mean_of(points: Tensor, weights: Tensor) -> Tensor:
    return (points * weights).sum(dim=0)


def _deviation(points: Tensor, weights: Tensor) -> Tensor:
    import torch

    centre = _mean_of(points, weights)
    return torch.cat((centre, _mean_of((points - centre).square(), weights).sqrt()))


def _power_means(points: Tensor, weights: Tensor) -> Tensor:
    import torch

    return torch.cat((points.amin(dim=0), _mean_of(points, weights), points.amax(dim=0)))


POOLS: dict[str, Callable[[Any, Any], Any]] = {
    "mean": _mean_of,
    "deviation": _deviation,
    "power-means": _power_means,
}
"""How the points of a text become one vector."""
