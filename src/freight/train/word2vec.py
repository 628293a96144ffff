"""Word2Vec through gensim: the second embedding of WRDScore."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from freight.clouds import Tick
from freight.errors import InvalidInput
from freight.train.packed import Packed
from freight.train.vectors import WordVectors, gensim_models, provenance

_LONGEST = 10_000  # gensim leaves out what a text has beyond so many words


def word2vec(
    corpus: Packed,
    dim: int = 100,
    window: int = 2,
    epochs: int = 5,
    seed: int = 0,
    threads: int = 1,
    skip_gram: bool = False,
    tick: Tick | None = None,
) -> WordVectors:
    """Vectors that tell a word from its neighbours; the same every time with one thread."""
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
    model.train(Sentences(corpus, tick), total_words=corpus.tokens, epochs=epochs)
    options = {
        "dim": dim, "window": window, "epochs": epochs, "seed": seed, "threads": threads,
        "skip_gram": skip_gram,
    }  # fmt: skip
    about = provenance("word2vec", options, corpus.origin)
    return WordVectors(tuple(model.wv.index_to_key), np.asarray(model.wv.vectors), about)


@dataclass(frozen=True)
class Sentences:
    """The texts as lists of words, as often as they are asked for."""

    corpus: Packed
    tick: Tick | None

    def __iter__(self) -> Iterator[list[str]]:
        names = np.array(self.corpus.words, dtype=object)
        for ids, texts in self.corpus.chunks():
            words = names[ids].tolist()
            bounds = [0, *(np.flatnonzero(np.diff(texts)) + 1).tolist(), len(words)]
            for begin, end in pairwise(bounds):
                for at in range(begin, end, _LONGEST):
                    yield words[at : min(end, at + _LONGEST)]
            if self.tick:
                self.tick(len(ids))
