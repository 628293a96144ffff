"""What is learned from texts and ratings of one's own: word vectors, features, adapters."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from freight.learn.corpus import PackedCorpus, pack_texts, read_corpus
from freight.learn.word_vectors import WordVectors, cooccurrence, word2vec

if TYPE_CHECKING:
    from freight.encoders.adapters import Adapter, read_adapter
    from freight.learn.fitting import Fit, fit

__all__ = [
    "Adapter",
    "Fit",
    "PackedCorpus",
    "WordVectors",
    "cooccurrence",
    "fit",
    "pack_texts",
    "read_adapter",
    "read_corpus",
    "word2vec",
]

_HOMES = {
    "Adapter": "freight.encoders.adapters",
    "Fit": "freight.learn.fitting",
    "fit": "freight.learn.fitting",
    "read_adapter": "freight.encoders.adapters",
}
"""Of what needs torch, which word vectors do not."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'freight.learn' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
