"""Files of texts and of scores: one file a format, read and written piece by piece."""

from freight.data.corpus import Corpus

__all__ = ["Corpus"]
