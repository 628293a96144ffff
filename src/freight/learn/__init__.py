"""Word vectors trained on a corpus of one's own, and texts as feature vectors."""

from freight.learn.corpus import PackedCorpus, pack_texts, read_corpus
from freight.learn.word_vectors import WordVectors, cooccurrence, word2vec

__all__ = ["PackedCorpus", "WordVectors", "cooccurrence", "pack_texts", "read_corpus", "word2vec"]
