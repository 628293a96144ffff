"""Word vectors trained on a corpus of one's own, for metrics that score by words."""

from freight.train.cooccurrence import cooccurrence
from freight.train.packed import Packed, pack_texts, read_corpus
from freight.train.vectors import WordVectors
from freight.train.word2vec import word2vec

__all__ = ["Packed", "WordVectors", "cooccurrence", "pack_texts", "read_corpus", "word2vec"]
