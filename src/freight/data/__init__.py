"""Texts, tables and judgement sets, read and written in pieces."""

from freight.data.corpus import Corpus

__all__ = ["Corpus"]
