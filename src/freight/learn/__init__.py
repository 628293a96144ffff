"""Word vectors trained on a corpus of one's own, for metrics that score by words."""

from freight.learn.embeddings import WordVectors, cooccurrence, word2vec
from freight.learn.training_corpus import Packed, pack_texts, read_corpus

__all__ = ["Packed", "WordVectors", "cooccurrence", "pack_texts", "read_corpus", "word2vec"]
